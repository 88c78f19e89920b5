"""Kappa and shared mistakes compared with published tables, SciPy, and the formulas written again."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, fisher_exact, hypergeom
from scipy.stats import t as student

from hybrid.scoring.reports import compare_paths
from hybrid.stats.kappa import ADDED_CELLS, EXACT, kappa, shared_mistakes
from tests.tables import cases

Table = Sequence[Sequence[int]]

RABBITS: Sequence[Table] = [[[0, 6], [0, 5]], [[3, 0], [3, 6]], [[6, 0], [2, 4]], [[5, 1], [6, 0]], [[2, 0], [5, 0]]]


def labels(table: Table) -> tuple[list[int], list[int]]:
    """Return both raters' labels for a table of counts: rows are the first rater's."""
    pairs = [(row, column) for row, counts in enumerate(table) for column, n in enumerate(counts) for _ in range(n)]
    return [row for row, _ in pairs], [column for _, column in pairs]


def alone(values: Sequence[object]) -> list[str]:
    return [f"q{place}" for place in range(len(values))]


def fleiss_cohen_everitt(table: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return kappa and its large-sample standard error as printed in Fleiss, Levin and Paik (2003), section 18.1."""
    p = np.array(table) / np.sum(table)
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    observed, expected = p.trace(), rows @ columns
    result = (observed - expected) / (1 - expected)
    count = range(len(p))
    a = sum(p[i, i] * (1 - (rows[i] + columns[i]) * (1 - result)) ** 2 for i in count)
    b = (1 - result) ** 2 * sum(p[i, j] * (columns[i] + rows[j]) ** 2 for i in count for j in count if i != j)
    c = (result - expected * (1 - result)) ** 2
    return float(result), math.sqrt((a + b - c) / np.sum(table)) / (1 - expected)


def error_of(table: Table) -> tuple[float, float]:
    """Return kappa and its standard error without hybrid's factor m / (m - 1)."""
    a, b = labels(table)
    result = kappa(a, b, alone(a))
    assert result.value is not None
    assert result.error is not None
    return result.value, result.error * math.sqrt((len(a) - 1) / len(a))


@pytest.mark.parametrize(*cases(__file__, "test_kappa_published_values", list))
def test_kappa_published_values(table: Table, value: float, error: float) -> None:
    result = error_of(table)
    assert tuple(round(number, 4) for number in result) == (value, error)


TABLES = st.lists(st.lists(st.integers(0, 6), min_size=2, max_size=2), min_size=2, max_size=2)


@settings(deadline=None)
@given(TABLES)
def test_kappa_of_single_questions_has_the_variance_of_fleiss_cohen_and_everitt(table: list[list[int]]) -> None:
    a, b = labels(table)
    assume(kappa(a, b, alone(a)).error is not None)
    assert error_of(table) == pytest.approx(fleiss_cohen_everitt(table), abs=1e-7)


@settings(deadline=None)
@given(TABLES, st.sampled_from([0.8, 0.95]))
def test_the_interval_is_that_of_the_table_with_half_a_question_more_in_each_cell(
    table: list[list[int]], level: float
) -> None:
    a, b = labels(table)
    result = kappa(a, b, alone(a), level)
    assume(result.interval is not None and result.value is not None)
    assert result.interval is not None
    assert result.value is not None
    assert result.interval.method == ADDED_CELLS
    n = len(a)
    centre, error = fleiss_cohen_everitt([[count + 0.5 for count in row] for row in table])
    half = float(student.ppf((1 + level) / 2, n - 1)) * error * math.sqrt(n / (n - 1))
    expected = (max(-1, min(result.value, centre - half)), min(1, max(result.value, centre + half)))
    assert (result.interval.low, result.interval.high) == pytest.approx(expected, abs=1e-9)


ROWS = st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from("uvwxyz")), min_size=1, max_size=25)


@settings(deadline=None)
@given(ROWS)
def test_kappa_is_symmetric_bounded_and_blind_to_order_and_to_what_is_called_right(
    rows: list[tuple[bool, bool, str]],
) -> None:
    a, b, clusters = map(list, zip(*rows, strict=True))
    result = kappa(a, b, clusters)
    others = [
        kappa(b, a, clusters),
        kappa([not x for x in a], [not x for x in b], clusters),
        kappa(*map(list, zip(*sorted(rows), strict=True))),
    ]
    for other in others:
        assert other.value == pytest.approx(result.value)
        assert (other.interval is None) == (result.interval is None)
        if result.interval and other.interval:
            assert (other.interval.low, other.interval.high) == pytest.approx(
                (result.interval.low, result.interval.high)
            )
    assert result.n == len(rows)
    assert result.agreed == sum(x == y for x, y in zip(a, b, strict=True))
    if result.value is not None:
        assert -1 - 1e-12 <= result.value <= 1
        assert result.value == pytest.approx((result.agreed - result.expected) / (result.n - result.expected))
    if result.interval is not None and result.value is not None:
        assert -1 <= result.interval.low <= result.value <= result.interval.high <= 1


def test_kappa_of_what_cannot_be_told() -> None:
    assert kappa([], [], []).value is None
    one_label = kappa([True] * 3, [True] * 3, alone("abc"))
    assert (one_label.value, one_label.interval, one_label.expected) == (None, None, 3)
    full = kappa([True, False, True], [True, False, True], alone("abc"))
    assert (full.value, full.error) == (1, pytest.approx(0))
    assert kappa([True, False, True], [True, False, False], ["x"] * 3).interval is None
    for level in (0.0, 1.0):
        with pytest.raises(ValueError, match="level"):
            kappa([True], [True], ["x"], level)
    with pytest.raises(ValueError, match="lengths: 1, 2, 1"):
        kappa([True], [True, False], ["x"])


def test_shared_mistakes_published_exact_test() -> None:
    # Penicillin and rabbits (Agresti, 1990, p. 231): R's mantelhaen.test(Rabbits, exact = TRUE) prints 0.03994, S = 16.
    right_a, right_b, strata = [], [], []
    for place, table in enumerate(RABBITS):
        rows, columns = labels(table)
        right_a += [row != 0 for row in rows]
        right_b += [column != 0 for column in columns]
        strata += [f"s{place}"] * len(rows)
    mistakes = shared_mistakes(right_a, right_b, strata)
    assert mistakes.both_wrong == 16
    assert round(mistakes.p_value or 0, 5) == 0.03994
    assert mistakes.test == EXACT
    # The statistic of R's `mantelhaen.test(Rabbits)` with its defaults (not exact, with continuity correction). Its
    # numerator, observed minus expected shared mistakes, is what hybrid's test over clusters divides by a standard
    # error.
    variance = 0.0
    for table in RABBITS:
        n = int(np.sum(table))
        variance += math.prod((*np.sum(table, axis=0), *np.sum(table, axis=1))) / n**2 / (n - 1)
    assert mistakes.expected_within == pytest.approx(13)
    corrected = (abs(mistakes.both_wrong - mistakes.expected_within) - 0.5) ** 2 / variance
    assert corrected == pytest.approx(3.9286, abs=1e-4)
    assert chi2.sf(corrected, 1) == pytest.approx(0.04747, abs=1e-5)


STRATIFIED = st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from("xyz")), min_size=1, max_size=14)


@settings(deadline=None)
@given(STRATIFIED)
def test_shared_mistakes_agree_with_plain_enumeration(rows: list[tuple[bool, bool, str]]) -> None:
    a, b, strata = map(list, zip(*rows, strict=True))
    mistakes = shared_mistakes(a, b, strata)
    assert (mistakes.n, mistakes.wrong_a, mistakes.wrong_b) == (len(rows), a.count(False), b.count(False))
    assert mistakes.both_wrong == sum(not x and not y for x, y in zip(a, b, strict=True))
    assert mistakes.expected == pytest.approx(a.count(False) * b.count(False) / len(rows))
    shares, within = [], 0.0
    for name in sorted(set(strata)):
        members = [place for place, stratum in enumerate(strata) if stratum == name]
        counts = [len(members), sum(not a[place] for place in members), sum(not b[place] for place in members)]
        within += counts[1] * counts[2] / counts[0]
        low, high = hypergeom.support(*counts)
        shares.append([(shared, hypergeom.pmf(shared, *counts)) for shared in range(low, high + 1)])
    chances: dict[int, float] = {}
    for ways in itertools.product(*shares):
        total = sum(shared for shared, _ in ways)
        chances[total] = chances.get(total, 0.0) + math.prod(chance for _, chance in ways)
    assert mistakes.expected_within == pytest.approx(within)
    assert mistakes.ratio == (pytest.approx(mistakes.both_wrong / within) if within else None)
    if len(chances) == 1:
        assert (mistakes.p_value, mistakes.test) == (None, "none")
    else:
        least = chances[mistakes.both_wrong] * (1 + 1e-7)
        assert mistakes.p_value == pytest.approx(sum(chance for chance in chances.values() if chance <= least))


@settings(deadline=None)
@given(STRATIFIED)
def test_shared_mistakes_are_symmetric_and_blind_to_order(rows: list[tuple[bool, bool, str]]) -> None:
    a, b, strata = map(list, zip(*rows, strict=True))
    mistakes = shared_mistakes(a, b, strata)
    other = shared_mistakes(b, a, strata)
    assert (other.both_wrong, other.expected, other.p_value) == (
        mistakes.both_wrong,
        mistakes.expected,
        pytest.approx(mistakes.p_value),
    )
    sorted_rows = map(list, zip(*sorted(rows), strict=True))
    second = shared_mistakes(*sorted_rows)
    assert second.p_value == pytest.approx(mistakes.p_value)
    assert second.expected_within == pytest.approx(mistakes.expected_within)


@settings(deadline=None)
@given(TABLES)
def test_one_stratum_is_fisher_s_exact_test(table: list[list[int]]) -> None:
    a, b = labels(table)
    mistakes = shared_mistakes([x != 0 for x in a], [x != 0 for x in b], ["all"] * len(a))
    if mistakes.p_value is not None:
        assert mistakes.p_value == pytest.approx(fisher_exact(table).pvalue)
        assert mistakes.expected_within == pytest.approx(mistakes.expected)


def test_nothing_shared_where_nothing_is_wrong() -> None:
    mistakes = shared_mistakes([True] * 4, [False, True, True, False], list("xxyy"))
    assert (mistakes.both_wrong, mistakes.expected, mistakes.ratio, mistakes.p_value, mistakes.test) == (
        0,
        0,
        None,
        None,
        "none",
    )
    assert shared_mistakes([], [], []).expected == 0
    in_pairs = shared_mistakes([True] * 4, [True] * 4, list("xxyy"), list("aabb"))
    assert (in_pairs.p_value, in_pairs.test) == (None, "none")
    with pytest.raises(ValueError, match="lengths"):
        shared_mistakes([True], [True], ["x"], ["a", "b"])


@pytest.mark.shared_data
def test_recorded_blink_answers(shared_data: Path) -> None:
    names = ("GPT4V", "GPT4o", "QwenVLMax")
    comparison = compare_paths([shared_data / "blink_outputs" / name for name in names], benchmark="blink")
    scores = {solver.solver: solver.counted["wrong"].scores for solver in comparison.solvers}
    right = {name: [score.correct == 1 for score in members] for name, members in scores.items()}
    strata = [score.task for score in scores["GPT4V"]]
    # Published facts about the recorded answers: how often both are wrong, and how often simple independence predicts
    # that.
    for other, number, expected in (("GPT4o", 499, 378), ("QwenVLMax", 668, 570)):
        assert [score.id for score in scores[other]] == [score.id for score in scores["GPT4V"]]
        shared = shared_mistakes(right["GPT4V"], right[other], strata)
        assert (shared.n, shared.both_wrong, round(shared.expected)) == (1901, number, expected)
        assert shared.expected < shared.expected_within < number
