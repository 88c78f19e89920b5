"""Compare this project's MultiMatch with the package `multimatch-gaze`: CPU time and differences of values.

Ours is `hybrid.benchmarks.hvsbench.multimatch`.

    python -m bench.multimatch                     1,083 questions with ten human scanpaths each
    python -m bench.multimatch --pairs 2000        the package on more pairs
    python -m bench.multimatch --json FILE         the numbers as JSON too

The pairs are those that HVSBench's scanpath questions need at its size: each prediction with the human paths of its
image, each human path with those of the others, and a path of another image with them: 119,130 pairs of 11,913 paths.
Our code compares all of them in one call. The package compares some of the same pairs, drawn again for each repeat, and
the two run in turn: a row has the medians of the repeats, and the median and minimum of their ratios. Times are the
process's CPU time, user and system; making the package's record arrays is not included.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import multimatch_gaze
import numpy as np

from bench._frame import options, table, write_json
from hybrid.benchmarks.hvsbench.multimatch import Floats, Ints, multimatch
from hybrid.samples.seeds import generator

SCREEN: Final = (512, 320)
# Number of fixations of a prediction, as in the questions; longer ones are cut.
PREDICTED: Final = 6
SUBJECTS: Final = 10
# Minimum and maximum number of fixations of a human path.
LENGTHS: Final[Mapping[str, tuple[int, int]]] = {"6": (6, 6), "3 to 12": (3, 12)}
# Rounding of coordinates, as fractions of the screen: MLLMs write two decimals. Rounding causes ties.
DECIMALS: Final[Mapping[str, int | None]] = {"continuous": None, "two decimals": 2, "one decimal": 1}


@dataclass(frozen=True)
class PathRow:
    """Median CPU microseconds per pair for each program; median and minimum of their ratios; largest difference."""

    coordinates: str
    human_fixations: str
    pairs: int
    package_pairs: int
    package_us: float
    ours_us: float
    ratio: float
    lowest_ratio: float
    difference: str


def scanpaths(rng: np.random.Generator, number: int, lengths: tuple[int, int], decimals: int | None) -> list[Floats]:
    """Return random paths on the screen."""
    paths = []
    for count in rng.integers(lengths[0], lengths[1] + 1, number):
        points = rng.random((count, 3))
        if decimals is not None:
            points = points.round(decimals)
        points[:, 2] = points[:, 2] * 0.5 + 0.05
        paths.append(points * [*SCREEN, 1])
    return paths


def pairs_of(questions: int) -> Ints:
    """Return the pairs of paths to compare: first the predictions, then the human paths, question by question."""
    number = np.arange(questions)
    humans = questions + number[:, None] * SUBJECTS + np.arange(SUBJECTS)
    first_path, right = np.nonzero(~np.eye(SUBJECTS, dtype=bool))
    sides = (
        (np.repeat(number, SUBJECTS), humans.ravel()),
        (humans[:, first_path].ravel(), humans[:, right].ravel()),
        (np.repeat(np.roll(humans[:, 0], 1), SUBJECTS), humans.ravel()),
    )
    return np.concatenate([np.stack(side, axis=1) for side in sides])


def by_package(paths: list[Floats], pairs: Ints) -> tuple[Floats, float]:
    """Return the package's five similarities for each pair, and their CPU seconds."""
    columns = [("start_x", "f8"), ("start_y", "f8"), ("duration", "f8")]
    records = {place: np.array([tuple(row) for row in paths[place]], columns) for place in np.unique(pairs).tolist()}
    sides = [(records[a], records[b]) for a, b in pairs.tolist()]
    return _timed(lambda: np.array([multimatch_gaze.docomparison(a, b, screensize=SCREEN) for a, b in sides]))


def _timed(work: Callable[[], Floats]) -> tuple[Floats, float]:
    start = time.process_time()
    similarities = work()
    return similarities, time.process_time() - start


def measure(title: str, lengths: str, other_options: argparse.Namespace) -> PathRow:
    """Measure both programs on the same pairs, in turn."""
    rng = generator("evaluate", other_options.seed)
    paths = scanpaths(rng, other_options.questions, (PREDICTED, PREDICTED), DECIMALS[title])
    paths += scanpaths(rng, other_options.questions * SUBJECTS, LENGTHS[lengths], DECIMALS[title])
    pairs = pairs_of(other_options.questions)
    many = min(other_options.pairs, len(pairs))
    package, results, difference = [], [], 0.0
    multimatch(paths, pairs[:many], SCREEN)
    for _ in range(other_options.repeats):
        few = rng.choice(len(pairs), many, replace=False)
        expected, spent = by_package(paths, pairs[few])
        package.append(1e6 * spent / many)
        result, spent = _timed(lambda: multimatch(paths, pairs, SCREEN))
        results.append(1e6 * spent / len(pairs))
        difference = max(difference, float(np.abs(result[few] - expected).max()))
    ratios = [reference / our for reference, our in zip(package, results, strict=True)]
    medians = statistics.median(package), statistics.median(results), statistics.median(ratios)
    return PathRow(title, lengths, len(pairs), many, *medians, min(ratios), f"{difference:.1e}")


def main() -> None:
    """Print one line for each way of generating paths."""
    flags = {"--questions": 1083, "--pairs": 300, "--repeats": 5, "--seed": 0, "--json": Path}
    arguments = options(__doc__, flags)
    warnings.simplefilter("ignore", RuntimeWarning)
    rows = [measure(title, lengths, arguments) for title in DECIMALS for lengths in LENGTHS]
    print(table(rows))
    write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
