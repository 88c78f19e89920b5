"""Find drawn box outlines in red or green: four thin straight lines of one colour that meet.

The masks keep what is thin or of the pure colour. Of their rows and columns with the longest runs, every two and two
are tried; a box is where all four sides are covered and the corners are painted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from hybrid.types import Box

BoxColor = Literal["red", "green"]
Mask = npt.NDArray[np.uint8]

LEAST_SIDE_PX = 20
THICKEST_PX = 8
LEAST_EXCESS = 26
"""Grey levels by which a line's channel exceeds the other two, more than around it; JPEG takes half from thin lines."""
LEAST_COVERAGE = 0.7
LEAST_CORNER = 0.55
"""Part of the 4 x 4 px at a corner that is painted; a large ring has straight runs as well, but no corners."""
MOST_LINES = 20


@dataclass(frozen=True, slots=True)
class Outline:
    """A drawn box: bounds in pixels (x1, y1 exclusive), colour, score 0..1 (cover of the sides minus that beside)."""

    box: Box
    color: BoxColor
    score: float


def find_outlines(pixels: Pixels) -> list[Outline]:
    """Every drawn box of an image (H, W, 3), best first; boxes that share most of their outline are given once."""
    found = [outline for color in ("red", "green") for outline in _of_color(pixels, color)]
    kept: list[Outline] = []
    for outline in sorted(found, key=lambda outline: -outline.score):
        if not any(outline.color == k.color and _same(outline.box, k.box) for k in kept):
            kept.append(outline)
    return kept


def _of_color(pixels: Pixels, color: Literal["red", "green"]) -> list[Outline]:
    channel = 0 if color == "red" else 1
    others = cv2.max(pixels[..., 1 - channel], pixels[..., 2])
    excess = cv2.subtract(pixels[..., channel], others)
    # What remains after taking away everything thicker than a line: grass and red walls go, drawn lines stay.
    thick = cv2.morphologyEx(excess, cv2.MORPH_OPEN, np.ones((THICKEST_PX + 3, THICKEST_PX + 3), np.uint8))
    thin = cv2.subtract(excess, thick) >= LEAST_EXCESS
    # Among colourful noise only the paint's own colour tells a line; in JPEG only the excess is left of it.
    pure = (pixels[..., channel] >= 165) & (others <= 110)
    return [outline for mask in (thin, pure) for outline in _of_mask(mask.astype(np.uint8), color)]


def _of_mask(mask: Mask, color: BoxColor) -> list[Outline]:
    rows, columns = _lines(mask), _lines(np.ascontiguousarray(mask.T))
    if len(rows) < 2 or len(columns) < 2:
        return []
    cover = mask.astype(np.int32)
    judged = (_judge(cover, box, color) for box in _rectangles(cover, rows, columns))
    return [outline for outline in judged if outline is not None]


def _lines(mask: Mask) -> list[int]:
    """Rows that hold the longest runs of the mask, at least 4 px apart, in order; at most `MOST_LINES`."""
    # JPEG and other marks leave gaps in a line.
    closed = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((1, 5), np.uint8))
    runs = cv2.morphologyEx(closed, cv2.MORPH_OPEN, np.ones((1, LEAST_SIDE_PX), np.uint8))
    length = np.asarray(runs, np.int32).sum(axis=1)
    kept: list[int] = []
    for row in np.argsort(-length, kind="stable")[: 8 * MOST_LINES]:
        if length[row] >= LEAST_SIDE_PX and all(abs(int(row) - other) >= 4 for other in kept):
            kept.append(int(row))
    return sorted(kept[:MOST_LINES])


def _rectangles(cover: npt.NDArray[np.int32], rows: list[int], columns: list[int]) -> list[Box]:
    """Rectangles of those lines whose four sides are all covered, best first, at most eight."""
    across, down = _cover_between(cover[rows], columns), _cover_between(cover[:, columns].T, rows)
    # Axes: upper row, lower row, left column, right column.
    sides = (
        across[:, None, :, :],
        across[None, :, :, :],
        down.transpose(1, 2, 0)[:, :, :, None],
        down.transpose(1, 2, 0)[:, :, None, :],
    )
    least = _together(sides)
    best = np.argsort(-least, axis=None, kind="stable")[:8]
    found = [np.unravel_index(index, least.shape) for index in best if least.flat[index] >= LEAST_COVERAGE]
    return [_fitted(cover, rows[top], rows[low], columns[left], columns[right]) for top, low, left, right in found]


def _together(sides: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Cover of four sides as one number: half the mean, half the least, as another box may hide a part of one."""
    least, total = sides[0], sides[0]
    for side in sides[1:]:
        least, total = np.minimum(least, side), total + side
    return np.asarray((least + total / len(sides)) / 2)


def _cover_between(lines: npt.NDArray[np.int32], stops: list[int]) -> npt.NDArray[np.float64]:
    """Painted part of each line between each two stops, (lines, stops, stops); 0 where they are too close."""
    total = np.concatenate([np.zeros((len(lines), 1), np.int32), lines.cumsum(axis=1)], axis=1)
    start, end = np.array(stops), np.array(stops) + 1
    length = end[None, :] - start[:, None]
    painted = total[:, end][:, None, :] - total[:, start][:, :, None]
    return np.asarray(np.where(length >= LEAST_SIDE_PX, painted / np.maximum(length, 1), 0.0))


def _fitted(cover: npt.NDArray[np.int32], top: int, low: int, left: int, right: int) -> Box:
    """The box round four lines: each is followed outwards while most of it is painted."""

    def outermost(lines: npt.NDArray[np.int32], at: int, step: int) -> int:
        for _ in range(THICKEST_PX // 2):
            if 0 <= at + step < len(lines) and lines[at + step].mean() >= 0.6:
                at += step
        return at

    part = cover[:, left : right + 1]
    y0, y1 = outermost(part, top, -1), outermost(part, low, 1)
    part = cover[top : low + 1].T
    return Box(outermost(part, left, -1), y0, outermost(part, right, 1) + 1, y1 + 1)


def _judge(cover: npt.NDArray[np.int32], box: Box, color: BoxColor) -> Outline | None:
    x0, y0, x1, y1 = (int(v) for v in (box.x0, box.y0, box.x1, box.y1))
    part = cover[y0:y1, x0:x1]
    sides = (part[:4], part[-4:], part[:, :4].T, part[:, -4:].T)
    # One straight line must cover a side: the arc of a thick ring is covered by several together.
    covered = float(_together([side.mean(axis=1).max() for side in sides]))
    corners = (part[:4, :4], part[:4, -4:], part[-4:, :4], part[-4:, -4:])
    if sum(float(corner.mean()) >= LEAST_CORNER for corner in corners) < 3:
        return None
    beside = max(_painted(cover, box, -THICKEST_PX - 2), _painted(cover, box, 3))
    score = covered * (1 - beside)
    return Outline(box, color, score) if covered >= LEAST_COVERAGE and score >= 0.5 else None


def _painted(cover: npt.NDArray[np.int32], box: Box, grow: int) -> float:
    """Painted part of the outline of a box grown by some pixels on each side: high inside a ring or a red wall."""
    x0, y0, x1, y1 = (int(v) for v in (box.x0 - grow, box.y0 - grow, box.x1 + grow, box.y1 + grow))
    part = cover[max(0, y0) : max(0, y1), max(0, x0) : max(0, x1)]
    if x1 - x0 < 5 or y1 - y0 < 5 or not part.size:
        return 0.0
    height, width = cover.shape
    # A side beyond the image's border is not painted.
    lines = [part[0] * (y0 >= 0), part[-1] * (y1 <= height), part[:, 0] * (x0 >= 0), part[:, -1] * (x1 <= width)]
    return float(np.mean([line.mean() for line in lines]))


def _same(a: Box, b: Box) -> bool:
    return max(abs(a.x0 - b.x0), abs(a.y0 - b.y0), abs(a.x1 - b.x1), abs(a.y1 - b.y1)) <= 2 * THICKEST_PX
