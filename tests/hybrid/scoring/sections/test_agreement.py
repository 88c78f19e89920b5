"""Shared mistakes of two solvers by hand: counts, strata, ids, and pairs that cannot be tested."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.compare import ComparisonOptions, SolverPair, compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections.agreement import RATIO, SECTION
from tests.hybrid.scoring.sections.rows import by_quantity


@pytest.fixture
def made(tmp_path: Path, made_up_runs: Any) -> Any:
    """The rows of a run with a solver for each word, or words by task."""

    def rows(*words: dict[str, str], **options: Any) -> list[Result]:
        names = ("mllm", "specialist", "chance")
        folder = made_up_runs.from_letters(tmp_path / "run", dict(zip(names, words, strict=False)))
        return list(SECTION.rows(compare(compare_paths([folder.path]).solvers, ComparisonOptions(**options))))

    return rows


def test_shared_mistakes_by_hand(made: Any) -> None:
    """Jigsaw: 3 and 2 of 4 wrong, both 2; Counting: 1 and 2 of 4, both 0. Expected 4 * 4 / 8, within 6 / 4 + 2 / 4."""
    rows = by_quantity(made({"Jigsaw": "wwwr", "Counting": "wrrr"}, {"Jigsaw": "wwrr", "Counting": "rwar"}))
    assert {name: row.value for name, row in rows.items()} == {
        "wrong a": 4,
        "wrong b": 4,
        "both wrong": 2,
        "expected": 2.0,
        "expected within tasks": 2.0,
        "same wrong answer": 2,
        RATIO: 1.0,
        "kappa": pytest.approx(0.0),
    }
    assert {(row.a, row.b, row.n) for row in rows.values()} == {("mllm", "specialist", 8)}
    assert rows["both wrong"].ids == ("val_Jigsaw_1", "val_Jigsaw_2") == rows["same wrong answer"].ids


def test_what_is_hard_for_both_is_not_taken_for_something_shared(made: Any) -> None:
    """All of the wrong answers are in one task, where both are wrong in three of four."""
    rows = by_quantity(made({"Jigsaw": "wwwr", "Counting": "rrrr"}, {"Jigsaw": "rwww", "Counting": "rrrr"}))
    assert rows["expected"].value == pytest.approx(9 / 8)
    assert rows["expected within tasks"].value == pytest.approx(9 / 4)
    assert rows[RATIO].value == pytest.approx(2 / (9 / 4))


def test_a_failed_question_is_out(made: Any) -> None:
    rows = by_quantity(made({"Jigsaw": "wwwf"}, {"Jigsaw": "wrww"}, allow_failed=True))
    assert (rows["both wrong"].n, rows["both wrong"].value) == (3, 2)


def test_too_many_failed_withhold_the_test(made: Any) -> None:
    rows = by_quantity(made({"Jigsaw": "wwrrf"}, {"Jigsaw": "wrwrw"}))
    assert (rows[RATIO].p, rows["kappa"].low) == (None, None)
    assert rows["kappa"].value == pytest.approx(0.0)
    assert "--allow-failed" in rows[RATIO].note == rows["kappa"].note


def test_a_solver_that_answers_nothing_agrees_with_none_beyond_chance(made: Any) -> None:
    rows = by_quantity(made({"Jigsaw": "wwrr"}, {"Jigsaw": "aaaa"}))
    assert (rows["both wrong"].value, rows["kappa"].value, rows[RATIO].p) == (2, 0.0, None)
    assert rows["same wrong answer"].ids == ()


def test_no_answer_of_both_is_no_answer_that_they_share(made: Any) -> None:
    rows = by_quantity(made({"Jigsaw": "auwr"}, {"Jigsaw": "aawr"}))
    assert rows["both wrong"].ids == ("val_Jigsaw_1", "val_Jigsaw_2", "val_Jigsaw_3")
    assert rows["same wrong answer"].ids == ("val_Jigsaw_3",)


def test_every_pair_or_the_chosen_ones_are_one_family(made: Any, tmp_path: Path) -> None:
    rows = made({"Jigsaw": "wwwrrrwr"}, {"Jigsaw": "wwwrrrrr"}, {"Jigsaw": "wrwrwrwr"})
    ratios = {(row.a, row.b): row for row in rows if row.quantity == RATIO}
    assert list(ratios) == [("mllm", "specialist"), ("mllm", "chance"), ("specialist", "chance")]
    least = min(ratios.values(), key=lambda row: row.p or 0.0)
    assert least.p is not None
    assert least.p_holm == pytest.approx(min(1.0, 3 * least.p))
    solvers = compare_paths([tmp_path / "run"]).solvers
    chosen = SECTION.rows(compare(solvers, ComparisonOptions(pairs=(SolverPair("chance", "mllm"),))))
    assert {(row.a, row.b) for row in chosen} == {("chance", "mllm")}
    assert list(SECTION.rows(compare(solvers[:1]))) == []
