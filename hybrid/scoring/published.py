"""Numbers that papers printed, as data: `hybrid/benchmarks/NAME/published.csv`, shown by `hybrid benchmarks show NAME`.

A row is one cell of one printed table. It says which table, on how many questions of which split it was measured, and
what keeps it from being compared with our own runs.
"""

from __future__ import annotations

import csv
from dataclasses import fields
from pathlib import Path

from hybrid.benchmarks.card import Published
from hybrid.errors import DataError
from hybrid.registry import load

__all__ = ["Published", "published"]

FOLDER = Path(__file__).parents[1] / "benchmarks"


def published(benchmark: str) -> tuple[Published, ...]:
    """The printed cells of a benchmark, in the order of its file; without a file those of its card.

    Raises:
        DataError: a row that is not of this form, naming file and line.
    """
    path = FOLDER / benchmark / "published.csv"
    if not path.exists():
        return tuple(load("hybrid.benchmarks", benchmark).card.published)
    expected = [field.name for field in fields(Published)]
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != expected:
            raise DataError(f"{path}, line 1: expected the columns {', '.join(expected)}")
        return tuple(_cell(row, f"{path}, line {number}") for number, row in enumerate(reader, 2))


def _cell(row: dict[str, str], where: str) -> Published:
    try:
        return Published(**{**row, "value": float(row["value"])})  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: {error}") from error
