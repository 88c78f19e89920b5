"""Weight-free cues of relative depth at points of an image, combined with weights that are fixed here.

`bench/depth.py --fit` selected the cues and the weights on rendered scenes. Every cue is oriented so that larger means
nearer, and scaled to 0..1 within the image.

- position: on a ground seen by an upright camera, points lower in the image are nearer (Hoiem, Efros and Hebert,
  "Geometric Context from a Single Image", 2005). It gives most of the evidence, but none for points on one row.
- clear: without haze some channel of every neighbourhood is dark; haze brightens it with distance (He, Sun and Tang,
  "Single Image Haze Removal Using Dark Channel Prior", CVPR 2009).

Contrast, warm colour, saturation, darkness, fine detail, focus and the distance from the centre each reduced the log
loss of these two (0.542) by less than 0.004.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from tools._shared.reading import shrink

# One value per grid cell, shape (h, w).
CueMap = npt.NDArray[np.float32]

# Number of cells along the long side. A cell is smaller than the smallest neighbourhood below.
GRID_PX = 128
# Long side at which neighbourhoods are measured.
WORK_PX = 512
# Side of the neighbourhood whose darkest channel is taken, and the blur after it.
DARK_PX = 15
DARK_SIGMA_PX = 12.0
# Smallest difference of a channel, 0..1, that counts.
SEEN_DIFFERENCE = 0.005
# Log odds of each cue over its full range: a point that is lower by a tenth of the height is nearer with a probability
# of 62 %, and a point that is lower by three tenths with 82 %. The clearest position is nearer than the haziest one
# with a probability of 73 %.
WEIGHTS: Mapping[str, float] = {"position": 5.0, "clear": 1.0}


@dataclass(frozen=True)
class CueMaps:
    """Maps (h, w) in 0..1 of the cues other than position over an image; larger is nearer."""

    cues: Mapping[str, CueMap]

    def at(self, x: float, y: float, size: tuple[int, int]) -> dict[str, float]:
        """Return each cue at a point of the original image of `size` (H, W); position is exact, not that of a cell."""
        read = {name: sample(cue, x, y, size) for name, cue in self.cues.items()}
        return {"position": float(np.clip(y / size[0], 0.0, 1.0))} | read


def score_of(cues: Mapping[str, float]) -> float:
    """Return the log odds of a point from its cues; only differences between points of one image are meaningful."""
    return sum(slope * cues[name] for name, slope in WEIGHTS.items())


def depth_of(cues: Mapping[str, float]) -> float:
    """Return the relative depth 0..1 of a point, larger is nearer: its score over the highest possible one."""
    return score_of(cues) / sum(WEIGHTS.values())


def measure(pixels: Pixels) -> CueMaps:
    """Measure the cues other than position on an RGB image (H, W, 3) uint8 of any size, without drawn marks."""
    import cv2

    work = shrink(pixels, WORK_PX)
    scale = max(work.shape[:2]) / WORK_PX
    side = max(1, round(DARK_PX * scale))
    dark = np.asarray(cv2.erode(work.min(axis=2).astype(np.float32) / 255, np.ones((side, side), np.uint8)), np.float32)
    return CueMaps({"clear": ranks(-blurred(dark, DARK_SIGMA_PX * scale), pixels.shape[:2], SEEN_DIFFERENCE)})


def sample(values: CueMap, x: float, y: float, size: tuple[int, int]) -> float:
    """Return the bilinearly interpolated value of a grid at a point of the image of `size` (H, W) that it covers.

    Outside the centres of the outer cells it returns the nearest cell's value.
    """
    rows, columns = values.shape
    v = float(np.clip((y + 0.5) / size[0] * rows - 0.5, 0, rows - 1))
    u = float(np.clip((x + 0.5) / size[1] * columns - 0.5, 0, columns - 1))
    y_low, x_low = int(v), int(u)
    y_high, x_high = min(y_low + 1, rows - 1), min(x_low + 1, columns - 1)
    upper = values[y_low, x_low] * (1 - (u - x_low)) + values[y_low, x_high] * (u - x_low)
    lower = values[y_high, x_low] * (1 - (u - x_low)) + values[y_high, x_high] * (u - x_low)
    return float(upper * (1 - (v - y_low)) + lower * (v - y_low))


def ranks(values: CueMap, size: tuple[int, int], step: float) -> CueMap:
    """Return for each cell the share of cells that are lower by `step` or more; ties count half (constant map: 0.5).

    `values` (h, w) cover the image of `size` (H, W); the result has at most `GRID_PX` cells along its long side.
    """
    import cv2

    factor = min(1.0, GRID_PX / max(size))
    grid = max(1, round(size[1] * factor)), max(1, round(size[0] * factor))
    cells = np.asarray(cv2.resize(values, grid, interpolation=cv2.INTER_AREA), np.float64)
    # Rounding keeps float noise from ordering the cells of a flat region.
    rounded = np.round(cells.ravel() / step)
    # No scipy.stats: it takes a second to import.
    _, cell, counts = np.unique(rounded, return_inverse=True, return_counts=True)
    lower = (counts.cumsum() - counts / 2)[cell]
    return np.asarray(lower / rounded.size, np.float32).reshape(cells.shape)


def blurred(values: CueMap, sigma: float) -> CueMap:
    """Blur with a Gaussian of at least half a pixel."""
    import cv2

    return np.asarray(cv2.GaussianBlur(values, (0, 0), max(sigma, 0.5)), np.float32)
