"""Draw what was matched between two pictures: coloured dots that belong together, points with names, a legend.

`draw_view(pixels, dots, spots, legend)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from tools._shared.overlay import DARK, WHITE, beside, extent, write

CHOSEN = (255, 220, 0)
SMALLEST_LEGEND_PX = 96
"""Below this side a legend would cover the picture."""
MOST_DOTS = 150


@dataclass(frozen=True)
class DrawnPoint:
    """A named point to draw, in pixels; `cross` for a computed point, else a ring; `chosen` in yellow."""

    name: str
    x: float
    y: float
    cross: bool = False
    chosen: bool = False


def dot_colours(points: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """RGB colours (N, 3) by the place of points (N, 2) from left to right, blue to red: the same for both pictures."""
    if not len(points):
        return np.zeros((0, 3), np.uint8)
    order = np.argsort(np.argsort(points[:, 0], kind="stable"), kind="stable")
    levels = np.round(order * (255 / max(1, len(points) - 1))).astype(np.uint8)
    coloured = cv2.applyColorMap(levels[:, None], cv2.COLORMAP_TURBO)
    return np.asarray(coloured[:, 0, ::-1], np.uint8)


def thinned(count: int) -> npt.NDArray[np.intp]:
    """Numbers of at most `MOST_DOTS` of `count` matches, evenly spread over the list."""
    return (
        np.unique(np.linspace(0, max(0, count - 1), min(count, MOST_DOTS)).astype(np.intp)) if count else np.arange(0)
    )


def draw_view(
    pixels: Pixels,
    dots: npt.NDArray[np.float64],
    colours: npt.NDArray[np.uint8],
    spots: Sequence[DrawnPoint],
    legend: Sequence[str],
) -> Pixels:
    """A copy of a picture (H, W, 3) with dots (N, 2) in RGB `colours` (N, 3), named points, and lines of legend."""
    out = pixels.copy()
    height, width = out.shape[:2]
    scale = max(0.5, min(height, width) / 600)
    for (x, y), colour in zip(dots, colours, strict=True):
        centre = (round(float(x)), round(float(y)))
        cv2.circle(out, centre, max(2, round(3.5 * scale)), DARK, -1, cv2.LINE_AA)
        cv2.circle(out, centre, max(1, round(2.5 * scale)), tuple(int(value) for value in colour), -1, cv2.LINE_AA)
    for spot in spots:
        _point(out, spot, scale)
    if min(height, width) >= SMALLEST_LEGEND_PX:
        _legend(out, legend, spots, scale)
    return out


def _point(out: Pixels, spot: DrawnPoint, scale: float) -> None:
    height, width = out.shape[:2]
    centre, radius = (round(spot.x), round(spot.y)), max(3, round(9 * scale))
    colour = CHOSEN if spot.chosen else WHITE
    for ink, line in ((DARK, max(3, round(4 * scale))), (colour, max(1, round(2 * scale)))):
        if spot.cross:
            cv2.drawMarker(out, centre, ink, cv2.MARKER_CROSS, 4 * radius, line, cv2.LINE_AA)
        else:
            cv2.circle(out, centre, radius, ink, line, cv2.LINE_AA)
    font = 0.6 * scale
    text_height = extent(spot.name, font)[1]
    # A cross and the ring that it hits have names above and below, so that neither covers the other.
    below = centre[1] + (radius + text_height + 6 if spot.cross else 0)
    left = beside(spot.name, centre, radius + 4, width, font)
    write(out, spot.name, (left, min(max(below, text_height + 2), height - 3)), font, colour)


def _legend(out: Pixels, lines: Sequence[str], spots: Sequence[DrawnPoint], scale: float) -> None:
    """Lines at the upper or the lower border, whichever is farther from the named points."""
    height, width = out.shape[:2]
    widest = max((extent(line, 0.6)[0] for line in lines), default=1)
    size = min(scale, (width - 8) / widest)
    step = extent("Ag", 0.6 * size)[1] + round(8 * size) + 2
    rows = [spot.y for spot in spots]
    low = height - max(rows, default=0) >= min(rows, default=height)
    top = height - step * len(lines) - 2 if low else 2
    for number, line in enumerate(lines, 1):
        write(out, line, (4, top + number * step - round(4 * size)), 0.6 * size)
