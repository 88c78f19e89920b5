"""The rules over ActiView's asks for parts: what a finding makes them say, in the forms that the dialogue reads."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.answers import parse
from hybrid.answers.views import ViewPlan
from hybrid.benchmarks.actiview import BENCHMARK
from hybrid.benchmarks.actiview.views import GRIDS as THEIRS
from hybrid.benchmarks.base import ScoreOptions
from hybrid.config import RunConfig, ServiceOptions
from hybrid.errors import NoBackend
from hybrid.running.resolve import prepare
from hybrid.running.run import execute
from hybrid.scoring.runs import score_run
from hybrid.types import Finding, ImageRef, Kind, Prompt, StoredImage
from tools.rules import ask_specialists as ask_rules
from tools.rules.actiview import GRIDS

FOUR = ("upper left", "lower left", "upper right", "lower right")
ABSENT = NoBackend("no weights")


def image(name: str) -> ImageRef:
    return ImageRef(name, StoredImage("0" * 64, 400, 200, "image/png"))


def whole(question: str, kind: Kind = Kind.VIEWS) -> Prompt:
    return Prompt((image("img:1"), f"Lines divide it.\nQuestion: {question}\nNumbers only."), kind, FOUR, route=kind)


def boxes(key: str, *middles: tuple[float, float], name: str = "cup", saliency: float = 1.0) -> Finding:
    rows = [
        {"name": name, "saliency_0_1": saliency, "box_px": [x - 5, y - 5, x + 5, y + 5], "score_0_1": 0.9}
        for x, y in middles
    ]
    return Finding("", {key: rows}, 0.7, "learned", "1")


async def said(fakes: Any, asked: Prompt, *findings: Finding | Exception) -> Any:
    ctx = fakes.context_of(asked, findings=list(findings))
    return await ask_rules(asked, ctx), ctx.tool.calls


def test_the_grids_are_the_benchmarks() -> None:
    assert GRIDS == THEIRS


async def test_parts_with_the_named_thing(fakes: Any) -> None:
    found = boxes("boxes", (10, 190), (390, 10))
    specialist_answer, calls = await said(fakes, whole("What colour is the cup?"), found)
    assert calls == [("detection", ("img:1",), {"names": ["cup"]})]
    assert parse(specialist_answer.answer, Kind.VIEWS, FOUR).value == frozenset({2, 3})
    assert specialist_answer.confidence == 0.7


async def test_parts_with_text_where_text_is_asked_for(fakes: Any) -> None:
    specialist_answer, calls = await said(fakes, whole("What is the price on a sign?"), boxes("lines", (390, 190)))
    assert calls == [("ocr", ("img:1",), {})]
    assert specialist_answer.answer == "Answer: 4"


async def test_without_weights_what_stands_out_is_a_guess(fakes: Any) -> None:
    seen = boxes("objects", (10, 10))
    specialist_answer, calls = await said(fakes, whole("What does the cup say?"), ABSENT, ABSENT, seen)
    assert [(name, args) for name, _, args in calls] == [
        ("ocr", {}),
        ("detection", {"names": ["cup"]}),
        ("saliency", {"columns": 2, "rows": 2}),
    ]
    assert (specialist_answer.tool, specialist_answer.finding) == ("saliency", seen)
    assert (specialist_answer.answer, specialist_answer.confidence) == ("Answer: 1", 0.2)


async def test_saliency_is_told_of_the_lines_between_the_parts(fakes: Any) -> None:
    nine = tuple(str(number) for number in range(1, 10))
    asked = Prompt((image("img:1"), "Question: Why?\nNumbers only."), Kind.VIEWS, nine, route=Kind.VIEWS)
    ctx = fakes.context_of(asked, findings=[boxes("objects", (10, 10))])
    assert (await ask_rules(asked, ctx)).answer == "Answer: 1"
    assert ctx.tool.calls == [("saliency", ("img:1",), {"columns": 3, "rows": 3})]


@pytest.mark.parametrize("nothing", [boxes("objects"), boxes("objects", (10, 10), saliency=0.3)])
async def test_nothing_that_stands_out_abstains(fakes: Any, nothing: Finding) -> None:
    assert (await said(fakes, whole("What does the cup say?"), ABSENT, ABSENT, nothing))[0] is None


def shown(text: str, kind: Kind) -> Prompt:
    parts = ("Part 2 (lower left):", image("img:1"), "Part 4 (lower right):", image("img:2"), text)
    return Prompt(parts, kind, FOUR if kind is not Kind.CONTINUE else (), route=kind)


MORE = "The question about the whole picture is: What colour is the cup?\nReply yes or no."


@pytest.mark.parametrize(
    ("first", "second", "word"), [((), (), "yes"), ((), ((10, 10),), "no"), (((10, 10),), None, "no")]
)
async def test_it_goes_on_until_the_thing_is_found(fakes: Any, first: Any, second: Any, word: str) -> None:
    findings = [boxes("boxes", *first), *([boxes("boxes", *second)] if second is not None else [])]
    specialist_answer, calls = await said(fakes, shown(MORE, Kind.CONTINUE), *findings)
    assert (specialist_answer.answer, len(calls)) == (word, len(findings))
    assert parse(specialist_answer.answer, Kind.CONTINUE).value == word


async def test_going_on_needs_a_detector_and_a_name(fakes: Any) -> None:
    assert (await said(fakes, shown(MORE, Kind.CONTINUE), ABSENT))[0] is None
    nameless = shown("The question about the whole picture is: Why?", Kind.CONTINUE)
    assert await said(fakes, nameless) == (None, [])


@pytest.mark.parametrize(("middles", "answer"), [((), "Answer: 1, 3"), (((10, 10),), "Answer: no")])
async def test_the_next_parts_are_those_not_shown(fakes: Any, middles: Any, answer: str) -> None:
    text = f"{MORE}; you can choose from: 1 (upper left); 3 (upper right). Do not answer."
    findings = [boxes("boxes", *middles)] * (1 if middles else 2)
    specialist_answer, _ = await said(fakes, shown(text, Kind.VIEWS), *findings)
    assert specialist_answer.answer == answer


@pytest.mark.parametrize(
    ("middle", "part"),
    [((0, 0), 1), ((199, 99), 1), ((199, 100), 2), ((200, 99), 3), ((200, 100), 4), ((400, 200), 4)],
)
async def test_a_thing_lies_in_the_part_of_its_middle(fakes: Any, middle: tuple[float, float], part: int) -> None:
    found, _ = await said(fakes, whole("Where is the cup?"), boxes("boxes", middle))
    assert found.answer == f"Answer: {part}"


async def test_six_parts_are_counted_down_the_columns(fakes: Any) -> None:
    six = tuple(str(number) for number in range(1, 7))
    asked = Prompt((image("img:1"), "Question: Where is the cup?"), Kind.VIEWS, six, route=Kind.VIEWS)
    found, _ = await said(fakes, asked, boxes("boxes", (200, 150), (399, 10)))
    assert found.answer == "Answer: 4, 5"


@pytest.mark.parametrize(("saliency", "answer"), [(0.5, "Answer: 2"), (0.49, None)])
async def test_what_is_half_as_salient_as_the_first_stands_out(fakes: Any, saliency: float, answer: Any) -> None:
    found, _ = await said(fakes, whole("Why?"), boxes("objects", (10, 190), saliency=saliency))
    assert (found and found.answer) == answer


@pytest.mark.parametrize(
    ("text", "choices"), [("Numbers only.", FOUR), ("Question: Why?", ("x", "y")), ("Question: Why?", ())]
)
async def test_without_a_question_or_a_grid_it_abstains(fakes: Any, text: str, choices: tuple[str, ...]) -> None:
    asked = Prompt((image("img:1"), text), Kind.VIEWS, choices, route=Kind.VIEWS)
    ctx = fakes.context_of(asked)
    assert await ask_rules(asked, ctx) is None
    note = ("no question", "the text holds no question about the parts of a picture")
    assert [(step.name, step.text) for step in ctx.log.steps if step.kind == "rule"] == [note]


@pytest.mark.parametrize(
    ("middles", "plan"),
    [
        (((10, 190), (390, 190)), {"keep": "2", "shift": "4"}),
        (((10, 190),), {"keep": "2", "shift": "none"}),
        (((390, 10),), {"keep": "2", "shift": "3"}),
    ],
)
async def test_a_second_plan_in_words(
    fakes: Any, middles: tuple[tuple[float, float], ...], plan: dict[str, str]
) -> None:
    parts = (image("img:1"), "Part 2 (lower left):", image("img:2"), "Question: What colour is the cup?")
    asked = Prompt(parts, Kind.VIEW_PLAN, FOUR, route=Kind.VIEW_PLAN)
    seen = boxes("boxes", *middles)
    found, _ = await said(fakes, asked, seen)
    assert json.loads(found.answer) == plan
    assert (found.tool, found.finding, found.confidence) == ("detection", seen, 0.7)


async def test_a_first_plan_says_what_points_there(fakes: Any) -> None:
    asked = whole("Why?", Kind.VIEW_PLAN)
    found, _ = await said(fakes, asked, boxes("objects", (10, 10), (390, 190)))
    assert json.loads(found.answer) == {"part": "1, 4", "reason": "saliency points there"}
    assert (found.tool, found.confidence) == ("saliency", 0.2)


async def test_a_plan_names_parts(fakes: Any) -> None:
    asked = whole("What colour is the cup?", Kind.VIEW_PLAN)
    specialist_answer, _ = await said(fakes, asked, boxes("boxes", (10, 10), (390, 190)))
    plan = parse(specialist_answer.answer, Kind.VIEW_PLAN, FOUR).value
    assert isinstance(plan, ViewPlan)
    assert plan.part == frozenset({1, 4})


async def test_a_second_plan_keeps_and_shifts(fakes: Any) -> None:
    parts = (image("img:1"), "Part 2 (lower left):", image("img:2"), "Question: What colour is the cup?")
    asked = Prompt(parts, Kind.VIEW_PLAN, FOUR, route=Kind.VIEW_PLAN)
    specialist_answer, _ = await said(fakes, asked, boxes("boxes", (10, 190), (390, 190)))
    plan = parse(specialist_answer.answer, Kind.VIEW_PLAN, FOUR).value
    assert isinstance(plan, ViewPlan)
    assert (plan.keep, plan.shift) == (frozenset({2}), frozenset({4}))


@pytest.mark.system
def test_generated_pictures_without_weights(tmp_path: Path) -> None:
    """The benchmark reads the rule's parts, and they hold more clues than as many parts drawn at random."""
    BENCHMARK.generate(tmp_path / "data", BENCHMARK.card.sample_tasks, 4, 0)
    config = RunConfig(
        "actiview",
        solvers=("specialist",),
        data=str(tmp_path / "data"),
        seed=3,
        service=ServiceOptions("classical"),
        out=tmp_path / "run",
    )
    plan = prepare(config)
    assert not asyncio.run(execute(plan, lambda *_: None))
    (scored,) = score_run(plan.folder, ScoreOptions())
    values = [score.values for score in scored.scores]
    assert sum(each["hits"] for each in values) > sum(each["clues"] * each["views"] / 4 for each in values)
