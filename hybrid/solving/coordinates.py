"""The frame in which a model writes coordinates, converted to pixels of the original image at the tool boundary.

MLLMs write points in pixels, in fractions of the size, or in thousandths, some with y first. The pixels may be those of
the original, of the copy that was sent, or of the copy that the model's processor makes. The frame is declared
(`--model-arg frame=thousandths_yx`), probed once on a rendered target (`frame=probe`), or taken from the style of the
tools. It is recorded in the manifest and never guessed per call.

In a tool call each coordinate has its own name, and the name decides: `x` is across and `y` is down in every frame, and
the model is told so. The order matters only for two numbers without names, as in the probe's reply. A length is not a
position and is not converted: such an argument states its unit, which is the same in every frame.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hybrid.core.coordinates import Axis, Place
from hybrid.core.errors import ToolError, UsageError
from hybrid.core.types import Box, Fault, ImageRef, Json
from hybrid.models.images import Resizing, fit
from hybrid.solving.images import ImageRegistry
from hybrid.tool import Tool, json_of_args

if TYPE_CHECKING:
    from hybrid.tool import Args

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
# Prefix of a frame's name, before the factor of the model's processor and its minimum and maximum number of pixels:
# `resized:28:3136:1003520`.
RESIZED = "resized"
POINT_KEYS = (("x", "y"), ("x0", "y0"), ("x1", "y1"))

# Maximum distance, in pixels, at which a converted coordinate is rounded to a whole pixel.
SAME_PIXEL = 0.05
# Larger coordinates, in any frame, are outside any image.
FARTHEST = 1e9


@dataclass(frozen=True)
class CoordinateSystem:
    """A declared frame; `sent_pixels` is the size to which larger images are scaled down (`--max-pixels`), if any."""

    name: FrameName = "pixels"
    sent_pixels: int | None = None
    # The resizing by the model's processor, if coordinates are pixels of its resized copy.
    resizing: Resizing | None = None

    @property
    def words(self) -> str:
        """Description of the frame for a model."""
        return FRAMES[self.name]

    def to_pixels(
        self, args: Mapping[str, Json], image_registry: ImageRegistry, images: Sequence[str]
    ) -> dict[str, Json]:
        """Return the arguments with every point and box in pixels of the original image.

        Whether a number is x or y is decided by the name of its field, also in frames with y first. Coordinates belong
        to the first image of the call, or to the image that the point's own `image` (from 1) names. Values that are not
        numbers are left for the tool's own validation; unknown images are left for the call, which rejects them.

        Raises `ToolError` for a coordinate that is not finite, or beyond any image.
        """
        sizes = [_size_of(ref) if (ref := image_registry.find(name)) else None for name in images]
        converted = self._convert(dict(args), sizes)
        assert isinstance(converted, dict)  # noqa: S101 - the conversion of a mapping is a mapping
        return converted

    def args_in_pixels(self, tool: Tool, args: Args, image_registry: ImageRegistry, images: Sequence[str]) -> Args:
        """Return validated arguments with every point and box in pixels of the original image (`to_pixels`).

        Only numbers that the conversion changed are validated again: a box may be empty after rounding. Raises
        `ToolError` for such arguments.
        """
        written = json_of_args(args)
        converted = self.to_pixels(written, image_registry, images)
        return args if converted == written else tool.parse(converted)

    def _convert(self, node: Json, sizes: Sequence[tuple[int, int] | None]) -> Json:
        if isinstance(node, Mapping):
            converted = {key: self._convert(value, sizes) for key, value in node.items()}
            number = node.get("image")
            place = number - 1 if isinstance(number, int) and 1 <= number <= len(sizes) else 0
            size = sizes[place] if sizes else None
            if size is not None:
                for x_key, y_key in POINT_KEYS:
                    x, y = node.get(x_key), node.get(y_key)
                    if all(isinstance(number, int | float) and not isinstance(number, bool) for number in (x, y)):
                        across, down = self._units(size)
                        converted[x_key] = _in_pixels(x, x_key, across)
                        converted[y_key] = _in_pixels(y, y_key, down)
            return converted
        if isinstance(node, list | tuple):
            return [self._convert(item, sizes) for item in node]
        return node

    def point(self, first: float, second: float, size: tuple[int, int]) -> tuple[float, float]:
        """Convert two unnamed numbers in this frame's order to x and y in pixels of an image (width, height)."""
        x, y = (second, first) if self.name.endswith("_yx") else (first, second)
        across, down = self._units(size)
        return x * across, y * down

    def under_names(self, numbers: Sequence[float]) -> dict[str, float]:
        """Name the numbers of a point (two) or a box (four) given without names in this frame's order."""
        names: tuple[str, ...] = ("x", "y") if len(numbers) == 2 else ("x0", "y0", "x1", "y1")
        if self.name.endswith("_yx"):
            names = tuple(name.translate(str.maketrans("xy", "yx")) for name in names)
        return dict(zip(names, numbers, strict=True))

    def sent_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Return the size at which an image is sent, or its size after the processor's resizing if that is declared."""
        sent = size if self.sent_pixels is None else fit(*size, self.sent_pixels)
        return sent if self.resizing is None else self.resizing.size(*sent)

    def _units(self, size: tuple[int, int]) -> tuple[float, float]:
        """Return the pixels of an image (width, height) per unit of this frame, across and down."""
        if self.name == "pixels":
            return self._shrunk(size)
        units = 1000.0 if self.name.startswith("thousandths") else 1.0
        return size[0] / units, size[1] / units

    def _shrunk(self, size: tuple[int, int]) -> tuple[float, float]:
        """Return the pixels of an image per pixel of the copy that is sent, across and down."""
        width, height = self.sent_size(size)
        return size[0] / width, size[1] / height

    def changes(self, images: Sequence[ImageRef]) -> bool:
        """Return whether this frame's coordinates differ from pixel coordinates in any of these images."""
        return any(self._units(_size_of(ref)) != (1.0, 1.0) for ref in images)

    def say(
        self, text: str, places: Sequence[Place], images: Sequence[ImageRef], derived: Sequence[ImageRef] = ()
    ) -> str:
        """Return a tool's text with coordinates in this frame; converting these back gives the same pixels.

        Args:
            text: the text, with coordinates in pixels of the originals.
            places: positions of the numbers that belong to a picture.
            images: the images of the call.
            derived: the images that the tool made; each has one of `images` as its parent.
        """
        output, position = "", 0
        for place in places:
            of = images if place.image > 0 else derived
            if 0 < abs(place.image) <= len(of):
                output += text[position : place.start]
                output += self._convert_number(
                    text[place.start : place.end], place.axis, of[abs(place.image) - 1], images
                )
                position = place.end
        return output + text[position:]

    def _convert_number(self, value: str, axis: Axis, ref: ImageRef, images: Sequence[ImageRef]) -> str:
        if axis == "unit":
            return value if self.name == "pixels" else ""
        size = _size_of(ref)
        across, down = self._units(size) if axis in ("x", "y") else self._shrunk(size)
        if axis == "ratio":
            parent = next((image for image in images if image.name == ref.parent), ref)
            across /= self._shrunk(_size_of(parent))[0]
        return _in_units(value, down if axis in ("y", "height") else across)

    def say_box(self, box: Box, ref: ImageRef, form: str = ".6g") -> tuple[str, str, str, str]:
        """Return the sides x0, y0, x1, y1 of a box of an image in this frame, as text."""
        across, down = self._units(_size_of(ref))
        edges = ((box.x0, across), (box.y0, down), (box.x1, across), (box.y1, down))
        x0, y0, x1, y1 = (_in_units(f"{value:{form}}", per) for value, per in edges)
        return x0, y0, x1, y1


def _in_pixels(coordinate: Json, name: str, per: float) -> float:
    """Convert a coordinate in units of `per` pixels to pixels; a value within rounding error of a pixel is rounded.

    Raises `ToolError` for a value that is not finite, or larger than `FARTHEST`.
    """
    if not isinstance(coordinate, int | float) or not -FARTHEST <= coordinate <= FARTHEST:
        raise ToolError(f"{name}: a coordinate must be a finite number, found {coordinate!r:.40}", Fault.BAD_ARGUMENTS)
    value = float(coordinate) * per
    rounded = round(value)
    return float(rounded) if per != 1.0 and abs(value - rounded) <= SAME_PIXEL else value


def _in_units(value: str, per: float) -> str:
    """Convert pixels to units of `per` pixels, with enough digits for `_in_pixels` to recover the pixel."""
    if per == 1.0:
        return value
    digits = max(0, math.ceil(math.log10(per / (1.6 * SAME_PIXEL))))
    text = f"{float(value) / per:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _size_of(ref: ImageRef) -> tuple[int, int]:
    return ref.image.width, ref.image.height


def frame_named(name: str) -> CoordinateSystem:
    """Return the frame of that name. Raises `UsageError` that lists the frames."""
    for frame in FRAMES:
        if name == frame:
            return CoordinateSystem(frame)
    word, *numbers = name.split(":")
    if (
        word == RESIZED
        and len(numbers) in (1, 3)
        and all(re.fullmatch("[1-9][0-9]{0,9}", number) for number in numbers)
    ):
        resizing = Resizing(*map(int, numbers))
        if resizing.least <= resizing.most:
            return CoordinateSystem(resizing=resizing)
    raise UsageError(
        f"--model-arg frame={name}: unknown frame; available: {', '.join(FRAMES)}, {RESIZED}:FACTOR[:MIN:MAX], probe"
    )
