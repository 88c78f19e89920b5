"""Finds drawn rings of any colour: one colour along the circle that differs from the inside and the outside.

The score of a ring is defined in `ring_circles.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hybrid.marks.drawing import Color
from hybrid.marks.ring_circles import ANGLES, MID_RADII, SIDE_PX, Map, Numbers
from hybrid.marks.ring_field import FieldWindow, RingField
from hybrid.tool import Pixels

# Number of centres scored at once, chosen to fit the processor's cache.
BAND_PIXELS = 4000
# Number of circles up to which all centres are scored; with more, only the centres whose bounds allow the best score.
FEW_CIRCLES = 5000
# Score below which a circle is not a ring.
LEAST = 0.05
# Penalty of a ring's score per pixel of horizontal offset from its letter.
ASIDE_COST = 0.035


@dataclass(frozen=True, slots=True)
class Ring:
    """A ring candidate. Its centre and the radius to the middle of its line are in pixels.

    `score` is in 0..1; `luma` (0..255) is that of the line.
    """

    x: float
    y: float
    mid_radius_px: float
    score: float
    color: Color
    luma: float


def color_name(rgb: tuple[float, float, float]) -> tuple[Color, float]:
    """Return the nearest of red, white and grey to a ring's mean colour, and the quality of the match, 0..1.

    JPEG keeps a thin line's luma and mixes its chroma with that of the surroundings, so luma decides unless the line is
    clearly red.
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
    field: RingField,
    at: FieldWindow,
    radii: Sequence[int] = MID_RADII,
    count: int = 1,
    under: float | None = None,
    least: float = LEAST,
) -> list[Ring]:
    """Return the best rings at each radius, at most `count` each, best first; near the column `under` if given.

    `radii` are consecutive. Rings with a score below `least` may be left out.
    """
    if at.x1 <= at.x0 or at.y1 <= at.y0 or not radii:
        return []
    rings = []
    aside = 0.0 if under is None else ASIDE_COST * np.abs(np.arange(at.x0, at.x1) - under)
    for radius, peaks in zip(radii, _find_peaks(field, at, radii, aside, count, least), strict=True):
        for row, column, score in peaks:
            x, y = at.x0 + column, at.y0 + row
            rgb = field.rgb(x, y, radius)
            color, fit = color_name(rgb)
            fit = min(1.0, 1.6 * field.share_apart(x, y, radius)) if field.colourless else fit
            luma = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]
            rings.append(Ring(x, y, radius, score * (0.65 + 0.35 * fit), color, luma))
    return sorted(rings, key=lambda ring: -ring.score)


def _find_peaks(
    field: RingField,
    at: FieldWindow,
    radii: Sequence[int],
    aside: float | npt.NDArray[np.float64],
    count: int,
    least: float,
) -> list[list[tuple[int, int, float]]]:
    """Return the best centres as (row and column in the window, score): at most `count` per radius, none below `least`.

    Centres are ranked by score minus `aside` (w,). The surroundings of a selected centre are excluded.
    """
    height, width = at.y1 - at.y0, at.x1 - at.x0
    if height * width * (len(radii) + 2 * SIDE_PX) <= FEW_CIRCLES:
        rows, columns = (part.ravel() for part in np.mgrid[at.y0 : at.y1, at.x0 : at.x1])
        lower = upper = field.scores(rows, columns, radii).reshape(-1, height, width)
    else:
        lower, upper = field.bounds(at, radii)
        if len(radii) == 1 and isinstance(aside, float) and aside == 0:
            return [_find_peaks_of_radius(field, at, radii[0], (lower[0], upper[0]), count, least)]
    peaks: list[list[tuple[int, int, float]]] = [[] for _ in radii]
    for _ in range(count):
        going = np.flatnonzero(upper.max(axis=(1, 2)) >= least)
        if lower is not upper:
            _settle(field, at, np.asarray(radii), bounds=(lower, upper), aside=aside, going=going)
        for number in going.tolist():
            row, column = divmod(int((lower[number] - aside).argmax()), width)
            score, radius = float(lower[number, row, column]), radii[number]
            if score < least:
                upper[number] = 0
                continue
            peaks[number].append((row, column, score))
            around = slice(max(0, row - radius), row + radius + 1), slice(max(0, column - radius), column + radius + 1)
            lower[number][around] = upper[number][around] = 0
    return peaks


def _find_peaks_of_radius(
    field: RingField, at: FieldWindow, radius: int, bounds: tuple[Map, Map], count: int, least: float
) -> list[tuple[int, int, float]]:
    """Return the peaks of one radius as `_find_peaks` does, without `aside`.

    Only the few centres whose upper bound reaches `least` can be peaks, so only they are compared.
    """
    rows, columns = np.nonzero(bounds[1] >= least)
    lower, upper = (bound[rows, columns] for bound in bounds)
    peaks: list[tuple[int, int, float]] = []
    while len(rows) and len(peaks) < count:
        unsettled = np.flatnonzero((upper >= lower.max()) & (upper > lower))
        for start in range(0, len(unsettled), BAND_PIXELS):
            part = unsettled[start : start + BAND_PIXELS]
            lower[part] = upper[part] = field.scores(rows[part] + at.y0, columns[part] + at.x0, [radius])[0]
        best = int(lower.argmax())
        row, column, score = int(rows[best]), int(columns[best]), float(lower[best])
        if score < least:
            break
        peaks.append((row, column, score))
        left = (np.abs(rows - row) > radius) | (np.abs(columns - column) > radius)
        rows, columns, lower, upper = rows[left], columns[left], lower[left], upper[left]
    return peaks


def _settle(
    field: RingField,
    at: FieldWindow,
    radii: Numbers,
    *,
    bounds: tuple[Map, Map],
    aside: float | npt.NDArray[np.float64],
    going: Numbers,
) -> None:
    """Put the exact scores into both bounds (radii, h, w) wherever the best centre of a radius may be."""
    lower, upper = bounds
    low, high = lower[going], upper[going]
    best = (low - aside).max(axis=(1, 2), keepdims=True)
    numbers, rows, columns = np.nonzero((high - aside >= best) & (high > low))
    numbers = going[numbers]
    for start in range(0, len(rows), BAND_PIXELS):
        part = tuple(values[start : start + BAND_PIXELS] for values in (numbers, rows, columns))
        scores = field.scores_by_radius(part[1] + at.y0, part[2] + at.x0, radii[part[0]])
        lower[part] = upper[part] = scores


def search_everywhere(pixels: Pixels, field: RingField, least: float = LEAST, count: int = 12) -> list[Ring]:
    """Return the best rings of an image at any radius, best first, for pictures without readable letters.

    Rings with a score below `least` may be left out.

    Erosion and dilation along the circle bound the spread in a fraction of the time; only the best centres are scored.
    """
    import cv2

    soft = cv2.GaussianBlur(pixels, (3, 3), 0.6)
    half = (soft[..., 0].astype(np.int16) - soft[..., 1:].mean(axis=2).astype(np.int16)) // 2 + 128
    luma = np.asarray(cv2.cvtColor(soft, cv2.COLOR_RGB2GRAY), np.uint8)
    planes = (luma, np.clip(half, 0, 255).astype(np.uint8))
    angles = np.arange(ANGLES) * (2 * np.pi / ANGLES)
    # For each radius and pixel: the midpoint, (2, H, W), and the width, (H, W), of the range of values along a circle.
    bounds = []
    for radius in range(MID_RADII[-1] + SIDE_PX + 1):
        kernel = np.zeros((2 * radius + 1, 2 * radius + 1), np.uint8)
        rows, columns = (np.rint(radius + radius * turn(angles)).astype(int) for turn in (np.sin, np.cos))
        kernel[rows, columns] = 1
        low = np.stack([cv2.erode(plane, kernel) for plane in planes]).astype(np.float32)
        high = np.stack([cv2.dilate(plane, kernel) for plane in planes]).astype(np.float32)
        # Use OpenCV's magnitude, because NumPy takes over ten times as long.
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
            rings.extend(find_rings(field, at, [radius], least=least))
            quick[max(0, row - radius) : row + radius + 1, max(0, column - radius) : column + radius + 1] = 0
    return distinct(rings)[:count]


def distinct(rings: Sequence[Ring]) -> list[Ring]:
    """Return the rings, best first, without those that overlap a better ring."""
    distinct_rings: list[Ring] = []
    for ring in sorted(rings, key=lambda ring: -ring.score):
        if all(
            np.hypot(ring.x - k.x, ring.y - k.y) > max(6.0, ring.mid_radius_px, k.mid_radius_px) for k in distinct_rings
        ):
            distinct_rings.append(ring)
    return distinct_rings
