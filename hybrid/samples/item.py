"""A generated question before it becomes a row: text, images, choices, answer, and the facts that make it true.

The facts never reach a row; tests and measurements read them. Pixel coordinates are indices, x right, y down.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from hybrid.core.errors import HybridError
from hybrid.core.types import Box, Point
from hybrid.samples.layouts import Name, Rect
from hybrid.samples.scenes import Camera
from hybrid.samples.textures import FloatMap
from hybrid.tool import Pixels

# x, y in pixels.
Spot = tuple[float, float]

Matrix = tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]

ATTEMPTS = 300

T = TypeVar("T")


class SampleFacts:
    """The facts that make the answer of an item true, by kind."""


@dataclass(frozen=True, eq=False)
class DepthFacts(SampleFacts):
    """Positions and depths of A and B, and the picture's depth map (H, W). Depths are metres along the optical axis."""

    points: tuple[Spot, Spot]
    depths_m: tuple[float, float]
    depth_m: FloatMap


@dataclass(frozen=True, eq=False)
class JigsawFacts(SampleFacts):
    """The full, uncompressed picture before its lower right quarter was blacked out."""

    full_picture: Pixels


@dataclass(frozen=True)
class CorrespondenceFacts(SampleFacts):
    """The positions of REF in image 1 and of A to D in image 2, and the mapping between the images.

    The mapping is a homography, or the two cameras together with REF's depth.
    """

    ref: Spot
    candidates: tuple[Spot, ...]
    homography: Matrix | None = None
    cameras: tuple[Camera, Camera] | None = None
    ref_depth_m: float | None = None


@dataclass(frozen=True)
class MotionFacts(SampleFacts):
    """The two cameras."""

    cameras: tuple[Camera, Camera]


@dataclass(frozen=True)
class ReflectanceFacts(SampleFacts):
    """Positions of A and B, their albedo (linear luminance, 0..1) and the light on them (1: full sun)."""

    points: tuple[Spot, Spot]
    albedos: tuple[float, float]
    lights: tuple[float, float]


@dataclass(frozen=True)
class CountFacts(SampleFacts):
    """The counted object and the box of each instance."""

    name: Name
    boxes: tuple[Rect, ...]


@dataclass(frozen=True)
class BoxFacts(SampleFacts):
    """The named object, its tight box (from its visible pixels) and the two boxes drawn."""

    name: Name
    tight: Rect
    boxes: tuple[Rect, Rect]


@dataclass(frozen=True)
class RelationFacts(SampleFacts):
    """The two named objects, the queried relation, whether the relation holds, and the objects' boxes."""

    first: Name
    second: Name
    relation: str
    holds: bool
    boxes: tuple[Rect, Rect]


@dataclass(frozen=True, eq=False)
class Item:
    """A question with pixels: `images` are RGB (H, W, 3) uint8; `answer` is the index of the right choice.

    `facts` is None if only the answer is known; `evidence` are the boxes, in the first image, that have to be seen.
    """

    question: str
    images: tuple[Pixels, ...]
    choices: tuple[str, ...]
    answer: int
    facts: SampleFacts | None = None
    evidence: tuple[Rect, ...] = ()


def until(what: str, make: Callable[[], T | None]) -> T:
    """Return the first result of a random construction that is not None. Raises `HybridError` after `ATTEMPTS`."""
    for _ in range(ATTEMPTS):
        item = make()
        if item is not None:
            return item
    raise HybridError(f"no {what} could be constructed in {ATTEMPTS} attempts; choose another seed")


def ringed(pixels: Pixels, points: Sequence[tuple[Spot, str]], color: str = "red") -> Pixels:
    """Draw BLINK's rings and letters on a copy; `color` is "red" or "white"."""
    from hybrid.marks.drawing import MarkStyle, draw_marks

    style = MarkStyle(color="white" if color == "white" else "red")
    return draw_marks(pixels, [Point(x, y, label) for (x, y), label in points], style=style)


def boxed(pixels: Pixels, red: Rect, green: Rect) -> Pixels:
    """Outline Box A in red and Box B in green on a copy."""
    from hybrid.marks.drawing import LabelledBox, draw_marks

    return draw_marks(pixels, boxes=[LabelledBox(Box(*red), "A", "red"), LabelledBox(Box(*green), "B", "green")])


def pick(rng: np.random.Generator, count: int) -> int:
    """Return a random index below `count`."""
    return int(rng.integers(count))


def jpeg(pixels: Pixels, quality: int = 75) -> bytes:
    """Encode a picture (H, W, 3) as JPEG with 4:2:0 chroma subsampling."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality, subsampling="4:2:0")
    return buffer.getvalue()
