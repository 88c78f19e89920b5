"""Weight-free cues of relative depth on a coarse grid, combined with weights that were fixed beforehand.

`bench/depth.py` prints what each cue scores. Every cue is turned so that larger means
nearer and is brought to 0..1 within the image. Signs and weights come from argument and nothing is fitted to labelled
items; the list itself was drawn up knowing how single cues score on BLINK's val split.

- position: on a ground seen by an upright camera, what is lower in the picture is nearer (Hoiem, Efros and Hebert,
  "Geometric Context from a Single Image", 2005). It carries most of the evidence.
- top, bottom: distance from the upper and to the lower edge along a path that pays for colour changes (geodesic
  distance, Toivanen 1996): sky and walls reach the top cheaply, the ground in front reaches the bottom cheaply.
- texture: far regions lose local contrast to haze and resolution (aerial perspective).
- warm: the same haze scatters short wavelengths, so far regions are bluer.
- centre: what a photograph is of stands near its middle and before its background.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from tools._shared.reading import shrink

CueMap = npt.NDArray[np.float32]
"""One value a grid cell, shape (h, w)."""

GRID_PX = 128
"""Cells on the long side: fine enough for a limb or a branch, coarse enough for shortest paths in milliseconds."""
WORK_PX = 512
"""Long side on which texture is measured: the size at which its scale below was chosen."""
TEXTURE_SIGMA_PX = 12.0
WARM_SIGMA_PX = 30.0
STEP_COST = 0.3
"""Cost in L*a*b* units of one grid step over constant colour: distance counts where colour does not."""
APPEARANCE = ("top", "bottom", "texture", "warm", "centre")
"""The cues that do not follow from the row alone, averaged with equal weights."""
POSITION_SLOPE = 6.0
"""Log odds that a point one full height lower is nearer: 65 % for a tenth of the height, 86 % for three tenths."""
APPEARANCE_SLOPE = 0.8
"""Log odds between the extremes of all appearance cues together: they never exceed 69 % by themselves."""


@dataclass(frozen=True)
class CueMaps:
    """Maps (h, w) in 0..1, larger is nearer, over a whole image.

    `score` is in log odds: the difference between two points is the evidence that the higher one is nearer.
    """

    cues: Mapping[str, CueMap]
    score: CueMap

    def at(self, x: float, y: float, size: tuple[int, int]) -> dict[str, float]:
        """Each cue at a point of the original image of `size` (H, W); position is exact, not that of its cell."""
        found = {name: sample(cue, x, y, size) for name, cue in self.cues.items()}
        return found | {"position": float(np.clip(y / size[0], 0.0, 1.0))}

    @property
    def depth(self) -> CueMap:
        """Relative depth 0..1 per image cell, larger is nearer, on the scale of `depth_of`."""
        return np.asarray(self.score / (POSITION_SLOPE + APPEARANCE_SLOPE), np.float32)


def score_of(cues: Mapping[str, float]) -> float:
    """Log odds of a point from its cues; only differences between points of one image mean anything."""
    appearance = sum(cues[name] for name in APPEARANCE) / len(APPEARANCE)
    return POSITION_SLOPE * cues["position"] + APPEARANCE_SLOPE * appearance


def depth_of(cues: Mapping[str, float]) -> float:
    """Relative depth 0..1 of a point, larger is nearer: its score over the highest one possible."""
    return score_of(cues) / (POSITION_SLOPE + APPEARANCE_SLOPE)


def measure(pixels: Pixels) -> CueMaps:
    """All cues of an RGB image (H, W, 3) uint8 of any size, without drawn marks."""
    height, width = pixels.shape[:2]
    work = shrink(pixels, WORK_PX)
    colours = np.asarray(cv2.cvtColor(work.astype(np.float32) / 255, cv2.COLOR_RGB2LAB), np.float32)
    grid = _grid_size(height, width)
    cells = np.asarray(
        cv2.resize(cv2.bilateralFilter(colours, 7, 10, 5), grid, interpolation=cv2.INTER_AREA), np.float32
    )
    rows, columns = _centres(grid[1]), _centres(grid[0])
    scale = max(work.shape[:2]) / WORK_PX
    cues = {
        "position": np.repeat(rows[:, None], grid[0], axis=1),
        "top": _ranks(geodesic(cells, "top")),
        "bottom": _ranks(-geodesic(cells, "bottom")),
        "texture": _ranks(_resize(_texture(colours[..., 0], TEXTURE_SIGMA_PX * scale), grid)),
        "warm": _ranks(_resize(_blur(colours[..., 2], WARM_SIGMA_PX * scale), grid)),
        "centre": np.repeat(1 - 2 * np.abs(columns - 0.5)[None], grid[1], axis=0),
    }
    maps = {name: np.asarray(cue, np.float32) for name, cue in cues.items()}
    appearance = np.mean([maps[name] for name in APPEARANCE], axis=0)
    score = POSITION_SLOPE * maps["position"] + APPEARANCE_SLOPE * appearance
    return CueMaps(maps, np.asarray(score, np.float32))


def geodesic(cells: npt.NDArray[np.float32], edge: str) -> CueMap:
    """Cheapest path from the "top" or "bottom" row to each cell of L*a*b* colours (h, w, 3), in colour units.

    A step costs the colour difference of its two cells plus `STEP_COST` times its length (1 or sqrt 2).
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    height, width = cells.shape[:2]
    index = np.arange(height * width).reshape(height, width)
    starts, ends, costs = [], [], []
    for dy, dx in ((0, 1), (1, 0), (1, 1), (1, -1)):
        here = (slice(0, height - dy), slice(max(0, -dx), width - max(0, dx)))
        there = (slice(dy, height), slice(max(0, dx), width + min(0, dx)))
        step = np.linalg.norm(cells[here] - cells[there], axis=2) + STEP_COST * float(np.hypot(dx, dy))
        starts.append(index[here].ravel())
        ends.append(index[there].ravel())
        costs.append(step.ravel())
    shape = (height * width, height * width)
    graph = coo_array((np.concatenate(costs), (np.concatenate(starts), np.concatenate(ends))), shape=shape).tocsr()
    seeds = index[0] if edge == "top" else index[-1]
    distance = dijkstra(graph, directed=False, indices=seeds, min_only=True)
    return np.asarray(distance, np.float32).reshape(height, width)


def sample(values: CueMap, x: float, y: float, size: tuple[int, int]) -> float:
    """Bilinear value of a grid at a point of the image of `size` (H, W) that it covers.

    Beyond the centres of the outer cells it is the nearest cell's value.
    """
    rows, columns = values.shape
    v = float(np.clip((y + 0.5) / size[0] * rows - 0.5, 0, rows - 1))
    u = float(np.clip((x + 0.5) / size[1] * columns - 0.5, 0, columns - 1))
    top, left = int(v), int(u)
    below, right = min(top + 1, rows - 1), min(left + 1, columns - 1)
    upper = values[top, left] * (1 - (u - left)) + values[top, right] * (u - left)
    lower = values[below, left] * (1 - (u - left)) + values[below, right] * (u - left)
    return float(upper * (1 - (v - top)) + lower * (v - top))


def _grid_size(height: int, width: int) -> tuple[int, int]:
    factor = min(1.0, GRID_PX / max(height, width))
    return max(1, round(width * factor)), max(1, round(height * factor))


def _centres(number: int) -> npt.NDArray[np.float64]:
    return (np.arange(number) + 0.5) / number


def _ranks(values: npt.NDArray[np.float32]) -> CueMap:
    """Share of cells that are lower, ties shared: 0.5 everywhere on a constant map."""
    from scipy.stats import rankdata

    # Rounding keeps float noise from ordering the cells of a flat region.
    ranks = rankdata(np.round(values.ravel().astype(np.float64), 4))
    return np.asarray((ranks - 0.5) / ranks.size, np.float32).reshape(values.shape)


def _texture(lightness: npt.NDArray[np.float32], sigma: float) -> CueMap:
    gradient = np.hypot(cv2.Sobel(lightness, cv2.CV_32F, 1, 0), cv2.Sobel(lightness, cv2.CV_32F, 0, 1))
    return _blur(np.asarray(gradient, np.float32), sigma)


def _blur(values: npt.NDArray[np.float32], sigma: float) -> CueMap:
    return np.asarray(cv2.GaussianBlur(values, (0, 0), max(sigma, 0.5)), np.float32)


def _resize(values: CueMap, grid: tuple[int, int]) -> CueMap:
    return np.asarray(cv2.resize(values, grid, interpolation=cv2.INTER_AREA), np.float32)
