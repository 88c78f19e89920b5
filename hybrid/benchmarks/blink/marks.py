"""Redraws BLINK's points (`--setting marks=radius:10,color:gray,height:1024`), for its study of visual prompts.

The found marks are removed by inpainting, the picture is resized to the requested height, and the marks are drawn
again. Paper, section 4.3 and Figure 7: radius 5, 10 and 15 px, red or gray, on pictures of 1024 px height. Properties
that a setting does not name stay unchanged: the colour, and the size of rings and letters relative to that of the
picture. The line width of a ring stays proportional to its radius.

If an expected letter, or the box around it, is not found, the question is broken with that reason, instead of being
asked with other marks than the run states.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hybrid.core.errors import DataError, needed_by
from hybrid.core.images import ImageStore
from hybrid.core.types import Point, StoredImage
from hybrid.marks.drawing import BLINK_STYLE, Color, draw_marks
from hybrid.marks.finding import find_marks
from hybrid.marks.marks import Marks, PointMark, remove_marks
from hybrid.tool import Pixels

COLORS: dict[str, Color] = {"red": "red", "white": "white", "gray": "grey", "grey": "grey"}
REFERENCE = "REF"
MIN_CONFIDENCE = 0.3
# Distance in pixels over which JPEG spreads the colour of a line, because it stores colour at half the resolution.
BLEEDS_PX = 4.0


@dataclass(frozen=True)
class Restyle:
    """Style of the marks; None leaves a property unchanged."""

    # Outer radius of the ring in pixels of the resized picture.
    radius_px: int | None = None
    color: Color | None = None
    # Height of the resized picture; the width keeps the aspect ratio.
    height_px: int | None = None


def read_restyle(setting: str) -> Restyle:
    """Parse a value of the setting, such as `radius:10,color:gray`. Raises `DataError` for an invalid value."""
    style = Restyle()
    for key, _, value in (item.partition(":") for item in setting.split(",")):
        match key:
            case "radius":
                style = replace(style, radius_px=int(value))
            case "height":
                style = replace(style, height_px=int(value))
            case "color" if value in COLORS:
                style = replace(style, color=COLORS[value])
            case _:
                raise DataError(f"--setting marks={setting}: {key!r} is unknown or has an invalid value")
    return style


def redrawn(
    setting: str, images: Sequence[StoredImage], choices: Sequence[str], store: ImageStore
) -> tuple[StoredImage, ...]:
    """Return the images with their marks redrawn as the setting requires, such as `radius:5,color:gray,height:1024`.

    Raises `DataError` if a mark cannot be redrawn, and `UsageError` without OpenCV.
    """
    style = read_restyle(setting)
    letters = tuple(match[1] for choice in choices if (match := re.search(r"\b([A-D])\b", choice)))
    expected = [letters] if len(images) == 1 else [(REFERENCE,), letters]
    if len(images) != len(expected):
        raise DataError(f"--setting marks: with {len(images)} images, it is unknown which image has which marks")
    with needed_by(f"--setting marks={setting}"):
        return tuple(
            store.put_pixels(redraw_marks(erase_marks(store.pixels(image), labels), style))
            for image, labels in zip(images, expected, strict=True)
        )


@dataclass(frozen=True, eq=False)
class UnmarkedImage:
    """A picture (H, W, 3) without its marks, and the removed marks."""

    pixels: Pixels
    marks: tuple[PointMark, ...]


def erase_marks(pixels: Pixels, labels: Sequence[str]) -> UnmarkedImage:
    """Remove the marks of these letters from a picture (H, W, 3). Raises `DataError` if a mark is not found."""
    located = find_marks(pixels, tuple(labels), "point")
    by_label = {mark.label: mark for mark in located.points if mark.confidence >= MIN_CONFIDENCE}
    if missing := [label for label in labels if label not in by_label]:
        raise DataError(f"--setting marks: the mark {', '.join(missing)} was not found, so it cannot be redrawn")
    marks = tuple(by_label[label] for label in labels)
    if hidden := [str(mark.label) for mark in marks if mark.label_box_px is None]:
        raise DataError(f"--setting marks: the letter {', '.join(hidden)} was not found, so it cannot be removed")
    # `kept_px` is 0: inside a ring, only pixels without the ring's colour are kept, and BLINK's rings contain no such
    # pixels.
    return UnmarkedImage(remove_marks(pixels, Marks(located.points), BLEEDS_PX, BLEEDS_PX, 0.0), marks)


def redraw_marks(picture: UnmarkedImage, style: Restyle) -> Pixels:
    """Resize the picture and draw marks in the style at the old positions."""
    scale = 1.0 if style.height_px is None else style.height_px / picture.pixels.shape[0]
    points = [Point((mark.x + 0.5) * scale - 0.5, (mark.y + 0.5) * scale - 0.5, mark.label) for mark in picture.marks]
    pixels = picture.pixels
    if style.height_px is not None and style.height_px != pixels.shape[0]:
        import numpy as np
        from PIL import Image

        size = (max(1, round(pixels.shape[1] * scale)), style.height_px)
        pixels = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS), dtype=np.uint8)
    radius = style.radius_px if style.radius_px is not None else max(1, round(BLINK_STYLE.radius_px * scale))
    style_drawn = replace(
        BLINK_STYLE,
        color=style.color or COLORS.get(picture.marks[0].color, BLINK_STYLE.color),
        radius_px=radius,
        stroke_px=max(1, round(radius * BLINK_STYLE.stroke_px / BLINK_STYLE.radius_px)),
        letter_px=max(5, round(BLINK_STYLE.letter_px * scale)),
        gap_px=max(1, round(BLINK_STYLE.gap_px * scale)),
    )
    return draw_marks(pixels, points, (), style_drawn)
