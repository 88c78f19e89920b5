"""Descriptions that the embedded model writes before it answers: coloured things, or the stripes of a flag.

    seen(pixels)                      the things, found by their colour: no file of facts is read
    described(things, shapes)         "1 red cube 1 0.2 0.60, 2 green ball 1 0.4 0.40"
    striped(pixels)                   "upright green white orange"
    said(view, pixels)                one of these, in the order that a kind of question needs

Colours are those that generated questions name; a thing is a connected region of one colour, and a ball or circle if an
ellipse covers it. A thing has two numbers: its position among all things before its name, and its position among things
of that name after it; so the last numbers are the counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels

# Hues of `NAMED_COLOURS` in a picture, in degrees.
HUES: Final = {"red": 0, "orange": 30, "yellow": 54, "green": 130, "blue": 228, "purple": 282}
# Index in `HUES` of the nearest hue, for each of 256 hues.
NEAREST: Final = np.array(
    [np.argmin([abs((level * 360 / 256 - hue + 180) % 360 - 180) for hue in HUES.values()]) for level in range(256)]
)
MIN_SATURATION: Final = 0.36
# Minimum saturation and value of a coloured pixel (HSV, 0..1); grounds and shadows are below.
MIN_VALUE: Final = 0.12
# Minimum area of a thing, as a share of the picture.
MIN_AREA: Final = 0.0008
# Largest area of a region that counts as the rim of the thing next to it, as a share of the thing's area.
SWALLOWED: Final = 0.15
# Largest distance from the middle of the thing to that of such a region, in square roots of the thing's area.
REACH: Final = 0.8
# Overlap (intersection over union) with an ellipse from which a region counts as round.
ROUND: Final = 0.93


# Smallest share of a part of a picture that a thing must fill to be named.
MIN_SHOWN: Final = 0.05
# Width over height from which a picture is two pictures side by side.
PANORAMA: Final = 2.0
# Reference colours of flags.
PAINTS: Final = {
    "red": (205, 30, 45),
    "green": (0, 140, 70),
    "blue": (0, 80, 180),
    "white": (250, 250, 250),
    "black": (10, 10, 10),
    "yellow": (255, 205, 0),
    "orange": (255, 135, 30),
}

# Things on the ground from left to right, flat things from the largest to the smallest, or stripes.
View = Literal["ground", "prominence", "flag"]
# Names of round things, and of others.
SHAPES: Final[Mapping[View, tuple[str, str]]] = {"ground": ("ball", "cube"), "prominence": ("circle", "square")}


@dataclass(frozen=True)
class Thing:
    """A thing: its colour, whether its outline is an ellipse, its middle and its area as shares of the picture."""

    colour: str
    round: bool
    x: float
    y: float
    area: float

    @property
    def place(self) -> tuple[str, str]:
        """The middle (x, y), rounded to tenths; y has a second decimal, so that the two are never the same token."""
        return f"{self.x:.1f}", f"{round(self.y, 1):.2f}"


def seen(pixels: Pixels) -> tuple[Thing, ...]:
    """Return the coloured things of an RGB picture, from left to right."""
    return tuple(sorted((region for region, _ in _regions(pixels)), key=lambda name: name.x))


def patches(pixels: Pixels, rows: int, columns: int) -> list[Thing | None]:
    """Return, row by row, the largest thing in each of rows x columns equal parts of a picture.

    The result for a part is None if no thing fills more than `MIN_SHOWN` of it. If the image is two pictures side by
    side, each picture gets half of the columns, and places are relative to the picture, as in the descriptions.
    """
    height, width = pixels.shape[:2]
    if width >= PANORAMA * height:
        item = columns // 2
        left_text, right = (patches(half, rows, item) for half in (pixels[:, : width // 2], pixels[:, width // 2 :]))
        starts = range(0, rows * item, item)
        return [name for start in starts for half in (left_text, right) for name in half[start : start + item]]
    text: list[Thing | None] = [None] * (rows * columns)
    most = np.full(rows * columns, MIN_SHOWN)
    for other_region, region in _regions(pixels):
        shares = cv2.resize(region.astype(np.float32), (columns, rows), interpolation=cv2.INTER_AREA).ravel()
        for place in np.flatnonzero(shares > most):
            text[place], most[place] = other_region, shares[place]
    return text


def _regions(pixels: Pixels) -> list[tuple[Thing, npt.NDArray[np.bool_]]]:
    """Return each thing with its mask, (H, W)."""
    hue, saturation, value = cv2.split(cv2.cvtColor(cv2.GaussianBlur(pixels, (0, 0), 0.8), cv2.COLOR_RGB2HSV_FULL))
    coloured = (saturation > 255 * MIN_SATURATION) & (value > 255 * MIN_VALUE)
    nearest = np.where(coloured, NEAREST[hue], len(HUES))
    pairs = [
        pair for number, colour in enumerate(HUES) for pair in _connected((nearest == number).astype(np.uint8), colour)
    ]
    # Skip the shaded or blurred rim of a much larger thing.
    return [
        (small, region)
        for small, region in pairs
        if not any(
            small.area < SWALLOWED * large.area
            and np.hypot(small.x - large.x, small.y - large.y) < REACH * np.sqrt(large.area)
            for large, _ in pairs
        )
    ]


def _connected(mask: npt.NDArray[np.uint8], colour: str) -> list[tuple[Thing, npt.NDArray[np.bool_]]]:
    height, width = mask.shape
    count, labels, stats, centres = cv2.connectedComponentsWithStats(
        cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8))
    )
    results = []
    for number in range(1, count):
        area = stats[number, cv2.CC_STAT_AREA] / mask.size
        if area >= MIN_AREA:
            x, y = centres[number]
            region = labels == number
            name = Thing(colour, _is_round(region), (x + 0.5) / width, (y + 0.5) / height, float(area))
            results.append((name, region))
    return results


def _is_round(region: npt.NDArray[np.bool_]) -> bool:
    """Return whether the ellipse of the region's moments covers it."""
    x0, y0, width, height = cv2.boundingRect(region.astype(np.uint8))
    part = region[y0 : y0 + height, x0 : x0 + width].astype(np.uint8)
    outlines, _ = cv2.findContours(part, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    filled = np.pad(cv2.drawContours(np.zeros_like(part), outlines, -1, 1, cv2.FILLED) > 0, 2)
    rows, columns = np.nonzero(filled)
    points = np.stack([columns, rows]).astype(float)
    middle = points.mean(axis=1, keepdims=True)
    inverse = np.linalg.inv(np.cov(points) + np.eye(2) / 12)
    y, x = np.mgrid[: filled.shape[0], : filled.shape[1]]
    offsets = np.stack([x.ravel(), y.ravel()]) - middle
    ellipse = (np.einsum("in,ij,jn->n", offsets, inverse, offsets) <= 4).reshape(filled.shape)
    return bool((ellipse & filled).sum() / (ellipse | filled).sum() >= ROUND)


def described(items: Sequence[Thing], shapes: tuple[str, str]) -> str:
    """Describe the things in words, in the given order; `shapes` has the words for round things and for all others."""
    met: Counter[str] = Counter()
    words: list[str] = []
    for item in items:
        name = f"{item.colour} {shapes[0] if item.round else shapes[1]}"
        met[name] += 1
        words.append(f"{len(words) + 1} {name} {met[name]} {' '.join(item.place)}")
    return ", ".join(words) or "nothing"


def striped(pixels: Pixels) -> str:
    """Return the three equal stripes of the flag on a plain ground: their direction and their colours."""
    differences = np.abs(pixels.astype(int) - pixels[0, 0].astype(int)).max(axis=2) > 24
    rows, columns = np.flatnonzero(differences.mean(axis=1) > 0.1), np.flatnonzero(differences.mean(axis=0) > 0.1)
    top, column, height, width = rows[0], columns[0], np.ptp(rows), np.ptp(columns)
    upright = [_paint(pixels[top + height // 6, column + place * width // 6]) for place in (1, 3, 5)]
    level = [_paint(pixels[top + place * height // 6, column + width // 6]) for place in (1, 3, 5)]
    return f"upright {' '.join(upright)}" if len(set(upright)) > 1 else f"level {' '.join(level)}"


def _paint(pixel: npt.NDArray[np.uint8]) -> str:
    return min(PAINTS, key=lambda name: float(np.abs(pixel.astype(int) - np.array(PAINTS[name])).sum()))


def describe_view(view: View, pixels: Pixels) -> str:
    """Return the description of a picture; of two pictures side by side first the left one."""
    if view == "flag":
        return striped(pixels)
    height, width = pixels.shape[:2]
    if width >= PANORAMA * height:
        return f"{describe_view(view, pixels[:, : width // 2])}; {describe_view(view, pixels[:, width // 2 :])}"
    if view == "prominence":
        return described(sorted(seen(pixels), key=lambda name: -name.area), SHAPES[view])
    return described(seen(pixels), SHAPES[view])
