"""The rules for ActiView's prompts about parts: their replies to tool outputs, in the forms that the dialogue reads."""

import json
from typing import Any

import pytest

from hybrid.answers import parse
from hybrid.answers.views import ViewPlan
from hybrid.benchmarks.actiview.views import GRIDS as THEIRS
from hybrid.core.errors import NoBackend
from hybrid.core.types import Finding, ImageRef, Kind, Prompt, StoredImage
from tests.tools.rules.asking import ask_rules
from tools.rules import ask_specialists
from tools.rules.actiview import GRIDS

FOUR = ("upper left", "lower left", "upper right", "lower right")
ABSENT = NoBackend("no weights")


def image(name: str) -> ImageRef:
    return ImageRef(name, StoredImage("0" * 64, 400, 200, "image/png"))


def whole_prompt(question: str, kind: Kind = Kind.VIEWS) -> Prompt:
    return Prompt((image("img:1"), f"Lines divide it.\nQuestion: {question}\nNumbers only."), kind, FOUR, route=kind)


def boxes(key: str, *middles: tuple[float, float], name: str = "cup", saliency: float = 1.0) -> Finding:
    rows = [
        {"name": name, "saliency_0_1": saliency, "box_px": [x - 5, y - 5, x + 5, y + 5], "score_0_1": 0.9}
        for x, y in middles
    ]
    return Finding("", {key: rows}, 0.7, "learned", "1")


def test_the_grids_are_the_benchmarks() -> None:
    assert GRIDS == THEIRS


@pytest.mark.parametrize("nothing", [boxes("objects"), boxes("objects", (10, 10), saliency=0.3)])
async def test_nothing_that_stands_out_abstains(fakes: Any, nothing: Finding) -> None:
    assert (await ask_rules(fakes, whole_prompt("What does the cup say?"), ABSENT, ABSENT, nothing))[0] is None


def parts_prompt(text: str, kind: Kind) -> Prompt:
    parts = ("Part 2 (lower left):", image("img:1"), "Part 4 (lower right):", image("img:2"), text)
    return Prompt(parts, kind, FOUR if kind is not Kind.CONTINUE else (), route=kind)


MORE = "The question about the whole picture is: What colour is the cup?\nReply yes or no."


async def test_going_on_needs_a_detector_and_a_name(fakes: Any) -> None:
    assert (await ask_rules(fakes, parts_prompt(MORE, Kind.CONTINUE), ABSENT))[0] is None
    assert await ask_rules(fakes, parts_prompt("The question about the whole picture is: Why?", Kind.CONTINUE)) == (
        None,
        [],
    )


@pytest.mark.parametrize(("middles", "answer"), [((), "Answer: 1, 3"), (((10, 10),), "Answer: no")])
async def test_the_next_parts_are_those_not_shown(fakes: Any, middles: Any, answer: str) -> None:
    text = f"{MORE}; you can choose from: 1 (upper left); 3 (upper right). Do not answer."
    findings = [boxes("boxes", *middles)] * (1 if middles else 2)
    specialist_answer, _ = await ask_rules(fakes, parts_prompt(text, Kind.VIEWS), *findings)
    assert specialist_answer.answer == answer


@pytest.mark.parametrize(
    ("text", "choices"), [("Numbers only.", FOUR), ("Question: Why?", ("x", "y")), ("Question: Why?", ())]
)
async def test_without_a_question_or_a_grid_it_abstains(fakes: Any, text: str, choices: tuple[str, ...]) -> None:
    request = Prompt((image("img:1"), text), Kind.VIEWS, choices, route=Kind.VIEWS)
    ctx = fakes.context_of(request)
    assert await ask_specialists(request, ctx) is None
    note = ("no question", "the text holds no question about the parts of a picture")
    assert [(step.name, step.text) for step in ctx.log.steps if step.kind == "rule"] == [note]


async def test_a_first_plan_says_what_points_there(fakes: Any) -> None:
    result, _ = await ask_rules(fakes, whole_prompt("Why?", Kind.VIEW_PLAN), boxes("objects", (10, 10), (390, 190)))
    assert json.loads(result.answer) == {"part": "1, 4", "reason": "saliency points there"}
    assert (result.tool, result.confidence) == ("saliency", 0.2)


async def test_a_second_plan_keeps_and_shifts(fakes: Any) -> None:
    parts = (image("img:1"), "Part 2 (lower left):", image("img:2"), "Question: What colour is the cup?")
    request = Prompt(parts, Kind.VIEW_PLAN, FOUR, route=Kind.VIEW_PLAN)
    specialist_answer, _ = await ask_rules(fakes, request, boxes("boxes", (10, 190), (390, 190)))
    plan = parse(specialist_answer.answer, Kind.VIEW_PLAN, FOUR).value
    assert isinstance(plan, ViewPlan)
    assert (plan.keep, plan.shift) == (frozenset({2}), frozenset({4}))
