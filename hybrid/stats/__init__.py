"""Confidence intervals, and tests of a difference, from the cells of a metric.

Pure functions; the order of the input does not matter. `hybrid score` prints `interval`, `hybrid compare` prints
`contrast`, `holm` and `noninferiority`, `hybrid plan` prints `sample_size` and `detectable_difference`. One observation
is one cluster (a base question with its variants, a pair of images), never a single row, because rows of one cluster
are not independent. `docs/statistics.md` reports how often the intervals cover the truth; `python -m bench.coverage`
measures it.
"""

from hybrid.stats.contrasts import (
    EXACT,
    FEW,
    SWAPPED,
    Contrast,
    Equivalence,
    contrast,
    difference_apart,
    equivalence,
    holm,
    mean_interval,
    noninferiority,
)
from hybrid.stats.exact import mcnemar
from hybrid.stats.intervals import FIELLER, Interval, combine, ends_of, interval, ratio_interval, wilson
from hybrid.stats.planning import (
    TYPICAL_DISCORDANT,
    Design,
    detectable,
    detectable_difference,
    measured_design,
    power_of,
    sample_size,
)
from hybrid.stats.pooling import Pooled, pooled_effect
from hybrid.stats.scatter import SKEWED_T

__all__ = [
    "EXACT",
    "FEW",
    "FIELLER",
    "SKEWED_T",
    "SWAPPED",
    "TYPICAL_DISCORDANT",
    "Contrast",
    "Design",
    "Equivalence",
    "Interval",
    "Pooled",
    "combine",
    "contrast",
    "detectable",
    "detectable_difference",
    "difference_apart",
    "ends_of",
    "equivalence",
    "holm",
    "interval",
    "mcnemar",
    "mean_interval",
    "measured_design",
    "noninferiority",
    "pooled_effect",
    "power_of",
    "ratio_interval",
    "sample_size",
    "wilson",
]
