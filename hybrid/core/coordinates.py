"""Marks coordinates in a tool's text, so that each model gets them in the coordinate frame in which it writes.

text = f"1 x cat at {span_px(box)}."         # in a tool; `Evidence` and `ToolError` remove the marks
unmarked(text)                               # "1 x cat at x 12-80, y 5-60 px.", and the position of each number
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

Axis = Literal["x", "y", "width", "height", "ratio", "unit"]
_OPEN, _BETWEEN, _CLOSE = "\ue000", "\ue001", "\ue002"
_MARK: Final = re.compile(
    f"{_OPEN}({'|'.join(get_args(Axis))})(-?[0-9]+){_BETWEEN}( px|-?[0-9]+(?:[.][0-9]+)?){_CLOSE}"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A span of a text that is a coordinate, a length, a ratio of sizes, or the unit after coordinates.

    `image` counts the images of the call from 1 up, and the pictures that the tool made from -1 down.
    """

    start: int
    end: int
    axis: Axis
    image: int


def at(axis: Axis, value: float, image: int = 1, form: str = ".0f") -> str:
    """Mark a number in an image's own pixels, formatted with `form`; a ratio is in pixels per pixel of the parent."""
    return f"{_OPEN}{axis}{image}{_BETWEEN}{value:{form}}{_CLOSE}"


def unit(image: int = 1) -> str:
    """Mark the unit after coordinates; it is omitted if the model's frame is not pixels."""
    return f"{_OPEN}unit{image}{_BETWEEN} px{_CLOSE}"


def span_px(box: Any, image: int = 1, to: str = "-") -> str:
    """Format a `hybrid.core.types.Box` as `x 12-80, y 5-60 px`."""
    across = f"x {at('x', box.x0, image)}{to}{at('x', box.x1, image)}"
    return f"{across}, y {at('y', box.y0, image)}{to}{at('y', box.y1, image)}{unit(image)}"


def spot_px(x: float, y: float, image: int = 1, form: str = ".0f") -> str:
    """Format a point as `(12, 80) px`."""
    return f"({at('x', x, image, form)}, {at('y', y, image, form)}){unit(image)}"


def size_px(width: float, height: float, image: int = 1) -> str:
    """Format the size of an image, or of a part of it, as `640 x 480`."""
    return f"{at('width', width, image, 'g')} x {at('height', height, image, 'g')}"


def unmarked(text: str) -> tuple[str, tuple[Place, ...]]:
    """Return the text without marks, and the marked spans."""
    if _OPEN not in text:
        return text, ()
    plain, places, position = "", [], 0
    for mark in _MARK.finditer(text):
        plain += text[position : mark.start()]
        axis: Axis = mark[1]  # type: ignore[assignment]  # one of the kinds in the pattern
        places.append(Place(len(plain), len(plain) + len(mark[3]), axis, int(mark[2])))
        plain, position = plain + mark[3], mark.end()
    return plain + text[position:], tuple(places)


def length(text: str) -> int:
    """Return the number of characters of a text without its marks."""
    return len(unmarked(text)[0])
