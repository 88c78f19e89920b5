"""The accuracy of specialists on questions where a model calls a tool, recomputed from random letters."""

import random
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from hybrid.core.types import Fault, Question, Reply, Step
from hybrid.scoring.compare import Comparison, ComparisonOptions, compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections.called import DIFFERENCE, SECTION, WHERE_CALLED, WHERE_NOT, confidences
from tests.hybrid.scoring.sections.rows import by_quantity

OVER, BRIER = "overconfidence", "Brier score"


def claim(value: Any) -> Step:
    return Step("rule", "answer", "", 0.0, data={"specialist_answer": {"answer": "(A)", "confidence": value}})


def compare_letters(folder: Path, synthetic_runs: Any, letters: dict[str, str], calls: str, claims: Any) -> Comparison:
    """Return a comparison on Jigsaw. In `calls`, `c` is a call and `x` a call that failed; `claims` are the
    specialist's confidences."""

    def cost(solver: str, question: Question, reply: Reply) -> Reply:
        place = int(question.id.rsplit("_", 1)[1]) - 1
        if solver == "specialist":
            return replace(reply, steps=tuple(map(claim, claims[place])))
        calling: Reply = synthetic_runs.calling(solver, question, reply)
        fault = {"c": None, "x": Fault.TOOL_ERROR}
        return (
            replace(calling, steps=tuple(replace(step, fault=fault[calls[place]]) for step in calling.steps))
            if calls[place] in fault
            else reply
        )

    answers = {name: {"Jigsaw": word} for name, word in letters.items()}
    run = synthetic_runs.from_letters(folder, answers, costing=cost, puzzles=True)
    solvers = [scored.under("guess") for scored in compare_paths([run.path]).solvers]
    return compare(solvers, ComparisonOptions(allow_failed=True))


@pytest.mark.parametrize("seed", range(3))
def test_shares_where_called_are_those_of_the_letters(seed: int, tmp_path: Path, synthetic_runs: Any) -> None:
    rng = random.Random(seed)
    letters = {name: "".join(rng.choices("rwaf", (5, 3, 2, 1), k=40)) for name in ("controller", "specialist")}
    calls = "".join(rng.choices("cx-", k=40))
    # A later step of a question replaces an earlier one; None means no confidence.
    claims = [[rng.random(), rng.choice([None, 0.0, 0.25, 1.0])] for _ in range(40)]
    comparison = compare_letters(tmp_path / "run", synthetic_runs, letters, calls, claims)
    section = tuple(SECTION.rows(comparison))
    rows = by_quantity(section)
    outcomes = zip(letters["specialist"], letters["controller"], calls, claims, strict=True)
    seen = [
        (specialist == "r", call == "c", last)
        for specialist, controller, call, (_, last) in outcomes
        if specialist in "rw" and controller != "f"
    ]
    right_by_side = {name: [right for right, is_called, _ in seen if is_called is flag] for name, flag in SIDES.items()}
    assert all(right_by_side.values())
    for name, right in right_by_side.items():
        assert rows[name].value == pytest.approx(fmean(right))
        assert rows[name].n == len(right)
    assert rows[DIFFERENCE].value == pytest.approx(fmean(right_by_side[WHERE_CALLED]) - fmean(right_by_side[WHERE_NOT]))
    low, high = rows[DIFFERENCE].low, rows[DIFFERENCE].high
    assert low is not None
    assert high is not None
    assert low < (rows[DIFFERENCE].value or 0.0) < high
    assert rows[DIFFERENCE].n == len(seen)
    for words, flag in (("where called", True), ("where not called", False)):
        excess = [last - right for right, is_called, last in seen if is_called is flag and last is not None]
        over, brier = rows[f"{OVER} {words}"], rows[f"{BRIER} {words}"]
        assert over.value == pytest.approx(fmean(excess))
        assert brier.value == pytest.approx(fmean(value**2 for value in excess))
        assert over.n == brier.n == len(excess)
        assert (over.low or 0.0) < (over.value or 0.0) < (over.high or 0.0)
    assert {(row.a, row.b, row.none) for row in section} == {("specialist", "controller", "")}
    assert {row.quantity for row in section if row.group} == {WHERE_CALLED, WHERE_NOT, DIFFERENCE}
    lead = SECTION.lead(comparison, section)
    shares = [f"{100 * fmean(right):.0f} % of {len(right)}" for right in right_by_side.values()]
    assert f"right on {shares[0]} where controller calls a tool and on {shares[1]} elsewhere" in lead


SIDES = {WHERE_CALLED: True, WHERE_NOT: False}


@pytest.mark.parametrize(
    ("specialist", "calls"), [("aaaa", "cc--"), ("rwrw", "----"), ("rwrw", "xxxx"), ("aarw", "cc--")]
)
def test_without_an_answer_where_called_nothing_is_compared(
    specialist: str, calls: str, tmp_path: Path, synthetic_runs: Any
) -> None:
    letters = {"controller": "rwrw", "specialist": specialist}
    comparison = compare_letters(tmp_path / "run", synthetic_runs, letters, calls, [[0.5]] * 4)
    assert not tuple(SECTION.rows(comparison))


def test_calls_everywhere_have_no_other_side(tmp_path: Path, synthetic_runs: Any) -> None:
    letters = {"controller": "rwrw", "specialist": "rrrw"}
    comparison = compare_letters(tmp_path / "run", synthetic_runs, letters, "cccc", [[0.5]] * 4)
    section = tuple(SECTION.rows(comparison))
    assert {row.quantity for row in section} == {WHERE_CALLED, f"{OVER} where called", f"{BRIER} where called"}
    assert SECTION.lead(comparison, section) == ""


def test_only_a_number_from_0_to_1_is_a_confidence(tmp_path: Path, synthetic_runs: Any) -> None:
    claims = [[0], [1], [1.01], [-0.01], ["0.5"], [0.2, 0.3], [0.2, None], [], [0.5]]
    letters = {"controller": "r" * 9, "specialist": "r" * 8 + "f"}
    comparison = compare_letters(tmp_path / "run", synthetic_runs, letters, "c" * 9, claims)
    # A question without a usable confidence in its last answer has no confidence, and neither has a failed question.
    assert confidences(comparison.named("specialist")) == {
        "val_Jigsaw_1": 0.0,
        "val_Jigsaw_2": 1.0,
        "val_Jigsaw_6": 0.3,
    }
    # Predictions have no steps.
    assert confidences(replace(comparison.named("specialist"), folder=None)) == {}


def test_questions_whose_lines_are_gone_have_no_call_and_no_confidence(tmp_path: Path, synthetic_runs: Any) -> None:
    letters = {"controller": "rwrwrw", "specialist": "rwrrwr"}
    comparison = compare_letters(tmp_path / "run", synthetic_runs, letters, "ccc---", [[0.5]] * 6)
    for name, gone in (("controller", 1), ("specialist", 3)):
        path = tmp_path / "run" / name / "attempts.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-gone]))
    rows = by_quantity(tuple(SECTION.rows(comparison)))
    # The controller's line of the last question is gone, so whether it has a call is unknown. The specialist's lines of
    # the last three questions, which held the confidences, are gone, too.
    assert [(name, row.value, row.n) for name, row in rows.items()] == [
        (WHERE_CALLED, pytest.approx(2 / 3), 3),
        (WHERE_NOT, 0.5, 2),
        (DIFFERENCE, pytest.approx(1 / 6), 5),
        (f"{OVER} where called", pytest.approx(0.5 - 2 / 3), 3),
        (f"{BRIER} where called", 0.25, 3),
    ]


def compare_tasks(folder: Path, synthetic_runs: Any, letters: dict[str, dict[str, str]], calls: str) -> Comparison:
    """Return a comparison of several tasks; in each, the first repetition calls a tool on the questions marked `c`."""

    def cost(solver: str, question: Question, reply: Reply) -> Reply:
        is_called = solver == "controller" and calls[int(question.id.rsplit("_", 1)[1]) - 1] == "c"
        result: Reply = synthetic_runs.calling(solver, question, reply) if is_called else reply
        return result

    synthetic_runs.from_letters(folder, letters, costing=cost, puzzles=True)
    return compare(compare_paths([folder]).solvers)


def test_a_task_without_a_call_or_an_answer_does_not_end_the_rows(tmp_path: Path, synthetic_runs: Any) -> None:
    letters = {
        "specialist": {"Art_Style": "aa", "Counting": "rrwr", "Jigsaw": "-" * 4 + "rrwwrrww", "Spatial_Relation": "aa"},
        "controller": {"Art_Style": "rw", "Counting": "rwrw", "Jigsaw": "-" * 4 + "rwrwrwrw", "Spatial_Relation": "rw"},
    }
    letters = {
        name: {task: word.replace("-", "a") for task, word in of_task.items()} for name, of_task in letters.items()
    }
    comparison = compare_tasks(tmp_path / "run", synthetic_runs, letters, "----cccc----")
    section = tuple(SECTION.rows(comparison))
    assert "on 50 % of 4 where controller calls a tool and on 62 % of 8 elsewhere" in SECTION.lead(comparison, section)
    groups = {(row.group, row.quantity): (row.value, row.n) for row in section if row.group}
    assert groups == {
        ("Counting", WHERE_NOT): (0.75, 4),
        ("Jigsaw", WHERE_CALLED): (0.5, 4),
        ("Jigsaw", WHERE_NOT): (0.5, 4),
        ("Jigsaw", DIFFERENCE): (0.0, 8),
    }
    assert by_quantity(section)[WHERE_NOT].n == 8


def test_repetitions_neither_call_nor_answer_for_the_first(tmp_path: Path, synthetic_runs: Any) -> None:
    letters = {"specialist": "rrww", "specialist@2": "wwww", "controller": "rrrr", "controller@2": "rrrr"}
    comparison = compare_tasks(
        tmp_path / "run", synthetic_runs, {name: {"Jigsaw": word} for name, word in letters.items()}, "cc--"
    )
    rows = by_quantity(tuple(SECTION.rows(comparison)))
    assert (rows[WHERE_CALLED].value, rows[WHERE_NOT].value) == (1.0, 0.0)


def test_the_difference_over_all_is_not_adjusted_with_those_of_tasks(tmp_path: Path, synthetic_runs: Any) -> None:
    of_task = {"specialist": "r" * 12 + "w" * 12, "controller": "rw" * 12}
    letters = {name: {"Counting": word, "Jigsaw": word} for name, word in of_task.items()}
    section = SECTION.rows(compare_tasks(tmp_path / "run", synthetic_runs, letters, "c" * 9 + "-" * 12 + "c" * 3))
    differences = {row.group: row for row in section if row.quantity == DIFFERENCE}
    assert differences[""].p is not None
    assert differences[""].p_holm == differences[""].p
    assert differences["Jigsaw"].p is not None
    assert differences["Jigsaw"].p_holm == min(1.0, 2 * differences["Jigsaw"].p)


def test_without_specialists_there_is_nothing_to_be_right(tmp_path: Path, synthetic_runs: Any) -> None:
    letters = {"controller": {"Jigsaw": "rw"}, "mllm": {"Jigsaw": "rw"}}
    assert not tuple(SECTION.rows(compare_tasks(tmp_path / "run", synthetic_runs, letters, "cc")))
