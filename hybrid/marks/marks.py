"""Drawn marks of an image as values: rings and boxes with their letters; scaling them and painting over them."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace

import numpy as np

from hybrid.core.types import Box
from hybrid.tool import Pixels


@dataclass(frozen=True, slots=True)
class PointMark:
    """A drawn ring. Its centre and radii are in pixels, and its scores and confidence in 0..1.

    `label` is its letter; None if it has none.
    """

    label: str | None
    x: float
    y: float
    radius_px: float
    inner_radius_px: float
    color: str
    label_box_px: Box | None
    ring_score: float
    letter_score: float
    confidence: float


@dataclass(frozen=True, slots=True)
class BoxMark:
    """A drawn box, in pixels with x1 and y1 exclusive. Its scores and confidence are in 0..1.

    `label` is its letter; None if it has none.
    """

    label: str | None
    color: str
    box_px: Box
    label_box_px: Box | None
    edge_score: float
    letter_score: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Marks:
    """All marks found in one image, by label."""

    points: tuple[PointMark, ...] = ()
    boxes: tuple[BoxMark, ...] = ()


def remove_marks(pixels: Pixels, marks: Marks, out_px: float = 2.0, in_px: float = 1.0, kept_px: float = 1.0) -> Pixels:
    """Paint over rings, letters and outlines on a copy of an image, from their surroundings (Telea 2004).

    The inside of a ring is kept, because it is the point in question, except within `in_px` of the line; at least
    `kept_px` of its centre are kept. Outside, `out_px` are painted over as well: JPEG stores chroma at half the
    resolution, so colour bleeds two pixels beyond the line.
    """
    import cv2

    height, width = pixels.shape[:2]
    mask = np.zeros((height, width), np.uint8)
    for point in marks.points:
        outer, inner = point.radius_px + out_px, max(kept_px, point.inner_radius_px - in_px)
        area = _window(point.y, outer, height), _window(point.x, outer, width)
        rows, columns = np.ogrid[area]
        distance = np.hypot(rows - point.y, columns - point.x)
        mask[area][(distance <= outer) & (distance >= inner)] = 255
    for outline in marks.boxes:
        x0, y0, x1, y1 = map(round, astuple(outline.box_px))
        cv2.rectangle(mask, (x0, y0), (x1 - 1, y1 - 1), (255,), 9)
    named_boxes = [point.label_box_px for point in marks.points] + [box.label_box_px for box in marks.boxes]
    for label_box in named_boxes:
        if label_box is not None:
            x0, y0 = max(0, round(label_box.x0) - 1), max(0, round(label_box.y0) - 1)
            mask[y0 : max(0, round(label_box.y1) + 1), x0 : max(0, round(label_box.x1) + 1)] = 255
    if not mask.any() or mask.all():
        return pixels.copy()
    return np.asarray(cv2.inpaint(pixels, mask, 3, cv2.INPAINT_TELEA), np.uint8)


def _window(centre: float, reach: float, length: int) -> slice:
    """Return the pixels of an axis of `length` pixels that are at most `reach` from a centre."""
    first, last = (min(max(place, 0.0), length) for place in (centre - reach, centre + reach))
    return slice(math.floor(first), min(length, math.floor(last) + 1))


def scale_marks(marks: Marks, x: float, y: float) -> Marks:
    """Convert marks of a shrunk copy to pixels of the original, which is `x` times as wide and `y` times as high."""
    mean = (x + y) / 2

    def grown(box: Box) -> Box:
        return Box(box.x0 * x, box.y0 * y, box.x1 * x, box.y1 * y)

    def letter(mark: PointMark | BoxMark) -> Box | None:
        return None if mark.label_box_px is None else grown(mark.label_box_px)

    return Marks(
        tuple(
            replace(
                mark,
                x=(mark.x + 0.5) * x - 0.5,
                y=(mark.y + 0.5) * y - 0.5,
                radius_px=mark.radius_px * mean,
                inner_radius_px=mark.inner_radius_px * mean,
                label_box_px=letter(mark),
            )
            for mark in marks.points
        ),
        tuple(replace(mark, box_px=grown(mark.box_px), label_box_px=letter(mark)) for mark in marks.boxes),
    )
