"""Rows of a statistic over the shared questions that have a verdict, next to all questions that both solvers have."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.core.types import Question, Reply
from hybrid.scoring.compare import Comparison, ComparisonOptions, compare
from hybrid.scoring.parts import Part, contrasts, parts
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import FRACTION, QUESTIONS, UNTESTED, Result
from hybrid.scoring.score import Scored
from hybrid.stats import contrast, ratio_interval
from tests.hybrid.scoring.solvers import solver

# Among Jigsaw's ten questions, the second solver failed one, the first was not asked one, and two cannot be right or
# wrong.
ANSWERS = {
    "first": {"Jigsaw": "rrwwnra.nw", "Counting": "rwrwrwrw"},
    "second": {"Jigsaw": "rwrwnfrrnw", "Counting": "rrrwrrrr"},
    "third": {"Jigsaw": "wwwwnrwwnw", "Counting": "wwwwwwww"},
}


def compared(*, allow_failed: bool = True) -> Comparison:
    # A solver's name in a comparison may differ from its name in the run.
    solvers = [
        solver(name, answers, unanswered="wrong", recorded=f"{name} recorded") for name, answers in ANSWERS.items()
    ]
    return compare(solvers, ComparisonOptions(allow_failed=allow_failed))


def part_of(group: str = "", *, allow_failed: bool = True) -> Part:
    """Return the part of the first two solvers: all questions, or those of one task."""
    comparison = compared(allow_failed=allow_failed)
    by_group = {part.row.group: part for part in parts(comparison, "section", *comparison.solvers[:2])}
    assert list(by_group) == ["", "Counting", "Jigsaw"]
    return by_group[group]


def rare_failure() -> list[Scored]:
    """Return two solvers of 200 questions in two tasks; one of Counting's ten questions failed."""
    words = {"Jigsaw": "rw" * 95, "Counting": "rwrwrwrwrf"}
    return [
        solver("first", words),
        solver("second", {task: word.replace("f", "r") for task, word in words.items()}),
    ]


def test_a_part_has_the_questions_with_a_verdict_and_a_note_on_those_left_out() -> None:
    part = part_of("Jigsaw")
    assert part.seen.ids.tolist() == [f"Jigsaw_{n}" for n in (1, 2, 3, 4, 7, 10)]
    assert (len(part), len(part.shared), part.shared.n) == (6, 10, 8)
    assert (len(part_of()), part_of("Counting").row.note, part.row.note) == (14, "", "")
    assert part_of().row == Result(
        "section",
        "",
        FRACTION,
        None,
        "first",
        "second",
        none="wrong",
        note="left out: 1 that one of them failed, 1 that one of them was not asked",
    )
    assert part.noted("of a kind").row == Result(
        "section", "", FRACTION, None, "first", "second", group="Jigsaw", none="wrong", note="of a kind"
    )


def test_the_flags_of_a_part_are_those_of_its_questions() -> None:
    part = part_of("Jigsaw")
    wrong = part.seen.right[1] == 0
    assert part.only(wrong).seen.ids.tolist() == ["Jigsaw_2", "Jigsaw_4", "Jigsaw_10"]
    assert part.only(wrong).row is part.row


def test_a_count_names_the_questions_that_count() -> None:
    part = part_of("Jigsaw")
    row = part.count("sum", np.array([0.25, 0.0, 1.0, -1.0, 0.0, 0.5]), metric="m", n=40)
    assert (row.quantity, row.value, row.n, row.unit, row.metric) == ("sum", 0.75, 40, QUESTIONS, "m")
    assert row.ids == ("Jigsaw_1", "Jigsaw_3", "Jigsaw_10")
    assert part.count("sum", np.array([True] * 5 + [False])).value == 5
    assert part.number("number", 0.3) == Result(
        "section", "number", FRACTION, 0.3, "first", "second", group="Jigsaw", n=6, none="wrong"
    )
    assert part.number("number", None, n=2).n == 2


def test_a_share_counts_where_there_is_a_denominator() -> None:
    part = part_of()
    below = part.seen.right[0]
    row = part.share("of the right", part.seen.right[0] * part.seen.right[1], below, metric="m")
    # The first is right on Jigsaw 1 and 2 and four of Counting; the second on these except Jigsaw 2.
    assert (row.quantity, row.metric, row.value, row.n) == ("of the right", "m", pytest.approx(5 / 6), 6)
    assert row.low is not None
    assert 0 < row.low < 5 / 6
    assert part.share("mean", below).value == pytest.approx(6 / 14)


def test_an_open_ratio_is_withheld_where_its_denominator_may_be_0() -> None:
    part = part_of()
    below = part.seen.right[1]
    above = below - 2 * part.seen.right[0]
    row, expected = part.open_ratio("ratio", above, below, "near 0"), ratio_interval(above, below, [*part.seen.unit])
    assert expected is not None
    assert (row.quantity, row.unit, row.n, row.note) == ("ratio", FRACTION, 14, part.row.note)
    assert row.value == pytest.approx(above.sum() / below.sum())
    assert (row.low, row.high) == (expected.low, expected.high)
    flat = part.open_ratio("ratio", above, above * 0, "near 0")
    assert (flat.value, flat.low, flat.n, flat.note) == (None, None, 14, f"{part.row.note}; near 0")


def test_nothing_is_tested_with_too_many_failures_even_where_none_is_seen() -> None:
    part = part_of(allow_failed=False)
    (row,) = part.gated(part.share("mean", part.seen.right[0]))
    assert (row.low, row.note) == (None, f"{part.row.note}; {UNTESTED['failed']}")
    # One failed question is less than 1 % of 200, but more than 1 % of the ten questions of its task.
    rare = rare_failure()
    tested = {
        part.row.group: [row.low is not None for row in part.gated(part.share("mean", part.seen.right[0]))]
        for part in parts(compare(rare), "section", *rare)
    }
    assert tested == {"": [True], "Counting": [False], "Jigsaw": [True]}
    part = part_of()
    (row,) = part.gated(part.share("mean", part.seen.right[0]))
    assert (row.low is None, row.note) == (False, part.row.note)


def test_the_rows_name_the_sides_that_were_chosen() -> None:
    comparison = compared()
    first, second, third = comparison.solvers
    (row,) = {
        (part.row.a, part.row.b) for part in parts(comparison, "section", first, second, third, sides=(third, first))
    }
    assert row == ("third", "first")
    (part, *_) = parts(comparison, "section", first, second, third, notes=False)
    assert (part.row.a, part.row.b, part.row.note) == ("first", "second", "")
    combined = compare([solver("first", ANSWERS["first"]), solver("first@2", ANSWERS["second"]), solver("second", {})])
    (once, _, other), flags = combined.solvers, (True, False)
    sizes = [len(next(parts(combined, "section", once, other, repeated=flag)).shared.repetitions[0]) for flag in flags]
    assert sizes == [2, 1]


def test_a_contrast_is_of_the_headline_over_all_and_of_accuracy_in_a_task() -> None:
    comparison = compared()
    rows = list(contrasts(comparison, "section", comparison.solvers, {"gain": (2, 1), "loss": (1, 0)}))
    assert [(row.quantity, row.group, row.metric, row.a, row.b) for row in rows] == [
        (name, group, metric, *sides)
        for group, metric in (("", "accuracy_macro"), ("Counting", "accuracy"), ("Jigsaw", "accuracy"))
        for name, sides in (("gain", ("third", "second")), ("loss", ("second", "first")))
    ]
    # The first solver gets 4 of Counting's 8 questions right, the second 7; of Jigsaw's six, the first gets 2 and the
    # second 3.
    over_all = (7 / 8 + 3 / 6) / 2, ((4 - 7) / 8 + (2 - 3) / 6) / 2
    assert [row.value for row in rows] == pytest.approx([*over_all, 7 / 8, -3 / 8, 3 / 6, -1 / 6])
    assert [row.n for row in rows] == [14, 14, 8, 8, 6, 6]
    shared = comparison.overlap(*comparison.solvers).groups(None)["Counting"]
    estimate = contrast(*(shared.accuracy("wrong")[place] for place in (2, 1))).interval
    assert estimate is not None
    assert (rows[2].low, rows[2].high) == (estimate.low, estimate.high)
    strict = compared(allow_failed=False)
    rows = list(contrasts(strict, "section", strict.solvers, {"gain": (2, 1)}))
    assert [(row.low, UNTESTED["failed"] in row.note) for row in rows] == [(None, True)] * 3


@pytest.mark.parametrize(
    ("silent", "untested"),
    [
        ((), set()),
        (("first",), {"gain", "presence"}),
        (("second",), {"presence", "content"}),
        (("third",), {"gain", "content"}),
        (("first", "second", "third"), {"gain", "presence", "content"}),
    ],
)
def test_a_contrast_needs_the_answers_of_its_two_solvers_alone(silent: tuple[str, ...], untested: set[str]) -> None:
    words = {"first": "rrwwwwww", "second": "rrrwwwww", "third": "rrrrrrrw"}
    solvers = [solver(name, {"Jigsaw": "a" * 8 if name in silent else word}) for name, word in words.items()]
    of = {"gain": (0, 2), "presence": (0, 1), "content": (1, 2)}
    rows = list(contrasts(compare(solvers), "section", solvers, of))
    notes = {(row.quantity, row.group): row.note for row in rows}
    assert {name for name, note in notes.items() if UNTESTED["unanswered"] in note} == {
        (name, group) for name in untested for group in ("", "Jigsaw")
    }
    assert {(row.quantity, row.group) for row in rows if row.low is None} == {
        (name, group) for name in untested for group in ("", "Jigsaw")
    }


def test_a_contrast_of_some_questions_has_these_alone() -> None:
    comparison = compared()
    ids = frozenset(("Jigsaw_1", "Jigsaw_2", *(f"Counting_{n}" for n in range(1, 5))))
    rows = contrasts(comparison, "section", comparison.solvers[:2], {"gain": (0, 1)}, ids)
    expected = {"": ((1 / 4 - 1 / 2) / 2, 6), "Counting": (1 / 4, 4), "Jigsaw": (-1 / 2, 2)}
    assert {row.group: (row.value, row.n) for row in rows} == expected


def test_a_repeated_solver_has_its_mean_in_a_part() -> None:
    solvers = [solver(name, {"Jigsaw": word}) for name, word in (("a", "rw"), ("b", "rw"), ("b@2", "wr"))]
    comparison = compare(solvers)
    of_b = [next(parts(comparison, "section", *solvers[:2], repeated=flag)).seen.right[1] for flag in (True, False)]
    assert [right.tolist() for right in of_b] == [[0.5, 0.5], [1, 0]]
    assert next(parts(comparison, "section", *solvers[:2])).seen.right[1].tolist() == [0.5, 0.5]


def test_solvers_without_a_common_question_have_no_contrast() -> None:
    solvers = [solver("first", {"Jigsaw": "rwrw"}), solver("second", {"Counting": "rwrw"})]
    assert list(contrasts(compare(solvers), "section", solvers, {"gain": (0, 1)})) == []


def test_a_failure_in_a_small_task_withholds_the_test_of_the_task_alone() -> None:
    solvers = rare_failure()
    rows = contrasts(compare(solvers), "section", solvers, {"gain": (0, 1)})
    assert {row.group: row.low is not None for row in rows} == {"": True, "Counting": False, "Jigsaw": True}


def test_a_metric_of_pairs_counts_pairs(synthetic_runs: Any, tmp_path: Path) -> None:
    """One of the six pairs of four questions has a question that failed; the tasks count the other 23 questions."""
    questions = list(synthetic_runs.QUESTIONS_OF["mvp_bench"](6))

    def wrong_but_for_two(question: Question) -> Reply | None:
        wrong = {"yes": "no", "no": "yes"}[str(question.target)]
        answer = question.target if question.groups["pair"] in ("1", "2") else wrong
        return None if question.id == questions[0].id else Reply(f"Answer: {answer}")

    solvers = {"mllm": wrong_but_for_two, "text_only": lambda question: Reply(f"Answer: {question.target}")}
    run = synthetic_runs.write_run(tmp_path / "run", "mvp_bench", questions, solvers)
    comparison = compare(compare_paths([run.path]).solvers, ComparisonOptions(allow_failed=True))
    rows = list(contrasts(comparison, "section", comparison.solvers, {"gain": (0, 1)}))
    assert [(row.metric, row.n) for row in rows] == [("mAcc", 5), ("accuracy", 23)]
    assert [row.value for row in rows] == pytest.approx([3 / 5, 15 / 23])
