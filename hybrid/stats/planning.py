"""How many questions a difference needs, and which difference questions can show, by the test that `contrast` makes.

design = Design.of((120, 60, 20), cluster=5)     # a mean over three tasks, five rows of one question each
detectable_difference(design, 0.2)               # with a power of 0.8
sample_size(design, 0.05, 0.2).questions         # of as many tasks, each larger or smaller alike
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import NormalDist

import numpy as np

from hybrid.errors import UsageError
from hybrid.stats.contrasts import FEW, SWAPPED, paired_difference
from hybrid.stats.exact import power as exact_power
from hybrid.stats.linearised import Estimate, Rows, estimate, paired_rows
from hybrid.stats.scatter import SKEWED_T, quantile_of
from hybrid.types import Combine, Metric

# Assumed share of questions on which exactly one of two solvers is right: the recorded answers of four models to 1,901
# BLINK val questions give 0.37 to 0.49 over the six pairs.
TYPICAL_DISCORDANT = 0.4
# Of answers to a design: the standard error of a power of 0.8 is 0.016.
DRAWS = 600
# Degrees of freedom from which on the formula is as good as drawing answers.
MANY = 100
# Shares of differing answers are so far apart where answers have to be drawn for several pairs of solvers.
COARSE = 0.05
# Below so many degrees of freedom over no fewer questions tasks are so unequal that answers have to be drawn.
UNEQUAL = 30


@dataclass(frozen=True)
class Design:
    """The questions that two solvers answer: of each task how many rows each question (a cluster) has.

    The rows of a cluster are taken to be answered alike. The metric is a mean over tasks, or over rows if not `macro`.
    """

    tasks: tuple[tuple[float, ...], ...]
    macro: bool = True

    @classmethod
    def of(cls, sizes: Sequence[int], cluster: int = 1) -> Design:
        """Tasks of so many rows, in clusters of `cluster` rows as far as they go."""
        return cls(tuple((cluster,) * (n // cluster) + (n % cluster,) * bool(n % cluster) for n in sizes))

    @property
    def questions(self) -> int:
        """Rows of all tasks."""
        return round(sum(map(sum, self.tasks)))

    @property
    def clusters(self) -> int:
        """Of all tasks."""
        return sum(map(len, self.tasks))

    def scaled(self, clusters: int) -> Design:
        """As many tasks, with so many clusters or, by rounding up, a few more, of the same sizes."""
        counts = [math.ceil(len(task) * clusters / self.clusters) for task in self.tasks]
        drawn = zip(self.tasks, counts, strict=True)
        return replace(self, tasks=tuple(tuple(itertools.islice(itertools.cycle(task), n)) for task, n in drawn))

    @property
    def how(self) -> Combine:
        """The combination of the metric."""
        return "mean_of_ratios" if self.macro else "ratio"

    @cached_property
    def rows(self) -> Rows:
        """A row for each cluster, wrongly answered."""
        sizes = np.array([size for task in self.tasks for size in task], float)
        strata = np.repeat(np.arange(len(self.tasks)), [len(task) for task in self.tasks])
        names, tasks = (tuple(map(str, range(n))) for n in (len(sizes), len(self.tasks)))
        single = bool((sizes == 1).all())
        return Rows(names, tasks, np.arange(len(sizes)), strata, np.zeros(len(sizes)), sizes, single)

    @cached_property
    def estimate(self) -> Estimate:
        """The weights of its clusters and the degrees of freedom."""
        made = estimate(self.rows, self.how)
        if made is None:
            raise UsageError("a design needs a question")
        return made


@cache
def power_of(design: Design, difference: float, discordant: float, level: float = 0.05, draws: int = DRAWS) -> float:
    """How often `contrast` finds a difference that is the same in all tasks, by drawn answers; the same ones each time.

    `discordant` is the share of questions on which exactly one solver is right; `level` the two-sided error.
    """
    rng, rows = np.random.default_rng(0), design.rows
    up, down, found = (discordant + difference) / 2, (discordant - difference) / 2, 0
    for _ in range(draws):
        drawn = rng.random(len(rows.denominator))
        worse, better = (replace(rows, numerator=own * rows.denominator) for own in (drawn > 1 - down, drawn < up))
        scatter = paired_difference(worse, better, design.how).scatter
        found += scatter is not None and scatter.p_value() < level
    return found / draws


def _finds(design: Design, difference: float, discordant: float, power: float, level: float) -> bool:
    if design.estimate.freedom < MANY:
        return power_of(design, difference, discordant, level) >= power
    root = NormalDist().inv_cdf(1 - level / 2) * math.sqrt(discordant)
    root += NormalDist().inv_cdf(power) * math.sqrt(discordant - difference**2)
    return root * math.sqrt(design.estimate.unit) <= abs(difference)


def _refuse(discordant: float | None, power: float, level: float) -> None:
    if discordant is not None and not 0 < discordant <= 1:
        raise UsageError(f"--discordant {discordant}: needs 0 < discordant <= 1")
    if not 0 < level < power < 1:
        raise UsageError(f"power {power} at level {level}: needs 0 < level < power < 1")


def sample_size(
    design: Design, difference: float, discordant: float | None = None, power: float = 0.8, level: float = 0.05
) -> Design:
    """The design with as few clusters in these proportions as find a `difference` with this power.

    The test is `contrast`. Of many questions it follows from Connor, Biometrics 43 (1987) 207-211, p. 209: each counts
    1 / n in n = (z(level / 2) sqrt(psi) + z(1 - power) sqrt(psi - d^2))^2 / d^2, with psi the share `discordant`.

    Raises:
        UsageError: unless 0 < |difference| <= discordant <= 1 and 0 < level < power < 1.
    """
    _refuse(discordant, power, level)
    size = abs(difference)
    # The share that is given, or the typical one as far as a difference of that size allows.
    share = max(TYPICAL_DISCORDANT, size) if discordant is None else discordant
    if not 0 < size <= share:
        raise UsageError(f"--difference {difference} at {share} discordant: needs 0 < |difference| <= discordant <= 1")
    low, high = 0, len(design.tasks)
    while not _finds(design.scaled(high), size, share, power, level):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _finds(design.scaled(middle), size, share, power, level) else (middle, high)
    return design.scaled(high)


def detectable_difference(
    design: Design, discordant: float | None = None, power: float = 0.8, level: float = 0.05
) -> float:
    """The least difference of accuracies that `contrast` finds with this power.

    Raises:
        UsageError: so few questions cannot show any difference; or unless 0 < discordant <= 1, 0 < level < power < 1.
    """
    _refuse(discordant, power, level)

    def finds(size: float) -> bool:
        share = max(TYPICAL_DISCORDANT, size) if discordant is None else discordant
        return _finds(design, size, share, power, level)

    found = _least(finds, 1e-4 if design.estimate.freedom >= MANY else 1e-3, 1.0 if discordant is None else discordant)
    if found is None:
        known = "" if discordant is None else f" at {discordant:.2f} discordant"
        raise UsageError(f"{design.questions} questions{known}: too few to find any difference")
    return found


def _least(finds: Callable[[float], bool], step: float, high: float = 1.0) -> float | None:
    """The least size that is found; None where not even `high` is."""
    low = 0.0
    if not finds(high):
        return None
    while high - low > step:
        size = (low + high) / 2
        low, high = (low, size) if finds(size) else (size, high)
    return high


def detectable(a: Metric, b: Metric, power: float = 0.8, level: float = 0.05) -> float | None:
    """The true difference that `contrast` finds with this power over such questions; None where it finds none.

    It follows from the spread of the difference and its degrees of freedom, and so from the metric's own weights: of
    shares so many clusters differ as here, or as a difference of that size needs. Of few single questions the exact
    test has to find it too, which no difference passes below 6 questions; of very unequal tasks answers are drawn.
    `python -m bench.sentences --power` measures it. Raises `DataError` as `contrast` does.
    """
    rows = paired_rows(a, b)
    found = paired_difference(*rows, a.combine, share=a.share and b.share)
    if found.scatter is None:
        return None
    freedom, variance = found.scatter.error.freedom, found.scatter.error.variance
    quantiles = quantile_of(freedom, level / 2) + quantile_of(freedom, 1 - power)
    if not found.scatter.bounded:
        return quantiles * math.sqrt(variance)
    if found.clusters >= FEW and freedom < UNEQUAL and len(rows[0].clusters) == len(rows[0].cluster):
        design, share = measured_design(a, b)
        # Rounded up, so that many pairs of solvers over the same questions share what is drawn.
        share = math.ceil(share / COARSE) * COARSE
        return _least(lambda size: _finds(design, size, max(share, size), power, level), COARSE / 5)
    differing = min(1.0, variance / found.unit + found.scatter.value**2)
    test = found.scatter.least[1]

    def finds(size: float) -> bool:
        share = max(differing, size)
        if size < quantiles * math.sqrt(found.unit * (share - size**2)):
            return False
        given = test == SWAPPED
        return test == SKEWED_T or exact_power(size, share, found.clusters, given=given, level=level) >= power

    return _least(finds, 1e-3)


def measured_design(a: Metric, b: Metric) -> tuple[Design, float]:
    """The questions that two solvers answered, and the share on which they differ (clusters: by their means)."""
    before, after = paired_rows(a, b)
    size = before.denominator
    kept = size > 0
    tasks = (size[kept & (before.stratum == place)].tolist() for place in range(len(before.strata)))
    apart = (after.numerator - before.numerator)[kept] ** 2 / size[kept]
    design = Design(tuple(tuple(own) for own in tasks if own), a.combine == "mean_of_ratios")
    return design, float(apart.sum() / size[kept].sum())
