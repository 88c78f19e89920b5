"""Draw a relative depth map at the size of its image, or without a map the points in their order of depth.

`draw_depth(depth, (height, width), [("A", x, y)])`: viridis, a labelled colour bar, the points.
`draw_order(pixels, [("B", x, y), ("A", x, y)], decided=True)`: the image, B marked near and A far, a line between them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from tools._shared.overlay import DARK, PALETTE, WHITE, Overlay, extent, viridis, write

# Below this side a legend would cover the map.
MIN_LEGEND_PX = 96


# Orange and light blue differ in hue and in lightness, also for the colour-blind.
NEAR, FAR = PALETTE[1], PALETTE[0]


def draw_order(pixels: Pixels, points: Sequence[tuple[str, float, float]], *, decided: bool) -> Pixels:
    """Draw points (label, x and y in px, nearest first) on an image (H, W, 3).

    The first point is also labelled near, the last one far, and the others with their rank. If the order is undecided,
    every point has only its own label. A line joins the first two.
    """
    import cv2

    canvas = np.ascontiguousarray(pixels).copy()
    if len(points) > 1:
        first, second = ((round(x), round(y)) for _, x, y in points[:2])
        thick = max(1, round(min(pixels.shape[:2]) / 350))
        cv2.line(canvas, first, second, DARK, thick + 2, cv2.LINE_AA)
        cv2.line(canvas, first, second, WHITE, thick, cv2.LINE_AA)
    overlay = Overlay(canvas)
    for place, (label, x, y) in enumerate(points):
        if decided:
            rank = {0: "near", len(points) - 1: "far"}.get(place, f"{place + 1} of {len(points)}")
            overlay.point(x, y, f"{label} {rank}" if len(points) > 1 else label, NEAR if place == 0 else FAR)
        else:
            overlay.point(x, y, label, WHITE)
    overlay.legend("points by picture cues: no depth map")
    return overlay.pixels


def draw_depth(
    depth: npt.NDArray[np.float32], size: tuple[int, int], points: Sequence[tuple[str, float, float]]
) -> Pixels:
    """Render a map (h, w) in 0..1, yellow near and violet far, as (H, W, 3); points are label, x and y in px."""
    height, width = size
    canvas = viridis(depth, size)
    scale = max(0.5, min(height, width) / 400)
    if min(height, width) >= MIN_LEGEND_PX:
        # A vertical bar at the lower right: near (1) at the top, far (0) at the bottom.
        import cv2

        font, bar_height = 0.6 * scale, round(height * 0.35)
        bar_width, gap = max(6, round(14 * scale)), max(3, round(8 * scale))
        bar_y, bar_x = height - gap - bar_height, width - gap - bar_width
        ramp = np.linspace(1, 0, bar_height, dtype=np.float32)[:, None].repeat(bar_width, axis=1)
        canvas[bar_y : bar_y + bar_height, bar_x : bar_x + bar_width] = viridis(ramp, (bar_height, bar_width))
        cv2.rectangle(canvas, (bar_x - 1, bar_y - 1), (bar_x + bar_width, bar_y + bar_height), WHITE, 1)
        for text, foot in (("near 1", bar_y + extent("near 1", font)[1]), ("far 0", bar_y + bar_height)):
            write(canvas, text, (max(0, bar_x - gap - extent(text, font)[0]), foot), font)
    overlay = Overlay(canvas)
    for label, x, y in points:
        overlay.point(x, y, label, WHITE)
    return overlay.pixels
