"""How many questions `contrast` needs to detect a difference, and which difference a given number can detect.

design = Design.of((120, 60, 20), cluster=5)     # a mean over three tasks, five rows of one question each
detectable_difference(design, 0.2)               # with a power of 0.8
sample_size(design, 0.05, 0.2).questions         # with the same tasks, all scaled alike
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import NormalDist

import numpy as np

from hybrid.core.errors import UsageError
from hybrid.core.types import Combine, Metric
from hybrid.stats.contrasts import FEW, SWAPPED, paired_difference
from hybrid.stats.exact import power as exact_power
from hybrid.stats.linearised import Estimate, Rows, estimate, paired_rows
from hybrid.stats.scatter import SKEWED_T, quantile_of

# Assumed share of questions on which exactly one of two solvers is right: the recorded answers of four models to 1,901
# BLINK val questions give 0.37 to 0.49 over the six pairs.
TYPICAL_DISCORDANT = 0.4
# Number of simulated sets of answers; the standard error of a power of 0.8 is then 0.016.
DRAWS = 600
# Degrees of freedom from which the formula is as accurate as simulation.
MANY = 100
# Step between shares of differing answers if answers must be simulated for several pairs of solvers.
COARSE = 0.05
# If there are at least `FEW` questions but fewer degrees of freedom than this, tasks are so unequal that answers must
# be simulated.
UNEQUAL = 30


@dataclass(frozen=True)
class Design:
    """The questions that two solvers answer.

    `tasks` has, for each task, the number of rows of each question (a cluster). Rows of a cluster are assumed to be
    answered alike. The metric is a mean over tasks, or over rows if not `macro`.
    """

    tasks: tuple[tuple[float, ...], ...]
    macro: bool = True

    @classmethod
    def of(cls, sizes: Sequence[int], cluster: int = 1) -> Design:
        """Return tasks with these numbers of rows, in clusters of `cluster` rows plus a remainder."""
        return cls(tuple((cluster,) * (n // cluster) + (n % cluster,) * bool(n % cluster) for n in sizes))

    @property
    def questions(self) -> int:
        """Number of rows in all tasks."""
        return round(sum(map(sum, self.tasks)))

    @property
    def clusters(self) -> int:
        """Number of clusters in all tasks."""
        return sum(map(len, self.tasks))

    def scaled(self, clusters: int) -> Design:
        """Return the design scaled to `clusters` clusters, rounded up per task; a task repeats its cluster sizes."""
        counts = [math.ceil(len(task) * clusters / self.clusters) for task in self.tasks]
        task_counts = zip(self.tasks, counts, strict=True)
        return replace(self, tasks=tuple(tuple(itertools.islice(itertools.cycle(task), n)) for task, n in task_counts))

    @property
    def how(self) -> Combine:
        """How the metric combines its cells."""
        return "mean_of_ratios" if self.macro else "ratio"

    @cached_property
    def rows(self) -> Rows:
        """One row per cluster, as if all questions were answered wrongly."""
        sizes = np.array([size for task in self.tasks for size in task], float)
        strata = np.repeat(np.arange(len(self.tasks)), [len(task) for task in self.tasks])
        names, tasks = (tuple(map(str, range(n))) for n in (len(sizes), len(self.tasks)))
        single = bool((sizes == 1).all())
        return Rows(
            names,
            tasks,
            cluster=np.arange(len(sizes)),
            stratum=strata,
            numerator=np.zeros(len(sizes)),
            denominator=sizes,
            single=single,
        )

    @cached_property
    def estimate(self) -> Estimate:
        """The weights of the clusters and the degrees of freedom."""
        result = estimate(self.rows, self.how)
        if result is None:
            raise UsageError("a design needs at least one question")
        return result


@cache
def power_of(design: Design, difference: float, discordant: float, level: float = 0.05, draws: int = DRAWS) -> float:
    """Return the simulated power of `contrast` for a difference that is equal in all tasks, with a fixed seed.

    `discordant` is the share of questions on which exactly one solver is right; `level` is the two-sided error.
    """
    return sum(itertools.islice(_detections(design, difference, discordant, level), draws)) / draws


def _detections(design: Design, difference: float, discordant: float, level: float) -> Iterator[bool]:
    """Yield for each simulated set of answers whether `contrast` finds the difference."""
    rng, rows = np.random.default_rng(0), design.rows
    up, down = (discordant + difference) / 2, (discordant - difference) / 2
    while True:
        uniform = rng.random(len(rows.denominator))
        worse, better = (rows.with_numerators(flags * rows.denominator) for flags in (uniform > 1 - down, uniform < up))
        scatter = paired_difference(worse, better, design.how).scatter
        yield scatter is not None and scatter.p_value() < level


@cache
def has_power(
    design: Design, difference: float, discordant: float, power: float, level: float = 0.05, draws: int = DRAWS
) -> bool:
    """Return whether `power_of` is at least `power`. Drawing stops once the remaining draws cannot change this."""
    found = missed = 0
    for is_found in itertools.islice(_detections(design, difference, discordant, level), draws):
        found, missed = found + is_found, missed + (not is_found)
        if found / draws >= power or (draws - missed) / draws < power:
            break
    return found / draws >= power


def _finds(design: Design, difference: float, discordant: float, power: float, level: float) -> bool:
    if design.estimate.layout.freedom < MANY:
        return has_power(design, difference, discordant, power, level)
    root = NormalDist().inv_cdf(1 - level / 2) * math.sqrt(discordant)
    root += NormalDist().inv_cdf(power) * math.sqrt(discordant - difference**2)
    return root * math.sqrt(design.estimate.layout.unit) <= abs(difference)


def _refuse(discordant: float | None, power: float, level: float) -> None:
    if discordant is not None and not 0 < discordant <= 1:
        raise UsageError(f"--discordant {discordant}: needs 0 < discordant <= 1")
    if not 0 < level < power < 1:
        raise UsageError(f"power {power} at level {level}: needs 0 < level < power < 1")


def sample_size(
    design: Design, difference: float, discordant: float | None = None, power: float = 0.8, level: float = 0.05
) -> Design:
    """Return the smallest design of these proportions that finds a `difference` with this power.

    The test is `contrast`. For many questions the size follows from Connor, Biometrics 43 (1987) 207-211, p. 209: each
    question has weight 1 / n, n = (z(level / 2) sqrt(psi) + z(1 - power) sqrt(psi - d^2))^2 / d^2, psi = `discordant`.

    Raises:
        UsageError: unless 0 < |difference| <= discordant <= 1 and 0 < level < power < 1.
    """
    _refuse(discordant, power, level)
    size = abs(difference)
    # The given share of differing answers, or the typical share, raised if a difference of that size requires a larger
    # share.
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
    """Return the smallest difference of accuracies that `contrast` finds with this power.

    Raises:
        UsageError: too few questions to show any difference; or not 0 < discordant <= 1 and 0 < level < power < 1.
    """
    _refuse(discordant, power, level)

    def finds(size: float) -> bool:
        share = max(TYPICAL_DISCORDANT, size) if discordant is None else discordant
        return _finds(design, size, share, power, level)

    smallest = _least(
        finds, 1e-4 if design.estimate.layout.freedom >= MANY else 1e-3, 1.0 if discordant is None else discordant
    )
    if smallest is None:
        context = "" if discordant is None else f" at {discordant:.2f} discordant"
        raise UsageError(f"{design.questions} questions{context}: too few to find any difference")
    return smallest


def _least(finds: Callable[[float], bool], step: float, high: float = 1.0) -> float | None:
    """Return the smallest size for which `finds` is true, to within `step`; None if it is false even for `high`."""
    low = 0.0
    if not finds(high):
        return None
    while high - low > step:
        size = (low + high) / 2
        low, high = (low, size) if finds(size) else (size, high)
    return high


def detectable(a: Metric, b: Metric, power: float = 0.8, level: float = 0.05) -> float | None:
    """Return the true difference that `contrast` detects with this power on such questions; None if it can detect none.

    The difference follows from the spread of the solvers' difference and its degrees of freedom, and so from the
    metric's own weights. For shares, the share of differing clusters is assumed to be that of `a` and `b`, or as high
    as a difference of that size requires, if single questions differ as much as those of `a` and `b` typically do. For
    few single questions the exact test must find the difference too, which is impossible below 6 questions. For very
    unequal tasks, answers are simulated. `python -m bench.sentences --power`
    measures how often such a difference is found. Raises `DataError` as `contrast` does.
    """
    rows = paired_rows(a, b)
    paired = paired_difference(*rows, a.combine, share=a.share and b.share)
    if paired.scatter is None:
        return None
    freedom, variance = paired.scatter.error.freedom, paired.scatter.error.variance
    quantiles = quantile_of(freedom, level / 2) + quantile_of(freedom, 1 - power)
    if not paired.scatter.bounded:
        return quantiles * math.sqrt(variance)
    if paired.clusters >= FEW and freedom < UNEQUAL and len(rows[0].clusters) == len(rows[0].cluster):
        design, share = measured_design(a, b)
        # Round up, so that many pairs of solvers over the same questions share the simulations.
        share = math.ceil(share / COARSE) * COARSE
        return _least(lambda size: _finds(design, size, max(share, size), power, level), COARSE / 5)
    # Units of one question's typical difference: 1 for right and wrong answers, less for scores such as similarities.
    typical = _typical_difference(*rows)
    differing = min(1.0, (variance / paired.unit + paired.scatter.value**2) / typical**2)
    test = paired.scatter.least[1]

    def finds(size: float) -> bool:
        size /= typical
        share = max(differing, size)
        if size < quantiles * math.sqrt(paired.unit * (share - size**2)):
            return False
        conditional = test == SWAPPED
        return (
            test == SKEWED_T or exact_power(size, share, paired.clusters, conditional=conditional, level=level) >= power
        )

    return _least(finds, 1e-3, typical)


def _typical_difference(a: Rows, b: Rows) -> float:
    """Return the mean square of single questions' differences divided by their mean size; 1 for groups of questions."""
    asked = a.denominator > 0
    if (a.denominator[asked] != 1).any():
        return 1.0
    differences = np.abs(b.numerator - a.numerator)[asked]
    total = float(differences.sum())
    return min(1.0, float((differences**2).sum()) / total) if total > 0 else 1.0


def measured_design(a: Metric, b: Metric) -> tuple[Design, float]:
    """Return the questions that two solvers answered, and the share on which they differ, from cluster means."""
    rows_a, rows_b = paired_rows(a, b)
    size = rows_a.denominator
    valid = size > 0
    tasks = (size[valid & (rows_a.stratum == place)].tolist() for place in range(len(rows_a.strata)))
    squares = (rows_b.numerator - rows_a.numerator)[valid] ** 2 / size[valid]
    design = Design(tuple(tuple(task) for task in tasks if task), a.combine == "mean_of_ratios")
    return design, float(squares.sum() / size[valid].sum())
