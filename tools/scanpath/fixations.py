"""Fixations on a saliency map: winner-take-all with inhibition of return (Koch and Ullman 1985; Itti and Koch 2000).

`fixate(values, count, seed)` returns fixations in fractions of the image; `returns(path, size)` finds revisits.

The priority of a position is its saliency, times the probability of the saccade to it (Le Meur and Liu 2015), times its
uninhibited share. Lengths are degrees of visual angle, assuming that the image fills a screen of 54 x 35 degrees as far
as its aspect ratio allows, as in COCO-Search18 (Chen et al. 2021) and COCO-FreeView. Durations are the quantiles of a
skewed distribution, longer at more salient positions. Constants were set by hand to approximate published statistics of
people (`bench/scanpath.py`); none was fitted to recorded eyes.
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
# Most probable saccade length, in degrees, and the spread of its logarithm: short saccades are frequent and long ones
# not rare (Tatler and Vincent 2008).
AMPLITUDE_DEG, AMPLITUDE_SPREAD = 3.0, 1.2
# Relative increase of the probability of horizontal saccades over the mean of all directions. The probability of
# vertical saccades decreases by the same share (Foulsham, Kingstone and Underwood 2008).
SIDEWAYS = 0.1
# Spread of the inhibition around a fixation, degrees.
INHIBITED_DEG = 1.5
# Share of the inhibition left after one more fixation: a quarter after two, so that eyes return.
LEAK = 0.5
# Spread, in degrees, of the area in which a fixation lowers the priority, and the strength of this effect: eyes scan an
# area for a while and then move on (Tatler and Vincent 2008).
SATED_DEG, SATED = 6.0, 0.25
# Standard deviation of a viewer's map around the map common to all viewers; a seed represents a viewer.
NOISE = 0.03
# Mean duration of a fixation on a photograph (Cronin et al. 2020); the spread of its logarithm is set by hand.
MEAN_MS, DURATION_SPREAD = 298.0, 0.45
# Duration of the first fixation, in the centre, whatever is there (Cronin et al. 2020).
FIRST_MS = 285.0
# Fixations within this distance are at the same position.
RETURN_DEG = 2.0
MAX_MS = 5000
GRID_PX = 128

Grid = npt.NDArray[np.float64]


class Fixation(NamedTuple):
    """A fixation. Its position is in fractions of width and height, and `saliency` (0..1) is that of the position.

    `ms` is its duration in whole milliseconds.
    """

    x: float
    y: float
    ms: int
    saliency: float


class Return(NamedTuple):
    """Fixation `number`, from 1, returns to the position of the earlier fixation `to`, with others in between."""

    number: int
    to: int


def fixate(values: SaliencyMap, count: int, seed: int) -> list[Fixation]:
    """Return `count` fixations on a map (h, w) in 0..1; the first is in the centre, where free viewing starts.

    The durations sum to at most 5,000 ms.
    """
    import cv2

    factor = min(1.0, GRID_PX / max(values.shape))
    size = (max(1, round(values.shape[1] * factor)), max(1, round(values.shape[0] * factor)))
    grid = np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_AREA), np.float64)
    # Smooth noise, deterministic for the seed.
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
            # A saccade has a minimum length: staying counts as moving to the next cell.
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
    """Return durations in whole milliseconds for positions of these saliencies; they sum to at most 5,000 ms.

    The first has the typical length of a first fixation; the others are quantiles of a log-normal, longest at the
    highest saliency.
    """
    count = len(saliencies) - 1
    normal = NormalDist(float(np.log(MEAN_MS)) - DURATION_SPREAD**2 / 2, DURATION_SPREAD)
    # Equally salient positions keep their order, so that the later fixations are longer.
    order = sorted(range(1, count + 1), key=lambda place: (saliencies[place], place))
    times = [FIRST_MS] * (count + 1)
    for rank, place in enumerate(order):
        times[place] = float(np.exp(normal.inv_cdf((rank + 0.5) / count)))
    scale = min(1.0, MAX_MS / sum(times))
    # Round down, so that the sum keeps its limit.
    return [int(time * scale) for time in times]


def returns(path: Sequence[Fixation], size: tuple[int, int]) -> list[Return]:
    """Find the fixations on an image of `size` (H, W) within 2 degrees of an earlier one, except the previous one."""
    scale = degrees_per_px(size)
    spots = np.array([(fixation.x * size[1], fixation.y * size[0]) for fixation in path]) * scale
    repeats = []
    for number in range(2, len(path)):
        distances = np.hypot(*(spots[: number - 1] - spots[number]).T)
        if float(distances.min()) <= RETURN_DEG:
            repeats.append(Return(number + 1, int(distances.argmin()) + 1))
    return repeats


def degrees_per_px(size: tuple[int, int]) -> float:
    """Return the degrees of visual angle per pixel for an image of `size` (H, W) on the assumed screen."""
    return min(SCREEN_DEG[0] / size[1], SCREEN_DEG[1] / size[0])


def _disc(shape: tuple[int, ...], place: tuple[float, float], spread_deg: float) -> Grid:
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    radius = spread_deg / degrees_per_px((shape[0], shape[1]))
    squared = (columns - place[0]) ** 2 + (rows - place[1]) ** 2
    return np.asarray(np.exp(-squared / (2 * radius * radius)), np.float64)
