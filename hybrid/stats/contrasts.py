"""The difference of two solvers by one metric, or of two groups of questions: interval, tests, and equivalence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Literal

import numpy as np

from hybrid.core.errors import UsageError
from hybrid.core.types import Cell, Cells, Combine, Metric
from hybrid.stats.exact import unconditional
from hybrid.stats.intervals import Interval, combine, interval
from hybrid.stats.linearised import Floats, Rows, estimate, paired_rows, value_of
from hybrid.stats.randomisation import swapped
from hybrid.stats.scatter import SKEWED_T, ScatterError, scatter_error, tail_of

EXACT = "exact over questions (Suissa and Shuster), p at least that of the skewed t"

# Name of the test that `contrast` uses for fewer than `FEW` single questions with partial credit or several strata. For
# questions of one stratum that are right or wrong it uses `EXACT`.
SWAPPED = "randomisation of answers, p at least that of the skewed t"

# From this number of clusters on, the skewed t is used for single questions too.
FEW = 30


@dataclass(frozen=True, slots=True)
class Contrast:
    """One metric of two solvers, `a` and `b`: `difference` is b minus a, in the metric's own unit.

    `interval` excludes 0 exactly if `p_value` (two-sided, for a true difference of 0) is below 1 - level. If a value is
    undefined there is no difference. With a single cluster, or if neither solver's values vary and they have no natural
    scale, interval and p value are None. `test` names the method, or is "none".
    """

    value_a: float | None
    value_b: float | None
    difference: float | None
    interval: Interval | None
    p_value: float | None
    test: str
    clusters: int


Verdict = Literal["superior", "not inferior", "inferior", "undecided"]


@dataclass(frozen=True, slots=True)
class NonInferiority:
    """Whether `b` is worse than `a` by a margin, for a metric whose larger values are better.

    `difference` (b minus a) and `interval` are those of `contrast`. `p_value` is one-sided, for b worse by `margin` or
    more: it is below (1 - level) / 2 exactly if b is not inferior. `verdict`, as in Piaggio et al., figure 1:

    - "superior": the whole interval is above 0 (so b is not inferior either);
    - "not inferior": the whole interval is above -margin;
    - "inferior": the whole interval is below -margin;
    - "undecided": the interval includes -margin, or does not exist.
    """

    margin: float
    difference: float | None
    interval: Interval | None
    p_value: float | None
    verdict: Verdict


def contrast(a: Metric, b: Metric, level: float = 0.95) -> Contrast:
    """Compare two solvers by one metric over the same questions, b minus a.

    Interval and p value both come from the metric's own linearised difference, cluster by cluster within the metric's
    strata (Binder, International Statistical Review 51 (1983) 279-292, with the leverage correction of Bell and
    McCaffrey, Survey Methodology 28 (2002) 169-181), and Student's t. Two clusters that differ, one in favour of each
    solver, are added to the variance (after Bonett and Price, Statistics in Medicine 31 (2012) 127-139, p. 131), so
    that solvers with the same answers have an interval around 0 and p = 1. The variance of small strata is moderated by
    that of all (`StratumScale.pool`, after Smyth 2004), because few questions may show no difference by chance. At true
    values other than the observed difference, the variance grows with the skewness of the clusters' shares, as in a
    score interval.

    For fewer than `FEW` clusters of one question each, that p value is too small too often (`docs/statistics.md`). A
    share is then also tested exactly: its p value is at least that of the exact test, and its interval reaches 0 if
    that test accepts 0. The exact test is `unconditional` for right and wrong in one stratum, and `randomisation` for
    partial credit or several strata, whose questions differ in how often both solvers answer alike.

    Raises `DataError`, naming the cluster, if the clusters or strata of the two differ, or if they are combined
    differently; `ValueError` for a level outside 0..1.
    """
    tail = tail_of(level)
    paired = paired_difference(*paired_rows(a, b), a.combine, share=a.share and b.share)
    scatter = paired.scatter
    return Contrast(
        paired.value_a,
        paired.value_b,
        paired.difference,
        interval=None if scatter is None else scatter.interval(tail),
        p_value=None if scatter is None else scatter.p_value(),
        test="none" if scatter is None else scatter.least[1],
        clusters=paired.clusters,
    )


def noninferiority(a: Metric, b: Metric, margin: float, level: float = 0.95) -> NonInferiority:
    """Test whether solver `b` is at most `margin` worse than solver `a`, by one metric over the same questions.

    The verdict follows from the interval of `contrast` at `level`: a one-sided test at (1 - level) / 2, 2.5 % by
    default, as CONSORT recommends (Piaggio, Elbourne, Pocock, Evans and Altman, JAMA 308 (2012) 2594-2604). The p value
    is that of the same statistic at a true difference of -margin. For paired proportions of single questions the p
    value agrees closely with the score test of Tango, Statistics in Medicine 17 (1998) 891-908.

    Args:
        a: the reference solver; larger values are better.
        b: the solver that should not be worse.
        margin: the largest loss that would not matter, above 0, in the metric's own unit.
        level: two-sided coverage of the interval.

    Raises:
        DataError: as `contrast` does.
        UsageError: a margin that is not above 0.
        ValueError: a level outside 0..1.
    """
    tail = tail_of(level)
    if not 0 < margin < math.inf:
        raise UsageError(f"--margin {margin}: needs a number above 0")
    paired = paired_difference(*paired_rows(a, b), a.combine, share=a.share and b.share)
    if paired.scatter is None:
        return NonInferiority(margin, paired.difference, None, None, "undecided")
    ends = paired.scatter.interval(tail)
    verdict: Verdict = "undecided"
    if ends.low > -margin:
        verdict = "superior" if ends.low > 0 else "not inferior"
    elif ends.high < -margin:
        verdict = "inferior"
    return NonInferiority(margin, paired.difference, ends, paired.scatter.p_above(-margin), verdict)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's step-down adjusted p values in the given order (Scandinavian J. of Statistics 6 (1979) 65-70).

    Raises `ValueError` for a value outside 0..1.
    """
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if not 0 <= p_values[index] <= 1:
            raise ValueError(f"the p value at position {index} is {p_values[index]}, which is not in 0..1")
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return tuple(adjusted)


# Lower bound of the p value for a true difference of 0, and the name of the test that sets this bound.
Least = tuple[float, str]
NO_LEAST: Least = (0.0, SKEWED_T)


@dataclass(frozen=True)
class Scatter:
    """A difference of two solvers and its sampling error; `bounded` tells whether the difference must be in -1..1."""

    value: float
    error: ScatterError
    bounded: bool
    least: Least

    def interval(self, tail: float) -> Interval:
        """Return the interval that leaves out probability `tail` on each side."""
        low, high = self.error.ends(self.value, tail)
        if self.bounded:
            low, high = max(-1.0, low), min(1.0, high)
        if self.least[0] < 2 * tail or low <= 0 <= high:
            return Interval(low, high, SKEWED_T)
        return Interval(min(low, 0.0), max(high, 0.0), f"{SKEWED_T}, to 0 by the exact test")

    def p_value(self) -> float:
        """Return the two-sided p value for a true difference of 0."""
        return max(self.least[0], 2 * self._beyond(abs(self.error.distance(self.value, 0.0))))

    def p_above(self, truth: float) -> float:
        """Return the one-sided probability of a difference this large or larger, given this true difference."""
        return self._beyond(self.error.distance(self.value, truth))

    def p_below(self, truth: float) -> float:
        """Return the one-sided p value at a true difference: the probability of a difference this small or smaller."""
        return self._beyond(-self.error.distance(self.value, truth))

    def _beyond(self, distance: float) -> float:
        from scipy.special import stdtr  # slow to import, and only comparisons need it

        return float(stdtr(self.error.freedom, -distance))


@dataclass(frozen=True)
class PairedDifference:
    """The values behind `contrast` and `noninferiority`; if `scatter` is None, nothing can be tested."""

    value_a: float | None
    value_b: float | None
    difference: float | None
    scatter: Scatter | None
    clusters: int
    # Weight of one effective cluster in the value: 1 / number of clusters if all clusters are alike.
    unit: float = 0.0


def paired_difference(rows_a: Rows, rows_b: Rows, combination: Combine, *, share: bool = True) -> PairedDifference:
    """Return the difference b minus a and its sampling error, from rows with equal clusters and strata."""
    of_a, of_b = estimate(rows_a, combination), estimate(rows_b, combination)
    clusters = len(rows_a.clusters)
    if of_a is None or of_b is None:
        return PairedDifference(value_of(rows_a, combination), value_of(rows_b, combination), None, None, clusters)
    root = combination == "root_of_ratio"
    value_a, value_b = (math.sqrt(of.value) if root else of.value for of in (of_a, of_b))
    difference = value_b - value_a
    unit = max(of_a.layout.unit, of_b.layout.unit)
    share = share and combination != "root_of_ratio"
    bounded = share and rows_a.bounded and rows_b.bounded
    slope_a, slope_b = _slope(value_a, combination), _slope(value_b, combination)
    spread = max(of_a.variance * slope_a**2, of_b.variance * slope_b**2)
    full_square = unit**2 if bounded else unit * spread
    freedom = min(of_a.layout.freedom, of_b.layout.freedom)
    shares, parts = slope_b * of_b.shares - slope_a * of_a.shares, slope_b * of_b.parts - slope_a * of_a.parts
    pooled = of_a.layout.scale.join(of_b.layout.scale).pool(parts, rows_a.stratum)
    error = scatter_error(shares, full_square, unit, freedom, pooled)
    if min(of_a.layout.clusters, of_b.layout.clusters) < 2 or error.variance == 0:
        return PairedDifference(value_a, value_b, difference, None, clusters)
    # Differences of numbers that are not shares have no exact test: the skewed t applies even in small samples.
    least = _least(rows_a, rows_b, combination) if share and clusters < FEW else NO_LEAST
    return PairedDifference(
        value_a,
        value_b,
        difference=difference,
        scatter=Scatter(difference, error, bounded, least),
        clusters=clusters,
        unit=unit,
    )


def _least(rows_a: Rows, rows_b: Rows, combination: Combine) -> Least:
    """Return the p value and the name of the exact test for few single questions; `NO_LEAST` for larger clusters."""
    if not all(len(rows.cluster) == len(rows.clusters) and (rows.denominator == 1).all() for rows in (rows_a, rows_b)):
        return NO_LEAST
    if rows_a.single and rows_b.single and len(rows_a.strata) == 1:
        helped, harmed = (int((sign * (rows_b.numerator - rows_a.numerator) > 0).sum()) for sign in (1, -1))
        return unconditional(helped, harmed, len(rows_a.clusters)), EXACT
    p_value = swapped(rows_a, rows_b, combination).p_value
    return NO_LEAST if p_value is None else (p_value, SWAPPED)


def _slope(value: float, combination: Combine) -> float:
    """Return the derivative of the metric with respect to its ratio.

    For a square root of 0 the result is 0, because all shares are then 0.
    """
    if combination != "root_of_ratio":
        return 1.0
    return 0.5 / value if value > 0 else 0.0


def difference_apart(
    values: Floats, in_a: Floats, in_b: Floats, clusters: Sequence[object], level: float = 0.95
) -> Contrast:
    """Return the weighted mean of `values` over group b minus that over group a, with interval and p value.

    A cluster may have questions in both groups, and a question may be partly in each. Both means are ratios of sums
    over the same clusters, and their difference is linearised over these clusters, as in `contrast` for two solvers. If
    a group has no questions, nothing is compared.

    Args:
        values: (n,) in 0..1.
        in_a: (n,) the part of each question in group a, 0..1.
        in_b: (n,) the same for group b.
        clusters: (n,) the name of each question's cluster.
        level: two-sided coverage of the interval.

    Raises `ValueError` for a level outside 0..1.
    """
    a, b = (_metric(values * part, part, clusters) for part in (in_a, in_b))
    return contrast(a, b, level)


def mean_interval(values: Floats, clusters: Sequence[object], level: float = 0.95) -> Interval | None:
    """Return the interval of the mean of numbers, computed over clusters; None for a single cluster.

    It is the interval of Student's t over clusters, longer on the side to which they are skewed (`interval` of a metric
    that is not a share).
    """
    cells = _cells(values, np.ones(len(values)), clusters)
    return interval(Metric("mean", combine(cells, "ratio"), len(cells), "ratio", cells, share=False), level)


def _metric(above: Floats, below: Floats, clusters: Sequence[object]) -> Metric:
    cells = _cells(above, below, clusters)
    return Metric("share", combine(cells, "ratio"), int(np.count_nonzero(below)), "ratio", cells)


def _cells(above: Floats, below: Floats, clusters: Sequence[object]) -> Cells:
    return Cells(map(Cell, repeat(""), map(str, clusters), above.tolist(), below.tolist()))


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Whether the difference b minus a of two solvers is between -margin and margin, in the metric's own unit.

    `p_value` is the greater of the two one-sided p values. It is below `level` exactly if the whole `interval` (two
    sided, of coverage 1 - 2 level) is inside the margin; `equal` is then True. `beyond` tells whether the whole
    interval is outside. Without an interval, both `equal` and `beyond` are False.
    """

    margin: float
    difference: float | None
    interval: Interval | None
    p_value: float | None
    equal: bool = False
    beyond: bool = False


def equivalence(a: Metric, b: Metric, margin: float, level: float = 0.05) -> Equivalence:
    """Return two one-sided tests (TOST) of one metric of two solvers over the same questions.

    Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987) 657-680. The solvers are equal if both
    "smaller by the margin or more" and "greater by the margin or more" are rejected at `level`, which is the case if
    the interval of coverage 1 - 2 level is inside the margin. Statistic and interval are those of `contrast`.

    Args:
        a: the reference solver.
        b: the solver that is compared with it.
        margin: the greatest difference that would not matter, above 0, in the metric's own unit.
        level: one-sided error of each test.

    Raises:
        DataError: as `contrast` does.
        UsageError: a margin that is not above 0.
        ValueError: a level outside 0..0.5.
    """
    if not 0 < margin < math.inf:
        raise UsageError(f"--margin {margin}: needs a number above 0")
    if not 0 < level < 0.5:
        raise ValueError(f"level {level} is not inside 0..0.5")
    paired = paired_difference(*paired_rows(a, b), a.combine, share=a.share and b.share)
    if paired.scatter is None:
        return Equivalence(margin, paired.difference, None, None)
    ends = paired.scatter.interval(level)
    p_value = max(paired.scatter.p_above(-margin), paired.scatter.p_below(margin))
    equal = -margin < ends.low and ends.high < margin
    return Equivalence(
        margin,
        paired.difference,
        interval=ends,
        p_value=p_value,
        equal=equal,
        beyond=ends.low > margin or ends.high < -margin,
    )
