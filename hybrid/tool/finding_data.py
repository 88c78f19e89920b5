"""Reads rows, boxes, numbers and indices from the data of tool outputs, which are JSON of unknown content."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hybrid.core.types import Box, Finding, Json


def rows_of(finding: Finding, key: str) -> list[Mapping[str, Json]]:
    """Return the list of objects under a key of an output's data; empty if there is none."""
    value = finding.data.get(key)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [row for row in value if isinstance(row, Mapping)]


def box_of(row: Mapping[str, Json]) -> Box | None:
    """Return the box under `box_px` of an object in an output's data, or None if it does not contain four numbers."""
    value = row.get("box_px")
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 4:
        return None
    sides = [float(side) for side in value if isinstance(side, int | float)]
    return Box(*sides) if len(sides) == 4 else None


def number_of(row: Mapping[str, Json], key: str) -> float | None:
    """Return the number under a key of an object in an output's data, or None; True and False do not count.

    The result is also None for a whole number that is too large for floating point.
    """
    value = row.get(key)
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except OverflowError:
        return None


def whole_number(finding: Finding, key: str, below: float = math.inf) -> int | None:
    """Return the whole number under a key of an output's data if it is at least 0 and below a bound, else None."""
    value = finding.data.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below else None
