"""The spread of values of repeated runs.

spread([0.71, 0.74, 0.72]).sd
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.stats import Interval
from hybrid.stats.scatter import quantile_of, tail_of

# Name of the interval's method.
OVER_RUNS = "Student's t over runs"


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, standard deviation and range of `n` values, and an interval for the mean.

    `interval` is for the mean that more and more runs of the same questions would approach; it does not cover other
    questions. `sd` and `interval` are None for a single value; for equal values the interval is that value alone.
    """

    n: int
    mean: float
    sd: float | None
    low: float
    high: float
    interval: Interval | None


def spread(values: Sequence[float], level: float = 0.95) -> Spread:
    """Return mean, sample standard deviation (n - 1), range, and the t interval of the mean: mean +- t sd / sqrt(n).

    Student, Biometrika 6 (1908) 1-25. Raises `ValueError` without values, for one that is not finite, and for a level
    outside 0..1.
    """
    tail = tail_of(level)
    if not values:
        raise ValueError("a spread needs at least one value")
    if not all(map(math.isfinite, values)):
        raise ValueError(f"not all of the values are finite: {list(values)}")
    low, high = min(values), max(values)
    # A rounded mean of equal floats may differ from them; clamp it.
    mean = min(high, max(low, math.fsum(values) / len(values)))
    if len(values) == 1:
        return Spread(1, mean, sd=None, low=low, high=high, interval=None)
    sd = statistics.stdev(values) if low < high else 0.0
    half = quantile_of(len(values) - 1, tail) * sd / math.sqrt(len(values))
    return Spread(len(values), mean, sd=sd, low=low, high=high, interval=Interval(mean - half, mean + half, OVER_RUNS))
