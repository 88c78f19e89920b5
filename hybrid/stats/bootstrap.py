"""A cluster bootstrap of several numbers at once, so that numbers which add up do so in every resample.

    sample = Sample(columns, cluster, stratum, "mean_of_ratios")
    resampled = bootstrap(sample, statistic)        # values (k,), draws (resamples, k)
    interval_of(resampled, 0)                       # Efron's BCa interval of the first number

Clusters (a base question with its variants, a pair of images) are drawn with replacement; every row of a cluster goes
with it. All numbers are computed from the same resample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from hybrid.stats.linearised import Floats, Indices
from hybrid.types import Combine

RESAMPLES = 2_000
"""Efron and Tibshirani (1993), section 14.3: a BCa interval wants at least 1,000."""

_BLOCK = 2_000_000
"""Numbers of one block of resamples: 16 MB."""

Statistic = Callable[[Floats], Floats]
"""From sums over the columns, shape (..., strata, columns), to numbers, shape (..., k)."""


@dataclass(frozen=True)
class Sample:
    """Rows of numbers, each of a cluster and a stratum.

    `columns` has shape (rows, columns); `cluster` and `stratum` count from 0, one entry a row.
    """

    columns: Floats
    cluster: Indices
    stratum: Indices

    @classmethod
    def of(cls, columns: Sequence[Sequence[float]], clusters: Sequence[str], strata: Sequence[str]) -> Sample:
        """From names of clusters and strata. Raises `ValueError` for lengths that differ."""
        table = np.asarray(columns, dtype=np.float64)
        if not len(table) == len(clusters) == len(strata):
            raise ValueError(f"{len(table)} rows, {len(clusters)} clusters, {len(strata)} strata")
        places = [np.unique(np.asarray(names), return_inverse=True)[1] for names in (clusters, strata)]
        return cls(table, places[0], places[1])

    def sums(self) -> Floats:
        """The columns summed by cluster and stratum, shape (clusters, strata, columns)."""
        shape = (int(self.cluster.max(initial=-1)) + 1, int(self.stratum.max(initial=-1)) + 1, self.columns.shape[1])
        table = np.zeros(shape)
        np.add.at(table, (self.cluster, self.stratum), self.columns)
        return table


@dataclass(frozen=True)
class Resampled:
    """The numbers of the sample, shape (k,), of every resample (resamples, k), and without each cluster (clusters, k).

    A number that a resample leaves undefined (nothing was called in it) is NaN there.
    """

    values: Floats
    draws: Floats
    without: Floats


def bootstrap(sample: Sample, statistic: Statistic, resamples: int = RESAMPLES, seed: int = 0) -> Resampled:
    """Draw the clusters of a sample with replacement and compute the statistic of every resample.

    Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapters 6 and 8; Davison and Hinkley, Bootstrap
    Methods and their Application (1997), section 3.8, for clusters. Deterministic for a seed.
    """
    table = sample.sums()
    clusters, flat = len(table), table.reshape(len(table), -1)
    rng = np.random.default_rng(seed)
    draws = []
    step = max(1, _BLOCK // max(1, clusters))
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        drawn = rng.integers(clusters, size=(count, clusters)) + clusters * np.arange(count)[:, None]
        times = np.bincount(drawn.ravel(), minlength=count * clusters).reshape(count, clusters)
        draws.append(statistic((times @ flat).reshape(count, *table.shape[1:])))
    total = table.sum(axis=0)
    return Resampled(statistic(total[None])[0], np.concatenate(draws), statistic(total - table))


def interval_of(resampled: Resampled, place: int, level: float = 0.95) -> tuple[float, float] | None:
    """Efron's BCa interval of the number at `place`; None where it does not vary or is undefined.

    Efron, JASA 82 (1987) 171-185 (bias-corrected and accelerated); DiCiccio and Efron, Statistical Science 11 (1996)
    189-228, equations 2.3 and 6.6: the acceleration is that of the jackknife over clusters. Counts are discrete, so
    half of the draws equal to the value are taken to lie below it.
    """
    value = resampled.values[place]
    draws, without = (one[np.isfinite(one)] for one in (resampled.draws[:, place], resampled.without[:, place]))
    spread = without.mean() - without if len(without) else without
    if not (np.isfinite(value) and len(draws) and float(spread @ spread) > 0):
        return None
    normal = NormalDist()
    below = float((draws < value).mean() + (draws == value).mean() / 2)
    edge = 1 / (len(draws) + 1)
    bias = normal.inv_cdf(min(max(below, edge), 1 - edge))
    acceleration = float((spread**3).sum() / (6 * (spread @ spread) ** 1.5))
    shifted = (bias + normal.inv_cdf((1 - level) / 2), bias + normal.inv_cdf((1 + level) / 2))
    tails = [normal.cdf(bias + z / (1 - acceleration * z)) for z in shifted]
    low, high = np.quantile(draws, tails)
    return float(low), float(high)


def mean_of(sums: Floats, numerator: int, denominator: int, how: Combine) -> Floats:
    """The ratio of two columns of sums: over all strata (`ratio`), or the mean over the strata that have any.

    Args:
        sums: shape (..., strata, columns).
        numerator: the column above the line.
        denominator: the column below it.
        how: `ratio` or `mean_of_ratios`; the square root of `root_of_ratio` has no parts that add up.

    Returns:
        shape (...); NaN without a positive denominator.

    Raises:
        ValueError: `root_of_ratio`.
    """
    above, below = sums[..., numerator], sums[..., denominator]
    if how == "ratio":
        above, below = above.sum(axis=-1, keepdims=True), below.sum(axis=-1, keepdims=True)
    elif how != "mean_of_ratios":
        raise ValueError(f"a metric combined as {how} has no parts that add up")
    there = below > 0
    ratios = np.divide(above, below, out=np.zeros_like(above, dtype=np.float64), where=there)
    strata = there.sum(axis=-1)
    mean: Floats = np.divide(ratios.sum(axis=-1), strata, out=np.full(strata.shape, np.nan), where=strata > 0)
    return mean
