"""The interval of a ratio of two sums whose denominator may be near 0."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hybrid.stats.intervals import Interval
from hybrid.stats.linearised import Floats, sum_of_squares, summed
from hybrid.stats.scatter import quantile_of, tail_of

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
