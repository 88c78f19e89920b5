"""Comparison of parsed answers: equality, and the distance of two scanpaths.

as_json(parse("Answer: B, A", Kind.ORDER, names).value)      # "BA"; equal answers of one kind have equal JSON
path_distance(one, other)                                    # 0 for the same fixations
"""

from __future__ import annotations

import math
from dataclasses import asdict

from hybrid.answers.views import ViewPlan
from hybrid.core.types import Box, Json, Point, Scanpath

# A parsed answer of any kind.
Value = str | int | float | Scanpath | Point | Box | frozenset[int] | ViewPlan | None


def as_json(value: Value) -> Json:
    """Return an answer as JSON; None if there is none. Two answers of one kind are the same if their JSON is equal."""
    match value:
        case Scanpath():
            rows: Json = {name: list(row) for name, row in asdict(value).items()}
            return rows
        case Point():
            return [value.x, value.y]
        case Box():
            return [value.x0, value.y0, value.x1, value.y1]
        case frozenset():
            return sorted(value)
        case ViewPlan():
            return {name: as_json(getattr(value, name)) for name in ("part", "keep", "shift")}
        case _:
            return value


def path_distance(path: Scanpath, other: Scanpath) -> float:
    """Return the mean distance between the corresponding fixations of two paths, 0 to the square root of 2.

    Coordinates are fractions of width and height, clipped to the image. The shorter path stays at its last fixation.
    Durations are ignored. Raises `ValueError` for a path without a fixation.
    """
    if not (path.x and other.x):
        raise ValueError("a scanpath without fixations cannot be compared with another")
    number = max(len(path.x), len(other.x))
    pairs = zip(_places(path, number), _places(other, number), strict=True)
    return sum(math.dist(a, b) for a, b in pairs) / number


def _places(path: Scanpath, number: int) -> list[tuple[float, float]]:
    inside = [(min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0)) for x, y in zip(path.x, path.y, strict=True)]
    return inside + [inside[-1]] * (number - len(inside))
