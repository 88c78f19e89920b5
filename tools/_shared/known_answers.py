"""Easy scenes for checks of loaded weights, and checks of an answer about them.

A check catches a flipped sign, colours in the wrong order, swapped coordinates or wrong
normalisation; it measures nothing. Every tool with two sides has checks with both answers, so that a constant answer
fails, too. `hybrid tools check depth` runs those of one tool, which lie in `tools/depth/checks.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hybrid.tool import Evidence
from hybrid.types import LETTERS, Box, Json

if TYPE_CHECKING:
    from hybrid.samples.item import Item
    from hybrid.samples.pop_out import Scene
    from hybrid.tool import Pixels

# Of the generated items; neither tuning (0 to 99) nor measuring (1000) uses it.
SEED = 7000
# By number of a depth item which of its two points, A or B, is nearer: by a factor of at least 2.2; three items have
# both on one row.
DEPTH_ANSWERS: Mapping[int, int] = {1: 0, 5: 1, 8: 1, 10: 0, 11: 1}
BALL, CUBE = "a red ball", "a blue cube"


def known_item(make: Callable[[np.random.Generator, int], Item], task: str, index: int, answer: int) -> Item:
    """Item `index` of the generated questions of a task, whose right choice is number `answer`."""
    from hybrid.samples.seeds import generator

    return make(generator("sample", SEED, zlib.crc32(task.encode()), 1, index), answer)


def depth_item(index: int) -> Item:
    """A scene with two marked points at clearly different depths, for an index of `DEPTH_ANSWERS`."""
    from hybrid.samples.geometry import relative_depth

    return known_item(relative_depth, "Relative_Depth", index, DEPTH_ANSWERS[index])


def pop_out_scene(number: int, things: int) -> Scene:
    """Some coloured things among grey ones."""
    from hybrid.samples.pop_out import pop_out

    return pop_out(np.random.default_rng((SEED, number)), things)


def ball_and_cube() -> tuple[Pixels, dict[str, Box]]:
    """A shaded red ball and a blue cube on a light floor, and the box of each by its name, pixels."""
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
    """A copy of a picture (H, W, 3) with 0.85 of its light."""
    return np.asarray(pixels * 0.85, np.uint8)


def point_args(places: Sequence[tuple[float, float]]) -> list[Json]:
    """Places (x, y) in pixels as arguments, named A, B, ..."""
    return [{"x": x, "y": y, "label": LETTERS[number]} for number, (x, y) in enumerate(places)]


def box_arg(box: Sequence[float], label: str | None = None) -> dict[str, Json]:
    """A box (x0, y0, x1, y1) in pixels as an argument."""
    return {**dict(zip(("x0", "y0", "x1", "y1"), map(float, box), strict=True)), "label": label}


def expects(key: str, value: str | int) -> Callable[[Evidence], str | None]:
    """Return a check that describes the error if a field of `data` has another value."""

    def wrong(evidence: Evidence) -> str | None:
        return None if evidence.data[key] == value else f"{key} is {evidence.data[key]!r}, expected {value!r}"

    return wrong


def rows_of(evidence: Evidence, key: str) -> list[Mapping[str, Json]]:
    """The objects in a list of `data`; none where it is no list."""
    rows = evidence.data[key]
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def number(row: Mapping[str, Json], key: str) -> float:
    """A number of `data`. Raises `TypeError` for anything else."""
    value = row[key]
    if not isinstance(value, int | float):
        raise TypeError(f"{key} is {value!r}, not a number")
    return float(value)
