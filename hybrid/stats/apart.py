"""The difference of a share between two groups of questions, such as those answered right and wrong without tools."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np

from hybrid.core.types import Cell, Cells, Metric
from hybrid.stats.contrasts import Contrast, contrast
from hybrid.stats.intervals import Interval, combine, interval
from hybrid.stats.linearised import Floats


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
