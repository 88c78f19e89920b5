"""What a section of a comparison says, in three forms: for a person, for a program, for a spreadsheet.

`compare_sections.py` lists the sections; each is a file next to this one that exports `section`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hybrid.benchmarks.base import Abstain
from hybrid.tables import Table
from hybrid.types import Json, Metric

FRACTION, OWN_UNIT = "fraction", "the metric's own"
"""The unit of a share, and that of a metric that is none: pixels, degrees, counts."""


@dataclass(frozen=True)
class Number:
    """One number of a comparison: a line of `hybrid compare --csv`.

    `quantity` names it (`difference`, `kappa`, `over-trust`), in `unit` (`fraction`, `questions`, `seconds`, ...);
    `a` and `b` are the solvers that it is of, `group` the task or group, empty for all. `n` counts what it is over.
    `none` is what a question without a readable answer counts in it; empty where that makes no difference.
    """

    section: str
    quantity: str
    unit: str
    value: float | None
    a: str = ""
    b: str = ""
    metric: str = ""
    group: str = ""
    n: int | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    none: Abstain | Literal[""] = ""


@dataclass(frozen=True)
class Told:
    """What one section says of a comparison."""

    name: str
    """Its key in `hybrid compare --json`; the stem of its file."""
    title: str
    """The question that it answers, as a heading: `Does the gain come from what the tools say?`"""
    tables: tuple[Table, ...]
    data: tuple[dict[str, Json], ...]
    """A record for each thing that is told: every number unrounded, and the ids behind every count."""
    numbers: tuple[Number, ...] = ()
    fault: str | None = None
    """Why nothing could be told: a damaged trace, a file that cannot be read."""


def unit_of(metrics: Iterable[Metric]) -> str:
    """`FRACTION` where the metrics are shares, every cluster worth 0 to 1 of 1; else `OWN_UNIT`."""
    known = [metric for metric in metrics if metric.cells]
    shares = all(metric.share and metric.combine != "root_of_ratio" for metric in known)
    cells = (cell for metric in known for cell in metric.cells)
    inside = all(-1e-9 <= cell.numerator <= cell.denominator + 1e-9 for cell in cells)
    return FRACTION if known and shares and inside else OWN_UNIT
