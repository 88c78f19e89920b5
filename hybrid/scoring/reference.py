"""Reference values for charts: chance, people, and numbers printed in papers. They are not contestants.

for line in reference_lines(comparison, rows):
    line.task, line.label, line.kind, line.value, line.note
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hybrid.scoring.compare import Comparison
from hybrid.scoring.label_changes import is_concerned, printed_otherwise
from hybrid.scoring.published import Published, published
from hybrid.scoring.result import FRACTION, Result
from hybrid.scoring.sections.chance import FREQUENT, GUESS

ReferenceKind = Literal["chance", "human", "published"]

LABELS = {GUESS: "uniform guess", FREQUENT: FREQUENT}
PERCENT = 100
# Prefix of the note of a printed cell that is not a percentage.
IN_FRACTIONS = "fraction"
# Prefix of a metric that is the accuracy of a task.
OF_TASKS = "accuracy."
ORDER: Mapping[ReferenceKind, int] = {"chance": 0, "human": 1, "published": 2}


@dataclass(frozen=True)
class ReferenceLine:
    """A reference value for one task, or for one metric over all tasks, that no compared solver produced."""

    # The task, or the metric's name if the value is over all tasks.
    task: str
    # The source: `uniform guess`, `Human`, `GPT-4o`.
    label: str
    kind: ReferenceKind
    # A fraction, 0..1.
    value: float
    # Limits of the comparison, and where the value is printed; may be empty.
    note: str


def reference_lines(comparison: Comparison, chance: Sequence[Result]) -> tuple[ReferenceLine, ...]:
    """Return chance by task and by metric, from section `chance`, then matching values of people and papers.

    A printed cell matches if it has the same split, and a task or metric of the comparison that is a share. No printed
    cell matches generated questions.
    """
    shares = [row for row in chance if row.unit == FRACTION and row.quantity in LABELS and row.value is not None]
    lines = [
        ReferenceLine(row.group or row.metric, LABELS[row.quantity], "chance", row.value, row.note)
        for row in shares
        if row.value is not None and 0 <= row.value <= 1
    ]
    lines += _printed(comparison, {row.group or row.metric: row.n or 0 for row in shares if row.quantity == GUESS})
    return tuple(sorted(lines, key=lambda line: ORDER[line.kind]))


def _printed(comparison: Comparison, sizes: Mapping[str, int]) -> list[ReferenceLine]:
    """Return the matching printed cells; equal values of one task are merged, with all their tables named."""
    first = comparison.solvers[0]
    if first.data.generated:
        return []
    by_value: dict[tuple[str, str, float], tuple[Published, list[str]]] = {}
    other, tasks = printed_otherwise(comparison), tuple(comparison.benchmark.card.tasks)
    for cell in published(first.benchmark):
        if is_concerned(cell, other, tasks):
            continue
        # If the metric is the accuracy of a task, use the task instead.
        task = next((name for name in (cell.metric.removeprefix(OF_TASKS), cell.metric) if name in sizes), None)
        value = cell.value if cell.note.startswith(IN_FRACTIONS) else cell.value / PERCENT
        if task is None or cell.split != first.data.split or not 0 <= value <= 1:
            continue
        _, sources = by_value.setdefault((task, cell.who, value), (cell, []))
        sources.append(cell.source)
    lines = []
    for (task, who, value), (cell, sources) in by_value.items():
        size = f"over {cell.n} questions, here {sizes[task]}" if cell.n and cell.n != str(sizes[task]) else ""
        limits = cell.note.removeprefix(IN_FRACTIONS).lstrip("; ")
        note = "; ".join(filter(None, (", ".join(dict.fromkeys(sources)), size, limits)))
        lines.append(ReferenceLine(task, who, "human" if cell.kind == "human" else "published", value, note))
    return lines
