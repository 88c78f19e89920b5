"""The rule by_text: what it asks of tools, what it makes of their findings, when it abstains."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from bench.by_text import measure
from hybrid.errors import ToolError
from hybrid.scoring.findings import recorded_answer
from hybrid.scoring.traces import TracedCall
from hybrid.solving.rules import counted_route
from hybrid.solving.solver import Limits
from hybrid.tool import Request
from hybrid.types import Box, Fault, Finding, ImageRef, Json, Kind, Prompt, StoredImage
from tests.tools.rules.wordings import prompt
from tools.detection import DetectionArgs, LearnedDetection, report
from tools.detection.models import Detection
from tools.markers import MarkersArgs, locate
from tools.relation.box_relations import CERTAIN
from tools.rules import ask_specialists as ask_rules
from tools.rules.questions.recognising import asked
from tools.rules.questions.sentence import Unclear

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


async def test_a_question_that_is_not_clear_abstains_with_the_reason_and_calls_nothing(fakes: Any) -> None:
    one = prompt("What color is the woman's jacket?", "red", "blue")
    ctx = fakes.context_of(one)
    assert await ask_rules(one, ctx) is None
    (note,) = ctx.log.steps
    assert (note.name, ctx.tool.calls) == ("not clear", [])
    found = asked(one)
    assert isinstance(found, Unclear)
    assert note.text == found.reason
    assert "woman's jacket" in note.text


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


@pytest.mark.parametrize("best", [None, 2, True])
async def test_attributes_that_name_no_text_decide_nothing(fakes: Any, best: Json) -> None:
    words, calls, note = await said(
        fakes, prompt("What color is the dog?", "red", "blue"), dogs(1), finding({"best": best})
    )
    assert (words, note, len(calls)) == (None, "", 2)


async def test_another_fault_of_detection_is_no_abstention(fakes: Any) -> None:
    with pytest.raises(ToolError, match="out of memory"):
        await said(fakes, prompt("Is there a cup?"), ToolError("out of memory"))


@pytest.mark.parametrize(("near", "answer"), [("0", "mug"), ("1", "jug"), (None, None)])
@pytest.mark.parametrize("word", ["closer to", "farther from"])
async def test_depth_compares_the_middles_of_drawn_boxes(
    fakes: Any, near: str | None, answer: str | None, word: str
) -> None:
    text = f"Which is {word} the camera, the mug (highlighted by a red box) or the jug (highlighted by a blue box)?"
    boxes = drawn(red=(10, 20, 31, 41), blue=(100, 20, 121, 81))
    words, calls, note = await said(fakes, prompt(text, "jug", "mug"), boxes, finding({"nearer": near}))
    assert calls[0] == ("markers", ("img:1",), {"colors": ["red", "blue"]})
    points = [{"x": 20, "y": 30, "label": "0"}, {"x": 110, "y": 50, "label": "1"}]
    assert calls[1] == ("depth", ("img:1",), {"points": points})
    other = {"mug": "jug", "jug": "mug", None: None}
    assert words == (answer if word == "closer to" else other[answer])
    assert note == ("" if near else "undecided")


async def test_depth_of_drawn_letters_is_asked_as_depth_itself_asks(fakes: Any) -> None:
    one = prompt("Which point is closer to the camera?", "A is closer", "B is closer")
    ctx = fakes.context_of(one, findings=[finding({"nearer": "B"})])
    answer = await ask_rules(one, ctx)
    assert ctx.tool.calls == [("depth", ("img:1",), {"labels": ["A", "B"]})]
    assert answer is not None
    assert (answer.choice, answer.on_card, answer.confidence) == (1, True, SURE)


@pytest.mark.parametrize(("word", "near", "answer"), [("closer to", 0, "yes"), ("farther from", 0, "no"),
                                                      ("closer to", 1, "no"), ("farther from", 1, "yes")])  # fmt: skip
async def test_nearer_and_farther_than_are_opposites(fakes: Any, word: str, near: int, answer: str) -> None:
    one = prompt(f"Is point A {word} the camera than point B?")
    assert (await said(fakes, one, finding({"nearer": "AB"[near]})))[0] == f"Answer: {answer}"


@pytest.mark.parametrize(("x", "answer"), [(0, "Answer: yes"), (300, "Answer: no"), (149, None)])
async def test_whether_drawn_boxes_lie_so_is_told_where_it_is_clear(fakes: Any, x: int, answer: str | None) -> None:
    one = prompt("Is the object in the red box to the left of the object in the blue box?")
    boxes = drawn(red=(x, 10, x + 40, 40), blue=(150, 0, 190, 90))
    words, _, note = await said(fakes, one, boxes)
    assert (words, note) == (answer, "" if answer else "undecided")


async def test_depth_between_names_is_less_sure_the_less_sure_the_boxes_are(fakes: Any) -> None:
    one = prompt("Is the dog closer to the camera than the cat?")
    boxes = seen(("dog", 0.5, (0, 0, 9, 9)), ("cat", 0.2, (50, 0, 59, 9)))
    ctx = fakes.context_of(one, findings=[boxes, finding({"nearer": "1"})])
    answer = await ask_rules(one, ctx)
    assert answer is not None
    assert answer.answer == "Answer: no"
    assert answer.confidence == pytest.approx(0.5 + (SURE - 0.5) * 0.2**0.25)
    assert not answer.on_card


WHERE = "Where is the cup relative to the box?"


@pytest.mark.parametrize("holding", ["left of", "above", None])
async def test_of_several_relations_the_one_that_alone_holds_is_taken(fakes: Any, holding: str | None) -> None:
    one = prompt(WHERE, "right", "above", "left")
    ends = {"subject": {"name": "cup"}, "reference": {"name": "box"}}
    findings = [finding({"holds": name == holding, **ends}) for name in ("right of", "above", "left of")]
    words, calls, note = await said(fakes, one, *findings)
    assert [args["relation"] for _, _, args in calls] == ["right of", "above", "left of"]
    assert words == {"left of": "left", "above": "above", None: None}[holding]
    assert note == ("" if holding else "undecided")


@pytest.mark.parametrize(("letters", "answer"), [("AB", "above"), ("BA", "below"), ("A", None), ("ABB", None)])
async def test_drawn_letters_are_compared_where_each_is_found_once(
    fakes: Any, letters: str, answer: str | None
) -> None:
    places = zip(letters, ((50, 20), (60, 200), (90, 90)), strict=False)
    rows: list[Json] = [
        {"label": letter, "x": x, "y": y, "radius_px": 9.0, "confidence": 0.9} for letter, (x, y) in places
    ]
    one = prompt("Is point A above or below point B?", "below", "above")
    words, calls, _ = await said(fakes, one, finding({"points_px": rows, "boxes_px": []}))
    assert calls == [("markers", ("img:1",), {"labels": ["A", "B"]})]
    assert words == answer


async def test_two_relations_that_hold_decide_nothing(fakes: Any) -> None:
    ends = {"subject": {"name": "cup"}, "reference": {"name": "box"}}
    findings = [finding({"holds": holds, **ends}) for holds in (True, True, False)]
    assert (await said(fakes, prompt(WHERE, "left", "above", "below"), *findings))[0] is None


@pytest.mark.parametrize(("x", "answer"), [(0, "left"), (300, "right"), (149, None)])
async def test_drawn_boxes_are_compared_themselves(fakes: Any, x: int, answer: str | None) -> None:
    one = prompt("Is the red box to the left or right of the blue box?", "right", "left")
    words, calls, _ = await said(fakes, one, drawn(red=(x, 10, x + 40, 40), blue=(150, 0, 190, 90)))
    assert (words, len(calls)) == (answer, 1)


@pytest.mark.parametrize(("count", "answer"), [(2, "two"), (3, "three"), (4, None)])
async def test_counting_takes_the_choice_that_states_the_count(fakes: Any, count: int, answer: str | None) -> None:
    boxes = seen(*(("dog", 0.9, (20 * place, 0, 20 * place + 9, 9)) for place in range(count)))
    words, calls, note = await said(fakes, prompt("How many dogs are there?", "three", "two"), boxes)
    assert calls == [("detection", ("img:1",), {"names": ["dog"]})]
    assert (words, note) == (answer, "" if answer else "no count")
    number = prompt("How many dogs are there?", kind=Kind.INTEGER)
    assert (await said(fakes, number, boxes))[0] == f"Answer: {count}"


@pytest.mark.parametrize("kind", [Kind.YES_NO, Kind.CHOICE])
@pytest.mark.parametrize("there", [True, False])
async def test_existence_is_whether_detection_finds_one(fakes: Any, there: bool, kind: Kind) -> None:
    one = prompt("Is there a cup in the image?", *(("No", "Yes") if kind is Kind.CHOICE else ()), kind=kind)
    boxes = seen(("cup", 0.9, (0, 0, 9, 9))) if there else seen(names=["cup"])
    answers = ("Yes", "No") if kind is Kind.CHOICE else ("Answer: yes", "Answer: no")
    assert (await said(fakes, one, boxes))[0] == answers[0 if there else 1]


async def test_what_a_detector_does_not_know_is_not_absent(fakes: Any) -> None:
    one = prompt("Is there a unicycle in the image?")
    refused = ToolError("detection: 'unicycle' is not among the classes", Fault.BAD_ARGUMENTS)
    for answer in (refused, seen(names=["cup"])):
        words, _, note = await said(fakes, one, answer)
        assert (words, note) == (None, "unknown")


@pytest.mark.parametrize(("size", "cut"), [((1500, 900), False), ((1501, 900), True)])
async def test_a_large_image_is_searched_in_quarters_within_eight_calls(
    fakes: Any, size: tuple[int, int], cut: bool
) -> None:
    one = prompt("What color is the kite?", "red", "blue", size=size)
    parts = tuple(
        ImageRef(f"img:1.{n}", StoredImage("0" * 64, 750, 450, "image/png"), "img:1", Box(x, y, x + 750, y + 450))
        for n, (x, y) in enumerate([(0, 0), (750, 0), (0, 450), (750, 450)], 2)
    )
    overlay = ImageRef("img:1.1", StoredImage("0" * 64, *size, "image/png"), "img:1")
    quarters = replace(finding({}), images=(overlay, *parts))
    none, found = seen(names=["kite"]), seen(("kite", 0.6, (100, 40, 120, 60)))
    findings = [none, quarters, none, found, none, none, finding({"best": 1})] if cut else [none]
    words, calls, note = await said(fakes, one, *findings)
    assert len(calls) <= Limits().tool_calls
    if cut:
        assert words == "blue"
        region = {"x0": 848.0, "y0": 38.0, "x1": 872.0, "y1": 62.0}
        assert calls[-1] == ("attributes", ("img:1",), {"texts": ["a red kite", "a blue kite"], "box": region})
    else:
        assert (words, note) == (None, "not found")


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


async def test_of_two_that_may_be_meant_none_is_described(fakes: Any) -> None:
    two = seen(("kite", 0.6, (0, 0, 20, 20)), ("kite", 0.5, (100, 0, 120, 20)))
    words, _, note = await said(fakes, prompt("What color is the kite?", "red", "blue"), two)
    assert (words, note) == (None, "several")


@pytest.mark.parametrize(
    ("box", "halves", "thirds"),
    [
        ((10, 10, 60, 60), "left", "on the left"),
        ((560, 10, 620, 60), "right", "on the right"),
        ((310, 10, 330, 60), None, "in the middle"),
        ((200, 10, 220, 60), "left", None),
    ],
)
async def test_a_position_is_told_clear_of_its_borders(
    fakes: Any, box: tuple[float, ...], halves: str | None, thirds: str | None
) -> None:
    boxes = seen(("dog", 0.9, box))
    text = "Where is the dog in the image?"
    assert (await said(fakes, prompt(text, "right", "left"), boxes))[0] == halves
    assert (await said(fakes, prompt(text, "on the right", "in the middle", "on the left"), boxes))[0] == thirds


async def test_a_corner_is_told_by_both_axes(fakes: Any) -> None:
    corners = ("upper left", "upper right", "lower left", "lower right")
    one = prompt("In which part of the picture is the dog?", *corners)
    assert (await said(fakes, one, seen(("dog", 0.9, (500, 400, 520, 420)))))[0] == "lower right"


async def test_reading_takes_the_one_choice_that_is_read(fakes: Any) -> None:
    one = prompt("What does the sign say?", "Push", "Pull")
    assert (await said(fakes, one, finding({"text": "please pull"})))[0] == "Pull"
    assert (await said(fakes, one, finding({"text": "push pull"})))[::2] == (None, "not read")


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


async def test_a_detector_in_the_real_format_answers_through_the_rule(
    things_checkpoint: Callable[[str], Path], fakes: Any
) -> None:
    backend = LearnedDetection()
    backend.setup("cpu", str(things_checkpoint("owlv2")))
    pixels = np.random.default_rng(0).integers(0, 256, (90, 120, 3)).astype(np.uint8)
    for threshold, answer in ((0.02, "Answer: yes"), (0.99, "Answer: no")):
        (found,) = backend.run([Request((pixels,), DetectionArgs(names=("cat",), threshold=threshold))])
        one = prompt("Is there a cat in the image?", size=(120, 90))
        assert (await said(fakes, one, finding(found.data)))[0] == answer


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
