"""Paired comparison of two solvers against published 2x2 tables, exact enumeration and symmetry."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.errors import DataError
from hybrid.stats import Average, Verdict, mcnemar, paired, verdicts
from hybrid.types import Outcome, Score

VALUES = st.lists(st.sampled_from([0.0, 0.25, 1.0]), max_size=40)


def solver(values: Sequence[float], task: str = "t") -> list[Verdict]:
    return [Verdict(f"{task}{place}", f"{task}{place}", task, value) for place, value in enumerate(values)]


def two_by_two(both: int, harmed: int, helped: int, neither: int) -> tuple[list[Verdict], list[Verdict]]:
    a = [1.0] * (both + harmed) + [0.0] * (helped + neither)
    b = [1.0] * both + [0.0] * harmed + [1.0] * helped + [0.0] * neither
    return solver(a), solver(b)


@pytest.mark.parametrize(
    ("helped", "harmed", "p"),
    # Fagerland, Lydersen and Laake 2013 (airway hyper-responsiveness); Agresti (approval ratings: z = -4.17).
    [(7, 1, 0.0703), (86, 150, 3.7e-5), (0, 0, 1.0), (5, 5, 1.0), (6, 0, 2 / 64)],
)
def test_mcnemar_published_values(helped: int, harmed: int, p: float) -> None:
    assert mcnemar(helped, harmed) == pytest.approx(p, rel=0.01)
    assert mcnemar(harmed, helped) == mcnemar(helped, harmed)


def test_mcnemar_refuses_negative_counts() -> None:
    with pytest.raises(ValueError, match="-1"):
        mcnemar(-1, 3)


def test_paired_reads_a_two_by_two_table() -> None:
    result = paired(*two_by_two(both=1, harmed=1, helped=7, neither=12))
    assert (result.both_right, result.harmed, result.helped, result.both_wrong, result.tied) == (1, 1, 7, 12, 0)
    assert (result.n, result.clusters) == (21, 21)
    assert result.difference == pytest.approx(6 / 21)
    assert (result.mean_a, result.mean_b) == pytest.approx((2 / 21, 8 / 21))
    assert (round(result.p_value or 0, 4), result.test) == (0.0703, "exact McNemar")
    assert result.interval is not None
    assert result.interval.low < 6 / 21 < result.interval.high


def test_paired_interval_has_the_textbook_standard_error() -> None:
    result = paired(*two_by_two(both=794, harmed=150, helped=86, neither=570), average="micro")
    n, difference = 1600, (86 - 150) / 1600
    half = 1.959964 * math.sqrt((86 + 150) / n - difference**2) / math.sqrt(n)
    assert result.interval is not None
    assert result.interval.low == pytest.approx(difference - half, abs=0.06 * half)
    assert result.interval.high == pytest.approx(difference + half, abs=0.06 * half)


def test_macro_and_micro_weigh_tasks_differently() -> None:
    a = [*solver([0] * 10, "x"), *solver([1, 1], "y")]
    b = [*solver([1] * 5 + [0] * 5, "x"), *solver([0, 1], "y")]
    macro, micro = paired(a, b, "macro"), paired(a, b, "micro")
    assert macro.difference == pytest.approx((0.5 - 0.5) / 2)
    assert micro.difference == pytest.approx(4 / 12)
    assert (macro.average, micro.average) == ("macro", "micro")


def test_questions_of_one_solver_are_listed_and_enter_nothing_else() -> None:
    a, b = two_by_two(3, 1, 4, 2)
    lonely_a = [Verdict("z1", "z1", "t", 1.0), Verdict("y1", "y1", "t", 1.0)]
    alone, widened = paired(a, b), paired([*a, *lonely_a], [*b, Verdict("z2", "z2", "t", 0.0)])
    assert (widened.only_a, widened.only_b) == (("y1", "z1"), ("z2",))
    assert replace(widened, only_a=(), only_b=()) == alone


def test_no_common_question() -> None:
    result = paired(solver([1, 0], "x"), solver([1], "y"))
    assert (result.n, result.difference, result.interval, result.p_value, result.test) == (0, None, None, None, "none")
    assert (result.mean_a, result.mean_b) == (None, None)
    assert len(result.only_a) == 2
    assert len(result.only_b) == 1


def test_a_solver_against_itself() -> None:
    result = paired(solver([1, 0, 1]), solver([1, 0, 1]))
    assert (result.difference, result.interval, result.p_value) == (0.0, None, 1.0)


def test_fractional_credit_uses_the_sign_flip_test_and_counts_ties() -> None:
    result = paired(solver([0.25, 0.25, 1, 0]), solver([0.25, 1, 0.5, 0]))
    assert (result.tied, result.helped, result.harmed, result.both_wrong, result.both_right) == (1, 1, 1, 1, 0)
    assert result.test == "exact sign-flip"


def test_sign_flip_equals_exact_enumeration() -> None:
    a, b = [0.0, 0.25, 1.0, 0.0, 0.5, 0.0], [1.0, 1.0, 0.5, 0.25, 0.5, 0.75]
    gains = [y - x for x, y in zip(a, b, strict=True)]
    sums = [
        abs(sum(sign * gain for sign, gain in zip(signs, gains, strict=True)))
        for signs in itertools.product((1, -1), repeat=6)
    ]
    expected = sum(total >= abs(sum(gains)) - 1e-12 for total in sums) / 64
    assert paired(solver(a), solver(b)).p_value == pytest.approx(expected)


def test_sign_flip_equals_mcnemar_on_binary_verdicts() -> None:
    # A second copy of one undecided question brings the clusters in without changing any count that matters.
    a, b = two_by_two(both=2, harmed=2, helped=9, neither=3)
    twin = Verdict("t0#s2", "t0", "t", 1.0)
    clustered = paired([*a, twin], [*b, twin], "micro")
    assert clustered.test == "exact sign-flip"
    assert clustered.p_value == pytest.approx(mcnemar(9, 2))


def test_many_clusters_are_drawn_close_to_the_exact_value() -> None:
    a, b = two_by_two(both=10, harmed=20, helped=36, neither=10)
    twin = Verdict("t0#s2", "t0", "t", 1.0)
    result = paired([*a, twin], [*b, twin], "micro")
    assert result.test == "sign-flip, 10,000 draws"
    assert result.p_value == pytest.approx(mcnemar(36, 20), abs=0.006)


def test_a_drawn_p_value_is_never_zero() -> None:
    result = paired(solver([0.1] * 60), solver([1.0] * 60), resamples=500)
    assert result.p_value == pytest.approx(1 / 501)


def test_drawn_p_values_do_not_depend_on_which_solver_comes_first() -> None:
    a = solver([0.25, 1.0, 0.0, 0.5] * 8)
    b = solver([1.0, 0.75, 0.125, 0.5] * 8)
    forth, back = paired(a, b), paired(b, a)
    assert forth.test == "sign-flip, 10,000 draws"
    assert forth.p_value == back.p_value


def test_sign_flip_weighs_clusters_as_the_macro_mean_does() -> None:
    a = [*solver([0.0, 0.5, 0.0, 1.0, 0.25, 0.0], "x"), *solver([0.5, 1.0], "y")]
    b = [*solver([1.0, 1.0, 1.0, 0.0, 1.0, 0.5], "x"), *solver([0.0, 0.25], "y")]
    gains = [(y.correct - x.correct) / (12 if x.task == "x" else 4) for x, y in zip(a, b, strict=True)]
    sums = [
        abs(sum(sign * gain for sign, gain in zip(signs, gains, strict=True)))
        for signs in itertools.product((1, -1), repeat=8)
    ]
    expected = sum(total >= abs(sum(gains)) - 1e-12 for total in sums) / 256
    assert paired(a, b, "macro").p_value == pytest.approx(expected)
    assert paired(a, b, "micro").p_value != pytest.approx(expected)


def test_only_the_macro_interval_keeps_tasks_apart() -> None:
    a = [*solver([0.0] * 9, "x"), *solver([0.0] * 9, "y")]
    b = [*solver([0.0] * 9, "x"), *solver([1.0] * 9, "y")]
    assert paired(a, b, "macro").interval is None
    assert paired(a, b, "micro").interval is not None


def test_variants_of_a_question_count_as_one_cluster() -> None:
    a = [Verdict(f"q{i}#s{k}", f"q{i}", "t", 0.0) for i in range(6) for k in range(5)]
    b = [replace(verdict, correct=1.0) for verdict in a]
    result = paired(a, b)
    assert (result.n, result.clusters) == (30, 6)
    assert result.p_value == 2 / 64


@given(VALUES, VALUES, st.sampled_from(["macro", "micro"]))
def test_swapping_the_solvers_mirrors_the_result(a: list[float], b: list[float], average: Average) -> None:
    forth = paired(solver(a), solver(b), average, resamples=50)
    back = paired(solver(b), solver(a), average, resamples=50)
    assert forth.helped + forth.harmed + forth.both_right + forth.both_wrong + forth.tied == forth.n
    assert forth.n + len(forth.only_a) == len(a)
    assert (forth.helped, forth.harmed, forth.only_a) == (back.harmed, back.helped, back.only_b)
    assert (forth.p_value, forth.test) == (back.p_value, back.test)
    assert forth.p_value is None or 0 < forth.p_value <= 1
    if forth.difference is not None and forth.mean_a is not None and forth.mean_b is not None:
        assert forth.difference == pytest.approx(forth.mean_b - forth.mean_a)
        assert back.difference == pytest.approx(-forth.difference)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (solver([1]) * 2, solver([1]), "'t0' stands twice in the first"),
        (solver([1]), solver([0]) * 2, "'t0' stands twice in the second"),
        (solver([1]), solver([1.5]), "'t0' in the second list: correct is 1.5"),
        (solver([math.nan]), solver([1]), "'t0' in the first list: correct is nan"),
        ([Verdict("q", "q", "x", 1)], [Verdict("q", "q", "y", 1)], "'q' is in x/q for one"),
    ],
)
def test_verdicts_that_cannot_be_compared_are_named(a: list[Verdict], b: list[Verdict], message: str) -> None:
    with pytest.raises(DataError, match=message):
        paired(a, b)


def test_verdicts_come_from_scores_and_leave_out_what_was_not_scored() -> None:
    scores = [
        Score("q1#r1", "depth", 1.0, Outcome.ANSWERED),
        Score("q2", "depth", None, Outcome.NOT_RECORDED),
    ]
    assert verdicts(scores) == (Verdict("q1#r1", "q1", "depth", 1.0),)
