"""Intervals and the test of a difference, from the cells of a metric.

Pure functions; the order of the input does not matter. `hybrid score` prints `interval`, `hybrid compare` prints
`contrast`, `holm` and `noninferiority`, `hybrid plan` prints `sample_size` and `detectable_difference`. What counts as
one observation is the cluster (a base question with its variants, a pair of images), never the single row: rows of one
cluster are not independent.
`docs/statistics.md` says how often the intervals hold the truth; `python -m bench.coverage` measures it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from hybrid.errors import UsageError
from hybrid.stats.exact import mcnemar, unconditional
from hybrid.stats.linearised import Estimate, Floats, Rows, estimate, paired_rows, rows_of, value_of
from hybrid.stats.randomisation import randomisation as by_swapping
from hybrid.types import Cell, Combine, Metric

TYPICAL_DISCORDANT = 0.4
"""Assumed share of questions on which exactly one of two solvers is right: the recorded answers of four models to 1,901
BLINK val questions give 0.37 to 0.49 over the six pairs."""

SKEWED_T = "skewed t over clusters"
"""The method of `contrast` for many clusters, or several rows a cluster."""

EXACT = "exact over questions (Suissa and Shuster), not below the skewed t"
SWAPPED = "randomisation of answers, not below the skewed t"
"""The tests of `contrast` for fewer than `FEW` single questions: of right and wrong, and of all else."""

FEW = 30
"""Clusters from which on the skewed t is used for single questions too."""

__all__ = ["mcnemar"]

_EFFECT_PRIOR = 0.25
"""Clusters' worth of belief that the rows of a cluster are all alike; it decides where too few rows are wrong to tell.
Of 0.1, 0.25 and 0.5, set by simulation."""

_JUMP_PRIOR = 0.1
"""Clusters' worth of belief that a cluster which differs between two solvers differs in all of its rows."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval in the metric's own unit, and how it was made."""

    low: float
    high: float
    method: str


@dataclass(frozen=True, slots=True)
class Contrast:
    """One metric of two solvers, `a` and `b`: `difference` is b minus a, in the metric's own unit.

    `interval` excludes 0 exactly where `p_value` (two-sided, of a true difference of 0) is below 1 - level. Where a
    value is undefined there is no difference; from a single cluster, or where neither solver's values vary and they
    have no scale of their own, no interval and no p value. `test` names the method, or says "none".
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
    """Whether `b` is worse than `a` by a margin, of a metric whose greater values are the better ones.

    `difference` (b minus a) and `interval` are those of `contrast`. `p_value` is one-sided, of b worse by `margin` or
    more: below (1 - level) / 2 exactly where b is not inferior. `verdict`, as in Piaggio et al., figure 1:

    - "superior": the whole interval is above 0 (and so b is not inferior either);
    - "not inferior": the whole interval is above -margin;
    - "inferior": the whole interval is below -margin;
    - "undecided": the interval holds -margin, or there is none.
    """

    margin: float
    difference: float | None
    interval: Interval | None
    p_value: float | None
    verdict: Verdict


def combine(cells: Iterable[Cell], how: Combine) -> float | None:
    """The value of a metric from its cells; the definition behind `Metric.value`.

    `ratio`: sum of numerators / sum of denominators. `mean_of_ratios`: that ratio in each stratum, then the plain mean
    over the strata whose denominators are not all zero. `root_of_ratio`: the square root of `ratio`. None where no
    denominator is above zero. Raises `DataError` for a cell that is not finite, or negative where it must not be.
    """
    return value_of(rows_of(cells, how), how)


def wilson(k: int, n: int, level: float = 0.95) -> Interval | None:
    """Wilson's score interval for `k` successes in `n` trials, `level` its nominal coverage; None for no trials.

    E. B. Wilson, JASA 22 (1927) 209-212; method 3 (without continuity correction) in Newcombe, Statistics in Medicine
    17 (1998) 857-872. With all right the upper end is 1 and the lower below 1, so n = 1 is no special case. SciPy's
    `binomtest` gives the same ends to 1e-15, but takes milliseconds for a p value that is not used here.
    Raises `ValueError` unless 0 <= k <= n and 0 < level < 1.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} successes in {n} trials")
    tail = _tail(level)
    if n == 0:
        return None
    z = NormalDist().inv_cdf(1 - tail)
    centre = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4)
    return Interval(0.0 if k == 0 else centre - half, 1.0 if k == n else centre + half, "Wilson")


def interval(metric: Metric, level: float = 0.95) -> Interval | None:
    """A confidence interval for a metric, from its cells; None where they cannot tell one.

    - A share (`Metric.share`) with every cell a cluster of its own, worth 0 or 1 of 1, and the metric their plain
      proportion (`ratio`, or `mean_of_ratios` over one stratum): Wilson's.
    - Any other share whose clusters' sums are in 0..denominator: the score interval of a weighted mean of proportions,
      each stratum with its effective number of clusters (Kish, Survey Sampling, 1965, section 8.2; Korn and Graubard,
      Survey Methodology 24 (1998) 193-201) and a quantile of Student's t. For one stratum it is Wilson's with these.
    - Else (RMSE, MAE, counts): the skewed t interval of `contrast`, of the mean square under `root_of_ratio`.

    None without a positive denominator, for a single cluster (unless Wilson's), and for values of no share that do not
    vary. Raises `DataError` as `combine` does, and `ValueError` for a level outside 0..1.
    """
    tail = _tail(level)
    rows = rows_of(metric.cells, metric.combine)
    proportion = metric.combine == "ratio" or (metric.combine == "mean_of_ratios" and len(rows.strata) == 1)
    if metric.share and proportion and rows.single:
        return wilson(round(float(rows.numerator.sum())), len(rows.numerator), level)
    estimated = estimate(rows, metric.combine)
    if estimated is None or estimated.clusters < 2:
        return None
    if metric.share and rows.bounded and metric.combine != "root_of_ratio":
        low, high = _score_limits(estimated, _quantile(estimated.freedom, tail))
        return Interval(min(low, estimated.value), max(high, estimated.value), "score over clusters")
    if estimated.variance == 0:
        return None
    error = _error(estimated.shares, estimated.variance * estimated.unit, estimated.unit, estimated.freedom)
    low, high = error.ends(estimated.value, tail)
    if (rows.numerator >= 0).all():
        low = max(0.0, low)
    if metric.combine == "root_of_ratio":
        low, high = math.sqrt(low), math.sqrt(high)
    return Interval(low, high, SKEWED_T)


def contrast(a: Metric, b: Metric, level: float = 0.95) -> Contrast:
    """Compare two solvers by one metric over the same questions, b minus a.

    Interval and p value both come from the metric's own linearised difference, cluster by cluster within the metric's
    strata (Binder, International Statistical Review 51 (1983) 279-292, with the leverage correction of Bell and
    McCaffrey, Survey Methodology 28 (2002) 169-181), and Student's t. Two clusters that differ, one for each solver,
    are added to the variance (after Bonett and Price, Statistics in Medicine 31 (2012) 127-139, p. 131), so that
    solvers with the same answers have an interval around 0 and p = 1. Away from the difference found, the variance
    grows with the skewness of the clusters' shares, as it does in a score interval.

    Of fewer than `FEW` clusters, each one question, that p value is too often too small (`docs/statistics.md`). A share
    is tested exactly there: its p value is never below that test's, and its interval reaches 0 where that accepts 0.
    The test is `unconditional` for right and wrong in one stratum; where credit is partial, or where there are several
    strata, whose questions differ in how often they are answered alike, `randomisation`.

    Raises `DataError`, naming the cluster, where the two have not the same clusters in the same strata, or where they
    are combined differently; `ValueError` for a level outside 0..1.
    """
    tail = _tail(level)
    compared = _compared(a, b)
    values = (compared.value_a, compared.value_b, compared.difference)
    if compared.scatter is None:
        return Contrast(*values, None, None, "none", compared.clusters)
    test = compared.scatter.least.test
    return Contrast(*values, compared.scatter.interval(tail), compared.scatter.p_value(), test, compared.clusters)


def noninferiority(a: Metric, b: Metric, margin: float, level: float = 0.95) -> NonInferiority:
    """Whether solver `b` is at most `margin` worse than solver `a`, by one metric over the same questions.

    The verdict follows from the interval of `contrast` at `level`: a one-sided test at (1 - level) / 2, 2.5 % by
    default, as CONSORT recommends (Piaggio, Elbourne, Pocock, Evans and Altman, JAMA 308 (2012) 2594-2604). The p value
    is that of the same statistic at a true difference of -margin. For paired proportions of single questions it agrees
    closely with the score test of Tango, Statistics in Medicine 17 (1998) 891-908.

    Args:
        a: the solver measured against; a greater value is the better one.
        b: the solver that should not be worse.
        margin: the greatest loss that would not matter, above 0, in the metric's own unit.
        level: two-sided coverage of the interval.

    Raises:
        DataError: as `contrast` does.
        UsageError: a margin that is not above 0.
        ValueError: a level outside 0..1.
    """
    tail = _tail(level)
    if not 0 < margin < math.inf:
        raise UsageError(f"--margin {margin}: needs a number above 0")
    compared = _compared(a, b)
    if compared.scatter is None:
        return NonInferiority(margin, compared.difference, None, None, "undecided")
    ends = compared.scatter.interval(tail)
    verdict: Verdict = "undecided"
    if ends.low > -margin:
        verdict = "superior" if ends.low > 0 else "not inferior"
    elif ends.high < -margin:
        verdict = "inferior"
    return NonInferiority(margin, compared.difference, ends, compared.scatter.p_above(-margin), verdict)


def sample_size(difference: float, discordant: float | None = None, power: float = 0.8, level: float = 0.05) -> int:
    """Questions needed for McNemar's test to find a `difference` between two solvers on the same questions.

    n = (z(level / 2) sqrt(psi) + z(1 - power) sqrt(psi - d^2))^2 / d^2, rounded up, with d the difference of
    accuracies and psi the share of questions on which exactly one is right: Connor, Biometrics 43 (1987) 207-211,
    p. 209. `level` is the two-sided error, not a coverage. Without `discordant` it is `TYPICAL_DISCORDANT`, or the
    difference where that is larger. For the normal approximation: the exact test needs a few questions more. Raises
    `UsageError` unless 0 < |difference| <= discordant <= 1 and 0 < level < power < 1.
    """
    size = abs(difference)
    share = max(TYPICAL_DISCORDANT, size) if discordant is None else discordant
    if not 0 < size <= share <= 1:
        raise UsageError(f"--difference {difference} at {share} discordant: needs 0 < |difference| <= discordant <= 1")
    if not 0 < level < power < 1:
        raise UsageError(f"power {power} at level {level}: needs 0 < level < power < 1")
    z_level, z_power = NormalDist().inv_cdf(1 - level / 2), NormalDist().inv_cdf(power)
    root = z_level * math.sqrt(share) + z_power * math.sqrt(share - size * size)
    return max(1, math.ceil(root * root / (size * size)))


def detectable_difference(
    questions: int, discordant: float | None = None, power: float = 0.8, level: float = 0.05
) -> float:
    """The least difference of accuracies that McNemar's test finds among `questions` questions: `sample_size` inverted.

    Connor's formula (Biometrics 43 (1987) 207-211, p. 209), squared, is quadratic in d: with u = z(level / 2) and
    v = z(1 - power), d = sqrt(psi) (u sqrt(n) + v sqrt(n + v^2 - u^2)) / (n + v^2).
    Without `discordant`, psi is `TYPICAL_DISCORDANT`, or d itself where d is larger. Raises `UsageError` where so few
    questions cannot show any difference, and unless 0 < discordant <= 1 and 0 < level < power < 1.
    """
    if discordant is not None and not 0 < discordant <= 1:
        raise UsageError(f"--discordant {discordant}: needs 0 < discordant <= 1")
    if not 0 < level < power < 1:
        raise UsageError(f"power {power} at level {level}: needs 0 < level < power < 1")
    z_level, z_power = NormalDist().inv_cdf(1 - level / 2), NormalDist().inv_cdf(power)
    share = TYPICAL_DISCORDANT if discordant is None else discordant
    room = questions + z_power**2 - z_level**2
    if questions >= z_level**2:
        size = z_level * math.sqrt(questions) + z_power * math.sqrt(room)
        difference = math.sqrt(share) * size / (questions + z_power**2)
        if difference <= share:
            return difference
        if discordant is None:
            # All discordant answers favour one solver: psi = d, and the equation is quadratic in sqrt(1 - d).
            root = (math.sqrt(questions * room) - z_level * z_power) / (questions + z_power**2)
            return 1 - root**2
    known = "" if discordant is None else f" at {discordant} discordant"
    raise UsageError(f"--questions {questions}{known}: too few to find any difference")


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's step-down adjusted p values, in the order given: Holm, Scandinavian J. of Statistics 6 (1979) 65-70.

    Raises `ValueError` for a value outside 0..1.
    """
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if not 0 <= p_values[index] <= 1:
            raise ValueError(f"p value {p_values[index]} at position {index}")
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return tuple(adjusted)


def _score_limits(estimated: Estimate, quantile: float) -> tuple[float, float]:
    """Both ends of the score interval for the weighted mean of proportions.

    The design effect of the clusters is the ratio of the clusters' variance to the binomial one. How much it can be
    trusted is the number of clusters that the variance rests on, (sum of squares)^2 / sum of fourth powers; so many
    clusters are weighed against `_EFFECT_PRIOR` clusters whose rows are all alike.
    """
    binomial = float((estimated.weights**2 * estimated.ratios * (1 - estimated.ratios) / estimated.sizes).sum())
    fourth = float((estimated.shares**4).sum())
    informative = estimated.variance**2 / fourth if fourth > 0 else 0.0
    effect = estimated.variance / binomial if binomial > 0 else 1.0
    effect = (informative * effect + _EFFECT_PRIOR) / (informative + _EFFECT_PRIOR)
    sizes = estimated.sizes / effect
    ratios = np.clip(estimated.ratios, 0.0, 1.0)
    low = _lower_limit(ratios, estimated.weights, sizes, quantile)
    return low, 1 - _lower_limit(1 - ratios, estimated.weights, sizes, quantile)


def _lower_limit(ratios: Floats, weights: Floats, sizes: Floats, quantile: float) -> float:
    """The lower end: the mean of the proportions p that are likeliest with a mean so low that it is just not rejected.

    With a multiplier t > 0 for that mean, p solves `ratio - p = t weight / size * p (1 - p)` in each stratum; hence
    (value - mean of p) = t V(t), with V the variance of the value under p, and the score test rejects from
    t sqrt(V(t)) = quantile on.
    """
    if not (ratios @ weights) > 0:
        return 0.0
    pull = weights / sizes

    def proportions(multiplier: float) -> Floats:
        steps = 1 + multiplier * pull
        roots: Floats = 2 * ratios / (steps + np.sqrt(np.maximum(steps**2 - 4 * multiplier * pull * ratios, 0)))
        return roots

    def excess(multiplier: float) -> float:
        p = proportions(multiplier)
        return multiplier * math.sqrt(max(0.0, float((weights * pull * p * (1 - p)).sum()))) - quantile

    return float(weights @ proportions(_root(excess)))


def _root(rising: Callable[[float], float]) -> float:
    """The zero, by halving, of a function that rises from below 0 at 0: scipy.optimize takes longer to import."""
    start, end = 0.0, 1.0
    while rising(end) < 0:
        start, end = end, end * 4
    while start < (middle := (start + end) / 2) < end:
        start, end = (middle, end) if rising(middle) < 0 else (start, middle)
    return end


@dataclass(frozen=True)
class _Error:
    """Scatter of a value: at a truth that lies x above it, with variance + max(0, skew * x) and Student's t."""

    variance: float
    skew: float
    freedom: float

    def ends(self, value: float, tail: float) -> tuple[float, float]:
        quantile = _quantile(self.freedom, tail)
        reach = [math.hypot(shift, quantile * math.sqrt(self.variance)) + shift for shift in self._shifts(quantile)]
        return value - reach[0], value + reach[1]

    def _shifts(self, quantile: float) -> tuple[float, float]:
        return max(0.0, -self.skew) * quantile**2 / 2, max(0.0, self.skew) * quantile**2 / 2

    def distance(self, value: float, truth: float) -> float:
        """How far the value is above a truth, in standard errors at that truth."""
        return (value - truth) / math.sqrt(self.variance + max(0.0, self.skew * (truth - value)))


@dataclass(frozen=True)
class _Least:
    """The lower bound of a p value of no difference, and the test that gives it."""

    p_value: float = 0.0
    test: str = SKEWED_T


@dataclass(frozen=True)
class _Scatter:
    """A difference of two solvers, and how it scatters; `bounded` where it cannot leave -1..1."""

    value: float
    error: _Error
    bounded: bool
    least: _Least

    def interval(self, tail: float) -> Interval:
        low, high = self.error.ends(self.value, tail)
        if self.bounded:
            low, high = max(-1.0, low), min(1.0, high)
        if self.least.p_value < 2 * tail or low <= 0 <= high:
            return Interval(low, high, SKEWED_T)
        return Interval(min(low, 0.0), max(high, 0.0), f"{SKEWED_T}, to 0 by the exact test")

    def p_value(self) -> float:
        """Two-sided, of a true difference of 0."""
        return max(self.least.p_value, 2 * self._beyond(abs(self.error.distance(self.value, 0.0))))

    def p_above(self, truth: float) -> float:
        """One-sided: how likely a difference so great, or a greater one, is at this truth."""
        return self._beyond(self.error.distance(self.value, truth))

    def _beyond(self, distance: float) -> float:
        from scipy.special import stdtr  # slow to import, and only comparisons need it

        return float(stdtr(self.error.freedom, -distance))


@dataclass(frozen=True)
class _Compared:
    """Shared inputs of `contrast` and `noninferiority`; without `scatter` nothing can be tested."""

    value_a: float | None
    value_b: float | None
    difference: float | None
    scatter: _Scatter | None
    clusters: int


def _compared(a: Metric, b: Metric) -> _Compared:
    """The difference b minus a and how it scatters. Raises `DataError` as `contrast` does."""
    rows_a, rows_b = paired_rows(a, b)
    value_a, value_b = value_of(rows_a, a.combine), value_of(rows_b, b.combine)
    of_a, of_b = estimate(rows_a, a.combine), estimate(rows_b, b.combine)
    clusters = len(rows_a.clusters)
    if value_a is None or value_b is None or of_a is None or of_b is None:
        return _Compared(value_a, value_b, None, None, clusters)
    difference = value_b - value_a
    share = max(of_a.unit, of_b.unit)
    shares = a.share and b.share and a.combine != "root_of_ratio"
    bounded = shares and rows_a.bounded and rows_b.bounded
    slope_a, slope_b = _slope(value_a, a.combine), _slope(value_b, a.combine)
    spread = max(of_a.variance * slope_a**2, of_b.variance * slope_b**2)
    whole = share**2 if bounded else share * spread
    freedom = min(of_a.freedom, of_b.freedom)
    error = _error(slope_b * of_b.shares - slope_a * of_a.shares, whole, share, freedom)
    if min(of_a.clusters, of_b.clusters) < 2 or error.variance == 0:
        return _Compared(value_a, value_b, difference, None, clusters)
    # Plain differences of numbers that are no shares scatter as Student's t expects, however few they are.
    least = _least(a, b, rows_a, rows_b) if shares and clusters < FEW else _Least()
    return _Compared(value_a, value_b, difference, _Scatter(difference, error, bounded, least), clusters)


def _least(a: Metric, b: Metric, rows_a: Rows, rows_b: Rows) -> _Least:
    """The exact test of few single questions; none where a cluster has several."""
    if not all(len(rows.cluster) == len(rows.clusters) and (rows.denominator == 1).all() for rows in (rows_a, rows_b)):
        return _Least()
    if rows_a.single and rows_b.single and len(rows_a.strata) == 1:
        helped, harmed = (int((sign * (rows_b.numerator - rows_a.numerator) > 0).sum()) for sign in (1, -1))
        return _Least(unconditional(helped, harmed, len(rows_a.clusters)), EXACT)
    found = by_swapping(a, b).p_value
    return _Least() if found is None else _Least(found, SWAPPED)


def _error(shares: Floats, whole: float, share: float, freedom: float) -> _Error:
    """The scatter of a value from its clusters' shares.

    Two clusters that differ are added, with the square that is typical of those that do differ (the mean of the
    squares, weighed by the squares), among them `_JUMP_PRIOR` clusters that differ wholly, whose square is `whole`.
    `share` is a cluster's weight, 1 / their number where all are alike. What is added is known and thus adds degrees of
    freedom.
    """
    squares = shares**2
    variance = float(squares.sum())
    if variance + whole == 0:
        return _Error(0.0, 0.0, freedom)
    added = 2 * (float((squares**2).sum()) + _JUMP_PRIOR * whole**2) / (variance + _JUMP_PRIOR * whole)
    total = variance + added
    freedom = freedom * (total / variance) ** 2 if variance > 0 else math.inf
    kept = total / (1 + 2 * share) ** 2
    return _Error(kept, float((shares**3).sum()) / kept, freedom)


def _slope(value: float, how: Combine) -> float:
    """The derivative of the metric by its ratio; 0 for a root of 0, whose shares are all 0."""
    if how != "root_of_ratio":
        return 1.0
    return 0.5 / value if value > 0 else 0.0


def _quantile(freedom: float, tail: float) -> float:
    from scipy.special import stdtrit  # slow to import, and plain proportions do not need it

    return float(stdtrit(freedom, 1 - tail))


def _tail(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level {level} is not inside 0..1")
    return (1 - level) / 2
