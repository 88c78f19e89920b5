"""What a section of a comparison says, in three forms: for a person, for a program, for a spreadsheet.

`compare_sections.py` lists the sections; each is a file next to this one that exports `section`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hybrid.benchmarks.base import Abstain
from hybrid.tables import Table
from hybrid.types import Json


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
