"""Draw labelled points and boxes on a picture the way BLINK does: rings, letters in black boxes, box outlines.

Used by the generated samples and by the mark finder's templates and tests. The default style is that of BLINK's
Relative_Depth images: a red ring of outer radius 7 px, and a white letter 11 px high in a black box of 14 x 15 px, with
its top-left corner at (-7, -31) from the ring's centre, or below the ring if it would not be visible.

    draw_marks(pixels, [Point(120, 80, "A"), Point(300, 80, "B")])
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from hybrid.core.types import Box, Point
from hybrid.tool import Pixels

Mask = npt.NDArray[np.uint8]
Color = Literal["red", "white", "grey", "green"]
Font = Literal["strokes", "bold", "pillow", "opencv"]
Side = Literal["auto", "above", "below"]

RGB: dict[Color, tuple[int, int, int]] = {
    "red": (255, 0, 0),
    "white": (255, 255, 255),
    "grey": (128, 128, 128),
    "green": (0, 255, 0),
}
LABELS = ("A", "B", "C", "D", "REF")

# Strokes and width of each character.
GLYPHS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_CAP_UNITS = 21


@dataclass(frozen=True, slots=True)
class LabelledBox:
    """A box to draw: pixels, x1 and y1 exclusive; `label` is one of A-D."""

    box: Box
    label: str
    color: Color = "red"


@dataclass(frozen=True, slots=True)
class MarkStyle:
    """Style of marks. Lengths are in pixels; the defaults are those of BLINK's Relative_Depth images.

    `side` is the position of the letter: "auto" is above, or below if fewer than two rows would be visible above.
    """

    color: Color = "red"
    # Outer radius of the ring.
    radius_px: int = 7
    # Line width of rings and boxes.
    stroke_px: int = 4
    # Height of the capital.
    letter_px: int = 11
    # Gap between the ring's outer edge and the letter's black box.
    gap_px: int = 9
    font: Font = "strokes"
    side: Side = "auto"


BLINK_STYLE = MarkStyle()


def draw_marks(
    pixels: Pixels, points: Sequence[Point] = (), boxes: Sequence[LabelledBox] = (), style: MarkStyle = BLINK_STYLE
) -> Pixels:
    """Draw the marks on a copy of `pixels` (H, W, 3), clipped at its borders; the input is not changed.

    A point's centre is rounded to whole pixels. A box is outlined inwards from its bounds in its own colour, with its
    letter above the top-left corner, or inside without enough space. Points and boxes without a label get no letter.

    Raises:
        ValueError: a label that is not in `LABELS`, or a style whose line is wider than its radius.
    """
    if not 1 <= style.stroke_px <= style.radius_px:
        raise ValueError(f"a line of {style.stroke_px} px does not fit into a ring of radius {style.radius_px} px")
    out = pixels.copy()
    for point in points:
        # Fill the ring by distance, because cv2.circle's line grows unevenly with its thickness.
        x, y, reach = round(point.x), round(point.y), style.radius_px + 1
        x0, y0 = max(0, x - reach), max(0, y - reach)
        part = out[y0 : max(y0, y + reach + 1), x0 : max(x0, x + reach + 1)]
        rows, columns = np.mgrid[y0 : y0 + part.shape[0], x0 : x0 + part.shape[1]]
        distances = np.hypot(rows - y, columns - x)
        part[(distances <= style.radius_px + 0.3) & (distances > style.radius_px - style.stroke_px + 0.3)] = RGB[
            style.color
        ]
    for item in boxes:
        width = min(style.stroke_px, 3)
        x0, y0 = max(0, round(item.box.x0)), max(0, round(item.box.y0))
        x1, y1 = max(x0, round(item.box.x1)), max(y0, round(item.box.y1))
        inner = out[y0 + width : y1 - width, x0 + width : x1 - width].copy()
        out[y0:y1, x0:x1] = RGB[item.color]
        out[y0 + width : y0 + width + inner.shape[0], x0 + width : x0 + width + inner.shape[1]] = inner
    # Draw letters last: BLINK's letters are over neighbouring rings, never under them.
    for point in points:
        if point.label is not None:
            patch = label_patch(point.label, style)
            height, width = patch.shape[:2]
            x, y = round(point.x), round(point.y)
            above, below = y - style.radius_px - style.gap_px - height, y + style.radius_px + style.gap_px
            shows_above = above + height >= 2
            side = style.side if style.side != "auto" else ("above" if shows_above else "below")
            _paste(out, patch, x - width // 2, above if side == "above" else below)
    for item in boxes:
        at = label_place(item, style)
        _paste(out, label_patch(item.label, style), int(at.x0), int(at.y0))
    return out


def label_place(item: LabelledBox, style: MarkStyle = BLINK_STYLE) -> Box:
    """Return the position of a letter's black box in pixels: above the box's upper left corner, or inside it."""
    height, width = label_patch(item.label, style).shape[:2]
    x, y = round(item.box.x0), round(item.box.y0) - height
    if y < 0:
        y = round(item.box.y0) + min(style.stroke_px, 3)
    return Box(x, y, x + width, y + height)


def label_patch(label: str, style: MarkStyle = BLINK_STYLE) -> Pixels:
    """Return the black box with its white letter, RGB, about 3 px wider and 2 px higher than the letter per side."""
    import cv2

    glyph = letter_mask(label, style.font, style.letter_px)
    pad_x = max(1, round(style.letter_px * 0.25))
    pad_y = max(1, round(style.letter_px * 0.2))
    padded = cv2.copyMakeBorder(glyph, pad_y, pad_y, pad_x, pad_x, cv2.BORDER_CONSTANT, value=0)
    return np.repeat(padded[:, :, None], 3, axis=2).astype(np.uint8)


def letter_mask(label: str, font: Font, height_px: int) -> Mask:
    """Render a label in white (255) on black, cropped to its bounds; capitals are about `height_px` high.

    "strokes" and "bold" are Hershey's strokes, drawn 1 px and about a fifth of the height wide. "pillow" is the outline
    font of Pillow, and "opencv" is the font of `cv2.putText`.

    Raises:
        ValueError: a label that is not in `LABELS`, or a height below 5 px.
    """
    if label not in LABELS:
        raise ValueError(f"label {label!r} is not one of {', '.join(LABELS)}")
    if height_px < 5:
        raise ValueError(f"a letter {height_px} px high cannot be read; give at least 5")
    if font == "pillow":
        sketch = Image.new("L", (height_px * 4 + 8, height_px * 2 + 8))
        ImageDraw.Draw(sketch).text((4, 2), label, fill=255, font=ImageFont.load_default(size=height_px / 0.71))
        canvas = np.asarray(sketch, dtype=np.uint8)
    elif font == "opencv":
        import cv2

        canvas = np.zeros((height_px * 3 + 8, height_px * 5 + 8), np.uint8)
        cv2.putText(canvas, label, (4, height_px * 2 + 4), cv2.FONT_HERSHEY_DUPLEX, height_px / 22, (255,), 1)
    else:
        canvas = _stroke_text(label, height_px, 1 if font == "strokes" else max(2, round(height_px * 0.2)))
    rows, columns = np.nonzero(canvas > 60)
    return np.ascontiguousarray(canvas[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1])


def _stroke_text(label: str, height_px: int, width_px: int) -> Mask:
    # Strokes thicken outwards, so the skeleton is shrunk by the line width to keep the height.
    import cv2

    scale = (height_px - width_px) / _CAP_UNITS
    margin = width_px + 2
    advance = sum(int(GLYPHS[char]["width"] * scale) + width_px for char in label)
    canvas = np.zeros((height_px + 2 * margin, advance + 2 * margin + 2), np.uint8)
    x_start = 0.0
    for char in label:
        for stroke in GLYPHS[char]["strokes"]:
            line = np.array([((x_start + x) * scale + margin, (_CAP_UNITS - y) * scale + margin) for x, y in stroke])
            cv2.polylines(canvas, [np.rint(line).astype(np.int32)], False, 255, width_px, cv2.LINE_8)
        # Without the line width, thick letters of a word would touch each other.
        x_start += GLYPHS[char]["width"] + (width_px - 1) / scale
    return canvas


def _paste(out: Pixels, patch: Pixels, x: int, y: int) -> None:
    x0, y0 = max(0, x), max(0, y)
    x1, y1 = min(out.shape[1], x + patch.shape[1]), min(out.shape[0], y + patch.shape[0])
    if x1 > x0 and y1 > y0:
        out[y0:y1, x0:x1] = patch[y0 - y : y1 - y, x0 - x : x1 - x]
