"""The sampling error of a value: the skewed t distribution that intervals and tests share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hybrid.stats.linearised import Floats

# The method of `contrast` for many clusters, or clusters with several rows.
SKEWED_T = "skewed t over clusters"

# Weight, in clusters, of the prior belief that two solvers differ on all rows of a cluster if they differ on any.
_JUMP_PRIOR = 0.1


@dataclass(frozen=True)
class ScatterError:
    """The sampling error of a value, for Student's t.

    For a truth x above the value, the squared error is variance + max(0, skew * x).
    """

    variance: float
    skew: float
    freedom: float

    def ends(self, value: float, tail: float) -> tuple[float, float]:
        """Return both ends of the interval around `value` that leaves out probability `tail` on each side."""
        quantile = quantile_of(self.freedom, tail)
        shifts = [max(0.0, skew) * quantile**2 / 2 for skew in (-self.skew, self.skew)]
        reach = [math.hypot(shift, quantile * math.sqrt(self.variance)) + shift for shift in shifts]
        return value - reach[0], value + reach[1]

    def distance(self, value: float, truth: float) -> float:
        """Return how far the value is above a truth, in standard errors at that truth."""
        return (value - truth) / math.sqrt(self.variance + max(0.0, self.skew * (truth - value)))


def scatter_error(
    shares: Floats, full_square: float, share: float, freedom: float, pooled: tuple[float, float] = (0.0, 0.0)
) -> ScatterError:
    """Return the sampling error of a value from its clusters' shares.

    Two differing clusters are added. The square of each is the typical square of the clusters that differ (the mean of
    the squares, weighted by the squares), averaged with a prior of `_JUMP_PRIOR` clusters that differ completely, whose
    square is `full_square`. `share` is a cluster's weight, 1 / number of clusters if all are alike. The added part is
    known, so it increases the degrees of freedom. `pooled` is what pooling over strata adds to the second and third
    moments of the shares.
    """
    squares = shares**2
    variance = float(squares.sum())
    if variance + full_square == 0:
        return ScatterError(0.0, 0.0, freedom)
    added = 2 * (float((squares**2).sum()) + _JUMP_PRIOR * full_square**2) / (variance + _JUMP_PRIOR * full_square)
    moderated = variance + pooled[0]
    total = moderated + added
    freedom = freedom * (total / moderated) ** 2 if moderated > 0 else math.inf
    scaled = total / (1 + 2 * share) ** 2
    return ScatterError(scaled, (float((shares**3).sum()) + pooled[1]) / scaled, freedom)


def quantile_of(freedom: float, tail: float) -> float:
    """Return the value that Student's t with `freedom` degrees of freedom exceeds with probability `tail`."""
    from scipy.special import stdtrit  # slow to import, and plain proportions do not need it

    return float(stdtrit(freedom, 1 - tail))


def tail_of(level: float) -> float:
    """Return the one-sided probability outside an interval of this coverage. Raises `ValueError` outside 0..1."""
    if not 0 < level < 1:
        raise ValueError(f"level {level} is not inside 0..1")
    return (1 - level) / 2
