"""Box of an object at full resolution: what differs from the surrounding ground, in smaller and smaller windows.

A map of regions has a coarse grid, so its box of a small object is many times too large. `tighten(pixels, box)` returns
the box of the object inside, or None if the ground around it is as varied as the object itself.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.core.types import Box
from hybrid.tool import Pixels

# Difference from the ground, in L*a*b* units, one value per cell.
Difference = npt.NDArray[np.float32]

# Cells along the long side of a window.
LOOK_PX: Final = 256
# Number of windows. The sides of each window are at most `CLOSER` times those of the previous one.
LOOKS: Final = 8
CLOSER: Final = 0.75
# Margin around a box, as a share of its sides, and its minimum: one cell of a grid with `CELLS` cells per side.
AROUND: Final = 0.5
CELLS: Final = 60
LEAST_AROUND_PX: Final = 6
# Width of the rim of a window that counts as ground, as a share of its sides.
RIM: Final = 0.1
# Sigma of the blur before the comparison. `BLUR` is a share of the window's long side if the window is at full
# resolution; a shrunk window gets less, because shrinking has already smoothed it. `LEAST_BLUR` is the minimum, in
# cells.
BLUR: Final = 0.012
LEAST_BLUR: Final = 0.8
# Minimum share of the object's own difference at which a cell belongs to the object.
BELONGS: Final = 0.45
# Smallest ratio of the object's difference to the 95th percentile of the differences inside the rim.
CLEAR: Final = 2.5
# Smallest difference of an object, in L*a*b* units.
LEAST_DIFFERENCE: Final = 1.5


class Window(NamedTuple):
    """A part of an image in pixels, bounds exclusive."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def sides(self) -> tuple[int, int]:
        """Width and height."""
        return self.x1 - self.x0, self.y1 - self.y0


def tighten(pixels: Pixels, box: Box) -> Box | None:
    """Return the tight box, in pixels, of the object inside a box of an image (H, W, 3); None if unclear."""
    height, width = pixels.shape[:2]
    current = box
    window = _around(current, width, height, max(width, height) / CELLS)
    for _ in range(LOOKS):
        seen = _look(pixels, window, current)
        if seen is None:
            return None
        current = seen
        closer = _around(current, width, height, LEAST_AROUND_PX)
        if all(new > CLOSER * old for new, old in zip(closer.sides, window.sides, strict=True)):
            return current
        window = closer
    return current


def _around(box: Box, width: int, height: int, least: float) -> Window:
    """Return the box with a margin, clipped to the image."""
    across = max(least, AROUND * (box.x1 - box.x0))
    down = max(least, AROUND * (box.y1 - box.y0))
    return Window(
        max(0, int(box.x0 - across)),
        max(0, int(box.y0 - down)),
        min(width, int(np.ceil(box.x1 + across))),
        min(height, int(np.ceil(box.y1 + down))),
    )


def _look(pixels: Pixels, window: Window, box: Box) -> Box | None:
    """Return the box of the object in a window, in pixels of the image; None if it is not distinct from the ground."""
    import cv2

    part = pixels[window.y0 : window.y1, window.x0 : window.x1]
    scale = min(1.0, LOOK_PX / max(window.sides))
    columns, rows = (max(1, round(side * scale)) for side in window.sides)
    work = np.asarray(cv2.resize(part, (columns, rows), interpolation=cv2.INTER_AREA), np.float32) / 255
    blur = max(LEAST_BLUR, BLUR * max(rows, columns) * scale)
    colours = cv2.GaussianBlur(cv2.cvtColor(work, cv2.COLOR_RGB2LAB), (0, 0), blur)
    rim = _rim(window, (rows, columns), pixels.shape[:2])
    ground = np.median(colours[rim], axis=0)
    distances: Difference = np.asarray(np.sqrt(((colours - ground) ** 2).sum(axis=2)), np.float32)
    x_per, y_per = window.sides[0] / columns, window.sides[1] / rows
    inside = distances[
        max(0, int((box.y0 - window.y0) / y_per)) : max(1, int(np.ceil((box.y1 - window.y0) / y_per))),
        max(0, int((box.x0 - window.x0) / x_per)) : max(1, int(np.ceil((box.x1 - window.x0) / x_per))),
    ]
    highest = float(inside.max())
    level = float(np.median(inside[inside >= 0.6 * highest]))
    if level < max(LEAST_DIFFERENCE, CLEAR * float(np.quantile(distances[rim], 0.75))):
        return None
    _, labels, facts, _ = cv2.connectedComponentsWithStats(
        (distances >= BELONGS * level).astype(np.uint8), connectivity=8
    )
    weights = np.bincount(labels.ravel(), distances.ravel())
    weights[0] = 0
    x_min, y_min, across, down = (float(value) for value in facts[int(np.argmax(weights)), :4])
    return Box(
        window.x0 + x_min * x_per,
        window.y0 + y_min * y_per,
        window.x0 + (x_min + across) * x_per,
        window.y0 + (y_min + down) * y_per,
    )


def _rim(window: Window, cells: tuple[int, int], size: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Return the mask (h, w) of a window's rim, except at the image's border, where objects may end."""
    (rows, columns), (height, width) = cells, size
    high, wide = (max(1, round(RIM * side)) for side in (rows, columns))
    rim = np.zeros(cells, np.bool_)
    for strip, inside in (
        (np.s_[:high], window.y0 > 0),
        (np.s_[rows - high :], window.y1 < height),
        (np.s_[:, :wide], window.x0 > 0),
        (np.s_[:, columns - wide :], window.x1 < width),
    ):
        rim[strip] |= inside
    return rim if rim.any() else np.ones(cells, np.bool_)
