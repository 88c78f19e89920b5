"""Rows of a section, found by what they are of."""

from collections.abc import Sequence

from hybrid.scoring.result import Result


def by_quantity(rows: Sequence[Result], group: str = "", **fields: str) -> dict[str, Result]:
    """The rows of one group by their quantity; only those whose fields are as named."""
    return {
        row.quantity: row
        for row in rows
        if row.group == group and all(getattr(row, name) == value for name, value in fields.items())
    }
