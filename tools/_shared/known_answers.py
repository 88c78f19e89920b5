"""Easy scenes for checks of loaded weights, and checks of the answers.

A check catches a flipped sign, colours in the wrong order, swapped coordinates or wrong normalisation; it measures no
accuracy. A tool with two possible answers has checks for both, so a constant answer fails, too.
`hybrid tools check depth` runs the checks of one tool, which are in `tools/depth/checks.py`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hybrid.core.types import LETTERS, Box, Json
from hybrid.tool import Evidence, Pixels

if TYPE_CHECKING:
    from hybrid.samples.item import Item
    from hybrid.samples.pop_out import PopOutScene

Plane = npt.NDArray[np.float32]
SUPERSAMPLED = 3
TURN = 2 * math.pi


def _crosses(x: Plane, y: Plane) -> Plane:
    across, down = np.abs(x - np.round(x)), np.abs(y - np.round(y))
    return np.asarray(-np.minimum(across, down) - 0.4 * np.maximum(across, down), np.float32)


def _blobs(x: Plane, y: Plane) -> Plane:
    # The directions of these plane waves are incommensurate, so the pattern does not repeat visibly.
    total = np.zeros_like(x)
    for a in (0.3, 1.2, 2.0, 2.9, 3.7):
        total += np.cos(TURN * 0.7 * math.cos(a) * x + (TURN * 0.7 * math.sin(a) * y + 5 * a))
    return total


FORMS: Mapping[str, Callable[[Plane, Plane], Plane]] = {
    "rings": lambda x, y: np.cos(TURN * np.hypot(x, y)),
    "stripes": lambda x, _: np.cos(TURN * x),
    "checks": lambda x, y: np.sin(TURN * x / 1.5) * np.sin(TURN * y / 1.5),
    # Every second row is shifted by half a step.
    "dots": lambda x, y: -np.hypot((x - np.round(y) / 2) - np.round(x - np.round(y) / 2), y - np.round(y)),
    "spokes": lambda x, y: np.cos(9 * np.arctan2(y, x)),
    "waves": lambda x, y: np.cos(TURN * (y + 0.45 * np.sin(TURN * x / 2))),
    "crosses": _crosses,
    "blobs": _blobs,
}


def pattern(form: str, height: int, width: int, *, period: float, angle: float = 0.0) -> Plane:
    """Return a pattern (height, width) of 0 (dark) and 1 (bright), smoothed at its edges.

    Args:
        form: one of `FORMS`.
        height: pixels.
        width: pixels.
        period: pixels from one repetition to the next.
        angle: rotation around the centre in radians.
    """
    import cv2

    rows, columns = height * SUPERSAMPLED, width * SUPERSAMPLED
    # Coordinates of the columns and rows in periods, in float32: plain Python floats do not widen the arrays.
    x, y = ((np.arange(side, dtype=np.float32) - side / 2) / (period * SUPERSAMPLED) for side in (columns, rows))
    cosine, sine = math.cos(angle), math.sin(angle)
    across = np.asarray(cosine * x - sine * y[:, None], np.float32)
    down = np.asarray(sine * x + cosine * y[:, None], np.float32)
    values = FORMS[form](across, down)
    halves = (values > np.median(values)).astype(np.float32)
    return np.asarray(cv2.resize(halves, (width, height), interpolation=cv2.INTER_AREA), np.float32)


def coloured(plane: Plane, dark: tuple[int, int, int], bright: tuple[int, int, int]) -> npt.NDArray[np.float32]:
    """Return a pattern (h, w) in two RGB colours, (h, w, 3) of 0..255."""
    low, high = np.asarray(dark, np.float32), np.asarray(bright, np.float32)
    return np.asarray(low + plane[..., None] * (high - low), np.float32)


def lit(picture: npt.NDArray[np.floating], gain: float | Plane, tint: tuple[float, float, float] = (1, 1, 1)) -> Pixels:
    """Relight an image (h, w, 3) of 0..255: multiply it by `gain` (scalar or (h, w)) and a tint per channel."""
    light = np.asarray(gain, np.float32)[..., None] * np.asarray(tint, np.float32)
    return np.asarray(np.clip(picture * light, 0, 255), np.uint8)


# Seed of the generated items; neither tuning (0 to 99) nor measuring (1000) uses it.
SEED = 7000
# The nearer of the two points (0: A, 1: B) of each depth item, by item number. The nearer point is nearer by a factor
# of at least 2.2. In three items both points are on one row.
DEPTH_ANSWERS: Mapping[int, int] = {1: 0, 5: 1, 8: 1, 10: 0, 11: 1}
BALL, CUBE = "a red ball", "a blue cube"


def known_item(make: Callable[[np.random.Generator, int], Item], task: str, index: int, answer: int) -> Item:
    """Make item `index` of the generated questions of a task, with its right choice at index `answer`."""
    from hybrid.samples.seeds import generator

    return make(generator("sample", SEED, zlib.crc32(task.encode()), 1, index), answer)


def depth_item(index: int) -> Item:
    """Make a scene with two marked points at clearly different depths, for an index of `DEPTH_ANSWERS`."""
    from hybrid.samples.geometry import relative_depth

    return known_item(relative_depth, "Relative_Depth", index, DEPTH_ANSWERS[index])


def pop_out_scene(number: int, count: int) -> PopOutScene:
    """Draw `count` coloured objects among grey ones."""
    from hybrid.samples.pop_out import pop_out

    return pop_out(np.random.default_rng((SEED, number)), count)


def ball_and_cube() -> tuple[Pixels, dict[str, Box]]:
    """Draw a shaded red ball and a blue cube on a light floor; return the image and the boxes in pixels, by name."""
    import cv2

    height, width, radius = 360, 480, 70
    down = np.linspace(0.75, 1.0, height, dtype=np.float32)[:, None, None]
    canvas = np.array((205, 200, 192), np.float32) * np.broadcast_to(down, (height, width, 1))
    cv2.ellipse(canvas, (118, 278), (85, 16), 0, 0, 360, (120, 116, 110), -1, cv2.LINE_AA)
    y, x = np.mgrid[:height, :width]
    across, up = (x - 110) / radius, (y - 210) / radius
    inside = across**2 + up**2 < 1
    lit = np.sqrt(np.clip(1 - across**2 - up**2, 0, 1)) * 0.6 + 0.4 - 0.25 * (across + up)
    canvas[inside] = np.array((205, 30, 35), np.float32) * np.clip(lit, 0.3, 1.15)[inside][:, None]
    for corners, shade in (
        (((310, 130), (400, 130), (400, 280), (310, 280)), 1.0),
        (((400, 130), (440, 105), (440, 245), (400, 280)), 0.65),
        (((310, 130), (350, 105), (440, 105), (400, 130)), 1.25),
    ):
        colour = (35 * shade, 75 * shade, 190 * shade)
        cv2.fillPoly(canvas, [np.array(corners, np.int32)], colour, cv2.LINE_AA)
    boxes = {BALL: Box(40.0, 140.0, 180.0, 280.0), CUBE: Box(310.0, 105.0, 440.0, 280.0)}
    return np.clip(canvas, 0, 255).astype(np.uint8), boxes


def darker(pixels: Pixels) -> Pixels:
    """Return a copy of an image (H, W, 3) at 0.85 of its brightness."""
    return np.asarray(pixels * 0.85, np.uint8)


def point_args(places: Sequence[tuple[float, float]]) -> list[Json]:
    """Convert positions (x, y) in pixels to arguments labelled A, B, ..."""
    return [{"x": x, "y": y, "label": LETTERS[number]} for number, (x, y) in enumerate(places)]


def box_arg(box: Sequence[float], label: str | None = None) -> dict[str, Json]:
    """Convert a box (x0, y0, x1, y1) in pixels to an argument."""
    return {**dict(zip(("x0", "y0", "x1", "y1"), map(float, box), strict=True)), "label": label}


def expects(key: str, value: str | int | None) -> Callable[[Evidence], str | None]:
    """Return a check that describes the error if a field of `data` has another value."""

    def validation_error(evidence: Evidence) -> str | None:
        return None if evidence.data[key] == value else f"{key} is {evidence.data[key]!r}, expected {value!r}"

    return validation_error


def rows_of(evidence: Evidence, key: str) -> list[Mapping[str, Json]]:
    """Return the objects in a list of `data`, or none if it is not a list."""
    rows = evidence.data[key]
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def number(row: Mapping[str, Json], key: str) -> float:
    """Return a number of `data`. Raises `TypeError` for anything else."""
    value = row[key]
    if not isinstance(value, int | float):
        raise TypeError(f"{key} is {value!r}, not a number")
    return float(value)
