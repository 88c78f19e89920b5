"""Shared parts of simulations: interval coverage and rejection rates, Markdown tables, JSON."""

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
    """Share of simulations whose interval contained the truth, mean width, and share without an interval.

    A missing interval counts as not containing the truth and is left out of the width, which is None if all are
    missing.
    """

    coverage: float
    width: float | None
    missing: float


def summarise(ends: Sequence[Interval | None], truth: float, slack: float = 1e-12) -> Held:
    """Summarise the intervals of all simulations."""
    values = [end for end in ends if end is not None]
    inside = sum(result.low - slack <= truth <= result.high + slack for result in values)
    width = float(np.mean([output.high - output.low for output in values])) if values else None
    return Held(inside / len(ends), width, 1 - len(values) / len(ends))


def rejected(p_values: Sequence[float | None]) -> float:
    """Return the share of simulations with p < 0.05; a missing p value counts as not rejected."""
    return sum(p is not None and p < 1 - LEVEL for p in p_values) / len(p_values)


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *(f"| {' | '.join(row)} |" for row in rows)]


def tell(result: Sequence[Any], options: argparse.Namespace, lines: Callable[[Sequence[Any]], Sequence[str]]) -> None:
    """Print measurements (dataclasses) as JSON with `--json`, else their settings and table lines."""
    if options.json:
        print(json.dumps(result, default=asdict, indent=1))
    else:
        print(f"{options.simulations:,} simulations for each entry, seed {options.seed}, nominal {LEVEL:.0%}")
        print("\n".join(lines(result)))
