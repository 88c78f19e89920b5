"""Where eyes go on a map: winner-take-all with inhibition of return (Koch and Ullman 1985; Itti and Koch 2000).

`fixate(values, count, seed)` gives fixations in fractions of the image. All constants
are set by hand, none was fitted to recorded eyes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from tools.saliency.cues import SaliencyMap

INHIBITED = 0.12
"""Radius of what was just seen, as a fraction of the long side; at 0.09 neighbours were revisited."""
LEAK = 0.85
"""How much of the inhibition is left after one more fixation."""
AMPLITUDE, AMPLITUDE_SD = 0.18, 0.22
"""Usual length of a saccade as a fraction of the long side, and how widely it varies."""
NEAR_SHARE = 0.65
"""How much of a place's value depends on the saccade that leads there."""
NOISE = 0.03
"""Standard deviation of a viewer's own map about the common one: what a seed decides."""
FIRST_MS, SALIENT_MS, LATER_MS, FIRST_SHARE = 180.0, 160.0, 40.0, 0.8
"""Duration: a base, more for a salient place, more after the first, and the first one shorter."""
MOST_MS = 5000
GRID_PX = 128


@dataclass(frozen=True)
class Fixation:
    """A fixation: x, y in fractions of width and height; whole milliseconds; saliency 0..1 of the place."""

    x: float
    y: float
    ms: int
    saliency: float


def fixate(values: SaliencyMap, count: int, seed: int, *, from_centre: bool = True) -> list[Fixation]:
    """`count` fixations on a map (h, w) in 0..1; the first in the middle, where free viewing starts.

    The durations sum to at most 5,000 ms.
    """
    factor = min(1.0, GRID_PX / max(values.shape))
    size = (max(1, round(values.shape[1] * factor)), max(1, round(values.shape[0] * factor)))
    grid = np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_AREA), np.float64)
    own = np.clip(grid + _noise(grid.shape, seed), 1e-6, None)
    inhibition = np.zeros_like(grid)
    place = ((grid.shape[1] - 1) / 2, (grid.shape[0] - 1) / 2)
    seen: list[tuple[float, float, float]] = []
    for number in range(count):
        if number or not from_centre:
            place = _winner(own * np.clip(1 - inhibition, 0.0, 1.0), place)
        seen.append((*place, float(grid[int(place[1]), int(place[0])])))
        inhibition = np.maximum(LEAK * inhibition, _disc(grid.shape, place))
    return _timed(seen, grid.shape)


def _noise(shape: tuple[int, ...], seed: int) -> npt.NDArray[np.float64]:
    """Smooth noise; exactly the same for the same seed."""
    rough = np.random.default_rng(seed).normal(0, 1, shape)
    smooth = np.asarray(cv2.GaussianBlur(rough, (0, 0), max(1.0, 0.03 * max(shape))), np.float64)
    return smooth * (NOISE / max(float(smooth.std()), 1e-9))


def _winner(values: npt.NDArray[np.float64], place: tuple[float, float]) -> tuple[float, float]:
    rows, columns = np.ogrid[: values.shape[0], : values.shape[1]]
    length = np.hypot(columns - place[0], rows - place[1]) / max(values.shape)
    usual = np.exp(-(((length - AMPLITUDE) / AMPLITUDE_SD) ** 2) / 2)
    row, column = divmod(int(np.argmax(values * (1 - NEAR_SHARE + NEAR_SHARE * usual))), values.shape[1])
    return float(column), float(row)


def _disc(shape: tuple[int, ...], place: tuple[float, float]) -> npt.NDArray[np.float64]:
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    radius = INHIBITED * max(shape)
    squared = (columns - place[0]) ** 2 + (rows - place[1]) ** 2
    return np.asarray(np.exp(-squared / (2 * radius * radius)), np.float64)


def _timed(seen: Sequence[tuple[float, float, float]], shape: tuple[int, ...]) -> list[Fixation]:
    times = [
        (FIRST_MS + SALIENT_MS * value + (LATER_MS if number else 0)) * (1.0 if number else FIRST_SHARE)
        for number, (_, _, value) in enumerate(seen)
    ]
    scale = min(1.0, MOST_MS / max(sum(times), 1.0))
    return [
        # Rounded down, so that the sum keeps its limit.
        Fixation((x + 0.5) / shape[1], (y + 0.5) / shape[0], int(time * scale), value)
        for (x, y, value), time in zip(seen, times, strict=True)
    ]
