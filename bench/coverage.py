"""Simulate the coverage of `hybrid.stats`' intervals and the error rate of its test, nominal 95 %.

    python -m bench.coverage                      100 simulations for each entry, about two minutes on one core
    python -m bench.coverage --simulations 400    finer: bench/results/coverage.md
    python -m bench.coverage --json               every measurement as one JSON array
    python -m bench.coverage --grouped            grouped metrics, by the randomisation test too; half a minute

A question has rows (its rotations, its pair of images). Each row copies a draw that the question's rows share with
probability sqrt(icc), and is otherwise independent, so that `icc` is their correlation. All draws follow from `--seed`
(0). With 400 simulations a coverage of 0.95 is measured to +- 0.022 (two standard errors).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench import _grouped
from bench._frame import options
from bench._simulations import LEVEL, markdown, rejected, summarise, tell
from hybrid.core.types import Cell, Combine, Metric
from hybrid.stats import Contrast, Interval, combine, contrast, interval, mcnemar

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

# The score of an abstention.
CHANCE = 0.25
ABSTAINED = 0.3
CLUSTERS = (5, 10, 20, 50, 200)
SHARES = (0.05, 0.5, 0.8, 0.95, 1.0)
MACRO = {"macro 3 x 20": (20,) * 3, "macro 14 x 10": (10,) * 14, "macro 400/30/30": (400, 30, 30)}


@dataclass(frozen=True, slots=True)
class Design:
    """Questions by stratum, the rows of each (`1`, `2`, `3-5` or `unequal`: 1 to 20, mean 5) and their correlation."""

    name: str
    strata: tuple[int, ...]
    rows: str = "1"
    icc: float = 0.0

    @property
    def how(self) -> Combine:
        """How rows are combined: a mean over strata if there are several, else a plain ratio."""
        return "mean_of_ratios" if len(self.strata) > 1 else "ratio"

    def sizes(self, rng: np.random.Generator) -> Counts:
        """Return the number of rows of every question."""
        n = sum(self.strata)
        fixed = {"1": (1, 2), "2": (2, 3), "3-5": (3, 6)}
        if self.rows == "unequal":
            return np.minimum(rng.geometric(0.2, n), 20)
        return rng.integers(*fixed[self.rows], n)


@dataclass(frozen=True, slots=True)
class Measured:
    """Results for one design and one truth: shares of simulations, and the mean width of the intervals."""

    table: str
    design: str
    rows: str
    icc: float
    setting: str
    truth: float
    coverage: float
    width: float
    # Share without an interval; these count as not covered and are not in the mean width.
    missing: float
    # Share with p < 0.05: the type I error if the true difference is 0, else the power.
    rejected: float | None = None

    @classmethod
    def of(
        cls, table: str, design: Design, setting: str, truth: float, intervals: Sequence[Interval | Contrast | None]
    ) -> Measured:
        """Summarise simulations, each of which gave an interval, or a difference with its interval and test."""
        ends = [item.interval if isinstance(item, Contrast) else item for item in intervals]
        tests = [entry.p_value for entry in intervals if isinstance(entry, Contrast)]
        all_ = summarise(ends, truth)
        width = math.nan if all_.width is None else all_.width
        values = (table, design.name, design.rows, design.icc, setting, truth)
        return cls(*values, all_.coverage, width, all_.missing, rejected(tests) if tests else None)


def draw_counts(rng: np.random.Generator, design: Design, sizes: Counts, kinds: Floats) -> Counts:
    """Draw the number of rows of each kind, (questions, kinds), for shares `kinds`, (strata, kinds)."""
    stratum = np.repeat(np.arange(len(design.strata)), design.strata)
    copies = rng.binomial(sizes, math.sqrt(design.icc))
    counts = rng.multinomial(sizes - copies, kinds[stratum])
    counts += rng.multinomial(1, kinds[stratum]) * copies[:, None]
    return counts


def metric(design: Design, numerators: Floats, sizes: Counts, mode: Combine | None = None) -> Metric:
    """Return the metric of one simulated solver: one cell for each question."""
    strata = [f"t{place}" for place, n in enumerate(design.strata) for _ in range(n)]
    rows = zip(strata, numerators.tolist(), sizes.tolist(), strict=True)
    cells = tuple(Cell(stratum, f"q{place}", value, float(n)) for place, (stratum, value, n) in enumerate(rows))
    selected = mode or design.how
    return Metric("simulated", combine(cells, selected), len(cells), selected, cells)


def of_shares(
    table: str,
    design: Design,
    shares: Sequence[float],
    rng: np.random.Generator,
    simulations: int,
    abstained: float = 0.0,
) -> Measured:
    """Measure the intervals of one solver with given accuracies by stratum on the questions that it answers."""
    right = np.array(shares) * (1 - abstained)
    kinds = np.stack([right, np.full_like(right, abstained), 1 - abstained - right], axis=1)
    truth = _mean(design, right + CHANCE * abstained)
    ends = []
    for _ in range(simulations):
        sizes = design.sizes(rng)
        counts = draw_counts(rng, design, sizes, kinds)
        ends.append(interval(metric(design, counts[:, 0] + CHANCE * counts[:, 1], sizes), LEVEL))
    setting = "mixed" if len(set(shares)) > 1 else f"p {shares[0]:g}"
    return Measured.of(table, design, setting, truth, ends)


@dataclass(frozen=True, slots=True)
class IntervalPair:
    """Two solvers: the shares of rows that only the second has right, and only the first, by stratum."""

    name: str
    helped: tuple[float, ...]
    harmed: tuple[float, ...]
    # Share of the rows on which the first solver abstains, independently of the second.
    abstained: float = 0.0


def of_pairs(
    table: str, design: Design, pair: IntervalPair, rng: np.random.Generator, simulations: int
) -> tuple[Measured, float]:
    """Measure intervals and tests of the difference, and how often McNemar's test on pooled 0/1 counts rejects."""
    count = len(design.strata)
    helped, harmed = (np.resize(np.array(shares), count) for shares in (pair.helped, pair.harmed))
    rest = 1 - helped - harmed
    answered = np.stack([helped, harmed, 0.7 * rest, 0.3 * rest], axis=1)
    kinds = np.concatenate([answered * (1 - pair.abstained), answered * pair.abstained], axis=1)
    first = np.array([0, 1, 1, 0, *[CHANCE] * 4])
    second = np.array([1, 0, 1, 0, 1, 0, 1, 0])
    truth = _mean(design, kinds @ (second - first))
    differences, by_mcnemar = [], 0
    for _ in range(simulations):
        sizes = design.sizes(rng)
        counts = draw_counts(rng, design, sizes, kinds)
        a, b = (metric(design, counts @ side, sizes) for side in (first, second))
        differences.append(contrast(a, b, LEVEL))
        total = counts.sum(axis=0)
        by_mcnemar += mcnemar(int(total[0]), int(total[1])) < 1 - LEVEL
    return Measured.of(table, design, pair.name, truth, differences), by_mcnemar / simulations


def _mean(design: Design, by_stratum: Floats) -> float:
    return float(by_stratum.mean()) if len(design.strata) > 1 else float(by_stratum[0])


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of a counting or rating solver; `true_mean` and `true_square` are those of |error| and error^2."""

    name: str
    draw: Callable[[np.random.Generator, int], Floats]
    true_mean: float
    true_square: float


ERRORS = (
    Errors("normal", lambda rng, n: np.abs(rng.normal(0.0, 1.0, n)), math.sqrt(2 / math.pi), 1.0),
    Errors("Poisson(1)", lambda rng, n: rng.poisson(1.0, n).astype(np.float64), 1.0, 2.0),
    Errors("log-normal(0.8)", lambda rng, n: rng.lognormal(0.0, 0.8, n), math.exp(0.32), math.exp(1.28)),
)


def of_errors(design: Design, errors: Errors, rng: np.random.Generator, simulations: int) -> Iterator[Measured]:
    """Measure RMSE and MAE of one solver, and the differences between two that share half of their errors."""
    truths: dict[Combine, float] = {"root_of_ratio": math.sqrt(errors.true_square), "ratio": errors.true_mean}
    n = sum(design.strata)
    ones = np.ones(n, dtype=np.int64)
    for key, truth in truths.items():
        name = "RMSE" if key == "root_of_ratio" else "MAE"
        single, paired = [], []
        for _ in range(simulations):
            first, other = errors.draw(rng, n), errors.draw(rng, n)
            second = np.where(rng.random(n) < 0.5, first, other)
            a, b = (metric(design, e**2 if name == "RMSE" else e, ones, key) for e in (first, second))
            single.append(interval(a, LEVEL))
            paired.append(contrast(a, b, LEVEL))
        yield Measured.of("errors", design, f"{name}, {errors.name}", truth, single)
        yield Measured.of("errors", design, f"{name} difference, {errors.name}", 0.0, paired)


def designs() -> tuple[Design, ...]:
    """Return every design of the tables of proportions."""
    shapes = (("1", 0.0), ("2", 0.3), ("3-5", 0.0), ("3-5", 0.3), ("3-5", 0.8), ("unequal", 0.3))
    plain = [Design(f"{n} clusters", (n,), rows, icc) for n in CLUSTERS for rows, icc in shapes]
    macro = [
        Design(name, strata, rows, icc) for name, strata in MACRO.items() for rows, icc in (("1", 0.0), ("3-5", 0.3))
    ]
    return (*plain, *macro)


def pairs(design: Design) -> tuple[IntervalPair, ...]:
    """Return the pairs of solvers to compare; the last pair is included only if one stratum outweighs the others."""
    values = (
        IntervalPair("equal, 0.2 each", (0.2,), (0.2,)),
        IntervalPair("equal, 0.05 each", (0.05,), (0.05,)),
        IntervalPair("0.3 against 0.1", (0.3,), (0.1,)),
        IntervalPair("0.1 against 0", (0.1,), (0.0,)),
        IntervalPair("0.3 against 0.1, abstains", (0.3,), (0.1,), ABSTAINED),
    )
    unequal = IntervalPair("macro equal, strata not", (0.3, 0.05, 0.05), (0.1, 0.15, 0.15))
    return (*values, unequal) if design.strata == MACRO["macro 400/30/30"] else values


def measurements(simulations: int, seed: int) -> Iterator[Measured]:
    """Yield every row of the tables, in their order."""
    for place, design in enumerate(designs()):
        rng = np.random.default_rng([seed, place, 1])
        count = len(design.strata)
        for share in SHARES:
            yield of_shares("intervals", design, (share,) * count, rng, simulations)
        yield of_shares("intervals, 0.3 abstained", design, (0.7,) * count, rng, simulations, ABSTAINED)
        if count > 1:
            yield of_shares("intervals", design, tuple(np.linspace(0.97, 0.3, count)), rng, simulations)
    for place, design in enumerate(designs()):
        rng = np.random.default_rng([seed, place, 2])
        for pair in pairs(design):
            result, by_mcnemar = of_pairs("differences", design, pair, rng, simulations)
            yield result
            if "macro equal" in pair.name and design.rows == "1":
                sys.stderr.write(f"{design.name}, {pair.name}: McNemar's test rejects in {by_mcnemar:.3f}\n")
    for place, n in enumerate(CLUSTERS):
        rng = np.random.default_rng([seed, place, 3])
        for errors in ERRORS:
            yield from of_errors(Design(f"{n} clusters", (n,)), errors, rng, simulations)


def printed(measureds: Sequence[Measured]) -> list[str]:
    """Return Markdown tables, one row per design, one column per setting: coverage (width), share with p < 0.05."""
    lines = ["coverage (mean width); in tables of differences then the share with p < 0.05"]
    for table in dict.fromkeys(item.table for item in measureds):
        members = [entry for entry in measureds if entry.table == table]
        settings = tuple(dict.fromkeys(member.setting for member in members))
        by_design: dict[tuple[str, str, str], dict[str, str]] = {}
        for value in members:
            text = f"{value.coverage:.3f} ({value.width:.2f})"
            cell = text if value.rejected is None else f"{text} {value.rejected:.3f}"
            by_design.setdefault((value.design, value.rows, f"{value.icc:g}"), {})[value.setting] = cell
        rows = ([*name, *(cells.get(setting, "") for setting in settings)] for name, cells in by_design.items())
        lines += ["", f"**{table}**", "", *markdown(("questions", "rows", "icc", *settings), rows)]
    return lines


def main(words: Sequence[str] | None = None) -> None:
    """Print the tables."""
    flags = options(__doc__, {"--simulations": 100, "--seed": 0, "--grouped": False, "--json": False}, words)
    if flags.grouped:
        tell(list(_grouped.grouped(flags.simulations, flags.seed)), flags, _grouped.printed)
    else:
        tell(list(measurements(flags.simulations, flags.seed)), flags, printed)


if __name__ == "__main__":
    main()
