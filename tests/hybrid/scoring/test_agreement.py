"""Shared mistakes of two solvers by hand: counts, strata, ids, and what is said of pairs that cannot be tested."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.agreement import section
from hybrid.scoring.compare import Choice, Pair, compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.told import Told


@pytest.fixture
def told(tmp_path: Path, made_up_runs: Any) -> Any:
    """The section of a run with a solver for each word, or words by task."""

    def found(*words: dict[str, str], **choice: Any) -> Told | None:
        names = ("mllm", "specialist", "chance")
        folder = made_up_runs.from_letters(tmp_path / "run", dict(zip(names, words, strict=False)))
        return section(compare(compare_paths([folder.path]).solvers, Choice(**choice)))

    return found


def test_shared_mistakes_by_hand(told: Any) -> None:
    """Jigsaw: 3 and 2 of 4 wrong, both 2; Counting: 1 and 2 of 4, both 0. Expected 4 * 4 / 8, within 6 / 4 + 2 / 4."""
    found = told({"Jigsaw": "wwwr", "Counting": "wrrr"}, {"Jigsaw": "wwrr", "Counting": "rwar"})
    (record,) = found.data
    assert (record["a"], record["b"], record["n"]) == ("mllm", "specialist", 8)
    assert (record["wrong_a"], record["wrong_b"], record["both_wrong"]) == (4, 4, 2)
    assert (record["expected"], record["expected_within"], record["ratio"]) == (2.0, 2.0, 1.0)
    assert record["both_wrong_ids"] == ["val_Jigsaw_1", "val_Jigsaw_2"] == record["same_answer_ids"]
    assert set(record["helped_ids"]) == {"val_Counting_1", "val_Jigsaw_3"}
    # What was abstained on is wrong here, and no harm: harmed counts questions that both answered.
    assert record["harmed_ids"] == ["val_Counting_2"]
    assert record["kappa"] == pytest.approx(0.0)
    row = found.tables[0].rows[0]
    assert row[:7] == ("mllm, specialist", "8", "4", "4", "2", "2.0", "2.0")


def test_what_is_hard_for_both_is_not_taken_for_something_shared(told: Any) -> None:
    """All of the wrong answers are in one task, where everybody is wrong in three of four."""
    (record,) = told({"Jigsaw": "wwwr", "Counting": "rrrr"}, {"Jigsaw": "rwww", "Counting": "rrrr"}).data
    assert record["expected"] == pytest.approx(9 / 8)
    assert record["expected_within"] == pytest.approx(9 / 4)
    assert record["ratio"] == pytest.approx(2 / (9 / 4))


def test_a_failed_question_is_out(told: Any) -> None:
    (record,) = told({"Jigsaw": "wwwf"}, {"Jigsaw": "wrww"}, allow_failed=True).data
    assert (record["n"], record["failed"], record["both_wrong"]) == (3, ["val_Jigsaw_4"], 2)


def test_too_many_failed_withhold_the_test(told: Any) -> None:
    found = told({"Jigsaw": "wwrrf"}, {"Jigsaw": "wrwrw"})
    (record,) = found.data
    assert (record["withheld"], record["p"], record["kappa_interval"], record["test"]) == ("failed", None, None, "none")
    assert record["kappa"] == pytest.approx(0.0)
    assert "--allow-failed" in " ".join(found.tables[0].notes)


def test_a_solver_that_answers_nothing_agrees_with_nobody_beyond_chance(told: Any) -> None:
    (record,) = told({"Jigsaw": "wwrr"}, {"Jigsaw": "aaaa"}).data
    assert (record["both_wrong"], record["kappa"], record["p"]) == (2, 0.0, None)
    assert record["same_answer_ids"] == []


def test_no_answer_of_both_is_no_answer_that_they_share(told: Any) -> None:
    (record,) = told({"Jigsaw": "auwr"}, {"Jigsaw": "aawr"}).data
    assert record["both_wrong_ids"] == ["val_Jigsaw_1", "val_Jigsaw_2", "val_Jigsaw_3"]
    assert record["same_answer_ids"] == ["val_Jigsaw_3"]


def test_every_pair_or_the_chosen_ones_and_none_of_a_single_solver(told: Any, tmp_path: Path) -> None:
    words = ({"Jigsaw": "wwrr"}, {"Jigsaw": "wrrr"}, {"Jigsaw": "wrwr"})
    assert [(r["a"], r["b"]) for r in told(*words).data] == [
        ("mllm", "specialist"),
        ("mllm", "chance"),
        ("specialist", "chance"),
    ]
    solvers = compare_paths([tmp_path / "run"]).solvers
    chosen = section(compare(solvers, Choice(pairs=(Pair("chance", "mllm"),))))
    assert chosen is not None
    assert [(r["a"], r["b"]) for r in chosen.data] == [("chance", "mllm")]
    assert section(compare(solvers[:1])) is None


def test_numbers_are_those_of_the_records(told: Any) -> None:
    found = told({"Jigsaw": "wwwrrwrr"}, {"Jigsaw": "wwrrwrwr"})
    (record,) = found.data
    numbers = {number.quantity: number for number in found.numbers}
    assert {name: numbers[name].value for name in ("wrong a", "wrong b", "both wrong", "expected")} == {
        "wrong a": 4,
        "wrong b": 4,
        "both wrong": 2,
        "expected": record["expected"],
    }
    ratio, kappa = numbers["both wrong / expected within tasks"], numbers["kappa"]
    assert (ratio.value, ratio.p, ratio.p_holm) == (record["ratio"], record["p"], record["p_holm"])
    assert (kappa.value, [kappa.low, kappa.high]) == (record["kappa"], record["kappa_interval"])
    assert {number.n for number in found.numbers} == {8}
