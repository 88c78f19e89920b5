"""Time our MultiMatch next to the package `multimatch-gaze` on the same random pairs, and how far they differ.

Ours is `hybrid.benchmarks.hvsbench.multimatch`.

    python -m bench.multimatch                     2,000 pairs for the package, 60,000 for ours
    python -m bench.multimatch --pairs 10000       the package on more pairs

60,000 pairs are 6,000 questions with ten human scanpaths each. Times are wall clock, the best of three for ours.
"""

from __future__ import annotations

import argparse
import time
import warnings

import multimatch_gaze
import numpy as np

from hybrid.benchmarks.hvsbench.multimatch import Floats, multimatch
from hybrid.samples.seeds import generator

SCREEN = (512, 320)
FIXATIONS = 6
SCALE_PAIRS = 60_000


def scanpaths(rng: np.random.Generator, number: int, decimals: int | None) -> list[Floats]:
    """Random paths on the screen; with `decimals`, coordinates are rounded as fractions, as MLLMs write them."""
    table = rng.random((number, FIXATIONS, 3))
    if decimals is not None:
        table = table.round(decimals)
    table[..., 2] = table[..., 2] * 0.5 + 0.05
    return list(table * [*SCREEN, 1])


def by_package(first: list[Floats], second: list[Floats]) -> Floats:
    """The package's five similarities of each pair."""
    columns = [("start_x", "f8"), ("start_y", "f8"), ("duration", "f8")]
    records = [[np.array([tuple(row) for row in path], columns) for path in side] for side in (first, second)]
    return np.array([multimatch_gaze.docomparison(a, b, screensize=SCREEN) for a, b in zip(*records, strict=True)])


def best_of_three(first: list[Floats], second: list[Floats]) -> float:
    """Seconds of our fastest of three runs."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        multimatch(first, second, SCREEN)
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    """Print one line for each way of making the coordinates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2000, help="pairs that the package compares")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    for title, decimals in (("continuous", None), ("two decimals", 2), ("one decimal", 1)):
        rng = generator("evaluate", options.seed)
        first, second = (scanpaths(rng, SCALE_PAIRS, decimals) for _ in range(2))
        few = first[: options.pairs], second[: options.pairs]
        started = time.perf_counter()
        expected = by_package(*few)
        package = time.perf_counter() - started
        largest = float(np.abs(multimatch(*few, SCREEN) - expected).max())
        same, many = best_of_three(*few), best_of_three(first, second)
        each = [1e6 * seconds / options.pairs for seconds in (package, same)]
        print(
            f"{title:13} package {each[0]:6.1f} us/pair   ours {each[1]:5.1f}   ratio {each[0] / each[1]:5.1f}   "
            f"largest difference {largest:.1e}   ours on {SCALE_PAIRS:,} pairs {many:.2f} s"
        )


if __name__ == "__main__":
    main()
