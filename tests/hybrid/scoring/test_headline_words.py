"""What a headline pair is printed with: sizes, intervals, the parts of a difference, and reasons."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.core.types import Cell, Metric
from hybrid.scoring.compare import compare
from hybrid.scoring.conclusion_rows import ConclusionRows, turned
from hybrid.scoring.conclusion_words import ends_of, listed, mean_count, measure, number, short_name, signed
from hybrid.scoring.headline import rule_line
from hybrid.scoring.headline_pair import AnswerSplit, HeadlinePair, why_no_interval
from hybrid.scoring.result import FRACTION, QUESTIONS, UNTESTED, Result
from tests.hybrid.scoring.pairs import pair_of, row, split
from tests.hybrid.scoring.solvers import on_mvp, solver

A, B = (solver(name, {"Jigsaw": "r"}) for name in "ab")


def pair_in_state(state: str, **facts: Any) -> HeadlinePair:
    """Return a pair of solvers `a` and `b` whose difference has this state."""
    return HeadlinePair(A, B, (row(state, value={"less": -0.1}.get(state, 0.1)),), **facts)


def test_a_tested_difference_fills_all_fields() -> None:
    fields = pair_in_state("more", n=40, asked=41, failed=1, silent=("b",)).fields()
    words = {"size": "+10 points", "interval": "95% CI 1 to 20", "whole": "+10 points (95% CI 1 to 20)"}
    words |= {"open": "no significant difference (95% CI 1 to 20 points)", "few": why_no_interval(None)}
    names = {"hybrid": "b", "other": "a", "silent": "b answers nothing", "metric": ""}
    names |= {"apart": "they share no question"}
    none = dict.fromkeys(("split", "over_all", "right_a", "right_b", "depends", "by_rule"), "")
    assert fields == {"n": 40, "failed": 1, "left": 0, **names, **words, **none}
    assert pair_in_state("open").fields()["whole"] == "no significant difference (95% CI -10 to +10 points)"
    few = pair_in_state("few").fields()
    assert [few.get(name) for name in ("size", "interval", "open", "whole", "split")] == ["", "", "", None, ""]


def test_the_solvers_without_an_answer_are_named() -> None:
    several = [pair_in_state("more", silent=names).fields()["silent"] for names in (("a",), ("a", "b"))]
    assert several == ["a answers nothing", "a and b answer nothing"]
    clipped_names = pair_in_state("more", silent=("a" * 40, "b")).fields()["silent"]
    assert clipped_names == f"{short_name(solver('a' * 40, {'Jigsaw': 'r'}))} and b answer nothing"


def test_a_failed_pair_counts_all_questions_that_were_asked() -> None:
    pair = HeadlinePair(A, B, (row("few", UNTESTED["failed"]),), n=38, asked=40, failed=2)
    assert (pair.fields()["n"], pair.fields()["failed"]) == (40, 2)


def test_a_waiting_pair_names_the_command_of_the_run_that_is_not_finished() -> None:
    a, b = (
        SimpleNamespace(solver=name, open=left, folder=True, manifest={"commands": [{"command": f"hybrid run {name}"}]})
        for name, left in (("a", 0), ("b", 3))
    )
    solvers: Any = (a, b)
    fields = HeadlinePair(*solvers).fields()
    assert (fields["left"], fields["command"], "size" in fields) == (3, "hybrid run b", False)
    solvers = (SimpleNamespace(**{**vars(a), "open": 2}), b)
    assert HeadlinePair(*solvers).fields()["left"] == 5
    assert HeadlinePair(*solvers).fields()["command"] == "hybrid run a"
    assert "command" not in pair_in_state("more").fields()


@pytest.mark.parametrize(
    ("state", "parts", "words"),
    [
        ("more", None, ""),
        ("more", split("more", "open"), ""),
        ("few", split("more", "more"), ""),
        *(
            (
                state,
                split("open", "more" if state == "open" else state),
                (
                    "; on the 0 questions that both answered +10 points (95% CI -10 to +10); answering at all "
                    f"contributes +10 points (95% CI {'-20 to -1' if state == 'less' else '1 to 20'}), as a leaves 3 "
                    "unanswered, b 0"
                ),
            )
            for state in ("more", "less", "open")
        ),
        (
            "more",
            split(None, "more"),
            (
                "; no question was answered by both; answering at all contributes +10 points (95% CI 1 to 20), as a "
                "leaves 3 unanswered, b 0"
            ),
        ),
        (
            "more",
            replace(split("open", "more"), more_answered=False),
            (
                "; on the 0 questions that both answered +10 points (95% CI -10 to +10); the questions that only one "
                "answered contribute +10 points (95% CI 1 to 20); a leaves 3 unanswered, b 0"
            ),
        ),
        (
            "more",
            replace(split("open", "more"), mixed_repetitions=True, both_in_every=True),
            (
                "; on the 0 questions that both answered in every repetition +10 points (95% CI -10 to +10); answering "
                "at all contributes +10 points (95% CI 1 to 20), as a leaves 3 unanswered, b 0 (mean over "
                "repetitions)"
            ),
        ),
    ],
)
def test_the_parts_of_a_difference_are_stated(state: str, parts: AnswerSplit | None, words: str) -> None:
    assert pair_in_state(state, split=parts).fields()["split"] == words


def test_better_answers_have_a_size_of_their_own() -> None:
    parts = AnswerSplit(row("more"), row("less", value=-0.15), None, (3, 0))
    words = pair_in_state("more", split=parts).fields()["split"]
    assert words == (
        "; no question was answered by both; better answers contribute -15 points (95% CI -20 to -1); answering at all "
        "contributes +10 points (95% CI 1 to 20), as a leaves 3 unanswered, b 0"
    )


@pytest.mark.parametrize("answering", ["more", "less"])
@pytest.mark.parametrize(
    ("both", "better", "has_two"),
    [
        ("more", "less", True),
        ("less", "more", True),
        # One of them is significant.
        ("more", "below", True),
        ("below", "more", True),
        ("open", "below", False),
        ("more", "more", False),
        ("less", "less", False),
        ("more", "none", False),
    ],
)
def test_two_signs_are_those_of_the_questions_that_both_answered(
    both: str, better: str, has_two: bool, answering: str
) -> None:
    rows = {state: row(state, value={"less": -0.1}.get(state, 0.1)) for state in ("more", "less", "open")}
    rows |= {"below": row("open", value=-0.05), "none": row("open", value=0.0)}
    assert AnswerSplit(rows[answering], rows[better], rows[both], (3, 0)).has_two_signs is has_two


def test_parts_of_groups_that_were_answered_in_part_are_not_explained_by_tasks() -> None:
    # Of one task. b is ahead in 6 of 40 groups that both answered, and a in 40 of which b left one rotation unanswered.
    words = {"a": "rrrw" * 6 + "rrrr" * 74, "b": "rrrr" * 40 + "awww" * 40}
    comparison = compare([on_mvp(name, word, rotations=True).under("guess") for name, word in words.items()])
    rows = ConclusionRows(comparison, ("differences", "helped", "answered"))
    pair = rows.pair(comparison.named("a"), comparison.named("b"))
    assert pair.claim == "split"
    assert str(pair.fields()["split"]).startswith(
        "; on the 40 groups of questions that both answered +15 points (95% CI 3 to 31), but -18 points "
        "(95% CI -27 to -6) of the whole, which includes groups of questions that were answered in part; "
    )


def test_a_metric_of_groups_is_not_compared_with_the_count_over_all_questions() -> None:
    # a is right on more questions, b on more whole groups.
    words = {"a": "rrrw" * 30 + "wwww" * 10, "b": "rrrr" * 12 + "wwww" * 28}
    comparison = compare([on_mvp(name, word, rotations=True) for name, word in words.items()])
    pair = ConclusionRows(comparison, ("differences", "helped", "answered")).pair(*comparison.solvers)
    assert (pair.claim, pair.over_all, pair.rows[0].value) == ("more", None, 0.3)


def test_a_pair_of_other_units_names_its_metric() -> None:
    pair = HeadlinePair(A, B, (replace(row("few", UNTESTED["units"]), metric="accuracy"),))
    assert (pair.state, pair.fields()["metric"]) == ("units", "accuracy")


def test_the_other_rule_and_all_questions_are_stated() -> None:
    fields = pair_in_state(
        "more", other_rule=row("less", value=-0.1), over_all=row("less", value=-0.1), count=(5, 3)
    ).fields()
    assert fields["depends"] == "Which of the two is better depends on"
    assert fields["by_rule"] == (
        "+10 points (95% CI 1 to 20) if they count as a guess, -10 points (95% CI -20 to -1) if as wrong"
    )
    assert (fields["over_all"], fields["right_a"], fields["right_b"]) == ("-10 points (95% CI -20 to -1)", 5, 3)


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (
            pair_in_state("more", other_rule=row("less", value=-0.1), over_all=row("open")),
            "depending on how unanswered questions count: -10 points, -20 to -1 if they count as wrong",
        ),
        (
            pair_in_state("more", over_all=row("less", value=-0.1)),
            "with another result over all questions than over tasks: -10 points, -20 to -1 over all questions",
        ),
        (pair_in_state("more", split=split("open", "more")), "from answering more or fewer questions"),
        (
            pair_in_state("more", split=replace(split("open", "more"), more_answered=False)),
            "from questions that one of them left unanswered",
        ),
        (
            pair_in_state("more", split=split("open", "open")),
            "not confirmed by questions that both answered",
        ),
    ],
)
def test_a_pair_without_claim_is_printed_with_the_reason(pair: HeadlinePair, words: str) -> None:
    assert pair.without_claim("x") == f"x (+10 points, 1 to 20, {words})"


@pytest.mark.parametrize(
    ("quantity", "other_way", "changes_sign"),
    [
        ("difference", "difference", True),
        ("difference from answering", "difference from answering", True),
        ("value a", "value b", False),
        ("none b", "none a", False),
        ("helped", "helped", False),
        ("right -> wrong", "wrong -> right", False),
    ],
)
def test_a_row_in_the_other_order_of_its_solvers(quantity: str, other_way: str, changes_sign: bool) -> None:
    result = Result("differences", quantity, FRACTION, 0.1, "a", "b", low=-0.05, high=0.2)
    assert turned(result, ("a", "b")) is result
    after = turned(result, ("b", "a"))
    assert (after.a, after.b, after.quantity) == ("b", "a", other_way)
    assert (after.value, after.low, after.high) == ((-0.1, -0.2, 0.05) if changes_sign else (0.1, -0.05, 0.2))
    assert turned(after, ("a", "b")) == result
    few = turned(replace(result, low=None, high=None), ("b", "a"))
    assert (few.value, few.low, few.high) == (after.value, None, None)


@pytest.mark.parametrize(
    ("low", "high", "ends", "as_cost"),
    [
        (0.03, 0.25, "3 to 25", "-25 to -3"),
        (-0.25, -0.03, "-25 to -3", "3 to 25"),
        (-0.05, 0.1, "-5 to +10", "-10 to +5"),
        (0.0, 0.2, "0 to 20", "-20 to 0"),
        (-0.2, 0.0, "-20 to 0", "0 to 20"),
    ],
)
def test_the_ends_of_an_interval_have_their_signs(low: float, high: float, ends: str, as_cost: str) -> None:
    interval = Result("differences", "difference", FRACTION, 0.1, low=low, high=high)
    assert (ends_of(interval), ends_of(interval, cost=True)) == (ends, as_cost)


@pytest.mark.parametrize(
    ("value", "unit", "words", "with_sign"),
    [
        (0.14, FRACTION, "14", "+14 points"),
        (-0.14, FRACTION, "-14", "-14 points"),
        (0.0, FRACTION, "0", "+0 points"),
        (0.005, FRACTION, "1", "+1 points"),
        (0.004, FRACTION, "0.4", "+0.4 points"),
        (-0.004, FRACTION, "-0.4", "-0.4 points"),
        (1.2345, QUESTIONS, "1.23", "+1.23"),
    ],
)
def test_a_number_reads_as_0_only_if_it_is(value: float, unit: str, words: str, with_sign: str) -> None:
    assert number(value, unit) == words
    assert signed(Result("differences", "difference", unit, value)) == with_sign


@pytest.mark.parametrize(
    ("name", "combine", "denominators", "words"),
    [
        ("accuracy_macro", "mean_of_ratios", {"Jigsaw": 1.0, "Counting": 1.0}, "accuracy (mean of 2 tasks)"),
        # A task in which no question counts is not one of the tasks of the mean.
        ("accuracy_macro", "mean_of_ratios", {"Jigsaw": 1.0, "Counting": 0.0}, "accuracy"),
        # ActiView's average over its ways of asking.
        ("model_avg", "mean_of_ratios", {"zoom": 1.0, "shift_R": 1.0}, "model_avg (mean of 2 parts)"),
        ("accuracy_macro", "ratio", {"Jigsaw": 1.0, "Counting": 1.0}, "accuracy_macro"),
    ],
)
def test_a_mean_over_tasks_is_named_with_their_number(
    name: str, combine: Any, denominators: dict[str, float], words: str
) -> None:
    cells = tuple(Cell(task, task, 0.0, denominator) for task, denominator in denominators.items())
    assert measure([Metric(name, 0.0, len(cells), combine, cells)]) == words


def test_three_names_of_a_list() -> None:
    assert (listed(["a", "b", "c"]), listed(["a", "b", "c", "d"])) == ("a, b, c", "a, b, c and 1 more")


@pytest.mark.parametrize(
    ("clusters", "one_picture"), [(None, False), ((), False), (("p",), False), (("p", "p"), True), (("p", "q"), False)]
)
def test_questions_of_one_picture_are_not_too_few(clusters: tuple[str, ...] | None, one_picture: bool) -> None:
    cells = tuple(Cell("", name, 1.0, 1.0) for name in clusters or ())
    metrics = None if clusters is None else [Metric("accuracy", 1.0, len(cells), "ratio", cells)]
    assert why_no_interval(metrics).startswith("one picture") is one_picture


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        # An unanswered question counts as a guess between two options: `b` answers 20 questions more and gains half a
        # point on each.
        (
            "a" * 20 + "rw" * 30,
            "r" * 20 + "rw" * 30,
            "answering at all contributes +13 points (95% CI 8 to 18), as a leaves 20",
        ),
        # `b` answers fewer questions than `a` and is right on those that only `b` answers; this is not a gain by
        # answering.
        (
            "a" * 20 + "w" * 22 + "rw" * 30,
            "r" * 20 + "a" * 22 + "rw" * 30,
            "questions that only one answered contribute +21 points (95% CI 16 to 26); a leaves 20 unanswered, b 22",
        ),
        ("a" * 20 + "w" * 20 + "rw" * 30, "r" * 20 + "a" * 20 + "rw" * 30, "; a leaves 20 unanswered, b 20"),
        # A question that neither solver answers counts for neither.
        (
            "a" * 80 + "rw" * 30,
            "r" * 20 + "a" * 60 + "rw" * 30,
            "answering at all contributes +7 points (95% CI 4 to 11)",
        ),
        (
            "r" * 20 + "a" * 60 + "rw" * 30,
            "a" * 80 + "rw" * 30,
            "answering at all contributes -7 points (95% CI -11 to -4)",
        ),
        (
            "a" * 20 + "w" * 22 + "a" * 60 + "rw" * 30,
            "r" * 20 + "a" * 82 + "rw" * 30,
            "questions that only one answered contribute +13 points (95% CI 10 to 17); a leaves 80 unanswered, b 82",
        ),
        (
            "r" * 20 + "a" * 82 + "rw" * 30,
            "a" * 20 + "w" * 22 + "a" * 60 + "rw" * 30,
            "questions that only one answered contribute -13 points (95% CI -17 to -10); a leaves 82 unanswered, b 80",
        ),
    ],
)
def test_a_gain_by_answering_is_of_who_answers_more(a: str, b: str, words: str) -> None:
    pair = pair_of({"Jigsaw": a}, {"Jigsaw": b})[2]
    assert words in str(pair.fields()["split"])


def test_a_repetition_without_an_answer_leaves_the_others_in() -> None:
    # `b` answers the first 20 questions in both repetitions, and each of the others in only one repetition.
    a, b = "w" * 60, "r" * 20 + "a" * 20 + "r" * 20
    pair = pair_of({"Jigsaw": a}, {"Jigsaw": b}, "r" * 40 + "a" * 20)[2]
    assert pair.claim == "more"
    assert pair.split is not None
    assert pair.split.both is not None
    assert (pair.split.both.value, pair.split.both.n, pair.split.unanswered) == (1.0, 60, (0, 20))
    assert pair.split.better.value == pytest.approx((20 + 40 / 2) / 60)
    assert pair.split.answering.value == pytest.approx(40 / 2 / 2 / 60)
    assert (pair.split.more_answered, pair.split.mixed_repetitions) == (True, True)
    assert pair.fields()["split"] == (
        "; on the 60 questions that both answered at least once, without their unanswered repetitions, +100 points "
        "(95% CI 96 to 100), which makes +67 points (95% CI 61 to 73) of the whole; answering at all contributes +17 "
        "points (95% CI 13 to 20), as a leaves 0 unanswered, b 20 (mean over repetitions)"
    )


def test_the_counts_of_unanswered_questions_explain_the_part_from_answering() -> None:
    # `b` leaves 8 of 60 questions unanswered, different ones in each of two repetitions; `a` always leaves the same 10.
    a, b = "a" * 10 + "rw" * 25, "r" * 44 + "a" * 8 + "r" * 8
    pair = pair_of({"Jigsaw": a}, {"Jigsaw": b}, "r" * 44 + "r" * 8 + "a" * 8)[2]
    assert pair.split is not None
    assert pair.split.unanswered == (10, 8)
    assert "a leaves 10 unanswered, b 8 (mean over repetitions)" in str(pair.fields()["split"])


@pytest.mark.parametrize(
    ("a", "words"),
    [
        ("arrr" * 40, "; no whole group of questions that circular.single counts was answered by both; "),
        ("rrrr" * 20 + "rarr" * 20, "; on the 20 groups of questions that both answered "),
    ],
)
def test_a_group_of_questions_may_be_answered_in_part(a: str, words: str) -> None:
    solvers = [on_mvp(name, word, rotations=True) for name, word in {"a": a, "b": "rrrr" * 30 + "rrrw" * 10}.items()]
    pair = ConclusionRows(compare(solvers), ("differences", "helped", "answered")).pair(solvers[0], solvers[1])
    assert words in str(pair.fields()["split"])


def test_repetitions_that_only_one_answered_may_contribute() -> None:
    a, b = "a" * 20 + "w" * 22 + "rw" * 30, "r" * 20 + "a" * 22 + "rw" * 30
    pair = pair_of({"Jigsaw": a}, {"Jigsaw": b}, b.replace("aa", "ra", 1))[2]
    assert pair.split is not None
    assert (pair.split.more_answered, pair.split.mixed_repetitions) == (False, True)
    assert "; the questions or repetitions that only one answered contribute +" in str(pair.fields()["split"])


@pytest.mark.parametrize(
    ("count", "whole", "words"),
    [
        (0, 40, "0"),
        (40, 40, "40"),
        (20, 40, "20"),
        (17.5, 40, "17.5"),
        (13.333333, 40, "13.3"),
        # With one decimal, the number would read as none or as all of the questions.
        (1 / 30, 40, "0.03"),
        (40 - 1 / 30, 40, "39.97"),
        (4000 - 1 / 3000, 4000, "3999.9997"),
    ],
)
def test_a_mean_count_is_neither_none_nor_all_by_rounding(count: float, whole: float, words: str) -> None:
    assert mean_count(count, whole) == words


def test_a_question_that_one_of_many_repetitions_leaves_unanswered_is_counted() -> None:
    pair = pair_of({"Jigsaw": "w" * 40}, {"Jigsaw": "r" * 39 + "a"}, *["r" * 40] * 29)[2]
    pair = replace(pair, rows=(replace(pair.rows[0], low=-0.1),))
    assert ", as a leaves 0 unanswered, b 0.03 (mean over repetitions)" in str(pair.fields()["split"])


@pytest.mark.parametrize(("correct", "counts"), [(0.0, "as wrong"), (None, "as the benchmark's substitute")])
def test_an_unanswered_scanpath_does_not_count_as_wrong(correct: float | None, counts: str) -> None:
    silent: Any = SimpleNamespace(answer=None, correct=correct, outcome=SimpleNamespace(failed=False))
    scored: Any = SimpleNamespace(scores=[silent], unanswered="wrong")
    assert rule_line([scored]).startswith(f"Unanswered questions count {counts} in every number here (")
