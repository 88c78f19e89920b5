"""The frame in which a model speaks coordinates, converted to pixels of the original image at the tool boundary.

MLLMs write points in pixels, in fractions of the size, in thousandths, with y first, or in pixels of the copy that was
sent to them. The frame is declared (`--model-arg frame=thousandths_yx`) or probed once on a rendered target
(`frame=probe`); it is in the manifest and is never guessed call by call.

In a tool call each coordinate has a name of its own, and the name decides: `x` is across and `y` down in every frame,
and the model is told so. Which number comes first matters only where two stand without names, as in the probe's reply.
A length is not a place and is not converted: an argument that is one says its unit, the same in every frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hybrid.errors import ToolError, UsageError
from hybrid.solving.image_registry import ImageRegistry
from hybrid.types import Fault, ImageRef, Json

FrameName = Literal["pixels", "fractions", "thousandths", "fractions_yx", "thousandths_yx"]
FRACTIONS = "fractions from 0 to 1 of the image's width (x) and height (y), origin at the top left"
THOUSANDTHS = "thousandths from 0 to 1000 of the image's width (x) and height (y), origin at the top left"
FRAMES: Mapping[FrameName, str] = {
    "pixels": "pixels of the image, origin at the top left, x to the right, y down",
    "fractions": FRACTIONS,
    "thousandths": THOUSANDTHS,
    "fractions_yx": FRACTIONS,
    "thousandths_yx": THOUSANDTHS,
}
POINT_KEYS = (("x", "y"), ("x0", "y0"), ("x1", "y1"))

FARTHEST = 1e9
"""Coordinates beyond it, in any frame, lie in no image."""


@dataclass(frozen=True)
class CoordinateSystem:
    """A declared frame; `sent_pixels` is what larger images are scaled down to (`--max-pixels`), if anything."""

    name: FrameName = "pixels"
    sent_pixels: int | None = None

    @property
    def words(self) -> str:
        """The frame as a model is told."""
        return FRAMES[self.name]

    def to_pixels(
        self, args: Mapping[str, Json], image_registry: ImageRegistry, images: Sequence[str]
    ) -> dict[str, Json]:
        """The arguments with every point and box in pixels of the original image.

        A number is across or down as its field's name says, in the frames with y first too. Coordinates belong to the
        first image of the call, or to the one that the point's own `image` (from 1) names. What is no number is left
        for the tool's own check, and an image that the registry does not hold to the call.

        Raises `ToolError` for a coordinate that is not finite, or beyond any image.
        """
        sizes = [_size(image_registry, name) for name in images]
        converted = self._convert(dict(args), sizes)
        assert isinstance(converted, dict)  # noqa: S101 - a mapping is converted to a mapping
        return converted

    def _convert(self, node: Json, sizes: Sequence[tuple[int, int] | None]) -> Json:
        if isinstance(node, Mapping):
            converted = {key: self._convert(value, sizes) for key, value in node.items()}
            number = node.get("image")
            place = number - 1 if isinstance(number, int) and 1 <= number <= len(sizes) else 0
            size = sizes[place] if sizes else None
            if size is not None:
                for x_key, y_key in POINT_KEYS:
                    x, y = node.get(x_key), node.get(y_key)
                    if _is_number(x) and _is_number(y):
                        converted[x_key], converted[y_key] = self._named(_finite(x, x_key), _finite(y, y_key), size)
            return converted
        if isinstance(node, list | tuple):
            return [self._convert(item, sizes) for item in node]
        return node

    def point(self, first: float, second: float, size: tuple[int, int]) -> tuple[float, float]:
        """Two numbers without names, in the order of this frame, as x and y in pixels of an image (width, height)."""
        x, y = (second, first) if self.name.endswith("_yx") else (first, second)
        return self._named(x, y, size)

    def under_names(self, numbers: Sequence[float]) -> dict[str, float]:
        """A point of two numbers, or a box of four, that stand without names, in the order of this frame."""
        names: tuple[str, ...] = ("x", "y") if len(numbers) == 2 else ("x0", "y0", "x1", "y1")
        if self.name.endswith("_yx"):
            names = tuple(name.translate(str.maketrans("xy", "yx")) for name in names)
        return dict(zip(names, numbers, strict=True))

    def _named(self, x: float, y: float, size: tuple[int, int]) -> tuple[float, float]:
        width, height = size
        if self.name.startswith("fractions"):
            return x * width, y * height
        if self.name.startswith("thousandths"):
            return x * width / 1000.0, y * height / 1000.0
        scale = self._scale(size)
        return x * scale, y * scale

    def _scale(self, size: tuple[int, int]) -> float:
        """Pixels of the original per pixel of the copy that was sent."""
        if self.sent_pixels is None or size[0] * size[1] <= self.sent_pixels:
            return 1.0
        return float((size[0] * size[1] / self.sent_pixels) ** 0.5)


def _size(image_registry: ImageRegistry, name: str) -> tuple[int, int] | None:
    ref: ImageRef | None = image_registry.find(name)
    return (ref.image.width, ref.image.height) if ref else None


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(value: Json, name: str) -> float:
    """A coordinate as a float. Raises `ToolError` for one that is not finite, or larger than `FARTHEST`."""
    if isinstance(value, int | float) and -FARTHEST <= value <= FARTHEST:
        return float(value)
    raise ToolError(f"{name}: a coordinate must be a finite number, found {value!r:.40}", Fault.BAD_ARGUMENTS)


def frame_named(name: str) -> CoordinateSystem:
    """The frame of that name. Raises `UsageError` that lists the frames."""
    for known in FRAMES:
        if name == known:
            return CoordinateSystem(known)
    raise UsageError(f"--model-arg frame={name}: there are: {', '.join(FRAMES)}, probe")
