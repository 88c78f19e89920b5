"""Where eyes go on a map: winner-take-all with inhibition of return (Koch and Ullman 1985; Itti and Koch 2000).

`fixate(values, count, seed)` gives fixations in fractions of the image; `returns(path, size)` says which come back.

The worth of a place is its saliency times how usual the saccade to it is (Le Meur and Liu 2015) times what inhibition
leaves of it. Lengths are degrees of sight on the assumption that the image fills a screen of 54 x 35 degrees as far as
its shape lets it, as in COCO-Search18 (Chen et al. 2021) and COCO-FreeView. Durations are the quantiles of a skewed
distribution, longer ones where more stands out. Constants were set by hand, so that what
comes out lies near published statistics of people (`bench/scanpath.py`); none was fitted to recorded eyes.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tools.saliency.cues import SaliencyMap

# Width and height of the assumed screen, degrees.
SCREEN_DEG = (54.0, 35.0)
# Peak of how usual a saccade is by its length, degrees, and the spread of its logarithm: short ones are many and long
# ones not rare (Tatler and Vincent 2008).
AMPLITUDE_DEG, AMPLITUDE_SPREAD = 3.0, 1.2
# How much more usual a horizontal saccade is than the mean of all directions, and a vertical one less (Foulsham,
# Kingstone and Underwood 2008).
SIDEWAYS = 0.1
# Spread of what was just seen, degrees.
INHIBITED_DEG = 1.5
# How much of the inhibition is left after one more fixation: after two a quarter, so that eyes return.
LEAK = 0.5
# Spread of the surroundings that a fixation makes less interesting, degrees, and by how much: eyes scan a place for a
# while and then move on to another one (Tatler and Vincent 2008).
SATED_DEG, SATED = 6.0, 0.25
# Standard deviation of a viewer's own map about the common one: what a seed decides.
NOISE = 0.03
# Mean duration of a fixation on a photograph (Cronin et al. 2020), and the spread of its logarithm, by hand.
MEAN_MS, DURATION_SPREAD = 298.0, 0.45
# Of the first fixation, in the middle, whatever is there (Cronin et al. 2020).
FIRST_MS = 285.0
# Fixations that are at most so far apart are at one place.
RETURN_DEG = 2.0
MAX_MS = 5000
GRID_PX = 128

Grid = npt.NDArray[np.float64]


class Fixation(NamedTuple):
    """A fixation: x, y in fractions of width and height; whole milliseconds; saliency 0..1 of the place."""

    x: float
    y: float
    ms: int
    saliency: float


class Return(NamedTuple):
    """The fixation `number`, from 1, is at the place of the earlier one `to`, and others lie between them."""

    number: int
    to: int


def fixate(values: SaliencyMap, count: int, seed: int) -> list[Fixation]:
    """`count` fixations on a map (h, w) in 0..1; the first in the middle, where free viewing starts.

    The durations sum to at most 5,000 ms.
    """
    import cv2

    factor = min(1.0, GRID_PX / max(values.shape))
    size = (max(1, round(values.shape[1] * factor)), max(1, round(values.shape[0] * factor)))
    grid = np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_AREA), np.float64)
    # Smooth noise; exactly the same for the same seed.
    rough = np.random.default_rng(seed).normal(0, 1, grid.shape)
    smooth = np.asarray(cv2.GaussianBlur(rough, (0, 0), max(1.0, 0.03 * max(grid.shape))), np.float64)
    noise = smooth * (NOISE / max(float(smooth.std()), 1e-9))
    viewed = np.clip(grid + noise, 1e-6, None)
    inhibition, sated = np.zeros_like(grid), np.zeros_like(grid)
    place = ((grid.shape[1] - 1) / 2, (grid.shape[0] - 1) / 2)
    seen: list[tuple[float, float, float]] = []
    per_cell = degrees_per_px((grid.shape[0], grid.shape[1]))
    for number in range(count):
        if number:
            rows, columns = np.ogrid[: grid.shape[0], : grid.shape[1]]
            across, down = columns - place[0], rows - place[1]
            # The place itself is no saccade: its length counts as that of the next cell.
            saccade_deg = np.maximum(np.hypot(across, down) * per_cell, per_cell)
            usual = np.exp(-((np.log(saccade_deg / AMPLITUDE_DEG) / AMPLITUDE_SPREAD) ** 2) / 2)
            sideways = 1 + SIDEWAYS * np.cos(2 * np.arctan2(down, across))
            priority = viewed * (1 - inhibition) * np.exp(-sated) * usual * sideways
            row, column = divmod(int(np.argmax(priority)), grid.shape[1])
            place = (float(column), float(row))
        seen.append((*place, float(grid[int(place[1]), int(place[0])])))
        inhibition = np.maximum(LEAK * inhibition, _disc(grid.shape, place, INHIBITED_DEG))
        sated += SATED * _disc(grid.shape, place, SATED_DEG)
    times = durations([value for _, _, value in seen])
    return [
        Fixation((x + 0.5) / grid.shape[1], (y + 0.5) / grid.shape[0], ms, value)
        for (x, y, value), ms in zip(seen, times, strict=True)
    ]


def durations(saliencies: Sequence[float]) -> list[int]:
    """Whole milliseconds of fixations on places of these saliencies; they sum to at most 5,000 ms.

    The first has the usual length of a first one, the others the quantiles of a log-normal, the longest on the highest.
    """
    count = len(saliencies) - 1
    normal = NormalDist(float(np.log(MEAN_MS)) - DURATION_SPREAD**2 / 2, DURATION_SPREAD)
    # Equal ones keep their order, so that later fixations are the longer ones.
    order = sorted(range(1, count + 1), key=lambda place: (saliencies[place], place))
    times = [FIRST_MS] * (count + 1)
    for rank, place in enumerate(order):
        times[place] = float(np.exp(normal.inv_cdf((rank + 0.5) / count)))
    scale = min(1.0, MAX_MS / sum(times))
    # Rounded down, so that the sum keeps its limit.
    return [int(time * scale) for time in times]


def returns(path: Sequence[Fixation], size: tuple[int, int]) -> list[Return]:
    """The fixations on an image of `size` (H, W) that come back to within 2 degrees of one before the last one."""
    scale = degrees_per_px(size)
    spots = np.array([(fixation.x * size[1], fixation.y * size[0]) for fixation in path]) * scale
    repeats = []
    for number in range(2, len(path)):
        distances = np.hypot(*(spots[: number - 1] - spots[number]).T)
        if float(distances.min()) <= RETURN_DEG:
            repeats.append(Return(number + 1, int(distances.argmin()) + 1))
    return repeats


def degrees_per_px(size: tuple[int, int]) -> float:
    """Degrees of sight that one pixel of an image of `size` (H, W) spans on the assumed screen."""
    return min(SCREEN_DEG[0] / size[1], SCREEN_DEG[1] / size[0])


def _disc(shape: tuple[int, ...], place: tuple[float, float], spread_deg: float) -> Grid:
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    radius = spread_deg / degrees_per_px((shape[0], shape[1]))
    squared = (columns - place[0]) ** 2 + (rows - place[1]) ** 2
    return np.asarray(np.exp(-squared / (2 * radius * radius)), np.float64)
