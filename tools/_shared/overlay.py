"""Draw boxes, masks and points with names over a copy of an image, with a legend that explains the drawing.

Use `canvas = Overlay(pixels)`, then `canvas.box(...)`, `canvas.legend("green: ...")`, `canvas.pixels`. Line widths and
font sizes follow the image size; names are drawn last, so that no line crosses them, and the legend of a narrow image
is wrapped. `heat(pixels, values)` blends a map over an image; `write` puts text on any array.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hybrid.core.types import Box
from hybrid.tool import Picture, Pixels

Colour: TypeAlias = tuple[int, int, int]

# Bright colours with distinct hues; red and green boxes are reserved for the marks of the benchmarks.
PALETTE: tuple[Colour, ...] = (
    (0, 220, 255),
    (255, 170, 0),
    (120, 255, 90),
    (255, 110, 200),
    (170, 140, 255),
    (255, 240, 90),
)
DARK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)
# Bounds of a name in the drawing: left, top, right, bottom.
Row: TypeAlias = tuple[int, int, int, int]
# Weight of the image when a map is blended over it.
PICTURE_SHARE = 0.4
# Weight of a mask's colour over the image.
TINT = 0.45
TINT_ROWS = 32
# Font size of capitals 8 px high. Smaller ones are illegible, so text that does not fit is wrapped or cut.
MIN_FONT = 0.36
A_LITTLE_SMALLER = 0.8
# Largest share of the height for a legend of several lines.
LEGEND_SHARE = 1 / 3
ELLIPSIS = ".."
# Below this side no letter is legible, and a legend would cover the image.
MIN_TEXT_PX = 48


class Overlay:
    """A copy of an RGB image (H, W, 3) to draw on."""

    def __init__(self, pixels: Pixels) -> None:
        self._canvas: Pixels = np.ascontiguousarray(pixels).copy()
        self.height, self.width = pixels.shape[:2]
        self._scale = max(0.4, min(self.height, self.width) / 700)
        self._line = max(1, round(2 * self._scale))
        self._names: list[tuple[str, int, int, Colour]] = []
        self._legend = ""

    @property
    def pixels(self) -> Pixels:
        """Drawing with every name and the legend, rendered to a new array (H, W, 3)."""
        rows: list[Row] = []
        out = self._canvas.copy()
        for name, across, down, colour in self._names:
            if not name or min(self.height, self.width) < MIN_TEXT_PX:
                continue
            font = min(self._font, max(MIN_FONT, (self.width - 8) / max(1, extent(name, 1.0)[0])))
            text = _shortened(name, font, self.width - 8)
            width, height = extent(text, font)
            # Move the text's lower left corner (x, y) so that its black strip is inside the image.
            x, y = max(1, min(across, self.width - width - 3)), max(height + 3, min(down, self.height - 4))
            # Move the text down while it touches a name in `rows`.
            while y + height < self.height - 4 and any(
                x <= x_max and x_min <= x + width and y - height - 4 <= y_max and y_min - 4 <= y
                for x_min, y_min, x_max, y_max in rows
            ):
                y += height + 5
            rows.append((x, y - height, x + width, y))
            write(out, text, (x, y), font, colour)
        lines, font = self._wrapped(self._legend)
        high = max((extent(line, font)[1] for line in lines), default=0)
        step = high + 7
        low = all(bottom < self.height - 2 * high - step * (len(lines) - 1) for _, _, _, bottom in rows)
        first = self.height - 4 - step * (len(lines) - 1) if low else high + 5
        for number, line in enumerate(lines):
            write(out, line, (3, first + step * number), font)
        return out

    def box(self, box: Box, name: str, colour: Colour) -> None:
        """Outline a box (pixels of the image) and write its name at its upper left corner."""
        import cv2

        start, end = (round(box.x0), round(box.y0)), (round(box.x1) - 1, round(box.y1) - 1)
        cv2.rectangle(self._canvas, start, end, DARK, self._line + 2)
        cv2.rectangle(self._canvas, start, end, colour, self._line)
        self._names.append((name, start[0], start[1] - 3, colour))

    def mask(self, mask: npt.NDArray[np.bool_], colour: Colour) -> None:
        """Tint a mask (H, W) and outline it."""
        import cv2

        inside = np.ascontiguousarray(mask, np.bool_).view(np.uint8)
        ink = np.empty((TINT_ROWS, self.width, 3), np.uint8)
        ink[:] = colour
        tinted = np.empty_like(ink)
        # Process a few rows at a time: they stay in the cache, and the mask is often narrower within them.
        for first in range(0, self.height, TINT_ROWS):
            left, top, width, height = cv2.boundingRect(inside[first : first + TINT_ROWS])
            if width and height:
                part = slice(first + top, first + top + height), slice(left, left + width)
                to = tinted[:height, :width]
                _tint(self._canvas[part], colour, ink[:height, :width], to)
                cv2.copyTo(to, inside[part], self._canvas[part])
        # CHAIN_APPROX_SIMPLE keeps only the ends of straight runs: drawContours would draw a line per pixel otherwise.
        outlines, _ = cv2.findContours(inside, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        cv2.drawContours(self._canvas, outlines, -1, colour, self._line)

    def point(
        self, x: float, y: float, name: str, colour: Colour, *, radius_px: float = 0.0, cross: bool = False
    ) -> None:
        """Circle a point, with a radius of at least `radius_px`, or cross it, and write its name."""
        import cv2

        centre, radius = (round(x), round(y)), max(2, round(7 * self._scale), round(radius_px))
        for ink, line in ((DARK, self._line + 2), (colour, self._line)):
            if cross:
                cv2.drawMarker(self._canvas, centre, ink, cv2.MARKER_CROSS, 4 * radius, line, cv2.LINE_AA)
            else:
                cv2.circle(self._canvas, centre, radius, ink, line, cv2.LINE_AA)
        self._names.append((name, centre[0] + radius + 3, centre[1] + radius, colour))

    def dot(self, x: float, y: float, colour: Colour) -> None:
        """Draw a small disc at a point."""
        import cv2

        for ink, radius in ((DARK, max(2, round(4 * self._scale))), (colour, max(1, round(3 * self._scale)))):
            cv2.circle(self._canvas, (round(x), round(y)), radius, ink, cv2.FILLED, cv2.LINE_AA)

    def legend(self, text: str) -> None:
        """Write the legend, line by line, into the lower left corner, or the upper left if that covers less."""
        self._legend = text

    @property
    def _font(self) -> float:
        return float(0.75 * self._scale + 0.12)

    def _wrapped(self, text: str) -> tuple[list[str], float]:
        """Wrap a legend to the width and return its lines and font size; text that would be illegible is cut.

        In a narrow image the letters get smaller, and there are more lines, up to a third of the height.
        """
        if min(self.height, self.width) < MIN_TEXT_PX:
            return [], MIN_FONT
        room = int(LEGEND_SHARE * self.height)
        widest = max((extent(line, 1.0)[0] for line in text.splitlines()), default=1)
        fitting = (self.width - 8) / max(1, widest)
        # Prefer slightly smaller letters to wrapping, which might leave a line of one word.
        usual = fitting if max(MIN_FONT, A_LITTLE_SMALLER * self._font) <= fitting < self._font else self._font
        for font in (usual, MIN_FONT):
            lines: list[str] = []
            for line in text.splitlines():
                start = len(lines)
                for word in line.split():
                    joined = f"{lines[-1]} {word}" if len(lines) > start else word
                    if len(lines) > start and extent(joined, font)[0] <= self.width - 8:
                        lines[-1] = joined
                    else:
                        lines.append(_shortened(word, font, self.width - 8))
            step = max((extent(line, font)[1] for line in lines), default=0) + 7
            if len(lines) <= len(text.splitlines()) or len(lines) * step <= room:
                return lines, font
        visible = lines[: max(1, room // step)]
        return [*visible[:-1], _shortened(visible[-1] + ELLIPSIS, MIN_FONT, self.width - 8)], MIN_FONT


def _tint(pixels: Pixels, colour: Colour, ink: Pixels, to: Pixels) -> None:
    """Blend pixels (H, W, 3) with a colour, rounding down, into the array `to`. `ink` is filled with the colour."""
    import cv2

    if _blends_as_table(colour):
        _blend(pixels, ink, to)
    else:
        cv2.LUT(pixels, _tint_table(colour), dst=to)


def _blend(pixels: Pixels, ink: Pixels, to: Pixels) -> None:
    """Blend like `_tint`'s lookup table in half the time; may be 1 higher where the exact value is a whole number."""
    import cv2

    # OpenCV rounds to the nearest number. The exact values are multiples of 0.05, so this shift rounds them down.
    cv2.addWeighted(pixels, 1 - TINT, ink, TINT, -0.475, dst=to)


def _tint_table(colour: Colour) -> Pixels:
    """Return a lookup table (1, 256, 3) with the blended value of every grey level in each channel."""
    levels = np.arange(256, dtype=np.float32)[None, :, None]
    return np.asarray((1 - TINT) * levels + TINT * np.array(colour, np.float32), np.uint8)


@lru_cache(maxsize=64)
def _blends_as_table(colour: Colour) -> bool:
    levels = np.repeat(np.arange(256, dtype=np.uint8), 3).reshape(1, 256, 3)
    blended = np.empty_like(levels)
    _blend(levels, np.full_like(levels, colour), blended)
    return bool((blended == _tint_table(colour)).all())


def overlay(
    pixels: Pixels,
    legend: str,
    *,
    boxes: Sequence[tuple[Box, str, Colour]] = (),
    points: Sequence[tuple[float, float, str, Colour]] = (),
    values: npt.NDArray[np.float32] | None = None,
    mask: npt.NDArray[np.bool_] | None = None,
    of: int = 0,
) -> Picture:
    """Return a picture that draws boxes, points (pixels) and a mask (H, W) over an image (H, W, 3) or a map (h, w).

    The picture is drawn on first access. `of` is the index of the image that it shows.
    """

    def draw() -> Pixels:
        canvas = Overlay(pixels if values is None else heat(pixels, values))
        if mask is not None:
            canvas.mask(mask, PALETTE[0])
        for box in boxes:
            canvas.box(*box)
        for point in points:
            canvas.point(*point)
        canvas.legend(legend)
        return canvas.pixels

    return Picture(draw, of=of)


def _shortened(text: str, font: float, width: int) -> str:
    """Shorten a text to at most `width` px, with an ellipsis if it was cut."""
    if extent(text, font)[0] <= width:
        return text
    while text and extent(text + ELLIPSIS, font)[0] > width:
        text = text[:-1]
    return text + ELLIPSIS if text else ""


def extent(text: str, font: float) -> tuple[int, int]:
    """Return width and height in pixels of a text in font size `font` (1.0: capitals 22 px high)."""
    import cv2

    (width, height), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, font, 1)
    return int(width), int(height)


def write(out: Pixels, text: str, at: tuple[int, int], font: float, colour: Colour = WHITE) -> None:
    """Write into an image (H, W, 3): text on a black strip, with the left end of its baseline at `at`.

    An outline cannot replace the strip: bold glyphs are wider in OpenCV 5.
    """
    import cv2

    width, height = extent(text, font)
    cv2.rectangle(out, (at[0] - 2, at[1] - height - 3), (at[0] + width + 1, at[1] + 3), DARK, cv2.FILLED)
    cv2.putText(out, text, at, cv2.FONT_HERSHEY_SIMPLEX, font, colour, 1, cv2.LINE_AA)


def viridis(values: npt.NDArray[np.float32], size: tuple[int, int]) -> Pixels:
    """Render a map (h, w) in 0..1 as an RGB image of `size` (H, W): violet 0, yellow 1."""
    import cv2

    levels = np.round(np.clip(values, 0, 1) * 255).astype(np.uint8)
    coloured = cv2.cvtColor(cv2.applyColorMap(levels, cv2.COLORMAP_VIRIDIS), cv2.COLOR_BGR2RGB)
    return np.asarray(cv2.resize(coloured, (size[1], size[0]), interpolation=cv2.INTER_LINEAR), np.uint8)


def heat(pixels: Pixels, values: npt.NDArray[np.float32]) -> Pixels:
    """Blend a map (h, w) in 0..1 over its image (H, W, 3) in grey."""
    import cv2

    grey = cv2.cvtColor(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    large = viridis(values, (pixels.shape[0], pixels.shape[1]))
    return np.asarray(cv2.addWeighted(grey, PICTURE_SHARE, large, 1 - PICTURE_SHARE, 0), np.uint8)
