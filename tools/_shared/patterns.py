"""Drawn patterns with equal colours: only their form distinguishes them, in any light, scale and angle.

`pattern("rings", 160, period=40, angle=0.3)` is a square of 0..1 whose mean and spread are those of every other
pattern: half of it is dark, half is bright. Known-answer images are made of them (`tools/*/checks.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels

Plane = npt.NDArray[np.float32]
SUPERSAMPLED = 3
TURN = 2 * math.pi


def _rings(x: Plane, y: Plane) -> Plane:
    return np.asarray(np.cos(TURN * np.hypot(x, y)), np.float32)


def _stripes(x: Plane, y: Plane) -> Plane:
    del y
    return np.asarray(np.cos(TURN * x), np.float32)


def _checks(x: Plane, y: Plane) -> Plane:
    return np.asarray(np.sin(TURN * x / 1.5) * np.sin(TURN * y / 1.5), np.float32)


def _dots(x: Plane, y: Plane) -> Plane:
    row = np.round(y)
    along = x - row / 2
    return np.asarray(-np.hypot(along - np.round(along), y - row), np.float32)


def _spokes(x: Plane, y: Plane) -> Plane:
    return np.asarray(np.cos(9 * np.arctan2(y, x)), np.float32)


def _waves(x: Plane, y: Plane) -> Plane:
    return np.asarray(np.cos(TURN * (y + 0.45 * np.sin(TURN * x / 2))), np.float32)


def _crosses(x: Plane, y: Plane) -> Plane:
    across, down = np.abs(x - np.round(x)), np.abs(y - np.round(y))
    return np.asarray(-np.minimum(across, down) - 0.4 * np.maximum(across, down), np.float32)


def _blobs(x: Plane, y: Plane) -> Plane:
    # A few plane waves of incommensurate directions: no repetition in sight.
    total = np.zeros_like(x)
    for a in (0.3, 1.2, 2.0, 2.9, 3.7):
        total += np.cos(TURN * 0.7 * math.cos(a) * x + (TURN * 0.7 * math.sin(a) * y + 5 * a))
    return total


FORMS: Mapping[str, Callable[[Plane, Plane], Plane]] = {
    "rings": _rings,
    "stripes": _stripes,
    "checks": _checks,
    "dots": _dots,
    "spokes": _spokes,
    "waves": _waves,
    "crosses": _crosses,
    "blobs": _blobs,
}


def pattern(form: str, height: int, width: int, *, period: float, angle: float = 0.0) -> Plane:
    """A pattern (height, width) of 0 (dark) and 1 (bright), smoothed at its edges.

    Args:
        form: of `FORMS`.
        height: pixels.
        width: pixels.
        period: pixels from one repetition to the next.
        angle: radians by which it is turned around its middle.
    """
    import cv2

    rows, columns = height * SUPERSAMPLED, width * SUPERSAMPLED
    # One row and one column in periods. Plain floats do not widen them: all is drawn in single precision.
    x, y = ((np.arange(side, dtype=np.float32) - side / 2) / (period * SUPERSAMPLED) for side in (columns, rows))
    cosine, sine = math.cos(angle), math.sin(angle)
    across = np.asarray(cosine * x - sine * y[:, None], np.float32)
    down = np.asarray(sine * x + cosine * y[:, None], np.float32)
    values = FORMS[form](across, down)
    halves = (values > np.median(values)).astype(np.float32)
    return np.asarray(cv2.resize(halves, (width, height), interpolation=cv2.INTER_AREA), np.float32)


def coloured(plane: Plane, dark: tuple[int, int, int], bright: tuple[int, int, int]) -> npt.NDArray[np.float32]:
    """A pattern (h, w) in two RGB colours, (h, w, 3) of 0..255."""
    low, high = np.asarray(dark, np.float32), np.asarray(bright, np.float32)
    return np.asarray(low + plane[..., None] * (high - low), np.float32)


def lit(picture: npt.NDArray[np.floating], gain: float | Plane, tint: tuple[float, float, float] = (1, 1, 1)) -> Pixels:
    """A picture (h, w, 3) of 0..255 under another light: times `gain` (of all, or (h, w)) and a tint by channel."""
    light = np.asarray(gain, np.float32)[..., None] * np.asarray(tint, np.float32)
    return np.asarray(np.clip(picture * light, 0, 255), np.uint8)
