"""The parts of a difference by which of the two solvers answered, and the questions that a specialist answers. Both are
recomputed from letters."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring import families, overlap
from hybrid.scoring.compare import compare
from hybrid.scoring.rendering import tables_of
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections import results
from hybrid.scoring.sections.answered import ANSWERING, BETTER, BOTH, SILENT, SPOKEN, rows
from tests.hybrid.scoring.sections.rows import by_quantity
from tests.hybrid.scoring.solvers import on_mvp, run_of, share_not_wrong, solver

VALUES = {"r": 1.0, "w": 0.0, "a": 0.5}


def mean(letters: str) -> float:
    return sum(map(VALUES.__getitem__, letters)) / len(letters)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("r" * 12 + "w" * 18 + "a" * 10, "w" * 6 + "r" * 24 + "r" * 9 + "w"),
        ("w" * 6 + "r" * 24 + "r" * 9 + "w", "r" * 12 + "w" * 18 + "a" * 10),
        ("aaaarwrw" * 5, "rwawrrww" * 5),
    ],
)
def test_the_two_parts_add_up_to_the_difference(a: str, b: str) -> None:
    section = rows(compare([solver("a", {"Jigsaw": a}), solver("b", {"Jigsaw": b})]))
    overall, of_both = by_quantity(section), by_quantity(section, BOTH)
    common = [n for n in range(40) if "a" not in a[n] + b[n]]
    both_a, both_b = ("".join(word[n] for n in common) for word in (a, b))
    assert of_both["difference"].value == pytest.approx(mean(both_b) - mean(both_a))
    assert (of_both["value a"].value, of_both["value b"].value) == (mean(both_a), mean(both_b))
    assert (of_both["right a"].value, of_both["right b"].value) == (both_a.count("r"), both_b.count("r"))
    assert of_both["right b"].ids == tuple(f"Jigsaw_{n + 1}" for n in common if b[n] == "r")
    better = (mean(both_b) - mean(both_a)) * len(common) / 40
    assert overall[BETTER].value == pytest.approx(better)
    assert overall[ANSWERING].value == pytest.approx(mean(b) - mean(a) - better)
    assert (overall["unanswered a"].value, overall["unanswered b"].value) == (a.count("a"), b.count("a"))
    assert overall["unanswered a"].ids == tuple(f"Jigsaw_{n + 1}" for n in range(40) if a[n] == "a")


def test_who_answers_everything_has_no_parts_and_who_shares_nothing_has_no_common_row() -> None:
    assert rows(compare([solver("a", {"Jigsaw": "rw" * 20}), solver("b", {"Jigsaw": "wr" * 20})])) == []
    section = rows(compare([solver("a", {"Jigsaw": "ra" * 20}), solver("b", {"Jigsaw": "aw" * 20})]))
    assert {row.group for row in section} == {""}


@pytest.mark.parametrize("order", [("specialist", "mllm"), ("mllm", "specialist")])
def test_a_specialist_is_compared_where_it_answers(order: tuple[str, str], synthetic_runs: Any, tmp_path: Path) -> None:
    letters: Mapping[str, str] = {
        "specialist": "r" * 20 + "w" * 4 + "a" * 16,
        "mllm": "r" * 9 + "w" * 15 + "r" * 4 + "w" * 12,
    }
    synthetic_runs.from_letters(tmp_path / "run", {name: {"Jigsaw": letters[name]} for name in order})
    section = rows(compare(compare_paths([tmp_path / "run"]).solvers))
    answered, silent = by_quantity(section, SPOKEN), by_quantity(section, SILENT)
    assert {(row.a, row.b) for row in (*answered.values(), *silent.values())} == {("specialist", "mllm")}
    assert answered["value a"].value == pytest.approx(20 / 24)
    assert answered["value b"].value == pytest.approx(9 / 24)
    assert answered["difference"].value == pytest.approx(-11 / 24)
    assert silent["value b"].value == pytest.approx(4 / 16)
    assert (silent["right b"].value, "difference" in silent, "value a" in silent) == (4.0, False, False)


@pytest.mark.parametrize(
    ("specialist", "mllm"),
    [
        ("rw" * 10, "wr" * 10),
        ("a" * 20, "wr" * 10),
        # A question that failed for one of the solvers belongs to neither part.
        ("rw" * 9 + "rf", "wr" * 10),
        ("a" * 19 + "r", "wr" * 9 + "wf"),
    ],
)
def test_a_specialist_that_answers_all_or_nothing_has_one_part(
    specialist: str, mllm: str, synthetic_runs: Any, tmp_path: Path
) -> None:
    letters = {"specialist": {"Jigsaw": specialist}, "mllm": {"Jigsaw": mllm}}
    synthetic_runs.from_letters(tmp_path / "run", letters)
    section = rows(compare(compare_paths([tmp_path / "run"]).solvers))
    assert not {SPOKEN, SILENT} & {row.group for row in section}


def test_parts_are_not_tested_where_questions_failed() -> None:
    section = rows(
        compare([solver("a", {"Jigsaw": "r" * 20 + "a" * 19 + "f"}), solver("b", {"Jigsaw": "w" * 39 + "r"})])
    )
    differences = [row for row in section if row.quantity.startswith("difference")]
    assert len(differences) == 3
    assert all(row.low is None and row.p is None for row in differences)
    assert by_quantity(section, BOTH)["right b"].value == 0, "the failed question counts for nobody"


@pytest.mark.parametrize("name", ["a", "specialist"])
def test_a_part_without_the_metric_of_the_whole_has_no_row(name: str) -> None:
    # No group of four rotations is answered by both solvers, although the first rotation of each group is.
    words = {name: "rarr" * 20, "controller": "rrrr" * 19 + "rrrw"}
    section = rows(compare([on_mvp(solver, word, rotations=True) for solver, word in words.items()]))
    assert {(row.metric, row.group) for row in section} == {("circular.single", "")}


def test_right_by_one_of_two_repetitions_is_no_right_answer() -> None:
    letters = {"a": "a" * 10 + "w" * 30, "b": "w" * 20 + "r" * 20, "b@2": "r" * 30 + "w" * 10}
    section = rows(compare([solver(name, {"Jigsaw": word}) for name, word in letters.items()]))
    assert by_quantity(section, BOTH, a="a", b="b")["right b"].value == 10


def test_where_a_specialist_answers_the_other_may_not(synthetic_runs: Any, tmp_path: Path) -> None:
    letters = {"specialist": "r" * 10 + "w" * 14 + "a" * 16, "mllm": "r" * 14 + "u" * 10 + "r" * 8 + "u" * 8}
    synthetic_runs.from_letters(tmp_path / "run", {name: {"Jigsaw": word} for name, word in letters.items()})
    section = rows(compare([scored.under("guess") for scored in compare_paths([tmp_path / "run"]).solvers]))
    answered = by_quantity(section, SPOKEN)
    # The specialist answers 24 questions and is right on 10. The model answers 14 of the 24, all right; each of the
    # other 10 counts as a guess, which is half right.
    assert answered["difference"].value == pytest.approx((14 + 5 - 10) / 24)
    assert answered[BETTER].value == pytest.approx(4 / 24)
    assert answered[ANSWERING].value == pytest.approx(5 / 24)
    assert (answered["unanswered a"].value, answered["unanswered b"].value, answered["unanswered b"].n) == (0, 10, 24)
    assert (answered["right a"].value, answered["right b"].value, answered["right b"].n) == (10, 14, 24)
    assert {row.none for name, row in answered.items() if "right" in name or "unanswered" in name} == {""}
    assert {row.none for name, row in answered.items() if name.startswith(("difference", "value"))} == {"guess"}


def test_parts_are_adjusted_with_those_of_the_same_claim(synthetic_runs: Any, tmp_path: Path) -> None:
    letters = {"controller": "r" * 40, "mllm": "r" * 10 + "w" * 20 + "u" * 10, "chance": "u" * 10 + "w" * 30}
    synthetic_runs.from_letters(tmp_path / "run", {name: {"Jigsaw": word} for name, word in letters.items()})
    section = rows(compare(compare_paths([tmp_path / "run"]).solvers))
    tested = {frozenset((row.a, row.b)): row for row in section if row.quantity == ANSWERING}
    gain = tested.pop(frozenset(("mllm", "controller")))
    assert gain.p is not None
    assert (gain.family, gain.p_holm) == (families.GAIN.name, gain.p)
    first, second = tested.values()
    assert (first.family, second.family) == (families.OTHERS.name,) * 2
    assert first.p is not None
    assert first.p == second.p, "the same ten questions in a row, answered or not"
    assert (first.p_holm, second.p_holm) == (2 * first.p, 2 * first.p)


def test_the_table_of_parts_is_not_by_task() -> None:
    comparison = compare([solver("a", {"Jigsaw": "rwa" * 20}), solver("b", {"Jigsaw": "rwr" * 20})])
    (result,) = results(comparison, ("answered",))
    titles = [table.title for table in tables_of(comparison, result)]
    assert titles[0] == "blink: answered: accuracy_macro, by part of the questions"
    assert not any("by task" in title for title in titles)


def test_questions_without_right_and_wrong_have_no_number_of_right_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"specialist": "n" * 5 + "a" * 20, "controller": "n" * 5 + "r" * 8 + "w" * 12}
    folders = {"specialist": run_of("specialist")}
    comparison = compare([solver(name, {"Jigsaw": word}, folder=folders.get(name)) for name, word in answers.items()])
    monkeypatch.setattr(overlap, "summary", share_not_wrong)
    section = rows(comparison)
    spoken, silent = by_quantity(section, SPOKEN), by_quantity(section, SILENT)
    assert set(spoken) == {"difference", "value a", "value b"}
    assert (silent["right b"].value, silent["right b"].n, spoken["value b"].n) == (8, 20, 5)


def test_numbers_of_questions_also_count_those_without_right_and_wrong() -> None:
    # Of 30 questions, the specialist answers 15; two of these and two others have no right and wrong.
    answers = {
        "specialist": "n" * 2 + "r" * 13 + "a" * 15,
        "controller": "n" * 2 + "r" * 9 + "a" * 4 + "n" * 2 + "w" * 13,
    }
    folders = {"specialist": run_of("specialist")}
    comparison = compare([solver(name, {"Jigsaw": word}, folder=folders.get(name)) for name, word in answers.items()])
    section = rows(comparison)
    spoken, silent = by_quantity(section, SPOKEN), by_quantity(section, SILENT)
    assert (spoken["right a"].n, spoken["value a"].n, spoken["right a"].value) == (15, 13, 13)
    assert (silent["right b"].n, silent["right b"].value) == (15, 0)
    assert (spoken["unanswered b"].n, spoken["unanswered b"].value) == (15, 4)


def test_right_answers_are_counted_where_both_answers_are_right_or_wrong() -> None:
    """On two questions that both answered, only one of the two answers is right or wrong: neither count has them, so
    that both counts are of the same questions."""
    section = rows(
        compare([solver("a", {"Jigsaw": "rn" + "rwr" * 6 + "a"}), solver("b", {"Jigsaw": "nr" + "rrw" * 6 + "r"})])
    )
    of_both = by_quantity(section, BOTH)
    for side in "ab":
        count = of_both[f"right {side}"]
        assert (count.n, count.value) == (20, 12)
        assert not {"Jigsaw_1", "Jigsaw_2"} & {*count.ids}


def test_a_part_without_a_value_of_the_metric_has_no_rows() -> None:
    # The specialist answers no whole group of rotations, and the controller leaves some rotations unanswered.
    words = {"specialist": "rrra" * 20, "controller": "rrrw" * 10 + "rurr" * 10}
    folders = {"specialist": run_of("specialist")}
    comparison = compare(
        [replace(on_mvp(name, word, rotations=True), folder=folders.get(name)) for name, word in words.items()]
    )
    assert by_quantity(rows(comparison), SPOKEN) == {}
