"""The value of a metric and its confidence interval, from the metric's cells, and the interval of a ratio."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from hybrid.core.types import Cell, Combine, Metric
from hybrid.stats.linearised import Estimate, Floats, estimate, rows_of, sum_of_squares, summed, value_of
from hybrid.stats.scatter import SKEWED_T, quantile_of, scatter_error, tail_of

# Weight, in clusters, of the prior belief that rows of a cluster are all alike. The prior decides the result only where
# too few rows are wrong to estimate the design effect. Chosen by simulation from 0.1, 0.25 and 0.5.
_EFFECT_PRIOR = 0.25


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval in the metric's own unit, and the name of its method."""

    low: float
    high: float
    method: str


def ends_of(limits: Interval | None) -> tuple[float | None, float | None]:
    """Return both ends of an interval; (None, None) if there is no interval."""
    return (limits.low, limits.high) if limits else (None, None)


def combine(cells: Iterable[Cell], combination: Combine) -> float | None:
    """Return the value of a metric from its cells; this defines `Metric.value`.

    `ratio`: sum of numerators / sum of denominators. `mean_of_ratios`: that ratio in each stratum, then the plain mean
    over the strata with a positive denominator. `root_of_ratio`: the square root of `ratio`. None if no denominator is
    positive. Raises `DataError` for a cell that is not finite, or negative where not allowed.
    """
    return value_of(rows_of(cells, combination), combination)


def wilson(k: int, n: int, level: float = 0.95) -> Interval | None:
    """Return Wilson's score interval for `k` successes in `n` trials at nominal coverage `level`; None for no trials.

    E. B. Wilson, JASA 22 (1927) 209-212; method 3 (without continuity correction) in Newcombe, Statistics in Medicine
    17 (1998) 857-872. If all are right, the upper end is 1 and the lower end below 1, so n = 1 is not a special case.
    SciPy's `binomtest` gives the same ends to 1e-15, but takes milliseconds longer to compute an unneeded p value.
    Raises `ValueError` unless 0 <= k <= n and 0 < level < 1.
    """
    if not 0 <= k <= n:
        raise ValueError(f"there cannot be {k} successes in {n} trials")
    tail = tail_of(level)
    if n == 0:
        return None
    z = NormalDist().inv_cdf(1 - tail)
    centre = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4)
    return Interval(0.0 if k == 0 else centre - half, 1.0 if k == n else centre + half, "Wilson")


def interval(metric: Metric, level: float = 0.95) -> Interval | None:
    """Return a confidence interval for a metric, computed from its cells; None if the cells do not determine it.

    - For a share (`Metric.share`), if every cell is a cluster of its own with the numerator 0 or 1 and the denominator
      1, and the metric is their plain proportion (`ratio`, or `mean_of_ratios` over one stratum): Wilson's interval.
    - For any other share whose clusters' sums are in 0..denominator: the score interval of a weighted mean of
      proportions, each stratum with its effective number of clusters (Kish, Survey Sampling, 1965, section 8.2; Korn
      and Graubard, Survey Methodology 24 (1998) 193-201) and a quantile of Student's t. For one stratum this is
      Wilson's interval with that number and quantile.
    - Otherwise (RMSE, MAE, counts): the skewed t interval of `contrast`, for the mean square under `root_of_ratio`.

    The result is None without a positive denominator, for a single cluster (unless Wilson's interval applies), and for
    a metric that is not a share and does not vary. Raises `DataError` as `combine` does, and `ValueError` for a level
    outside 0..1.
    """
    tail = tail_of(level)
    rows = rows_of(metric.cells, metric.combine)
    proportion = metric.combine == "ratio" or (metric.combine == "mean_of_ratios" and len(rows.strata) == 1)
    if metric.share and proportion and rows.single:
        return wilson(round(float(rows.numerator.sum())), len(rows.numerator), level)
    estimated = estimate(rows, metric.combine)
    if estimated is None or estimated.layout.clusters < 2:
        return None
    if metric.share and rows.bounded and metric.combine != "root_of_ratio":
        low, high = _score_limits(estimated, quantile_of(estimated.layout.freedom, tail))
        return Interval(min(low, estimated.value), max(high, estimated.value), "score over clusters")
    if estimated.variance == 0:
        return None
    error = scatter_error(
        estimated.shares, estimated.variance * estimated.layout.unit, estimated.layout.unit, estimated.layout.freedom
    )
    low, high = error.ends(estimated.value, tail)
    if (rows.numerator >= 0).all():
        low = max(0.0, low)
    if metric.combine == "root_of_ratio":
        low, high = math.sqrt(low), math.sqrt(high)
    return Interval(low, high, SKEWED_T)


def _score_limits(estimated: Estimate, quantile: float) -> tuple[float, float]:
    """Return both ends of the score interval for the weighted mean of proportions.

    The design effect of the clusters is the ratio of the clusters' variance to the binomial one. Its reliability is the
    number of clusters that the variance rests on, (sum of squares)^2 / sum of fourth powers. The design effect is
    averaged with a prior of `_EFFECT_PRIOR` clusters whose rows are all alike.
    """
    binomial = float((estimated.weights**2 * estimated.ratios * (1 - estimated.ratios) / estimated.layout.sizes).sum())
    fourth = float((estimated.shares**4).sum())
    informative = estimated.variance**2 / fourth if fourth > 0 else 0.0
    effect = estimated.variance / binomial if binomial > 0 else 1.0
    effect = (informative * effect + _EFFECT_PRIOR) / (informative + _EFFECT_PRIOR)
    sizes = estimated.layout.sizes / effect
    ratios = np.clip(estimated.ratios, 0.0, 1.0)
    low = _lower_limit(ratios, estimated.weights, sizes, quantile)
    return low, 1 - _lower_limit(1 - ratios, estimated.weights, sizes, quantile)


def _lower_limit(ratios: Floats, weights: Floats, sizes: Floats, quantile: float) -> float:
    """Return the lower end: the lowest mean of the strata's proportions p that the score test does not reject.

    For each mean, the test uses the likeliest proportions p. With a multiplier t > 0 for the mean, p solves `ratio - p
    = t weight / size * p (1 - p)` in each stratum; hence (value - mean of p) = t V(t), with V the variance of the value
    under p, and the score test rejects once t sqrt(V(t)) reaches the quantile.
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

    # Find the root of an increasing function by bisection; scipy.optimize takes longer to import.
    start, end = 0.0, 1.0
    while excess(end) < 0:
        start, end = end, end * 4
    while start < (middle := (start + end) / 2) < end:
        start, end = (middle, end) if excess(middle) < 0 else (start, middle)
    return float(weights @ proportions(end))


FIELLER = "Fieller"
# Relative size below which a discriminant is a rounding error.
_ROUNDING = 1e-12


def ratio_interval(
    above: Floats, below: Floats, clusters: Sequence[object], level: float = 0.95, *, share: bool = True
) -> Interval | None:
    """Return Fieller's interval of `sum(above) / sum(below)`; None if the denominator's interval includes 0.

    The ends are the ratios r for which Student's t just does not reject the sum over clusters of `above - r * below`
    (Fieller, Journal of the Royal Statistical Society B 16 (1954) 175-185). The ends are finite exactly if the
    denominator differs from 0 at the same level. Two clusters of typical size are added to the variances, one with a
    ratio of 0 and one with a ratio of 1, as in `contrast`: without them, the interval covers ratios near 0 or 1 too
    rarely. Also None for fewer than two clusters.

    Args:
        above: (n,) numerators of the questions.
        below: (n,) their denominators, of any sign; zeros count too.
        clusters: (n,) cluster names.
        level: two-sided coverage.
        share: whether both sums have the same unit, so that the two clusters are added; False for points per token, for
            example.

    Raises `ValueError` for a level outside 0..1.
    """
    tail, (names, place) = tail_of(level), np.unique(np.array([str(name) for name in clusters]), return_inverse=True)
    count = len(names)
    if count < 2:
        return None
    x, y = summed(place, above, count), summed(place, below, count)
    total = float(y.sum())
    size = sum_of_squares(y) / float(np.abs(y).sum()) if y.any() else 0.0
    size *= share
    squared = quantile_of(count - 1, tail) ** 2
    a = total**2 - squared * (_variance(y, y) + 2 * size**2)
    b = float(x.sum()) * total - squared * (_variance(x, y) + size**2)
    c = float(x.sum()) ** 2 - squared * (_variance(x, x) + size**2)
    if a <= _ROUNDING * total**2:
        return None
    discriminant = b * b - a * c
    half = math.sqrt(discriminant) if discriminant > _ROUNDING * b * b else 0.0
    return Interval((b - half) / a, (b + half) / a, FIELLER)


def _variance(column: Floats, other: Floats) -> float:
    """Return the covariance of two sums over clusters."""
    count = len(column)
    return float(((column - column.mean()) * (other - other.mean())).sum()) * count / (count - 1)
