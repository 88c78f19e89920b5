"""Printed cells as in the paper: one table for each source table, split into blocks that fit a terminal.

hybrid benchmarks show blink
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hybrid.core.errors import UsageError
from hybrid.display.tables import NONE, Column, Table
from hybrid.scoring.compare import Comparison
from hybrid.scoring.label_changes import is_concerned, printed_otherwise
from hybrid.scoring.published import Published, published

# Maximum number of columns with numbers in one block.
WIDEST = 8

# Metric and split of a column.
Head = tuple[str, str]


def cells_of(comparison: Comparison) -> list[Published]:
    """Return the printed cells of the measured metrics and tasks, without tasks whose labels were corrected.

    Returns none if questions were generated.
    """
    if any(solver.data.generated for solver in comparison.solvers):
        return []
    metrics = {metric.name for solver in comparison.solvers for metric in solver.metrics}
    measured = {name for name in metrics if comparison.is_shown(name)}
    measured |= {score.task for solver in comparison.solvers for score in solver.scores}
    splits = {solver.data.split for solver in comparison.solvers}
    cells = published(comparison.benchmark.card.name)
    other, tasks = printed_otherwise(comparison), tuple(comparison.benchmark.card.tasks)
    comparable = (cell for cell in cells if cell.metric in measured and cell.split in splits)
    return [cell for cell in comparable if not is_concerned(cell, other, tasks)]


def published_below(comparison: Comparison) -> tuple[Table, ...]:
    """Return the cells of `cells_of` as tables, with notes on what limits comparison.

    Raises:
        UsageError: the questions were generated, or no number is printed for these metrics.
    """
    if any(solver.data.generated for solver in comparison.solvers):
        raise UsageError("--published: the questions were generated, so no paper has a number for them")
    cells = cells_of(comparison)
    notes = tuple(
        f"{correction.task} and means over all tasks are left out: papers used the labels before "
        f"{correction.on}, and these labels may differ (--other-labels compare shows them)"
        for correction in printed_otherwise(comparison)
    )
    if not cells:
        name = comparison.benchmark.card.name
        raise UsageError("; ".join((f"--published: no paper has a number for these metrics of {name}", *notes)))
    note = (
        "As printed: percent, unless a note says fraction. Notes name subsets, checkpoints and prompts that differ "
        "from yours."
    )
    first, *others = published_tables(cells)
    return (replace(first, notes=(note, *notes, *first.notes)), *others)


def published_tables(cells: Sequence[Published]) -> tuple[Table, ...]:
    """Return tables with a row for each model, specialist, human or chance, in the order of the file.

    Two rows of the same name in one table stay separate. Limits of comparison become numbered notes below the
    table; the number stands beside the name if the note holds for the whole row, else beside the cell.
    """
    tables: list[Table] = []
    for source in dict.fromkeys(cell.source for cell in cells):
        inside = [cell for cell in cells if cell.source == source]
        heads = list(dict.fromkeys((cell.metric, cell.split) for cell in inside))
        blocks = [heads[start : start + WIDEST] for start in range(0, len(heads), WIDEST)]
        for number, block in enumerate(blocks, 1):
            part = f", part {number} of {len(blocks)}" if len(blocks) > 1 else ""
            tables.append(_block(f"published, {source}{part}", inside, block))
    return tuple(tables)


def _block(title: str, cells: Sequence[Published], heads: Sequence[Head]) -> Table:
    # Group the cells by row; a second cell in the same column starts another row.
    by_who: list[tuple[str, dict[Head, Published]]] = []
    for cell in cells:
        head = (cell.metric, cell.split)
        free = next((row for who, row in by_who if who == cell.who and head not in row), None)
        if free is None:
            by_who.append((cell.who, {head: cell}))
        else:
            free[head] = cell
    rows = [row for _, row in by_who if any(head in row for head in heads)]
    splits = {split for _, split in heads}
    names = [metric if len(splits) == 1 else f"{metric} ({split})" for metric, split in heads]
    columns = (Column("who", "left"), *map(Column, names))
    decimals = max(len(f"{cell.value:.6f}".rstrip("0").partition(".")[2]) for cell in cells)
    notes: dict[str, int] = {}
    # The number of questions of each column, if all cells of the column state the same number.
    question_counts = [
        {row[head].n for row in rows if head in row and row[head].n and row[head].kind != "human"} for head in heads
    ]
    lines: list[tuple[str, ...]] = [
        ("questions", *(counts.pop() if len(counts) == 1 else NONE for counts in question_counts))
    ]
    for row in rows:
        row_cells = [row.get(head) for head in heads]
        present = [cell for cell in row_cells if cell is not None]
        shared = present[0].note if len({cell.note for cell in row.values()}) == 1 else ""
        name = f"{present[0].who}{_mark(shared, notes)}"
        marks = ["" if cell is None or shared else _mark(cell.note, notes) for cell in row_cells]
        values = [NONE if cell is None else f"{cell.value:.{decimals}f}" for cell in row_cells]
        lines.append((name, *(value + mark for value, mark in zip(values, marks, strict=True))))
    split = f" ({splits.pop()})" if len(splits) == 1 else ""
    return Table(title + split, columns, tuple(lines), tuple(f"[{place}] {note}" for note, place in notes.items()))


def _mark(note: str, notes: dict[str, int]) -> str:
    """Return the mark of a note, numbered in order of first appearance."""
    return f" [{notes.setdefault(note, len(notes) + 1)}]" if note else ""
