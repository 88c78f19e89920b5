"""Draw a relative depth map over the size of its image: viridis, a colour bar with its ends named, the points.

`draw_depth(depth, (height, width), [("A", x, y)])`.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from tools._shared.overlay import WHITE, Overlay, extent, viridis, write

SMALLEST_LEGEND_PX = 96
"""Below this side a legend would cover the map."""


def draw_depth(
    depth: npt.NDArray[np.float32], size: tuple[int, int], points: Sequence[tuple[str, float, float]]
) -> Pixels:
    """A picture (H, W, 3) of a map (h, w) in 0..1, yellow near and violet far; points are label, x and y in px."""
    height, width = size
    canvas = viridis(depth, size)
    scale = max(0.5, min(height, width) / 400)
    if min(height, width) >= SMALLEST_LEGEND_PX:
        _legend(canvas, scale)
    drawn = Overlay(canvas)
    for label, x, y in points:
        drawn.point(x, y, label, WHITE)
    return drawn.pixels


def _legend(canvas: Pixels, scale: float) -> None:
    """A vertical bar at the lower right: near 1 at its top, far 0 at its foot."""
    (height, width), font = canvas.shape[:2], 0.6 * scale
    bar_height, bar_width, gap = round(height * 0.35), max(6, round(14 * scale)), max(3, round(8 * scale))
    top, left = height - gap - bar_height, width - gap - bar_width
    ramp = np.linspace(1, 0, bar_height, dtype=np.float32)[:, None].repeat(bar_width, axis=1)
    canvas[top : top + bar_height, left : left + bar_width] = viridis(ramp, (bar_height, bar_width))
    cv2.rectangle(canvas, (left - 1, top - 1), (left + bar_width, top + bar_height), WHITE, 1)
    for text, y in (("near 1", top + extent("near 1", font)[1]), ("far 0", top + bar_height)):
        write(canvas, text, (max(0, left - gap - extent(text, font)[0]), y), font)
