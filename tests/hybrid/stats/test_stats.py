"""Intervals and differences compared with published examples, plain sums and simulation."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from scipy.stats import t as student

from hybrid.core.errors import DataError
from hybrid.core.types import Cell, Cells, Combine, Metric
from hybrid.stats import SKEWED_T, Contrast, Interval, combine, contrast, interval, linearised, wilson
from hybrid.stats.linearised import estimate, rows_of, sum_of_squares
from tests.tables import cases


def metric(cells: Sequence[Cell], mode: Combine) -> Metric:
    return Metric("m", combine(cells, mode), len(cells), mode, tuple(cells))


def singles(values: Sequence[float], stratum: str = "t", prefix: str = "q") -> list[Cell]:
    return [Cell(stratum, f"{prefix}{stratum}{place}", value, 1.0) for place, value in enumerate(values)]


def both(values: Sequence[float], mode: Combine = "ratio") -> Metric:
    """Return one cell for each value, all in one stratum."""
    return metric(singles(values), mode)


def ends(result: Interval | None) -> tuple[float, float]:
    assert result is not None
    return result.low, result.high


CELLS = st.lists(
    st.builds(
        Cell,
        st.sampled_from("xyz"),
        st.sampled_from([f"c{number}" for number in range(8)]),
        st.sampled_from([0.0, 0.5, 1.0, 3.0]),
        st.sampled_from([0.0, 1.0, 4.0]),
    ),
    max_size=20,
)
HOW = st.sampled_from(["ratio", "mean_of_ratios", "root_of_ratio"])


@settings(deadline=None)
@given(CELLS, HOW)
def test_combine_agrees_with_plain_sums(cells: list[Cell], combine_rule: Combine) -> None:
    ratios = []
    for group in [["x"], ["y"], ["z"]] if combine_rule == "mean_of_ratios" else [["x", "y", "z"]]:
        below = sum(cell.denominator for cell in cells if cell.stratum in group)
        if below:
            ratios.append(sum(cell.numerator for cell in cells if cell.stratum in group) / below)
    expected = sum(ratios) / len(ratios) if ratios else None
    if combine_rule == "root_of_ratio" and expected is not None:
        expected = math.sqrt(expected)
    assert combine(cells, combine_rule) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("cell", "mode", "wrong"),
    [
        (Cell("depth", "q7", math.nan, 1), "ratio", "not finite"),
        (Cell("depth", "q7", 1, math.inf), "ratio", "not finite"),
        (Cell("depth", "q7", 1, -1), "ratio", "negative under ratio"),
        (Cell("depth", "q7", -1, 1), "root_of_ratio", "negative under root_of_ratio"),
    ],
)
def test_a_cell_that_cannot_be_used_is_named(cell: Cell, mode: Combine, wrong: str) -> None:
    cells = (Cell("depth", "q1", 1, 1), cell)
    for use in (lambda: combine(cells, mode), lambda: interval(Metric("m", None, 2, mode, cells))):
        with pytest.raises(DataError, match=f"'q7' in 'depth': .* is {wrong}"):
            use()


@pytest.mark.parametrize(*cases(__file__, "test_wilson_published_values"))
def test_wilson_published_values(k: int, n: int, low: float, high: float) -> None:
    result = wilson(k, n)
    assert result is not None
    assert (round(result.low, 4), round(result.high, 4)) == (low, high)


@settings(deadline=None)
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_and_is_symmetric(counts: tuple[int, int]) -> None:
    k, n = counts
    result, mirrored, wider = wilson(k, n), wilson(n - k, n), wilson(k, n, 0.99)
    assert result is not None
    assert mirrored is not None
    assert wider is not None
    assert 0 <= result.low <= k / n <= result.high <= 1
    assert result.low < result.high
    assert result.low == pytest.approx(1 - mirrored.high, abs=1e-12)
    assert wider.low <= result.low
    assert wider.high >= result.high


def test_wilson_is_that_of_scipy() -> None:
    for n in (1, 2, 9, 30, 60):
        for k in range(n + 1):
            result, reference = wilson(k, n), binomtest(k, n).proportion_ci(0.95, "wilson")
            assert result is not None
            assert (result.low, result.high) == pytest.approx((reference.low, reference.high), abs=1e-12)
            assert (result.low == 0.0, result.high == 1.0) == (k == 0, k == n)


def test_wilson_edges() -> None:
    assert wilson(0, 0) is None
    item = wilson(1, 1)
    assert item is not None
    assert item.high == 1.0
    assert item.low == pytest.approx(1 / (1 + 1.959964**2), abs=1e-6)
    assert item.method == "Wilson"
    for k, n, level in [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0), (1, 2, 0.0)]:
        with pytest.raises(ValueError, match=r"trials|level"):
            wilson(k, n, level)


@dataclass(frozen=True)
class Sums:
    """A reference in plain loops: clusters' sums by stratum, and the pieces of the formulas in `hybrid.stats`."""

    cells: Sequence[Cell]
    macro: bool

    def denominator(self, stratum: str, cluster: str | None = None) -> float:
        return sum(c.denominator for c in self.cells if c.stratum == stratum and cluster in (None, c.cluster))

    def numerator(self, stratum: str, cluster: str | None = None) -> float:
        return sum(c.numerator for c in self.cells if c.stratum == stratum and cluster in (None, c.cluster))

    @property
    def strata(self) -> list[str]:
        return [s for s in sorted({cell.stratum for cell in self.cells}) if self.denominator(s) > 0]

    def clusters(self, stratum: str | None = None) -> list[str]:
        return sorted({c.cluster for c in self.cells if c.denominator > 0 and stratum in (None, c.stratum)})

    def weight(self, stratum: str) -> float:
        if self.macro:
            return 1 / len(self.strata)
        return self.denominator(stratum) / sum(self.denominator(s) for s in self.strata)

    def ratio(self, stratum: str) -> float:
        return self.numerator(stratum) / self.denominator(stratum)

    @property
    def value(self) -> float:
        return sum(self.weight(s) * self.ratio(s) for s in self.strata)

    def size(self, stratum: str) -> float:
        squares = sum(self.denominator(stratum, c) ** 2 for c in self.clusters(stratum))
        return self.denominator(stratum) ** 2 / squares

    def rests_on(self, stratum: str) -> float:
        """Return the effective number of clusters behind the stratum's variance; each is weighted by its squared
        denominator.
        """
        squares = [self.denominator(stratum, c) ** 2 for c in self.clusters(stratum)]
        return sum(squares) ** 2 / sum(square * square for square in squares)

    @property
    def unit(self) -> float:
        return sum(self.weight(s) ** 2 / self.size(s) for s in self.strata)

    @property
    def freedom(self) -> float:
        below = sum((self.weight(s) ** 2 / self.size(s)) ** 2 / max(1.0, self.rests_on(s) - 1) for s in self.strata)
        return max(1.0, min(self.unit**2 / below, len(self.clusters()) - 1))

    @property
    def questions(self) -> bool:
        """Return whether every cluster is one question of one stratum, worth 1."""
        places = {(cell.stratum, cell.cluster) for cell in self.cells}
        is_all = all(self.denominator(stratum, cluster) == 1 for stratum, cluster in places)
        return is_all and len(places) == len({cluster for _, cluster in places})

    def shares(self) -> list[float]:
        return [sum(self.part(s, c) for s in self.strata) for c in sorted({cell.cluster for cell in self.cells})]

    def weight_moment(self, stratum: str, power: int) -> float:
        """Return the sum of a power of the clusters' weights in the value."""
        parts = [self.denominator(stratum, c) / self.denominator(stratum) for c in self.clusters(stratum)]
        return self.weight(stratum) ** power * sum(part**power for part in parts)

    def part(self, stratum: str, cluster: str) -> float:
        above, below = self.numerator(stratum, cluster), self.denominator(stratum, cluster)
        lonely = len(self.clusters(stratum)) == 1
        expected = self.value if lonely else self.ratio(stratum)
        leverage = self.weight(stratum) if lonely else below / self.denominator(stratum)
        residual = self.weight(stratum) * (above - expected * below) / self.denominator(stratum)
        return residual / math.sqrt(1 - leverage)


def reference_pooling(a: Sums, b: Sums, slopes: Sequence[float] = (1.0, 1.0)) -> tuple[float, float]:
    """Return the increase of the second and third moments if each stratum gets one more, average cluster."""
    gains = []
    for power in (2, 3):
        strata = []
        for stratum in sorted({*a.strata, *b.strata}):
            scale = max(side.weight_moment(stratum, power) for side in (a, b))
            clusters = sorted({cell.cluster for cell in a.cells if cell.stratum == stratum})
            parts = [slopes[1] * b.part(stratum, c) - slopes[0] * a.part(stratum, c) for c in clusters]
            freedom = min(max(1.0, side.rests_on(stratum) - 1) for side in (a, b))
            strata.append((scale, sum(part**power for part in parts) / scale, freedom))
        mean = sum(freedom * moment for _, moment, freedom in strata) / sum(freedom for _, _, freedom in strata)
        gains.append(sum(scale * (mean - moment) / (freedom + 1) for scale, moment, freedom in strata))
    return (gains[0], gains[1]) if gains[0] > 0 else (0.0, 0.0)


def reference_ends(
    difference: float,
    shares: Sequence[float],
    value: float,
    unit: float,
    freedom: float,
    pooled: tuple[float, float] = (0.0, 0.0),
) -> Contrast:
    """Return interval and p value as `contrast` should give them: solve x^2 = t^2 (variance + skew x) on both sides."""
    second, third, fourth = (sum(share**power for share in shares) for power in (2, 3, 4))
    jump = 2 * (fourth + 0.1 * value**2) / (second + 0.1 * value)
    second, third = second + pooled[0], third + pooled[1]
    factor = (1 / unit / (1 / unit + 2)) ** 2
    variance = factor * (second + jump)
    degrees = freedom * ((second + jump) / second) ** 2 if second else 1e12
    skew = third / variance
    t = float(student.ppf(0.975, degrees))
    up, down = max(0.0, skew), max(0.0, -skew)
    high = difference + max(np.roots([1, -(t**2) * up, -(t**2) * variance]).real)
    low = difference - max(np.roots([1, -(t**2) * down, -(t**2) * variance]).real)
    p = 2 * float(student.sf(abs(difference) / math.sqrt(variance + max(0.0, -skew * difference)), degrees))
    return Contrast(None, None, difference, Interval(low, high, ""), p, "", 0)


def swapped_p(a: Sums, b: Sums) -> float:
    """Return how many of all ways to swap the solvers' questions differ as much; each cluster is one question."""
    names = a.clusters()
    stratum_of = {cell.cluster: cell.stratum for cell in a.cells}
    gains = []
    for name in names:
        stratum = stratum_of[name]
        gain = b.numerator(stratum, name) - a.numerator(stratum, name)
        gains.append(a.weight(stratum) * gain / a.denominator(stratum))
    least = abs(sum(gains)) - 1e-9
    ways = [sum(sign * gain for sign, gain in zip(signs, gains, strict=True)) for signs in _signs(len(names))]
    return sum(abs(way) >= least for way in ways) / len(ways)


def unconditional_p(helped: int, harmed: int, questions: int) -> float:
    """Return the probability of tables at least as extreme, for the share of differing questions that makes it
    greatest."""
    if helped == harmed:
        return 1.0
    far = abs(helped - harmed) / math.sqrt(helped + harmed) - 1e-9
    shares = np.linspace(0, 1, 20_001)
    total = np.zeros_like(shares)
    for up, down in itertools.product(range(questions + 1), repeat=2):
        differing = up + down
        if differing and differing <= questions and abs(up - down) / math.sqrt(differing) >= far:
            ways = math.comb(questions, differing) * math.comb(differing, up)
            total += ways * (shares / 2) ** differing * (1 - shares) ** (questions - differing)
    return float(total.max())


def least_p(a: Sums, b: Sums) -> float:
    """Return the lower bound of the p value for few single questions; 0 if a cluster has several rows."""
    if not (a.questions and b.questions):
        return 0.0
    gains = [y.numerator - x.numerator for x, y in zip(a.cells, b.cells, strict=True)]
    plain = all(cell.numerator in (0, 1) for cell in (*a.cells, *b.cells)) and len(a.strata) == 1
    if plain:
        return unconditional_p(sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains), len(gains))
    return swapped_p(a, b)


def _signs(count: int) -> list[tuple[int, ...]]:
    return list(itertools.product((1, -1), repeat=count))


@st.composite
def two_solvers(draw: st.DrawFn, top: float = 1.0) -> tuple[list[Cell], list[Cell]]:
    """Draw two solvers on the same clusters, some in several strata or with several cells; the weights may differ."""
    cells_a, cells_b = [], []
    places = draw(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 7)), min_size=2, max_size=20))
    assume(len({cluster for _, cluster in places}) > 1)
    credit = st.sampled_from([0.0, 0.25, 1.0]).map(lambda share: share * top)
    for stratum, cluster in places:
        for cells in (cells_a, cells_b):
            below = draw(st.sampled_from([1.0, 2.0, 4.0]))
            cells.append(Cell(stratum, f"c{cluster}", draw(credit) * below, below))
    return cells_a, cells_b


@pytest.mark.system
@settings(deadline=None, max_examples=60)
@given(two_solvers(), st.sampled_from(["ratio", "mean_of_ratios"]))
def test_contrast_of_shares_agrees_with_plain_loops(
    cells: tuple[list[Cell], list[Cell]], combine_rule: Combine
) -> None:
    a, b = (Sums(cell, combine_rule == "mean_of_ratios") for cell in cells)
    result = contrast(metric(cells[0], combine_rule), metric(cells[1], combine_rule))
    shares = [y - x for x, y in zip(a.shares(), b.shares(), strict=True)]
    unit, freedom = max(a.unit, b.unit), min(a.freedom, b.freedom)
    expected = reference_ends(b.value - a.value, shares, unit**2, unit, freedom, reference_pooling(a, b))
    assert result.difference == pytest.approx(b.value - a.value)
    least = least_p(a, b)
    low, high = ends(expected.interval)
    assert expected.p_value is not None
    if least >= 0.05:
        low, high = min(low, 0.0), max(high, 0.0)
    assert ends(result.interval) == pytest.approx((max(-1, low), min(1, high)), rel=1e-6, abs=1e-9)
    # The reference searches a grid for the maximum of a polynomial.
    assert result.p_value == pytest.approx(max(least, expected.p_value), rel=1e-5)


@pytest.mark.system
@settings(deadline=None, max_examples=60)
@given(two_solvers(top=9.0), st.sampled_from(["ratio", "mean_of_ratios", "root_of_ratio"]))
def test_contrast_of_errors_agrees_with_plain_loops(
    cells: tuple[list[Cell], list[Cell]], combine_rule: Combine
) -> None:
    a, b = (Sums(cell, combine_rule == "mean_of_ratios") for cell in cells)
    root = combine_rule == "root_of_ratio"
    value_a, value_b = (math.sqrt(item.value) if root else item.value for item in (a, b))
    slopes = [(0.5 / value if value else 0.0) if root else 1.0 for value in (value_a, value_b)]
    scaled = [[slope * share for share in entry.shares()] for slope, entry in zip(slopes, (a, b), strict=True)]
    full = max(sum(share**2 for share in first_item) for first_item in scaled) * max(a.unit, b.unit)
    result = contrast(*(replace(metric(first_cell, combine_rule), share=False) for first_cell in cells))
    assert result.difference == pytest.approx(value_b - value_a)
    assume(full > 1e-9)
    shares = [y - x for x, y in zip(*scaled, strict=True)]
    unit, freedom, pooled = max(a.unit, b.unit), min(a.freedom, b.freedom), reference_pooling(a, b, slopes)
    expected = reference_ends(value_b - value_a, shares, full, unit, freedom, pooled)
    assert ends(result.interval) == pytest.approx(ends(expected.interval), rel=1e-6, abs=1e-9)
    assert result.p_value == pytest.approx(expected.p_value, rel=1e-5)


def score_of(mean: float, of: Sums, effect: float) -> float:
    """Return the score statistic of a mean, with the likeliest proportions found by a search over multipliers."""
    ratios = np.array([of.ratio(s) for s in of.strata])
    weights = np.array([of.weight(s) for s in of.strata])
    sizes = np.array([of.size(s) for s in of.strata]) / effect

    def constrained(multiplier: float) -> np.ndarray:
        low, high = np.zeros_like(ratios), np.ones_like(ratios)
        for _ in range(45):  # the root of a falling function, stratum by stratum
            p = (low + high) / 2
            above = sizes * (ratios - p) - multiplier * weights * p * (1 - p) > 0
            low, high = np.where(above, p, low), np.where(above, high, p)
        return (low + high) / 2

    lower, upper = -1e5, 1e5
    for _ in range(60):
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if float(weights @ constrained(middle)) > mean else (lower, middle)
    p = constrained(lower)
    return (of.value - mean) / math.sqrt(float((weights**2 * p * (1 - p) / sizes).sum()))


@pytest.mark.system
@settings(deadline=None, max_examples=12)
@given(two_solvers(), st.sampled_from(["ratio", "mean_of_ratios"]))
def test_interval_of_shares_is_where_the_score_test_stops_rejecting(
    cells: tuple[list[Cell], list[Cell]], combine_rule: Combine
) -> None:
    given_metric, sums = metric(cells[0], combine_rule), Sums(cells[0], combine_rule == "mean_of_ratios")
    result = interval(given_metric)
    assert result is not None
    assume(result.method == "score over clusters")
    shares = sums.shares()
    second, fourth = sum(share**2 for share in shares), sum(share**4 for share in shares)
    binomial = sum(sums.weight(s) ** 2 * sums.ratio(s) * (1 - sums.ratio(s)) / sums.size(s) for s in sums.strata)
    informative = second**2 / fourth if fourth else 0.0
    effect = (informative * (second / binomial if binomial else 1.0) + 0.25) / (informative + 0.25)
    t = float(student.ppf(0.975, sums.freedom))
    for end, sign in ((result.low, 1), (result.high, -1)):
        if 0.001 < end < 0.999:
            assert score_of(end, sums, effect) == pytest.approx(sign * t, rel=1e-3)
        else:
            assert 0 <= end <= 1


@pytest.mark.system
@given(two_solvers(), st.sampled_from(["ratio", "mean_of_ratios"]))
def test_clusters_of_unequal_size_never_add_degrees_of_freedom(
    cells: tuple[list[Cell], list[Cell]], combine_rule: Combine
) -> None:
    result, sums = (
        estimate(rows_of(cells[0], combine_rule), combine_rule),
        Sums(cells[0], combine_rule == "mean_of_ratios"),
    )
    assert result is not None
    assert result.layout.freedom == pytest.approx(sums.freedom)
    by_size = sum((sums.weight(s) ** 2 / sums.size(s)) ** 2 / max(1.0, sums.size(s) - 1) for s in sums.strata)
    assert 1 <= result.layout.freedom <= max(1.0, sums.unit**2 / by_size) * (1 + 1e-9)


@settings(deadline=None, max_examples=60)
@given(CELLS.flatmap(lambda cells: st.tuples(st.just(cells), st.permutations(cells))), HOW)
def test_interval_ignores_the_order_of_cells(orders: tuple[list[Cell], list[Cell]], combine_rule: Combine) -> None:
    first, second = (interval(metric(cells, combine_rule)) for cells in orders)
    assert first == second


@pytest.mark.system
@settings(deadline=None, max_examples=60)
@given(two_solvers(), HOW, st.sampled_from(["abc", "zzz"]))
def test_names_and_splitting_of_cells_do_not_matter(
    cells: tuple[list[Cell], list[Cell]], combine_rule: Combine, prefix: str
) -> None:
    def renamed(rows: list[Cell]) -> list[Cell]:
        last = {cell.cluster: f"{prefix}{9 - place}" for place, cell in enumerate(rows)}
        return [Cell(prefix + "zyx"["xyz".index(c.stratum)], last[c.cluster], c.numerator, c.denominator) for c in rows]

    def halved(rows: list[Cell]) -> list[Cell]:
        return [Cell(c.stratum, c.cluster, c.numerator / 2, c.denominator / 2) for c in rows for _ in range(2)]

    plain = contrast(*(metric(rows, combine_rule) for rows in cells))
    for change in (renamed, halved):
        result = contrast(*(metric(change(rows), combine_rule) for rows in cells))
        assert (result.difference, result.p_value) == pytest.approx((plain.difference, plain.p_value), abs=1e-6)
        if plain.interval is not None:
            assert ends(result.interval) == pytest.approx(ends(plain.interval), abs=1e-6)
    item, other = (
        interval(metric(halved(cells[0]), combine_rule)),
        interval(metric(renamed(halved(cells[0])), combine_rule)),
    )
    assert (item is None) == (other is None)
    if item is not None:
        assert ends(item) == pytest.approx(ends(other), abs=1e-6)


@settings(deadline=None, max_examples=60)
@given(two_solvers(), HOW, st.floats(0.5, 0.99))
def test_interval_holds_its_value_and_grows_with_the_level(
    cells: tuple[list[Cell], list[Cell]], combine_rule: Combine, level: float
) -> None:
    given_metric = metric(cells[0], combine_rule)
    result, wider = interval(given_metric, level), interval(given_metric, level + 0.009)
    if result is None:
        assert wider is None
        return
    assert wider is not None
    assert given_metric.value is not None
    assert result.low - 1e-9 <= given_metric.value <= result.high + 1e-9
    assert wider.low <= result.low + 1e-12
    assert wider.high >= result.high - 1e-12
    assert 0 <= result.low < result.high
    if combine_rule != "root_of_ratio":
        assert result.high <= 1


@pytest.mark.system
@settings(deadline=None, max_examples=100)
@given(two_solvers(), HOW, st.floats(0.5, 0.99))
def test_contrast_excludes_zero_exactly_where_p_is_small_and_mirrors(
    cells: tuple[list[Cell], list[Cell]], combine_rule: Combine, level: float
) -> None:
    a, b = (metric(rows, combine_rule) for rows in cells)
    forth, back, wider = contrast(a, b, level), contrast(b, a, level), contrast(a, b, level + 0.009)
    assert (forth.value_a, forth.value_b) == (back.value_b, back.value_a) == (a.value, b.value)
    assert forth.difference == -(back.difference or 0.0)
    if forth.interval is None or forth.p_value is None or wider.interval is None:
        assert combine_rule == "root_of_ratio"
        assert forth.p_value is None
        return
    assert forth.p_value == pytest.approx(back.p_value)
    assert ends(forth.interval) == pytest.approx(tuple(-end for end in reversed(ends(back.interval))))
    assert forth.interval.low <= (forth.difference or 0.0) <= forth.interval.high
    assert wider.interval.low <= forth.interval.low
    assert wider.interval.high >= forth.interval.high
    assert wider.p_value == forth.p_value
    assert 0 <= forth.p_value <= 1
    if abs(forth.p_value - (1 - level)) > 1e-9:
        assert (forth.p_value < 1 - level) == (not forth.interval.low <= 0 <= forth.interval.high)


def test_contrast_of_a_published_two_by_two_table() -> None:
    # Agresti, Categorical Data Analysis (2nd edition, 2002), section 10.1.2: approval at two surveys, 1,600 people,
    # difference -0.04 with 95 % interval (-0.06, -0.02) and z = -4.17.
    a = [1.0] * (794 + 150) + [0.0] * (86 + 570)
    b = [1.0] * 794 + [0.0] * 150 + [1.0] * 86 + [0.0] * 570
    result = contrast(both(a), both(b))
    assert result.difference == pytest.approx(-0.04)
    low, high = ends(result.interval)
    assert (round(low, 2), round(high, 2)) == (-0.06, -0.02)
    assert result.p_value == pytest.approx(3.1e-5, rel=0.25)
    assert (result.clusters, result.test) == (1600, "skewed t over clusters")
    assert result.interval is not None
    assert result.interval.method == SKEWED_T
    assert result.value_a == 944 / 1600
    assert result.value_b == 880 / 1600


def test_contrast_refuses_what_is_not_the_same() -> None:
    a = metric([Cell("t", "q1", 1, 1), Cell("t", "q2", 1, 1)], "ratio")
    for cells in (
        [Cell("t", "q1", 1, 1)],
        [Cell("t", "q1", 1, 1), Cell("u", "q2", 1, 1)],
        [*a.cells, Cell("u", "q2", 1, 1)],
    ):
        with pytest.raises(DataError, match=r"cluster 'q2' in '[tu]'"):
            contrast(a, metric(cells, "ratio"))
        with pytest.raises(DataError, match=r"cluster 'q2' in '[tu]'"):
            contrast(metric(cells, "ratio"), a)
    errors, negative = (Metric("m", None, 2, "root_of_ratio", tuple(singles([1.0, end]))) for end in (1.0, -1.0))
    for pair in ((errors, negative), (negative, errors)):
        with pytest.raises(DataError, match=r"'qt1' in 't': .* negative under root_of_ratio"):
            contrast(*pair)
    with pytest.raises(DataError, match="ratio and 'm' as mean_of_ratios"):
        contrast(a, metric(a.cells, "mean_of_ratios"))
    with pytest.raises(ValueError, match="level"):
        contrast(a, a, level=1.0)


def test_a_metric_is_summed_once_for_its_value_and_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = Cells(Cell("", f"q{n}", float(n % 3 == 0), 1.0) for n in range(40))
    sums: list[object] = []
    summed = linearised.summed
    monkeypatch.setattr(linearised, "summed", lambda *words: sums.append(words) or summed(*words))
    value = combine(cells, "ratio")
    first = len(sums)
    assert value is not None
    assert first
    assert combine(cells, "ratio") == value
    # Without the sums by cluster, only the two by stratum are left.
    assert len(sums) - first == 2
    # Another tuple of cells is summed again.
    assert combine((*cells[:-1], Cell("", "q39", 0.0, 1.0)), "ratio") != value


def test_no_dot_product_is_long_enough_to_start_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(20_001) / 7.0
    monkeypatch.setattr(linearised, "_DOT", 3)
    assert sum_of_squares(values[:10]) == pytest.approx(float(sum(value**2 for value in values[:10])), rel=1e-15)
    monkeypatch.undo()

    class Watched(np.ndarray[Any, Any]):
        """Records the length of each dot product."""

        lengths: ClassVar[list[int]] = []

        def __matmul__(self, other: Any) -> Any:
            self.lengths.append(len(self))
            return np.asarray(self) @ np.asarray(other)

    assert sum_of_squares(values.view(Watched)) == pytest.approx(float((values**2).sum()), rel=1e-12)
    assert Watched.lengths == [10_000, 10_000, 1]
    assert sum_of_squares(np.array([])) == 0.0
