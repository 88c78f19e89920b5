"""The rules about gaze: their answers to an output, and the complete path on generated questions."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.hvsbench import BENCHMARK
from hybrid.core.errors import NoBackend
from hybrid.core.types import Box, Finding, ImageRef, Kind, Prompt, PromptFacts, Scanpath, StoredImage
from hybrid.scoring.runs import score_run
from hybrid.tool.rules import ORDINALS
from tests.tables import cases
from tests.tools.rules.asking import ask_rules
from tests.tools.specialist_run import specialist_run
from tools._shared.boxes import overlap
from tools.rules import ask_specialists
from tools.rules.hvsbench import ranked_thing
from tools.saliency.rules import _around, rank_in

IMAGE = StoredImage("0" * 64, 400, 200, "image/png")
BOXES = (Box(0, 0, 50, 50), Box(100, 0, 150, 50), Box(200, 0, 250, 50))


def prompt(route: str, kind: Kind, choices: tuple[str, ...] = (), text: str = "Which?", **facts: Any) -> Prompt:
    return Prompt((text, ImageRef("img:1", IMAGE)), kind, choices, given=PromptFacts(**facts), route=route)


@pytest.mark.parametrize("route", ["Q1", "Q3", "Q4"])
@pytest.mark.parametrize("boxes", [(), BOXES[:2], BOXES * 6])
async def test_boxes_that_are_not_those_of_the_choices_abstain(fakes: Any, route: str, boxes: Any) -> None:
    assert await ask_rules(fakes, prompt(route, Kind.CHOICE, ("x", "y", "z"), boxes=boxes)) == (None, [])


@pytest.mark.parametrize("route", ["Q5", "Q7"])
async def test_names_need_a_detector(fakes: Any, route: str) -> None:
    text = "Which place has the red car among all objects by saliency?"
    request = prompt(route, Kind.CHOICE, ("the first car", "the second dog"), text)
    assert (await ask_rules(fakes, request, NoBackend("no weights")))[0] is None


def detected_rows(*rows: tuple[str, Any, Any]) -> Finding:
    boxes = [{"name": name, "score_0_1": score, "box_px": box} for name, score, box in rows]
    return Finding("", {"boxes": boxes}, 0.7, "learned", "1")


@pytest.mark.parametrize(*cases(__file__, "test_named_things_that_are_not_there_abstain"))
async def test_named_things_that_are_not_there_abstain(
    fakes: Any, question: tuple[str, tuple[str, ...], str], findings: tuple[Any, ...], note: tuple[str, str]
) -> None:
    route, choices, text = question
    item = prompt(route, Kind.CHOICE, choices, text)
    ctx = fakes.context_of(item, findings=[detected_rows(*rows) for rows in findings])
    assert await ask_specialists(item, ctx) is None
    assert [(step.name, step.text) for step in ctx.log.steps if step.kind == "rule"] == [note]


@given(st.integers(1, 8))
def test_ranks_are_read_in_words_and_digits(rank: int) -> None:
    assert rank_in(f"the {ORDINALS[rank - 1]} most salient") == rank_in(f"No. {rank}") == rank
    assert rank_in(f"{rank}th place") == rank


@given(st.text(max_size=40))
def test_any_wording_is_a_rank_or_none(text: str) -> None:
    assert (rank := rank_in(text)) is None or rank >= 0
    assert (name := ranked_thing(text)) is None or name


@given(st.lists(st.tuples(st.floats(-2, 900), st.floats(-2, 900)), min_size=1, max_size=5))
def test_a_box_around_a_fixation_lies_in_the_image(spots: list[tuple[float, float]]) -> None:
    for box in _around(Scanpath(tuple(x for x, _ in spots), tuple(y for _, y in spots), ()), IMAGE):
        assert 0 <= box.x0 < box.x1 <= IMAGE.width
        assert 0 <= box.y0 < box.y1 <= IMAGE.height
        assert overlap(box, box) == pytest.approx(1)


@pytest.mark.system
def test_generated_questions_are_answered_above_chance(tmp_path: Path) -> None:
    """Generated questions, five per type, are answered above chance.

    `least` has, for each type, the required number of right answers and the number that a guess gets.
    """
    least = {"Q1": (4, 2), "Q2": (4, 2), "Q3": (3, 1), "Q4": (4, 3), "Q6": (4, 2), "Q8": (5, 3), "Q11": (4, 3)}
    BENCHMARK.generate(tmp_path / "data", (*least, "Q9", "Q12"), 5, 0)
    plan = specialist_run("hvsbench", tmp_path, data=str(tmp_path / "data"), seed=3)
    (scored,) = score_run(plan.folder, ScoreOptions(unanswered="wrong"))
    right = {task: sum(s.correct or 0 for s in scored.scores if s.task == task) for task in least}
    assert all(right[task] >= floor > guess for task, (floor, guess) in least.items()), right
    metrics = {metric.name: metric.value for metric in scored.metrics}
    assert (metrics["m_pos.q9"] or 0) > (metrics["m_pos_random.q9"] or 1)
