"""The rule by_text: its tool calls, its answers from their outputs, and when it abstains."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest

from bench.by_text import measure
from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Fault, Finding, ImageRef, Json, Kind, Prompt, StoredImage
from hybrid.scoring.attempt_facts import TracedCall
from hybrid.scoring.findings import recorded_answer
from hybrid.solving.rules import counted_route
from hybrid.solving.solver import Limits
from tests.tables import cases
from tests.tools.rules.wordings import prompt
from tools.detection import report
from tools.detection.models import Detection
from tools.markers import MarkersArgs, locate
from tools.rules import ask_specialists


def finding(data: Mapping[str, Json]) -> Finding:
    return Finding("", data, 0.8, "learned", "1")


def seen(*boxes: tuple[str, float, tuple[float, ...]], names: Sequence[str] = ()) -> Finding:
    """Return an output of detection in its own form."""
    detections = [Detection(name, score, Box(*corners)) for name, score, corners in boxes]
    items = list(dict.fromkeys([*(item.name for item in detections), *names]))
    return finding(report(np.zeros((480, 640, 3), np.uint8), items, detections, 0.1).data)


async def ask_rules(fakes: Any, item: Prompt, *findings: Finding | Exception) -> tuple[str | None, Any, str]:
    """Return the answer (the choice's words if there are choices), the calls, and the last note."""
    ctx = fakes.context_of(item, findings=list(findings))
    answer = await ask_specialists(item, ctx)
    assert not ctx.tool.findings
    notes = [step.name for step in ctx.log.steps if step.kind == "rule"]
    words = None if answer is None else answer.answer if answer.choice is None else item.choices[answer.choice]
    return words, ctx.tool.calls, notes[-1] if notes else ""


@pytest.mark.parametrize(
    *cases(__file__, "test_an_answer_rests_on_the_last_finding_and_says_how_sure_it_is", list, choices=tuple, kind=Kind)
)
async def test_an_answer_rests_on_the_last_finding_and_says_how_sure_it_is(
    fakes: Any,
    question: str,
    choices: tuple[str, ...],
    kind: Kind,
    findings: list[Any],
    answer: str,
    tool: str,
    confidence: float,
    on_card: bool,
) -> None:
    item, items = prompt(question, *choices, kind=kind), list(map(finding, findings))
    ctx = fakes.context_of(item, findings=list(items))
    result = await ask_specialists(item, ctx)
    assert result is not None
    assert (result.answer, result.tool, result.on_card) == (f"Answer: {answer}", tool, on_card)
    assert result.finding is items[-1]
    assert result.confidence == pytest.approx(confidence)
    assert [step for step in ctx.log.steps if step.kind == "rule"] == []


@pytest.mark.parametrize(*cases(__file__, "test_an_abstention_says_why", list, choices=tuple, kind=Kind))
async def test_an_abstention_says_why(
    fakes: Any, question: str, choices: tuple[str, ...], kind: Kind, findings: list[Any], note: str, text: str
) -> None:
    item = prompt(question, *choices, kind=kind)
    values = [ToolError(data["error"], Fault.BAD_ARGUMENTS) if "error" in data else finding(data) for data in findings]
    ctx = fakes.context_of(item, findings=values)
    assert await ask_specialists(item, ctx) is None
    assert [(step.name, step.text) for step in ctx.log.steps if step.kind == "rule"] == [(note, text)]
    assert not ctx.tool.findings


@pytest.mark.parametrize("kind", [Kind.YES_NO, Kind.CHOICE])
@pytest.mark.parametrize("is_there", [True, False])
async def test_existence_is_whether_detection_finds_one(fakes: Any, is_there: bool, kind: Kind) -> None:
    item = prompt("Is there a cup in the image?", *(("No", "Yes") if kind is Kind.CHOICE else ()), kind=kind)
    boxes = seen(("cup", 0.9, (0, 0, 9, 9))) if is_there else seen(names=["cup"])
    answers = ("Yes", "No") if kind is Kind.CHOICE else ("Answer: yes", "Answer: no")
    assert (await ask_rules(fakes, item, boxes))[0] == answers[0 if is_there else 1]


@pytest.mark.parametrize(("size", "cut"), [((1500, 900), False), ((1501, 900), True)])
async def test_a_large_image_is_searched_in_quarters_within_eight_calls(
    fakes: Any, size: tuple[int, int], cut: bool
) -> None:
    item = prompt("What color is the kite?", "red", "blue", size=size)
    parts = tuple(
        ImageRef(f"img:1.{n}", StoredImage("0" * 64, 750, 450, "image/png"), "img:1", Box(x, y, x + 750, y + 450))
        for n, (x, y) in enumerate([(0, 0), (750, 0), (0, 450), (750, 450)], 2)
    )
    overlay = ImageRef("img:1.1", StoredImage("0" * 64, *size, "image/png"), "img:1")
    quarters = replace(finding({}), images=(overlay, *parts))
    none, result = seen(names=["kite"]), seen(("kite", 0.6, (100, 40, 120, 60)))
    findings = [none, quarters, none, result, none, none, finding({"best": 1})] if cut else [none]
    words, calls, note = await ask_rules(fakes, item, *findings)
    assert len(calls) <= Limits().tool_calls
    if cut:
        assert words == "blue"
        region = {"x0": 848.0, "y0": 38.0, "x1": 872.0, "y1": 62.0}
        assert calls[-1] == ("attributes", ("img:1",), {"texts": ["a red kite", "a blue kite"], "box": region})
    else:
        assert (words, note) == (None, "not found")


async def test_what_a_quarter_shows_is_what_the_answer_rests_on(fakes: Any) -> None:
    item = prompt("Is there a kite in the image?", size=(1600, 900))
    part = ImageRef("img:1.1", StoredImage("0" * 64, 800, 450, "image/png"), "img:1", Box(800, 0, 1600, 450))
    none, result = seen(names=["kite"]), seen(("kite", 0.6, (100, 40, 120, 60)))
    quarters = replace(finding({}), images=(part, part))
    for findings, rests_on, answer in (
        ([none, quarters, result, seen(names=["kite"])], result, "yes"),
        ([none, quarters, seen(names=["kite"]), seen(names=["kite"])], none, "no"),
        ([none, quarters, ToolError("unknown", Fault.BAD_ARGUMENTS), result], result, "yes"),
    ):
        ctx = fakes.context_of(item, findings=list(findings))
        specialist_answer = await ask_specialists(item, ctx)
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
    item = prompt("Is there a cup in the image?")
    for result, answer in ((seen(("cup", 0.9, (0, 0, 9, 9))), "Answer: yes"), (seen(names=["cup"]), "Answer: no")):
        call = TracedCall("detection", ("img:1",), {"names": ["cup"]}, 0.1, None, result)
        assert await recorded_answer(item, [call]) == answer
    other = TracedCall("detection", ("img:1",), {"names": ["dog"]}, 0.1, None, seen(names=["dog"]))
    assert await recorded_answer(item, [other]) is None


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("color", ["red", "green", "blue"])
def test_a_drawn_box_is_found_by_its_colour(color: Any, width: int) -> None:
    pixels = np.random.default_rng(width).integers(60, 200, (240, 320, 3)).astype(np.uint8)
    pixels = np.asarray(cv2.GaussianBlur(pixels, (0, 0), 3), np.uint8)
    ink = [255 * (color == name) for name in ("red", "green", "blue")]
    cv2.rectangle(pixels, (60, 50), (159, 179), ink, width)
    other = [255 * (color != "red"), 0, 255 * (color == "red")]
    cv2.rectangle(pixels, (120, 90), (259, 209), other if color != "blue" else [255, 0, 0], width)
    result = locate(pixels, MarkersArgs(colors=(color,)))
    (box,) = result.data["boxes_px"]  # type: ignore[misc,union-attr]
    assert box["color"] == color  # type: ignore[index,call-overload]
    assert np.abs(np.subtract(box["box_px"], (60, 50, 160, 180))).max() <= 3  # type: ignore[index,call-overload]
    assert result.confidence > 0.8
    assert locate(pixels[:, :50].copy(), MarkersArgs(colors=(color,))).confidence == 0


@pytest.mark.system
async def test_generated_scenes_are_answered_right_with_drawn_boxes_and_true_detections() -> None:
    rows = await measure(3, 0)
    assert rows["one of two meant (to abstain)"]["answered"] == 0
    assert all(counts["right"] == counts["answered"] for counts in rows.values())
    assert all(counts["answered"] >= 0.8 * counts["asked"] for row, counts in rows.items() if "abstain" not in row)
