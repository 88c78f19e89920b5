"""The frame of a simulation: how often intervals hold the truth and tests reject, tables in Markdown, JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hybrid.stats import Interval

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Held:
    """Share of the simulations whose interval held the truth, mean width, share without an interval.

    No interval counts as not holding and in no width, which is None where there was none at all.
    """

    coverage: float
    width: float | None
    missing: float


def summarise(ends: Sequence[Interval | None], truth: float, slack: float = 1e-12) -> Held:
    """What the intervals of all simulations come to."""
    values = [end for end in ends if end is not None]
    inside = sum(result.low - slack <= truth <= result.high + slack for result in values)
    width = float(np.mean([output.high - output.low for output in values])) if values else None
    return Held(inside / len(ends), width, 1 - len(values) / len(ends))


def rejected(p_values: Sequence[float | None]) -> float:
    """The share of simulations with p < 0.05; without a p value nothing is rejected."""
    return sum(p is not None and p < 1 - LEVEL for p in p_values) / len(p_values)


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *(f"| {' | '.join(row)} |" for row in rows)]


def tell(result: Sequence[Any], options: argparse.Namespace, lines: Callable[[Sequence[Any]], Sequence[str]]) -> None:
    """Print measurements (dataclasses) as JSON with `--json`, else what they were made with and their lines."""
    if options.json:
        print(json.dumps(result, default=asdict, indent=1))
    else:
        print(f"{options.simulations:,} simulations for each entry, seed {options.seed}, nominal {LEVEL:.0%}")
        print("\n".join(lines(result)))
