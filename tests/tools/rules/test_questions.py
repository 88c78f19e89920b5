"""The rule by_text: what it asks of tools, what it makes of their findings, when it abstains."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest

from bench.by_text import measure
from hybrid.errors import ToolError
from hybrid.scoring.findings import recorded_answer
from hybrid.scoring.traces import TracedCall
from hybrid.solving.rules import counted_route
from hybrid.types import Box, Fault, Finding, ImageRef, Json, Kind, Prompt, StoredImage
from tests.tools.rules.wordings import prompt
from tools.detection import report
from tools.detection.models import Detection
from tools.markers import MarkersArgs, locate
from tools.relation.box_relations import CERTAIN
from tools.rules import ask_specialists as ask_rules

SURE = 0.8


def finding(data: Mapping[str, Json]) -> Finding:
    return Finding("", data, SURE, "learned", "1")


def seen(*boxes: tuple[str, float, tuple[float, ...]], names: Sequence[str] = ()) -> Finding:
    """A finding of detection, in its own form."""
    found = [Detection(name, score, Box(*corners)) for name, score, corners in boxes]
    named = list(dict.fromkeys([*(one.name for one in found), *names]))
    return finding(report(np.zeros((480, 640, 3), np.uint8), named, found, 0.1).data)


def drawn(**colors: tuple[float, float, float, float]) -> Finding:
    """A finding of markers with boxes by colour."""
    rows: list[Json] = [
        {"label": None, "color": color, "box_px": list(box), "label_box_px": None, "edge_score": 0.9,
         "letter_score": 0.0, "confidence": 0.9}
        for color, box in colors.items()
    ]  # fmt: skip
    return finding({"points_px": [], "boxes_px": rows})


async def said(fakes: Any, one: Prompt, *findings: Finding | Exception) -> tuple[str | None, Any, str]:
    """The answer (the choice's words where there are choices), the calls, and the last note."""
    ctx = fakes.context_of(one, findings=list(findings))
    answer = await ask_rules(one, ctx)
    assert not ctx.tool.findings
    notes = [step.name for step in ctx.log.steps if step.kind == "rule"]
    words = None if answer is None else answer.answer if answer.choice is None else one.choices[answer.choice]
    return words, ctx.tool.calls, notes[-1] if notes else ""


NEARER = "{} the mug (highlighted by a red box) {} the jug (highlighted by a blue box)?"
MUG_JUG = NEARER.format("Is", "closer or farther than")
BOTH_DRAWN = drawn(red=(10, 20, 31, 41), blue=(100, 20, 121, 81))
CUP_BOX: Mapping[str, Json] = {"subject": {"name": "cup"}, "reference": {"name": "box"}}


def dogs(number: int) -> Finding:
    return seen(*(("dog", 0.9, (20 * place, 0, 20 * place + 9, 9)) for place in range(number)))


def lettered(letters: str) -> Finding:
    places = zip(letters, ((50, 20), (60, 200), (90, 90)), strict=False)
    rows: list[Json] = [{"label": name, "x": x, "y": y, "radius_px": 9, "confidence": 0.9} for name, (x, y) in places]
    return finding({"points_px": rows, "boxes_px": []})


@pytest.mark.parametrize(
    ("one", "findings", "answer", "tool", "sure", "on_card"),
    [
        (
            prompt(NEARER.format("Is", "closer to the camera than")),
            [BOTH_DRAWN, finding({"nearer": "0"})],
            "yes",
            "depth",
            0.77,
            False,
        ),
        (
            prompt(NEARER.format("Which is closer to the camera,", "or"), "jug", "mug"),
            [BOTH_DRAWN, finding({"nearer": "0"})],
            "(B)",
            "depth",
            0.77,
            False,
        ),
        (
            prompt("Where is the dog in the image?", "top", "bottom"),
            [seen(("dog", 0.9, (10, 270, 60, 310)))],
            "(B)",
            "detection",
            0.9**0.25,
            False,
        ),
        (prompt("How many dogs are there?", "three", "two"), [dogs(2)], "(B)", "detection", SURE, True),
        (prompt("How many dogs are there?", kind=Kind.INTEGER), [dogs(4)], "4", "detection", SURE, False),
        (prompt("Is there a dog?"), [dogs(1)], "yes", "detection", SURE, False),
        (prompt(MUG_JUG, "farther", "closer"), [BOTH_DRAWN, finding({"nearer": "0"})], "(B)", "depth", 0.77, False),
        (prompt(MUG_JUG, "farther", "closer"), [BOTH_DRAWN, finding({"nearer": "1"})], "(A)", "depth", 0.77, False),
        (prompt(MUG_JUG, "closer", "farther"), [BOTH_DRAWN, finding({"nearer": "0"})], "(A)", "depth", 0.77, False),
        (
            prompt("Which point is farther from the camera?", "A", "B"),
            [finding({"nearer": "B"})],
            "(A)",
            "depth",
            SURE,
            True,
        ),
        (
            prompt("Is the cup in front of the box?"),
            [finding({"holds": False, **CUP_BOX})],
            "no",
            "relation",
            SURE,
            False,
        ),
        (
            prompt("Where is the cup relative to the box?", "right", "above"),
            [finding({"holds": False, **CUP_BOX}), finding({"holds": True, **CUP_BOX})],
            "(B)",
            "relation",
            SURE,
            False,
        ),
        # Between boxes: as sure as the relation's card, by the degree and the marks; 0.9 is the marks' confidence.
        (
            prompt("Is the red box to the left or right of the blue box?", "right", "left"),
            [drawn(red=(0, 10, 40, 40), blue=(150, 0, 190, 90))],
            "(B)",
            "markers",
            0.5 + (CERTAIN["left of"] - 0.5) * 0.9,
            False,
        ),
        (
            prompt("Is the cup to the left of the box?"),
            [finding({"holds": None}), seen(("cup", 0.5, (0, 0, 9, 9)), ("box", 0.2, (50, 0, 59, 9)))],
            "yes",
            "detection",
            0.5 + (CERTAIN["left of"] - 0.5) * 0.2**0.25,
            False,
        ),
        (
            prompt("Is point A above or below point B?", "below", "above"),
            [lettered("AB")],
            "(B)",
            "markers",
            0.5 + (CERTAIN["above"] - 0.5) * 0.9,
            False,
        ),
        (prompt("Where is the dog in the image?", "right", "left"), [dogs(1)], "(B)", "detection", 0.9**0.25, False),
        (prompt("Is the dog on the left side of the image?"), [dogs(1)], "yes", "detection", 0.9**0.25, False),
        (prompt("Is the dog in the bottom left corner of the image?"), [dogs(1)], "no", "detection", 0.9**0.25, False),
        (
            prompt("Where is the object in the red box in the image?", "right", "left"),
            [drawn(red=(10, 10, 60, 60))],
            "(B)",
            "markers",
            0.9,
            False,
        ),
        (
            prompt("What color is the dog?", "red", "blue"),
            [dogs(1), finding({"best": 1})],
            "(B)",
            "attributes",
            SURE,
            False,
        ),
        # The second is no rival.
        (
            prompt("What color is the dog?", "red", "blue"),
            [seen(("dog", 0.8, (0, 0, 9, 9)), ("dog", 0.2, (50, 0, 59, 9))), finding({"best": 0})],
            "(A)",
            "attributes",
            SURE,
            False,
        ),
        (
            prompt("What does the sign say?", "Push", "Pull"),
            [finding({"text": "please pull"})],
            "(B)",
            "ocr",
            SURE,
            False,
        ),
    ],
)
async def test_an_answer_rests_on_the_last_finding_and_says_how_sure_it_is(
    fakes: Any, one: Prompt, findings: list[Finding], answer: str, tool: str, sure: float, on_card: bool
) -> None:
    ctx = fakes.context_of(one, findings=list(findings))
    found = await ask_rules(one, ctx)
    assert found is not None
    assert (found.answer, found.tool, found.on_card) == (f"Answer: {answer}", tool, on_card)
    assert found.finding is findings[-1]
    assert found.confidence == pytest.approx(sure)
    assert [step for step in ctx.log.steps if step.kind == "rule"] == []


@pytest.mark.parametrize(
    ("one", "findings", "note", "text"),
    [
        (prompt("How many dogs are there?", "three", "two"), [dogs(4)], "no count", "no choice states 4 x dog"),
        (
            prompt("Which point is closer to the camera?", "A", "B"),
            [finding({"nearer": "C"})],
            "undecided",
            "depth does not say which is nearest",
        ),
        (
            prompt("Is the cup in front of the box?"),
            [finding({"holds": True})],
            "not found",
            "the boxes of cup and box say nothing about depth",
        ),
        (
            prompt("Is the cup in front of the box?"),
            [finding({"holds": None, **CUP_BOX})],
            "undecided",
            "0 of the relations asked for hold clearly",
        ),
        (
            prompt("Where is the cup relative to the box?", "right", "above"),
            [finding({"holds": True, **CUP_BOX})] * 2,
            "undecided",
            "2 of the relations asked for hold clearly",
        ),
        (
            prompt("Where is the dog in the image?", "right", "left"),
            [seen(("dog", 0.9, (310, 10, 330, 60)))],
            "undecided",
            "dog lies near a border of the parts asked for",
        ),
        (
            prompt("What does the sign say?", "Push", "Pull"),
            [finding({"text": "x"})],
            "not read",
            "not one choice alone stands in the text that ocr reads",
        ),
        (
            prompt("What does the sign say?", "None", "Pull"),
            [finding({})],
            "not read",
            "not one choice alone stands in the text that ocr reads",
        ),
        (prompt("Is there a unicycle?"), [seen(names=["cup"])], "unknown", "detection does not know unicycle"),
        (prompt("Is there a cup?"), [ToolError("no such class", Fault.BAD_ARGUMENTS)], "unknown", "no such class"),
        (prompt("What color is the dog?", "red", "blue"), [seen(names=["dog"])], "not found", "detection finds no dog"),
        (prompt("What color is the dog?", "red", "blue"), [dogs(2)], "several", "detection finds more than one dog"),
        (
            prompt("Is point A above or below point B?", "below", "above"),
            [lettered("A")],
            "not found",
            "markers finds 0 of point B",
        ),
        (
            prompt("Is point A above or below point B?", "below", "above"),
            [lettered("ABB")],
            "several",
            "markers finds 2 of point B",
        ),
        (
            prompt("Is point A above or below the red box?", "below", "above"),
            [],
            "not found",
            "the question names coloured boxes and letters, which are looked for in different ways",
        ),
    ],
)
async def test_an_abstention_says_why(
    fakes: Any, one: Prompt, findings: list[Finding | Exception], note: str, text: str
) -> None:
    ctx = fakes.context_of(one, findings=list(findings))
    assert await ask_rules(one, ctx) is None
    assert [(step.name, step.text) for step in ctx.log.steps if step.kind == "rule"] == [(note, text)]
    assert not ctx.tool.findings


@pytest.mark.parametrize("kind", [Kind.YES_NO, Kind.CHOICE])
@pytest.mark.parametrize("there", [True, False])
async def test_existence_is_whether_detection_finds_one(fakes: Any, there: bool, kind: Kind) -> None:
    one = prompt("Is there a cup in the image?", *(("No", "Yes") if kind is Kind.CHOICE else ()), kind=kind)
    boxes = seen(("cup", 0.9, (0, 0, 9, 9))) if there else seen(names=["cup"])
    answers = ("Yes", "No") if kind is Kind.CHOICE else ("Answer: yes", "Answer: no")
    assert (await said(fakes, one, boxes))[0] == answers[0 if there else 1]


async def test_what_a_quarter_shows_is_what_the_answer_rests_on(fakes: Any) -> None:
    one = prompt("Is there a kite in the image?", size=(1600, 900))
    part = ImageRef("img:1.1", StoredImage("0" * 64, 800, 450, "image/png"), "img:1", Box(800, 0, 1600, 450))
    none, found = seen(names=["kite"]), seen(("kite", 0.6, (100, 40, 120, 60)))
    quarters = replace(finding({}), images=(part, part))
    for findings, rests_on, answer in (
        ([none, quarters, found, seen(names=["kite"])], found, "yes"),
        ([none, quarters, seen(names=["kite"]), seen(names=["kite"])], none, "no"),
        ([none, quarters, ToolError("unknown", Fault.BAD_ARGUMENTS), found], found, "yes"),
    ):
        ctx = fakes.context_of(one, findings=list(findings))
        specialist_answer = await ask_rules(one, ctx)
        assert specialist_answer is not None
        assert specialist_answer.answer == f"Answer: {answer}"
        assert specialist_answer.finding is rests_on
        assert ctx.tool.calls[1] == ("crop", ("img:1",), {"grid": {"rows": 2, "columns": 2}, "scale": 1.0})
        assert ctx.tool.calls[2] == ("detection", ("img:1.1",), {"names": ["kite"]})


def test_answers_are_counted_by_what_is_asked() -> None:
    assert counted_route(prompt("Is there a cup in the image?")) == "by_text/existence"
    assert counted_route(prompt("Is the cup on the table?")) == "by_text/relation"
    assert counted_route(prompt("Is the cup pretty?")) == "by_text"
    assert counted_route(replace(prompt("Is the cup on the table?"), route="Spatial_Relation")) == "Spatial_Relation"


async def test_what_a_model_heard_of_a_tool_is_evidence_for_the_question() -> None:
    one = prompt("Is there a cup in the image?")
    for found, answer in ((seen(("cup", 0.9, (0, 0, 9, 9))), "Answer: yes"), (seen(names=["cup"]), "Answer: no")):
        heard = TracedCall("detection", ("img:1",), {"names": ["cup"]}, 0.1, None, found)
        assert await recorded_answer(one, [heard]) == answer
    other = TracedCall("detection", ("img:1",), {"names": ["dog"]}, 0.1, None, seen(names=["dog"]))
    assert await recorded_answer(one, [other]) is None


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("color", ["red", "green", "blue"])
def test_a_drawn_box_is_found_by_its_colour(color: Any, width: int) -> None:
    pixels = np.random.default_rng(width).integers(60, 200, (240, 320, 3)).astype(np.uint8)
    pixels = np.asarray(cv2.GaussianBlur(pixels, (0, 0), 3), np.uint8)
    ink = [255 * (color == name) for name in ("red", "green", "blue")]
    cv2.rectangle(pixels, (60, 50), (159, 179), ink, width)
    other = [255 * (color != "red"), 0, 255 * (color == "red")]
    cv2.rectangle(pixels, (120, 90), (259, 209), other if color != "blue" else [255, 0, 0], width)
    found = locate(pixels, MarkersArgs(colors=(color,)))
    (box,) = found.data["boxes_px"]  # type: ignore[misc,union-attr]
    assert box["color"] == color  # type: ignore[index,call-overload]
    assert np.abs(np.subtract(box["box_px"], (60, 50, 160, 180))).max() <= 3  # type: ignore[index,call-overload]
    assert found.confidence > 0.8
    assert locate(pixels[:, :50].copy(), MarkersArgs(colors=(color,))).confidence == 0


@pytest.mark.system
async def test_generated_scenes_are_answered_right_with_drawn_boxes_and_true_detections() -> None:
    rows = await measure(3, 0)
    assert rows["one of two meant (to abstain)"]["answered"] == 0
    assert all(counts["right"] == counts["answered"] for counts in rows.values())
    assert all(counts["answered"] >= 0.8 * counts["asked"] for row, counts in rows.items() if "abstain" not in row)
