"""The rules over people's eyes: what a finding makes them say, and the whole way on generated questions."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers import parse
from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.hvsbench import BENCHMARK
from hybrid.config import RunConfig, ServiceOptions
from hybrid.errors import NoBackend
from hybrid.running.resolve import prepare
from hybrid.running.run import execute
from hybrid.scoring.runs import score_run
from hybrid.solving.answer_confidence import AnswerConfidence
from hybrid.tool.rules import ORDINALS
from hybrid.types import LETTERS, Box, Finding, Given, ImageRef, Kind, Prompt, Scanpath, StoredImage
from tools._shared.boxes import overlap
from tools.rules import ask_specialists as ask_rules
from tools.rules import claimed
from tools.rules.hvsbench import ranked_thing
from tools.saliency.rules import _around, rank_in

IMAGE = StoredImage("0" * 64, 400, 200, "image/png")
BOXES = (Box(0, 0, 50, 50), Box(100, 0, 150, 50), Box(200, 0, 250, 50))
RANKS = ("the most salient", "the second most salient", "the third most salient")


def prompt(route: str, kind: Kind, choices: tuple[str, ...] = (), text: str = "Which?", **facts: Any) -> Prompt:
    return Prompt((text, ImageRef("img:1", IMAGE)), kind, choices, given=Given(**facts), route=route)


def ranked(*places: int, confidence: float = 0.8) -> Finding:
    """Boxes ranked in this order, each worth 0.1 less than the one before."""
    objects = [
        {"label": str(place), "saliency_0_1": 1 - 0.1 * rank, "box_px": [0, 100 + 10 * rank, 9, 105 + 10 * rank]}
        for rank, place in enumerate(places)
    ]
    return Finding("", {"objects": objects, "count": None}, confidence, "classical", "1")


async def said(fakes: Any, asked: Prompt, *findings: Finding | Exception) -> Any:
    """The rules' answers, and the calls that they made."""
    ctx = fakes.context_of(asked, findings=list(findings))
    return await ask_rules(asked, ctx), ctx.tool.calls


async def test_the_most_salient_of_given_boxes(fakes: Any) -> None:
    specialist_answer, calls = await said(
        fakes, prompt("Q1", Kind.CHOICE, ("x", "y", "z"), boxes=BOXES), ranked(2, 0, 1)
    )
    assert (specialist_answer.answer, specialist_answer.letter, specialist_answer.confidence) == (
        "Answer: (C)",
        "C",
        0.8,
    )
    ((name, images, args),) = calls
    assert (name, images) == ("saliency", ("img:1",))
    assert args["boxes"][1] == {"x0": 100, "y0": 0, "x1": 150, "y1": 50, "label": "1"}


@pytest.mark.parametrize("number", [17, 26])
async def test_as_many_boxes_as_there_are_letters(fakes: Any, number: int) -> None:
    boxes = tuple(Box(10 * place, 0, 10 * place + 9, 9) for place in range(number))
    asked = prompt("Q1", Kind.CHOICE, ("",) * number, boxes=boxes)
    specialist_answer, _ = await said(fakes, asked, ranked(number - 1, *range(number - 1)))
    assert specialist_answer.letter == LETTERS[number - 1]


async def test_no_card_speaks_of_eyes(fakes: Any) -> None:
    asked = prompt("Q1", Kind.CHOICE, ("x", "y", "z"), boxes=BOXES)
    specialist_answer, _ = await said(fakes, asked, ranked(2, 0, 1))
    assert claimed(specialist_answer, asked, 0.4) == AnswerConfidence(0.4)


async def test_an_order_is_all_letters_and_less_sure_than_its_first(fakes: Any) -> None:
    specialist_answer, _ = await said(fakes, prompt("Q3", Kind.ORDER, ("", "", ""), boxes=BOXES), ranked(1, 2, 0))
    assert (specialist_answer.answer, specialist_answer.letter) == ("Answer: BCA", None)
    assert specialist_answer.confidence == pytest.approx(0.64)
    assert parse(specialist_answer.answer, Kind.ORDER, ("", "", "")).value == "BCA"


@pytest.mark.parametrize("route", ["Q1", "Q3", "Q4"])
@pytest.mark.parametrize("boxes", [(), BOXES[:2], BOXES * 6])
async def test_boxes_that_are_not_those_of_the_choices_abstain(fakes: Any, route: str, boxes: Any) -> None:
    assert await said(fakes, prompt(route, Kind.CHOICE, ("x", "y", "z"), boxes=boxes)) == (None, [])


@pytest.mark.parametrize("finding", [ranked(0, 1), ranked(0, 1, 1), Finding("", {}, 0.5, "blank", "blank")])
async def test_a_finding_that_does_not_rank_these_boxes_abstains(fakes: Any, finding: Finding) -> None:
    specialist_answer, _ = await said(fakes, prompt("Q1", Kind.CHOICE, ("x", "y", "z"), boxes=BOXES), finding)
    assert specialist_answer is None


@pytest.mark.parametrize(("count", "answer"), [(0, "Answer: 0"), (7, "Answer: 7"), (None, None), (True, None)])
async def test_a_count(fakes: Any, count: Any, answer: str | None) -> None:
    specialist_answer, _ = await said(
        fakes, prompt("Q2", Kind.INTEGER), Finding("", {"count": count}, 0.7, "classical", "1")
    )
    assert (specialist_answer and specialist_answer.answer) == answer
    if answer:
        assert parse(answer, Kind.INTEGER).value == count


async def test_a_rank_counts_what_stands_out_beside_the_box(fakes: Any) -> None:
    asked = prompt("Q6", Kind.CHOICE, RANKS[::-1], boxes=BOXES[:1])
    specialist_answer, calls = await said(fakes, asked, ranked(0, 1), ranked(1, 0, 2))
    assert asked.choices[specialist_answer.choice] == "the second most salient"
    assert len(calls[1][2]["boxes"]) == 3
    last, _ = await said(fakes, asked, ranked(0, 1, 2, 3), ranked(1, 2, 3, 4, 0))
    assert asked.choices[last.choice] == "the third most salient"


async def test_the_box_itself_is_not_counted_twice(fakes: Any) -> None:
    same = Finding("", {"objects": [{"label": "1", "box_px": [2, 2, 50, 50]}]}, 0.7, "classical", "1")
    _, calls = await said(fakes, prompt("Q6", Kind.CHOICE, RANKS, boxes=BOXES[:1]), same, ranked(0))
    assert len(calls[1][2]["boxes"]) == 1


@pytest.mark.parametrize("route", ["Q5", "Q7"])
async def test_names_need_a_detector(fakes: Any, route: str) -> None:
    text = "Which place has the red car among all objects by saliency?"
    asked = prompt(route, Kind.CHOICE, ("the first car", "the second dog"), text)
    assert (await said(fakes, asked, NoBackend("no weights")))[0] is None


async def test_named_things_are_found_and_then_ranked(fakes: Any) -> None:
    boxes = [
        {"name": "dog", "score_0_1": 0.3, "box_px": [0, 0, 9, 9]},
        {"name": "dog", "score_0_1": 0.9, "box_px": [50, 0, 59, 9]},
        {"name": "cat", "score_0_1": 0.5, "box_px": [100, 0, 109, 9]},
    ]
    found = Finding("", {"boxes": boxes}, 0.7, "learned", "1")
    asked = prompt("Q5", Kind.CHOICE, ("the cat", "a dog"))
    specialist_answer, calls = await said(fakes, asked, found, ranked(1, 0))
    assert specialist_answer.letter == "B"
    assert calls[0] == ("detection", ("img:1",), {"names": ["cat", "dog"]})
    assert [box["x0"] for box in calls[1][2]["boxes"]] == [100, 50]
    assert (specialist_answer.tool, specialist_answer.confidence, specialist_answer.on_card) == ("saliency", 0.8, False)


def detected_rows(*rows: tuple[str, Any, Any]) -> Finding:
    boxes = [{"name": name, "score_0_1": score, "box_px": box} for name, score, box in rows]
    return Finding("", {"boxes": boxes}, 0.7, "learned", "1")


@pytest.mark.parametrize(
    ("asked", "findings", "note"),
    [
        (
            prompt("Q5", Kind.CHOICE, ("the cat", "the horse")),
            [detected_rows(("cat", 0.5, [0, 0, 9, 9]))],
            ("not found", "detection finds no horse"),
        ),
        (
            prompt("Q5", Kind.CHOICE, ("cat", "dog")),
            [detected_rows(("cat", None, [0, 0, 9, 9]), ("dog", 0.0, [0, 0, 9, 9]))],
            ("not found", "detection finds no cat"),
        ),
        (prompt("Q5", Kind.CHOICE, ("the cat", " . ")), [], ("no name", "a choice names no thing")),
        (prompt("Q5", Kind.CHOICE, ()), [], ("no name", "a choice names no thing")),
        (prompt("Q7", Kind.CHOICE, RANKS, "Which?"), [], ("no name", "the question names no thing to rank")),
    ],
)
async def test_named_things_that_are_not_there_abstain(
    fakes: Any, asked: Prompt, findings: list[Finding], note: tuple[str, str]
) -> None:
    ctx = fakes.context_of(asked, findings=list(findings))
    assert await ask_rules(asked, ctx) is None
    assert [(step.name, step.text) for step in ctx.log.steps if step.kind == "rule"] == [note]


async def test_a_path_on_salient_places_is_the_persons(fakes: Any) -> None:
    paths = (Scanpath((0.5, 0.1), (0.5, 0.1), ()), Scanpath((0.5, 0.9), (0.5, 0.9), ()))
    asked = prompt("Q8", Kind.CHOICE, ("", " "), scanpaths=paths)
    specialist_answer, calls = await said(fakes, asked, ranked(1, 0))
    assert (specialist_answer.letter, specialist_answer.confidence) == ("B", 0.55)
    assert len(calls[0][2]["boxes"]) == 2


async def test_equal_places_decide_nothing(fakes: Any) -> None:
    spots = tuple(Scanpath((x,), (0.5,), ()) for x in (0.2, 0.8))
    rows = [{"label": label, "saliency_0_1": 1.0} for label in "01"]
    finding = Finding("", {"objects": rows}, 0.5, "classical", "1")
    assert (await said(fakes, prompt("Q10", Kind.CHOICE, ("", " "), scanpaths=spots), finding))[0] is None


@pytest.mark.parametrize(("target", "wanted"), [(None, {"fixations": 4}), ("cup", {"fixations": 4, "target": "cup"})])
async def test_a_scanpath_is_three_lists(fakes: Any, target: str | None, wanted: dict[str, Any]) -> None:
    data = {"x_0_1": [0.5, 0.25], "y_0_1": [0.5, 0.75], "t_ms": [200, 310]}
    asked = prompt("Q9", Kind.SCANPATH, fixations=4, target=target)
    specialist_answer, calls = await said(fakes, asked, Finding("", data, 0.4, "classical", "1"))
    read: Any = parse(specialist_answer.answer, Kind.SCANPATH).value
    assert (read.x, read.y, read.t_ms) == ((0.5, 0.25), (0.5, 0.75), (200, 310))
    assert calls[0][2] == wanted


@given(st.integers(1, 8))
def test_ranks_are_read_in_words_and_digits(rank: int) -> None:
    assert rank_in(f"the {ORDINALS[rank - 1]} most salient") == rank_in(f"No. {rank}") == rank
    assert rank_in(f"{rank}th place") == rank


@given(st.text(max_size=40))
def test_any_wording_is_a_rank_or_none(text: str) -> None:
    assert (rank := rank_in(text)) is None or rank >= 0
    assert (name := ranked_thing(text)) is None or name


def test_a_ranked_thing() -> None:
    assert ranked_thing("Which place has the red car among all objects by saliency?") == "red car"
    assert ranked_thing("what RANK does a Dog's tail HAVE?") == "dog's tail"
    assert ranked_thing("The position of an old-timer in it") == "old-timer"
    assert ranked_thing("How many cars are there?") is None
    assert ranked_thing("Which place has car among all?") is None


@given(st.lists(st.tuples(st.floats(-2, 900), st.floats(-2, 900)), min_size=1, max_size=5))
def test_a_box_around_a_fixation_lies_in_the_image(spots: list[tuple[float, float]]) -> None:
    path = Scanpath(tuple(x for x, _ in spots), tuple(y for _, y in spots), ())
    for box in _around(path, IMAGE):
        assert 0 <= box.x0 < box.x1 <= IMAGE.width
        assert 0 <= box.y0 < box.y1 <= IMAGE.height
        assert overlap(box, box) == pytest.approx(1)


@pytest.mark.system
def test_generated_questions_are_answered_above_chance(tmp_path: Path) -> None:
    """Five questions a type, of which a guess gets at most the second number right."""
    least = {"Q1": (4, 2), "Q2": (4, 2), "Q3": (3, 1), "Q4": (4, 3), "Q6": (4, 2), "Q8": (5, 3), "Q11": (4, 3)}
    tasks = (*least, "Q9", "Q12")
    BENCHMARK.generate(tmp_path / "data", tasks, 5, 0)
    config = RunConfig(
        "hvsbench",
        solvers=("specialist",),
        data=str(tmp_path / "data"),
        seed=3,
        service=ServiceOptions("classical"),
        out=tmp_path / "run",
    )
    plan = prepare(config)
    assert not asyncio.run(execute(plan, lambda *_: None))
    (scored,) = score_run(plan.folder, ScoreOptions(abstain="wrong"))
    right = {task: sum(s.correct or 0 for s in scored.scores if s.task == task) for task in least}
    assert all(right[task] >= floor > guess for task, (floor, guess) in least.items()), right
    metrics = {metric.name: metric.value for metric in scored.metrics}
    assert (metrics["m_pos.q9"] or 0) > (metrics["m_pos_random.q9"] or 1)
