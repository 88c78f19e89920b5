"""Draw a relative depth map over the size of its image: viridis, a colour bar with its ends named, the points.

A library of `tools/depth/`: `draw_depth(depth, (height, width), [("A", x, y)])`.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels

WHITE, BLACK = (255, 255, 255), (0, 0, 0)
SMALLEST_LEGEND_PX = 96
"""Below this side a legend would cover the map."""


def draw_depth(
    depth: npt.NDArray[np.float32], size: tuple[int, int], points: Sequence[tuple[str, float, float]]
) -> Pixels:
    """A picture (H, W, 3) of a map (h, w) in 0..1, yellow near and violet far; points are label, x and y in px."""
    height, width = size
    levels = np.round(np.clip(depth, 0, 1) * 255).astype(np.uint8)
    coloured = cv2.cvtColor(cv2.applyColorMap(levels, cv2.COLORMAP_VIRIDIS), cv2.COLOR_BGR2RGB)
    canvas = np.asarray(cv2.resize(coloured, (width, height), interpolation=cv2.INTER_LINEAR), np.uint8)
    scale = max(0.5, min(height, width) / 400)
    if min(height, width) >= SMALLEST_LEGEND_PX:
        _legend(canvas, scale)
    for label, x, y in points:
        centre, radius = (round(x), round(y)), max(2, round(6 * scale))
        cv2.circle(canvas, centre, radius, BLACK, max(2, round(4 * scale)), cv2.LINE_AA)
        cv2.circle(canvas, centre, radius, WHITE, max(1, round(2 * scale)), cv2.LINE_AA)
        _write(canvas, label, _beside(label, centre, radius, size, scale), scale)
    return canvas


def _beside(label: str, centre: tuple[int, int], radius: int, size: tuple[int, int], scale: float) -> tuple[int, int]:
    """Where a label starts (its lower left corner) so that it stays inside the picture."""
    text_width, text_height = _extent(label, scale)
    x = centre[0] + radius + 4
    if x + text_width > size[1]:
        x = centre[0] - radius - 4 - text_width
    return max(0, x), min(max(centre[1], text_height + 2), size[0] - 2)


def _legend(canvas: Pixels, scale: float) -> None:
    """A vertical bar at the lower right: near 1 at its top, far 0 at its foot."""
    height, width = canvas.shape[:2]
    bar_height, bar_width, gap = round(height * 0.35), max(6, round(14 * scale)), max(3, round(8 * scale))
    top, left = height - gap - bar_height, width - gap - bar_width
    ramp = np.linspace(255, 0, bar_height).astype(np.uint8)[:, None].repeat(bar_width, axis=1)
    canvas[top : top + bar_height, left : left + bar_width] = cv2.cvtColor(
        cv2.applyColorMap(ramp, cv2.COLORMAP_VIRIDIS), cv2.COLOR_BGR2RGB
    )
    cv2.rectangle(canvas, (left - 1, top - 1), (left + bar_width, top + bar_height), WHITE, 1)
    for text, y in (("near 1", top + _extent("near 1", scale)[1]), ("far 0", top + bar_height)):
        _write(canvas, text, (max(0, left - gap - _extent(text, scale)[0]), y), scale)


def _extent(text: str, scale: float) -> tuple[int, int]:
    (width, height), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, 0.6 * scale, 1)
    return int(width), int(height)


def _write(canvas: Pixels, text: str, at: tuple[int, int], scale: float) -> None:
    """White text on a black box; an outline would not do: bold glyphs are wider in OpenCV 5."""
    width, height = _extent(text, scale)
    cv2.rectangle(canvas, (at[0] - 2, at[1] - height - 2), (at[0] + width + 1, at[1] + 3), BLACK, cv2.FILLED)
    cv2.putText(canvas, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.6 * scale, WHITE, 1, cv2.LINE_AA)
