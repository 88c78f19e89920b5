"""A paired randomisation test: compares the difference of two solvers with differences after swapping answers.

    randomisation(metric_of_a, metric_of_b).p_value

It needs no formula for the metric's sampling error, and so is an independent check of `contrast`. `docs/statistics.md`
says when it is the better test; `python -m bench.coverage --grouped` measures both tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybrid.core.types import Combine, Metric
from hybrid.stats.linearised import Floats, Rows, paired_rows, value_of

# Up to this many differing clusters, all rearrangements (at most 2^16 = 65,536) are enumerated instead of drawn.
ENUMERATED = 16

# Maximum number of floats held in memory at a time: 32 MB.
_BLOCK = 4_000_000

# Differences this close to each other, relative to the values, count as equal.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Randomisation:
    """The share of rearrangements whose difference is at least as large as the observed one.

    `difference` is b minus a; it and `p_value` are None if a value is undefined. `clusters` is the number of clusters
    in which the solvers differ, because swapping other clusters has no effect. Of the `rearrangements` (all if `exact`,
    else drawn), `as_far` differ at least as much, in either direction.
    """

    difference: float | None
    p_value: float | None
    rearrangements: int
    as_far: int
    exact: bool
    clusters: int


def randomisation(a: Metric, b: Metric, draws: int = 9_999, seed: int = 0) -> Randomisation:
    """Test whether it matters which of two solvers gave which answers, by swapping the answers of whole clusters.

    The cells of `a` and `b` in a cluster are all swapped or all left, in every stratum of the cluster, and the metrics
    of both solvers are computed again. Edgington and Onghena, Randomization Tests (4th ed., 2007), chapter 6; Noreen,
    Computer-Intensive Methods for Testing Hypotheses (1989), chapter 2. For up to `ENUMERATED` differing clusters all
    rearrangements are enumerated: p = count / 2^clusters. Otherwise p = (count + 1) / (draws + 1), which keeps the
    level of a test with drawn rearrangements (Phipson and Smyth, Statistical Applications in Genetics and Molecular
    Biology 9 (2010) 39, eq. 2).

    The null hypothesis is stronger than an equal metric: it does not matter at all which solver gave which answers to a
    cluster. If one solver's denominators are far larger (a ratio over answered questions), the metric can be equal
    while the answers are not exchangeable.

    Args:
        a: the first solver's metric.
        b: the second solver's metric, with the same clusters in the same strata.
        draws: number of drawn rearrangements if there are too many to enumerate.
        seed: seed of the draws; the same seed gives the same p value.

    Raises:
        DataError: the two have different clusters or strata, or are combined differently.
        ValueError: fewer than one draw.
    """
    if draws < 1:
        raise ValueError(f"{draws} draws")
    return swapped(*paired_rows(a, b), a.combine, draws, seed)


def swapped(rows_a: Rows, rows_b: Rows, combination: Combine, draws: int = 9_999, seed: int = 0) -> Randomisation:
    """Apply `randomisation` to rows with equal clusters and strata."""
    value_a, value_b = value_of(rows_a, combination), value_of(rows_b, combination)
    if value_a is None or value_b is None:
        return Randomisation(None, None, rearrangements=0, as_far=0, exact=False, clusters=0)
    moved = np.stack([rows_b.numerator - rows_a.numerator, rows_b.denominator - rows_a.denominator], axis=1)
    differ = moved.any(axis=1)
    units, cluster = np.unique(rows_a.cluster[differ], return_inverse=True)
    clusters = len(units)
    # The change from swapping a cluster: numerators and denominators by stratum.
    moves = np.zeros((clusters, 2, len(rows_a.strata)))
    moves[cluster, :, rows_a.stratum[differ]] = moved[differ]
    exact = clusters <= ENUMERATED
    if exact:
        bits = np.arange(2**clusters)[:, None] >> np.arange(clusters) & 1
        patterns = iter([bits.astype(np.float64)])
    else:
        rng = np.random.default_rng(seed)
        block = max(1, _BLOCK // clusters)
        sizes = ((min(block, draws - start), clusters) for start in range(0, draws, block))
        patterns = (rng.integers(0, 2, size, dtype=np.int8).astype(np.float64) for size in sizes)
    sums = ((1, *rows_a.sums()), (-1, *rows_b.sums()))
    # Sums that should be 0 may differ from 0 by rounding.
    least = _ROUNDING * max(1.0, *(below.max(initial=0.0) for _, _, below in sums))
    far = abs(value_b - value_a) - _ROUNDING * (abs(value_a) + abs(value_b))
    as_far = 0
    # (patterns, clusters): 1 where a cluster is swapped.
    for pattern in patterns:
        shifts = (pattern @ moves.reshape(clusters, 2 * len(rows_a.strata))).reshape(len(pattern), 2, -1)
        values = [
            _values(above + sign * shifts[:, 0], below + sign * shifts[:, 1], least, combination)
            for sign, above, below in sums
        ]
        # A value that a rearrangement leaves undefined counts as extreme, which can only increase p.
        as_far += int((~(np.abs(values[1] - values[0]) < far)).sum())
    count = 2**clusters if exact else draws
    # The observed arrangement counts in addition to the draws: hence the added 1.
    p_value = as_far / count if exact else (as_far + 1) / (count + 1)
    return Randomisation(
        value_b - value_a, p_value, rearrangements=count, as_far=as_far, exact=exact, clusters=clusters
    )


def _values(above: Floats, below: Floats, least: float, combination: Combine) -> Floats:
    """Return the metric of each pattern, as `stats.combine` defines it; nan if undefined.

    `above` and `below` are arrays of shape (patterns, strata).
    """
    if combination == "mean_of_ratios":
        valid = below > least
        ratios = np.where(valid, above / np.where(valid, below, 1.0), 0.0)
        return _quotient(ratios.sum(axis=1), valid.sum(axis=1).astype(np.float64), 0.5)
    ratio = _quotient(above.sum(axis=1), below.sum(axis=1), least)
    return np.sqrt(np.maximum(ratio, 0.0)) if combination == "root_of_ratio" else ratio


def _quotient(above: Floats, below: Floats, least: float) -> Floats:
    defined = below > least
    quotient: Floats = np.where(defined, above / np.where(defined, below, 1.0), np.nan)
    return quotient
