"""Numbers that papers printed, as data: `hybrid/benchmarks/NAME/published.csv`, shown by `hybrid benchmarks show NAME`.

Each row is one cell of a printed table. It names the table, the split and number of questions, and what limits a
comparison with runs of this project.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from pathlib import Path

from hybrid.core.errors import DataError
from hybrid.plugins.registry import load, recipe_of

FOLDER = Path(__file__).parents[1] / "benchmarks"


@dataclass(frozen=True)
class Published:
    """One printed cell. `value` is as printed, in the unit of the table (percent unless `note` says otherwise)."""

    # A model, a specialist, `human` or `chance`.
    who: str
    # model | specialist | human | chance
    kind: str
    # The metric or task of the cell, by the name that it has in the benchmark's metrics if it is one of them.
    metric: str
    value: float
    # The table, for example "Table 4".
    source: str
    split: str
    # Number of questions that the cell covers; empty if the paper does not say.
    n: str
    # Subset, checkpoint and other limits of a comparison; may be empty.
    note: str


def published(benchmark: str) -> tuple[Published, ...]:
    """Return the printed cells of a benchmark, in the order of its file; empty without a file.

    Raises:
        DataError: an invalid row; the message names file and line.
    """
    if recipe_of("hybrid.benchmarks", benchmark) is not None:
        # Rows of a recipe hold fractions; convert to percent.
        return tuple(
            Published(
                row.who,
                row.kind,
                metric=row.metric,
                value=round(100 * row.value, 4),
                source=row.source,
                split=row.split,
                n=row.n,
                note=row.note,
            )
            for row in load("hybrid.benchmarks", benchmark).recipe.published
        )
    path = FOLDER / benchmark / "published.csv"
    if not path.exists():
        return ()
    expected = [field.name for field in fields(Published)]
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != expected:
            raise DataError(f"{path}, line 1: expected the columns {', '.join(expected)}")
        cells = []
        for number, row in enumerate(reader, 2):
            try:
                cells.append(Published(**{**row, "value": float(row["value"])}))  # type: ignore[arg-type]
            except (TypeError, ValueError) as error:
                raise DataError(f"{path}, line {number}: {error}") from error
    return tuple(cells)
