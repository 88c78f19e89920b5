"""Draw the matches between two images: dots in matching colours, points with names, a legend.

`draw_view(pixels, dots, dot_colours(dots), spots, legend)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from tools._shared.overlay import WHITE, Overlay
from tools._shared.view_matches import Points

# RGB, shape (N, 3).
Colours = npt.NDArray[np.uint8]
CHOSEN = (255, 220, 0)
MAX_DOTS = 150


class DrawnPoint(NamedTuple):
    """A named point to draw, in pixels.

    A computed point (`cross`) is drawn as a cross, any other as a ring. A `chosen` point is yellow.
    """

    name: str
    x: float
    y: float
    cross: bool = False
    chosen: bool = False


def dot_colours(points: Points) -> Colours:
    """Return an RGB colour for each point, (N, 3), blue to red from left to right; both images use these colours."""
    import cv2

    if not len(points):
        return np.zeros((0, 3), np.uint8)
    order = np.argsort(np.argsort(points[:, 0], kind="stable"), kind="stable")
    levels = np.round(order * (255 / max(1, len(points) - 1))).astype(np.uint8)
    coloured = cv2.applyColorMap(levels[:, None], cv2.COLORMAP_TURBO)
    return np.asarray(coloured[:, 0, ::-1], np.uint8)


def thinned(count: int) -> npt.NDArray[np.intp]:
    """Return the indices of at most `MAX_DOTS` of `count` matches, evenly spread over the list."""
    return np.unique(np.linspace(0, max(0, count - 1), min(count, MAX_DOTS)).astype(np.intp)) if count else np.arange(0)


def draw_view(
    pixels: Pixels, dots: Points, colours: Colours, spots: Sequence[DrawnPoint], legend: Sequence[str]
) -> Pixels:
    """Draw dots (N, 2) in RGB `colours` (N, 3), named points and legend lines on a copy of an image (H, W, 3)."""
    canvas = Overlay(pixels)
    for (x, y), (red, green, blue) in zip(dots.tolist(), colours.tolist(), strict=True):
        canvas.dot(x, y, (red, green, blue))
    for spot in spots:
        canvas.point(spot.x, spot.y, spot.name, CHOSEN if spot.chosen else WHITE, cross=spot.cross)
    canvas.legend("\n".join(legend))
    return canvas.pixels
