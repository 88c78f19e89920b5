"""Are two solvers equal within a margin? Two one-sided tests of a paired difference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hybrid.core.errors import UsageError
from hybrid.core.types import Metric
from hybrid.stats.contrasts import paired_difference
from hybrid.stats.intervals import Interval
from hybrid.stats.linearised import paired_rows


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
    return Equivalence(margin, paired.difference, ends, p_value, equal, ends.low > margin or ends.high < -margin)
