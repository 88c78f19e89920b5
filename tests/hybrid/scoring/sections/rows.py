"""Rows of a section, selected by their fields."""

from collections.abc import Sequence

from hybrid.scoring.result import Result


def by_quantity(rows: Sequence[Result], group: str = "", **fields: str) -> dict[str, Result]:
    """Return the rows of one group that have the given fields, by quantity."""
    return {
        row.quantity: row
        for row in rows
        if row.group == group and all(getattr(row, name) == value for name, value in fields.items())
    }
