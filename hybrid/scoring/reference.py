"""Numbers to read a solver's against: chance, people, what a paper printed. The marks of a chart, not contestants.

for line in reference_lines(comparison):
    line.task, line.label, line.kind, line.value, line.note
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hybrid.scoring.compare import Comparison

ReferenceKind = Literal["chance", "human", "published"]


@dataclass(frozen=True)
class ReferenceLine:
    """One mark: a value of one task, or of one metric over all tasks, that no solver of the comparison reached."""

    task: str
    """The task that it is of, or the metric's name where it is over all tasks."""
    label: str
    """Who: `uniform guess`, `Human`, `GPT-4o`."""
    kind: ReferenceKind
    value: float
    """A fraction, 0..1."""
    note: str
    """Whatever limits the comparison, and where it is printed; empty for nothing."""


def reference_lines(found: Comparison) -> tuple[ReferenceLine, ...]:
    """Exact chance by task, then the comparable published rows, people first."""
    del found
    return ()
