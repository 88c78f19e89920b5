"""Areas of boxes and of their intersections: `overlap(Box(0, 0, 2, 2), Box(1, 0, 3, 2))` is 1/3."""

from __future__ import annotations

from hybrid.core.types import Box, Json


def overlap(first: Box, second: Box) -> float:
    """Return the intersection over union of two boxes, 0..1."""
    shared = shared_area(first, second)
    return shared / (area(first) + area(second) - shared) if shared else 0.0


def shared_area(first: Box, second: Box) -> float:
    """Return the area of the intersection in square pixels."""
    width = min(first.x1, second.x1) - max(first.x0, second.x0)
    height = min(first.y1, second.y1) - max(first.y0, second.y0)
    return max(0.0, width) * max(0.0, height)


def area(box: Box) -> float:
    """Return the area of a box in square pixels."""
    return (box.x1 - box.x0) * (box.y1 - box.y0)


def corners(box: Box | None) -> list[Json] | None:
    """Convert a box to its form in `data`: [x0, y0, x1, y1], or null if there is no box."""
    return None if box is None else [box.x0, box.y0, box.x1, box.y1]
