"""Score drawn rings of any colour: one colour all the way round that differs from what lies inside and outside.

At a centre and a radius, samples on the circle are compared with samples `SIDE_PX` further in and out at the same
angles: `D / (D + 2 s + 12)`, where D is the smaller of the two mean absolute differences and s the standard deviation
along the circle, both over three channels (luma, redness, green minus blue), in grey levels. A texture has D, but s as
well; a flat area has neither; a drawn ring has D alone. On noise and texture a circle can have D by chance, but it is
not calmer than the circles beside it, so the score grows by up to `CALM_GAIN` where s is less than theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hybrid.marks.drawing import Color
from hybrid.tool import Pixels
from hybrid.types import Box

Map = npt.NDArray[np.float32]

# Radii of the middle of a ring's line that are tried, in pixels.
MID_RADII = tuple(range(3, 20))
ANGLES = 16
# Centres that are scored at once: their samples stay in the processor's cache.
BAND_PIXELS = 4000
CALM_GAIN = 0.4
# Grey levels below which a step is noise.
FLOOR = 12.0
SIDE_PX = 3
# Difference of channels, grey levels, below which a picture is one of grey tones.
COLOURLESS = 8.0
# A ring cut by the border must show this fraction of its circle.
MIN_VISIBLE = 0.27
# Loss of a ring's score for every pixel between its letter and its middle.
ASIDE_COST = 0.035
_MARGIN = MID_RADII[-1] + SIDE_PX + 1


@dataclass(frozen=True, slots=True)
class Ring:
    """A ring candidate: centre and radius of the middle of its line in pixels, score 0..1, colour and luma 0..255."""

    x: float
    y: float
    mid_radius_px: float
    score: float
    color: Color
    luma: float


@dataclass(frozen=True, slots=True)
class FieldWindow:
    """Centres to try, in whole pixels of the image; x1 and y1 exclusive."""

    x0: int
    y0: int
    x1: int
    y1: int


class RingField:
    """An image (H, W, 3) prepared for scoring rings."""

    def __init__(self, pixels: Pixels, hidden: Sequence[Box] = ()) -> None:
        """`hidden` are parts of the image where a ring is painted over."""
        import cv2

        self.height, self.width = pixels.shape[:2]
        # Half a pixel of blur: samples fall between pixels, and an aliased line would flicker along the circle.
        soft = cv2.GaussianBlur(pixels, (3, 3), 0.6).astype(np.float32)
        red, green, blue = soft[..., 0], soft[..., 1], soft[..., 2]
        planes = np.stack([0.299 * red + 0.587 * green + 0.114 * blue, red - (green + blue) / 2, (green - blue) / 2])
        pad = ((0, 0), (_MARGIN, _MARGIN), (_MARGIN, _MARGIN))
        # Of a grey picture's ring only luma is left, which says nothing of the colour that it was drawn in.
        self.colourless = bool(np.abs(planes[1:]).max(initial=0) < COLOURLESS)
        self._planes = np.pad(planes, pad)
        self._soft = soft
        shows = np.ones((self.height, self.width), np.float32)
        for box in hidden:
            shows[max(0, round(box.y0)) : round(box.y1), max(0, round(box.x0)) : round(box.x1)] = 0
        self._shows = np.pad(shows, pad[1:])

    def window(self, x0: float, y0: float, x1: float, y1: float) -> FieldWindow:
        """Bounds cut to the image."""
        return FieldWindow(
            max(0, int(x0)), max(0, int(y0)), min(self.width, int(np.ceil(x1))), min(self.height, int(np.ceil(y1)))
        )

    def scores(self, at: FieldWindow, radii: Sequence[int]) -> list[Map]:
        """Ring score 0..1 at each centre of a window, one map for each radius of the line's middle."""
        band = max(1, BAND_PIXELS // max(1, at.x1 - at.x0))
        bands = [
            self._band_scores(FieldWindow(at.x0, y, at.x1, min(y + band, at.y1)), radii)
            for y in range(at.y0, at.y1, band)
        ]
        return [np.concatenate(maps) for maps in zip(*bands, strict=True)]

    def _band_scores(self, at: FieldWindow, radii: Sequence[int]) -> list[Map]:
        reach = {radius: (max(0, radius - SIDE_PX), radius, radius + SIDE_PX) for radius in radii}
        needed = {r for three in reach.values() for r in three}
        circles = {radius: _circle(self._planes, at, radius) for radius in needed}
        far = max(radii) + SIDE_PX
        rows, columns = (slice(a - far + _MARGIN, b + far + _MARGIN) for a, b in ((at.y0, at.y1), (at.x0, at.x1)))
        if self._shows[rows, columns].all():
            # Standard deviation along each circle, over all planes.
            spread = {radius: np.asarray(np.sqrt(circle.var(axis=0).sum(axis=0))) for radius, circle in circles.items()}
            scores = []
            for inner, line, outer in reach.values():
                sides = [_length(np.abs(circles[line] - circles[circle]).mean(axis=0)) for circle in (inner, outer)]
                scores.append(_score(np.minimum(*sides), spread[line], np.minimum(spread[inner], spread[outer])))
            return scores
        shows = self._shows[None]
        seen = {radius: _Seen(circle, _circle(shows, at, radius)) for radius, circle in circles.items()}
        partial = []
        for three in reach.values():
            inside, middle, outside = (seen[radius] for radius in three)
            steps, fractions = [], [middle.count[0] / ANGLES]
            for neighbour in (inside, outside):
                both_show = middle.shows * neighbour.shows
                shared = both_show.sum(axis=0)
                step = (np.abs(middle.circle - neighbour.circle) * both_show).sum(axis=0) / np.maximum(shared, 1)
                steps.append(_length(step))
                fractions.append(shared[0] / ANGLES)
            score = _score(np.minimum(*steps), middle.spread, np.minimum(inside.spread, outside.spread))
            visible = np.minimum.reduce(fractions)
            # A short arc fits more places than a whole circle does.
            partial.append(np.asarray(np.where(visible >= MIN_VISIBLE, score * (0.75 + 0.25 * visible), 0), np.float32))
        return partial

    def rgb(self, x: float, y: float, mid_radius: float) -> tuple[float, float, float]:
        """Mean colour along a circle, each 0..255."""
        red, green, blue = self._line(x, y, mid_radius).mean(axis=0)
        return float(red), float(green), float(blue)

    def _line(self, x: float, y: float, radius: float) -> Map:
        angles = np.arange(4 * ANGLES) * (np.pi / 2 / ANGLES)
        columns = np.rint(x + radius * np.cos(angles)).astype(int)
        rows = np.rint(y + radius * np.sin(angles)).astype(int)
        inside = (columns >= 0) & (columns < self.width) & (rows >= 0) & (rows < self.height)
        return np.asarray(self._soft[rows[inside], columns[inside]])

    def share_apart(self, x: float, y: float, radius: float) -> float:
        """Share of a circle, 0..1, where both sides differ from it by at least half of what they do on average.

        A circle between a ring and a letter differs from them, and elsewhere from nothing.
        """
        angles = np.arange(4 * ANGLES) * (np.pi / 2 / ANGLES)
        rows, columns = (
            np.rint(at + np.multiply.outer((radius, max(0, radius - SIDE_PX), radius + SIDE_PX), turn(angles))).astype(
                int
            )
            for at, turn in ((y, np.sin), (x, np.cos))
        )
        luma = self._planes[0, rows + _MARGIN, columns + _MARGIN]
        contrast = np.abs(luma[1:] - luma[0])
        return float((contrast >= contrast.mean(axis=1, keepdims=True) / 2).all(axis=0).mean())

    def extent(self, x: float, y: float, mid_radius: float) -> tuple[float, float]:
        """Inner and outer radius of the line: where the colour is half way to that beside it, in pixels."""
        color = self._line(x, y, mid_radius).mean(axis=0)

        def contrast_at(radius: float) -> float:
            line = self._line(x, y, radius)
            return float(np.linalg.norm(line - color, axis=1).mean()) if len(line) else float("inf")

        def reach(direction: int, limit: float) -> float:
            far = contrast_at(max(0.0, mid_radius + direction * (SIDE_PX + 1)))
            radius = mid_radius
            while abs(radius - mid_radius) < limit and contrast_at(radius + 0.5 * direction) < 0.5 * far:
                radius += 0.5 * direction
            return radius

        return max(0.0, reach(-1, min(4.0, mid_radius))), reach(1, 4.0)


def _circle(planes: Map, at: FieldWindow, radius: int) -> Map:
    """Values along a circle round each centre, (ANGLES, planes, rows, columns)."""
    return np.stack([planes[:, at.y0 + dy : at.y1 + dy, at.x0 + dx : at.x1 + dx] for dx, dy in _offsets(radius)])


@lru_cache(maxsize=64)
def _offsets(radius: int) -> tuple[tuple[int, int], ...]:
    """Where a circle's samples lie from its centre, in the padded planes."""
    angles = np.arange(ANGLES) * (2 * np.pi / ANGLES)
    return tuple(
        (round(radius * float(np.cos(angle))) + _MARGIN, round(radius * float(np.sin(angle))) + _MARGIN)
        for angle in angles
    )


def _length(planes: Map) -> Map:
    return np.asarray(np.sqrt((planes**2).sum(axis=0)))


def _score(step: Map, spread: Map, around: Map) -> Map:
    """The ring score of the docstring above; more where the line is calmer than what it is drawn on."""
    calm = np.maximum(0, around - spread) / (around + FLOOR)
    return np.asarray(np.minimum(1, step / (step + 2 * spread + FLOOR) * (1 + CALM_GAIN * calm)), np.float32)


class _Seen:
    """Values along circles of which a part may lie outside of the image or under a letter."""

    def __init__(self, circle: Map, shows: Map) -> None:
        self.circle, self.shows = circle, shows
        self.count = shows.sum(axis=0)
        mean = (circle * shows).sum(axis=0) / np.maximum(self.count, 1)
        self.spread = np.sqrt((((circle - mean) ** 2 * shows).sum(axis=0) / np.maximum(self.count, 1)).sum(axis=0))


def color_name(rgb: tuple[float, float, float]) -> tuple[Color, float]:
    """The nearest of red, white and grey to a ring's mean colour, and how well it fits, 0..1.

    JPEG keeps a thin line's luma and mixes its chroma with that of the surroundings, so luma decides unless the line
    is clearly red.
    """
    red, green, blue = rgb
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    excess = red - max(green, blue)
    tint = max(rgb) - min(rgb)
    fits: dict[Color, float] = {
        "red": 1 - abs(luma - 80) / 160 - max(0.0, 130 - excess) / 130,
        "white": 1 - abs(luma - 245) / 90 - max(0.0, tint - 40) / 250,
        "grey": 1 - abs(luma - 128) / 90 - max(0.0, tint - 40) / 250,
    }
    name = max(fits, key=lambda color: fits[color])
    return name, min(1.0, max(0.0, fits[name]))


def find_rings(
    field: RingField, at: FieldWindow, radii: Sequence[int] = MID_RADII, count: int = 1, under: float | None = None
) -> list[Ring]:
    """The best rings at each radius, at most `count` of each, best first; near the column `under` where it is given."""
    if at.x1 <= at.x0 or at.y1 <= at.y0:
        return []
    rings = []
    aside = 0.0 if under is None else ASIDE_COST * np.abs(np.arange(at.x0, at.x1) - under)
    for radius, scores in zip(radii, field.scores(at, radii), strict=True):
        for _ in range(count):
            row, column = divmod(int((scores - aside).argmax()), scores.shape[1])
            score = float(scores[row, column])
            if score < 0.05:
                break
            x, y = at.x0 + column, at.y0 + row
            rgb = field.rgb(x, y, radius)
            color, fit = color_name(rgb)
            fit = min(1.0, 1.6 * field.share_apart(x, y, radius)) if field.colourless else fit
            luma = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]
            rings.append(Ring(x, y, radius, score * (0.65 + 0.35 * fit), color, luma))
            scores[max(0, row - radius) : row + radius + 1, max(0, column - radius) : column + radius + 1] = 0
    return sorted(rings, key=lambda ring: -ring.score)


def search_everywhere(pixels: Pixels, field: RingField, count: int = 12) -> list[Ring]:
    """The best rings of a whole image at any radius, best first: for pictures where no letter can be read.

    Erosion and dilation along the circle bound the spread in a fraction of the time; only the best centres are scored.
    """
    import cv2

    soft = cv2.GaussianBlur(pixels, (3, 3), 0.6)
    half = (soft[..., 0].astype(np.int16) - soft[..., 1:].mean(axis=2).astype(np.int16)) // 2 + 128
    luma = np.asarray(cv2.cvtColor(soft, cv2.COLOR_RGB2GRAY), np.uint8)
    planes = (luma, np.clip(half, 0, 255).astype(np.uint8))
    angles = np.arange(ANGLES) * (2 * np.pi / ANGLES)
    # By radius and pixel the middle of the range of values along a circle, (2, H, W), and the range's length, (H, W).
    bounds = []
    for radius in range(MID_RADII[-1] + SIDE_PX + 1):
        kernel = np.zeros((2 * radius + 1, 2 * radius + 1), np.uint8)
        rows, columns = (np.rint(radius + radius * turn(angles)).astype(int) for turn in (np.sin, np.cos))
        kernel[rows, columns] = 1
        low = np.stack([cv2.erode(plane, kernel) for plane in planes]).astype(np.float32)
        high = np.stack([cv2.dilate(plane, kernel) for plane in planes]).astype(np.float32)
        # OpenCV's root of the sum of squares: NumPy's takes over ten times as long.
        bounds.append((np.asarray((low + high) / 2, np.float32), np.asarray(cv2.magnitude(*(high - low)), np.float32)))
    rings: list[Ring] = []
    for radius in MID_RADII:
        middle, spread = bounds[radius]
        sides = [cv2.magnitude(*(middle - bounds[max(0, radius + side)][0])) for side in (-SIDE_PX, SIDE_PX)]
        step = np.minimum(sides[0], sides[1])
        quick = step / (step + spread + 12)
        for _ in range(4):
            row, column = divmod(int(quick.argmax()), quick.shape[1])
            at = field.window(column - 2, row - 2, column + 3, row + 3)
            rings.extend(find_rings(field, at, [radius]))
            quick[max(0, row - radius) : row + radius + 1, max(0, column - radius) : column + radius + 1] = 0
    return distinct(rings)[:count]


def distinct(rings: Sequence[Ring]) -> list[Ring]:
    """The rings, best first, without those that overlap a better one."""
    distinct_rings: list[Ring] = []
    for ring in sorted(rings, key=lambda ring: -ring.score):
        if all(
            np.hypot(ring.x - k.x, ring.y - k.y) > max(6.0, ring.mid_radius_px, k.mid_radius_px) for k in distinct_rings
        ):
            distinct_rings.append(ring)
    return distinct_rings
