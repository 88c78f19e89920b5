"""Numbers that papers printed, as data: `hybrid/benchmarks/NAME/published.csv`, shown by `hybrid benchmarks show NAME`.

A row is one cell of one printed table. It says which table, on how many questions of which split it was measured, and
what keeps it from being compared with our own runs.
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
    # The metric or task of the cell, in the words of the benchmark's own metrics where they exist.
    metric: str
    value: float
    # The table, such as "Table 4".
    source: str
    split: str
    # Number of questions behind the cell; empty where the paper does not say.
    n: str
    # Subset, checkpoint and whatever limits comparison; empty for nothing.
    note: str


def published(benchmark: str) -> tuple[Published, ...]:
    """The printed cells of a benchmark, in the order of its file; none where it has no file.

    Raises:
        DataError: a row that is not of this form, naming file and line.
    """
    if recipe_of("hybrid.benchmarks", benchmark) is not None:
        # A row of a recipe, whose values are fractions, in percent.
        return tuple(
            Published(row.who, row.kind, row.metric, round(100 * row.value, 4), row.source, row.split, row.n, row.note)
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
