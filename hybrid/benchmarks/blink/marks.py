"""BLINK's marks drawn anew (`--setting marks=radius:5,color:gray`), for its study of visual prompts (section 4.3).

The found marks are taken off by inpainting and drawn again in the chosen style. A question on which not every expected
letter is found is broken, with the reason, instead of being asked with other marks than the run says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hybrid.errors import DataError
from hybrid.images import ImageStore
from hybrid.marks.drawing import BLINK_STYLE, Color, MarkStyle, draw_marks
from hybrid.marks.finding import find_marks, remove_marks
from hybrid.types import Point, StoredImage

COLORS: dict[str, Color] = {"red": "red", "white": "white", "gray": "grey", "grey": "grey"}
REFERENCE = "REF"
LEAST_CONFIDENCE = 0.3


def redrawn(
    setting: str, images: Sequence[StoredImage], choices: Sequence[str], store: ImageStore
) -> tuple[StoredImage, ...]:
    """The images with their marks in the style of the setting, such as `radius:5,color:gray`.

    Raises `DataError` when an expected letter is not found.
    """
    style = BLINK_STYLE
    for key, _, value in (item.partition(":") for item in setting.split(",")):
        style = replace(style, radius_px=int(value)) if key == "radius" else replace(style, color=COLORS[value])
    letters = tuple(match[1] for choice in choices if (match := re.search(r"\b([A-D])\b", choice)))
    expected = [letters] if len(images) == 1 else [(REFERENCE,), letters]
    return tuple(_one(image, labels, style, store) for image, labels in zip(images, expected, strict=True))


def _one(image: StoredImage, labels: Sequence[str], style: MarkStyle, store: ImageStore) -> StoredImage:
    pixels = store.pixels(image)
    found = find_marks(pixels, tuple(labels), "point")
    named = {mark.label: mark for mark in found.points if mark.confidence >= LEAST_CONFIDENCE}
    if missing := [label for label in labels if label not in named]:
        raise DataError(f"--setting marks: no mark {', '.join(missing)} was found to redraw")
    points = [Point(named[label].x, named[label].y, label) for label in labels]
    return store.put_pixels(draw_marks(remove_marks(pixels, found), points, (), style))
