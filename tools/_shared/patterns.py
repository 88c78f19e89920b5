"""Drawn patterns of equal colours: what tells them apart is their form, at any light, scale and angle.

`pattern("rings", 160, period=40, angle=0.3)` is a square of 0..1 whose mean and spread are those of every other
pattern: half of it is dark, half is bright. Known-answer images are made of them (`tools/*/checks.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels

Plane = npt.NDArray[np.float32]
SUPERSAMPLED = 3
TURN = 2 * np.pi


def _rings(x: Plane, y: Plane) -> Plane:
    return np.cos(TURN * np.hypot(x, y))


def _stripes(x: Plane, y: Plane) -> Plane:
    del y
    return np.cos(TURN * x)


def _checks(x: Plane, y: Plane) -> Plane:
    return np.sin(TURN * x / 1.5) * np.sin(TURN * y / 1.5)


def _dots(x: Plane, y: Plane) -> Plane:
    row = np.round(y)
    return -np.hypot(x - row / 2 - np.round(x - row / 2), y - row)


def _spokes(x: Plane, y: Plane) -> Plane:
    return np.cos(9 * np.arctan2(y, x))


def _waves(x: Plane, y: Plane) -> Plane:
    return np.cos(TURN * (y + 0.45 * np.sin(TURN * x / 2)))


def _crosses(x: Plane, y: Plane) -> Plane:
    across, down = np.abs(x - np.round(x)), np.abs(y - np.round(y))
    return -np.minimum(across, down) - 0.4 * np.maximum(across, down)


def _blobs(x: Plane, y: Plane) -> Plane:
    # A few plane waves of incommensurate directions: no repetition in sight.
    angles = np.array([0.3, 1.2, 2.0, 2.9, 3.7])
    return np.sum([np.cos(TURN * 0.7 * (np.cos(a) * x + np.sin(a) * y) + 5 * a) for a in angles], axis=0)


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
    rows, columns = height * SUPERSAMPLED, width * SUPERSAMPLED
    y, x = np.mgrid[:rows, :columns].astype(np.float32)
    x, y = (x - columns / 2) / (period * SUPERSAMPLED), (y - rows / 2) / (period * SUPERSAMPLED)
    turned = np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y
    values = FORMS[form](*turned)
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
