"""BLINK's marks drawn anew (`--setting marks=radius:5,color:gray`), for its study of visual prompts (section 4.3).

The found marks are taken off by inpainting and drawn again in the chosen style. A question on which not every expected
letter is found is broken, with the reason, instead of being asked with other marks than the run says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hybrid.errors import DataError, UsageError
from hybrid.images import ImageStore
from hybrid.marks.drawing import BLINK_STYLE, Color, MarkStyle, draw_marks
from hybrid.marks.finding import find_marks, remove_marks
from hybrid.types import Point, StoredImage

COLORS: dict[str, Color] = {"red": "red", "white": "white", "gray": "grey", "grey": "grey"}
RADII = range(4, 21)
REFERENCE = "REF"
LEAST_CONFIDENCE = 0.3


@dataclass(frozen=True)
class Redrawing:
    """A style in the place of the one that the data has."""

    style: MarkStyle

    def apply(
        self, images: Sequence[StoredImage], choices: Sequence[str], store: ImageStore
    ) -> tuple[StoredImage, ...]:
        """The images with their marks redrawn. Raises `DataError` when an expected letter is not found."""
        letters = tuple(match[1] for choice in choices if (match := re.search(r"\b([A-D])\b", choice)))
        expected = [letters] if len(images) == 1 else [(REFERENCE,), letters]
        return tuple(self._one(image, labels, store) for image, labels in zip(images, expected, strict=True))

    def _one(self, image: StoredImage, labels: Sequence[str], store: ImageStore) -> StoredImage:
        pixels = store.pixels(image)
        found = find_marks(pixels, tuple(labels), "point")
        named = {mark.label: mark for mark in found.points if mark.confidence >= LEAST_CONFIDENCE}
        if missing := [label for label in labels if label not in named]:
            raise DataError(f"--setting marks: no mark {', '.join(missing)} was found to redraw")
        points = [Point(named[label].x, named[label].y, label) for label in labels]
        return store.put_pixels(draw_marks(remove_marks(pixels, found), points, (), self.style))


def redrawing(setting: str) -> Redrawing | None:
    """Read the setting: `drawn` keeps the data's marks; else `radius:N`, `color:red|white|gray`, or both.

    Raises:
        UsageError: another key, a radius outside 4..20 pixels, or another colour.
    """
    if setting == "drawn":
        return None
    style = BLINK_STYLE
    for item in setting.split(","):
        key, _, value = item.partition(":")
        if key == "radius" and value.isdigit() and int(value) in RADII:
            style = replace(style, radius_px=int(value))
        elif key == "color" and value in COLORS:
            style = replace(style, color=COLORS[value])
        else:
            raise UsageError(f"--setting marks={setting}: write radius:4..20 and color:red|white|gray, not {item!r}")
    return Redrawing(style)
