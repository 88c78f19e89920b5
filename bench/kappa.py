"""Simulate the coverage of kappa's interval, and the error rate of the tests of shared mistakes.

    python -m bench.kappa                       200 simulations for each entry, ten seconds on one core
    python -m bench.kappa --simulations 1000    finer: bench/results/kappa.md
    python -m bench.kappa --json                every measurement as one JSON array

Each of two solvers is right on a row with its own probability; the probability that both are right follows from the
true kappa. Rows of a question are similar as in `bench.coverage`: both solvers' results are copied together. All draws
depend only on `--seed` (0). With 1,000 simulations, a coverage of 0.95 is measured to +- 0.014 (two standard errors).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench._frame import options
from bench._simulations import LEVEL, markdown, rejected, summarise, tell
from bench.coverage import Design, draw_counts
from hybrid.stats.kappa import kappa, shared_mistakes

CLUSTERS = (10, 20, 50, 200)
ROWS = (("1", 0.0), ("2", 0.3), ("3-5", 0.3), ("unequal", 0.3))
# Accuracies of the first and the second solver.
RIGHT = ((0.6, 0.7), (0.9, 0.95))
TRUTHS = (0.0, 0.3, 0.6)
# Accuracies by task; errors are independent within each task, which is the null hypothesis of the test.
TASKS = ((0.9, 0.85), (0.6, 0.5), (0.3, 0.4))


@dataclass(frozen=True, slots=True)
class Measured:
    """One truth with one design: shares of simulations, and the mean width of the existing intervals."""

    clusters: int
    rows: str
    setting: str
    truth: float
    # Coverage of kappa's interval, where a missing interval does not cover; None for the tests of shared mistakes.
    coverage: float | None
    width: float | None
    # Share without an interval or p value.
    missing: float
    # Share with p < 0.05 in the test of shared mistakes, when errors are independent within tasks.
    rejected: float | None


def joint(right_a: float, right_b: float, value: float) -> NDArray[np.float64]:
    """Return the probabilities that both, only the first, only the second, or neither is right, at a true kappa.

    Raises `ValueError` if no joint probabilities have these accuracies and this kappa.
    """
    by_chance = right_a * right_b + (1 - right_a) * (1 - right_b)
    agreed = by_chance + value * (1 - by_chance)
    pair = (agreed - 1 + right_a + right_b) / 2
    shares = np.array([pair, right_a - pair, right_b - pair, 1 - right_a - right_b + pair])
    if shares.min() < 0:
        raise ValueError(f"no two solvers right in {right_a} and {right_b} have kappa {value}")
    return shares


def rows_of(
    rng: np.random.Generator, design: Design, kinds: NDArray[np.float64]
) -> tuple[list[bool], list[bool], list[str], list[str]]:
    """Return, for every row, whether each solver is right, its question and its task; `kinds` is (tasks, 4)."""
    counts = draw_counts(rng, design, design.sizes(rng), kinds)
    kind = np.repeat(np.tile(np.arange(4), len(counts)), counts.ravel())
    question = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
    task = np.repeat(np.arange(len(design.strata)), design.strata)[question]
    return (
        (kind < 2).tolist(),
        (kind % 2 == 0).tolist(),
        [f"q{item}" for item in question],
        [f"t{entry}" for entry in task],
    )


def of_kappa(
    rng: np.random.Generator, design: Design, shares: tuple[float, float], truth: float, simulations: int
) -> Measured:
    """Measure how often the interval contains the true kappa of two solvers with these accuracies."""
    kinds = joint(*shares, truth)[None, :]
    ends = []
    for _ in range(simulations):
        right_a, right_b, questions, _tasks = rows_of(rng, design, kinds)
        ends.append(kappa(right_a, right_b, questions, LEVEL).interval)
    result, setting = summarise(ends, truth, slack=0.0), f"right in {shares[0]:g} and {shares[1]:g}"
    sizes = (result.coverage, result.width, result.missing)
    return Measured(design.strata[0], design.rows, setting, truth, *sizes, None)


def of_mistakes(rng: np.random.Generator, design: Design, simulations: int) -> Measured:
    """Measure how often p is below 0.05 for two solvers whose errors are independent within each task."""
    kinds = np.stack([joint(*shares, 0.0) for shares in TASKS])
    p_values = [
        shared_mistakes(right_a, right_b, tasks, questions).p_value
        for right_a, right_b, questions, tasks in (rows_of(rng, design, kinds) for _ in range(simulations))
    ]
    missing, setting = sum(p is None for p in p_values) / simulations, "independent within tasks"
    return Measured(sum(design.strata), design.rows, setting, 0.0, None, None, missing, rejected(p_values))


def measurements(simulations: int, seed: int) -> Iterator[Measured]:
    """Yield every entry of the two tables, in order."""
    for place, n in enumerate(CLUSTERS):
        for rows, icc in ROWS:
            rng = np.random.default_rng([seed, place, 1])
            for shares in RIGHT:
                for truth in TRUTHS:
                    yield of_kappa(rng, Design("", (n,), rows, icc), shares, truth, simulations)
    for place, n in enumerate(CLUSTERS):
        for rows, icc in ROWS:
            rng = np.random.default_rng([seed, place, 2])
            yield of_mistakes(rng, Design("", (n // 2, n // 4, n - n // 2 - n // 4), rows, icc), simulations)


def printed(measureds: Sequence[Measured]) -> list[str]:
    """Return two Markdown tables: coverage of kappa's interval, and the error rate of the test of shared mistakes."""
    kappas = [item for item in measureds if item.coverage is not None]
    settings = list(dict.fromkeys((entry.setting, entry.truth) for entry in kappas))
    mapping = {(value.clusters, value.rows, value.setting, value.truth): _cell(value) for value in kappas}
    heads = ("questions", "rows", *(f"{name}, kappa {truth:g}" for name, truth in settings))
    designs = dict.fromkeys((first_kappa.clusters, first_kappa.rows) for first_kappa in kappas)
    lines = markdown(
        heads, ((f"{n} clusters", rows, *(mapping[n, rows, *setting] for setting in settings)) for n, rows in designs)
    )
    tests = {
        n: [first_item for first_item in measureds if first_item.clusters == n and first_item.rejected is not None]
        for n in CLUSTERS
    }
    heads = ("questions in three tasks", *("1 row" if rows == "1" else f"{rows} rows" for rows, _ in ROWS))
    errs = ((f"{n} clusters", *(f"{item_value.rejected:.3f}" for item_value in test)) for n, test in tests.items())
    return [*lines, "", *markdown(heads, errs)]


def _cell(measured: Measured) -> str:
    text = f"{measured.coverage:.3f}"
    if measured.width is not None:
        text += f" ({measured.width:.2f})"
    return f"{text}, none {measured.missing:.3f}" if measured.missing else text


def main(words: Sequence[str] | None = None) -> None:
    """Print the tables: coverage, mean width in brackets, and the share without an interval if there is any."""
    flags = options(__doc__, {"--simulations": 200, "--seed": 0, "--json": False}, words)
    tell(list(measurements(flags.simulations, flags.seed)), flags, printed)


if __name__ == "__main__":
    main()
