"""Find drawn box outlines in red or green: four thin straight lines of one colour that meet and end at the corners.

A line is looked for as a ridge of the colour's excess over the other channels, averaged along the line, so that noise
averages out and a line that JPEG turned grey on its complement still stands out. Of the rows and columns with the
strongest ridges every two and two are tried; a box is where all four sides are covered and end in its corners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from hybrid.types import Box
from tools._mark_letters import Reading
from tools._mark_pairs import likely

BoxColor = Literal["red", "green"]
Map = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

LEAST_SIDE_PX = 20
ALONG_PX = 15
"""Pixels along a line that are averaged: shorter than the shortest side, long enough for pixel noise."""
BESIDE_PX = 5
"""Where a line is compared with what is beside it: outside of any line of up to 8 px."""
STEPS = (20.0, 60.0, 120.0)
"""Grey levels of a ridge from which a line is followed: faint lines on smooth pictures, clear ones in noise."""
MOST_LINES = 20
MOST_RECTANGLES = 10
LEAST_COVERAGE = 0.6
LEAST_SCORE = 0.5
LEAST_PART = 0.2
"""Ridge at a pixel, of the side's median, from which the pixel is painted."""
LEAST_MEETS = 5
"""Of the eight ends of four sides, those that reach a corner: a ring has straight runs as well, but no corners."""
NEAR_PX = 8
LARGEST = 1000.0
"""More than any difference of grey levels."""
SAME_PX = 16
LEAST_LETTER = 0.5
LABEL_PX = 6
"""How far a letter's black box may lie from the outline it names."""
UPPER_LEFT = 0.5
"""What a letter at an outline's upper left corner, where BLINK draws it, is worth in scores; `ANY_CORNER` elsewhere."""
ANY_CORNER = 0.2


@dataclass(frozen=True, slots=True)
class Outline:
    """A drawn box: bounds in pixels (x1, y1 exclusive), colour, score 0..1 (cover of the sides and their ends)."""

    box: Box
    color: BoxColor
    score: float


@dataclass(frozen=True, slots=True)
class _Side:
    """One side: its edge outwards in pixels, painted part 0..1, and at how many of its two ends it meets and stops."""

    edge: int
    cover: float
    meets: int
    stops: int


class _Lines:
    """The excess of one colour, and its ridges along rows; `_Lines` of the transposed excess has the columns'."""

    def __init__(self, excess: Map) -> None:
        self.excess = excess
        along = cv2.blur(excess, (ALONG_PX, 1), borderType=cv2.BORDER_REFLECT_101)
        # A line at the picture's border is compared with its inner side alone.
        framed = np.pad(along, ((BESIDE_PX, BESIDE_PX), (0, 0)), constant_values=-LARGEST)
        self.ridge: Map = np.asarray(along - np.maximum(framed[: -2 * BESIDE_PX], framed[2 * BESIDE_PX :]), np.float32)

    def strongest(self, step: float) -> list[int]:
        """Rows with the strongest long ridges, at least 4 px apart, in order; at most `MOST_LINES`."""
        runs = cv2.morphologyEx(
            (self.ridge >= step).astype(np.uint8), cv2.MORPH_OPEN, np.ones((1, LEAST_SIDE_PX), np.uint8)
        )
        weight = (np.minimum(self.ridge, 160) * runs).sum(axis=1)
        kept: list[int] = []
        for row in np.argsort(-weight, kind="stable")[: 8 * MOST_LINES]:
            if weight[row] > 0 and all(abs(int(row) - other) >= 4 for other in kept):
                kept.append(int(row))
        return sorted(kept[:MOST_LINES])

    def side(self, row: int, start: int, end: int, outwards: int) -> _Side:
        """The line of a row between two columns (`end` exclusive); `outwards` is -1 for an upper or left side."""
        ridge = self.ridge[row, start:end]
        level = float(np.median(ridge))
        if level <= 0:
            return _Side(row, 0.0, 0, 0)
        painted = ridge >= max(LEAST_PART * level, 12.0)
        meets = sum(float(part.mean()) >= 0.5 for part in (painted[:NEAR_PX], painted[-NEAR_PX:]))
        # The average along the line carries it half a window beyond its end.
        before, after = start - ALONG_PX // 2, end + ALONG_PX // 2
        beyond = (self.ridge[row, max(0, before - NEAR_PX) : max(0, before)], self.ridge[row, after : after + NEAR_PX])
        stops = sum(not part.size or float(part.mean()) < 0.5 * level for part in beyond)
        return _Side(self._edge(row, start, end, outwards), float(painted.mean()), meets, stops)

    def _edge(self, row: int, start: int, end: int, outwards: int) -> int:
        """The last row outwards that belongs to the line: where the mean is nearer to the line than to what is out."""
        inset = min(6, (end - start) // 4)
        low, high = max(0, row - BESIDE_PX - 2), min(len(self.excess), row + BESIDE_PX + 3)
        mean = np.median(self.excess[low:high, start + inset : end - inset], axis=1)
        at = row - low
        peak = at + int(np.argmax(mean[max(0, at - 2) : at + 3])) - min(2, at)
        far = peak + outwards * BESIDE_PX
        out = mean[far] if 0 <= far < len(mean) else mean[max(0, min(len(mean) - 1, peak - outwards * BESIDE_PX))]
        half = (mean[peak] + out) / 2
        while 0 <= peak + outwards < len(mean) and mean[peak + outwards] >= half:
            peak += outwards
        return low + peak


def find_outlines(pixels: Pixels) -> list[Outline]:
    """Every drawn box of an image (H, W, 3), best first; boxes that share most of their outline are given once."""
    found = [outline for color in ("red", "green") for outline in _of_color(pixels, color)]
    kept: list[Outline] = []
    for outline in sorted(found, key=lambda outline: -outline.score):
        if not any(outline.color == k.color and _same(outline.box, k.box) for k in kept):
            kept.append(outline)
    return kept


def _of_color(pixels: Pixels, color: Literal["red", "green"]) -> list[Outline]:
    channel = 0 if color == "red" else 1
    others = cv2.max(pixels[..., 1 - channel], pixels[..., 2])
    excess = pixels[..., channel].astype(np.float32) - others
    if min(excess.shape) < LEAST_SIDE_PX:
        return []
    across, down = _Lines(excess), _Lines(np.ascontiguousarray(excess.T))
    rectangles = {corners for step in STEPS for corners in _rectangles(across, down, step)}
    judged = (_judge(across, down, corners, color) for corners in sorted(rectangles))
    return [outline for outline in judged if outline is not None]


def _rectangles(across: _Lines, down: _Lines, step: float) -> list[tuple[int, int, int, int]]:
    """Upper row, lower row, left and right column of rectangles whose four sides are all covered, best first."""
    rows, columns = across.strongest(step), down.strongest(step)
    high, wide = _spans(rows), _spans(columns)
    if not len(high) or not len(wide):
        return []
    along_rows = _cover(across.ridge[rows] >= step, wide, columns)
    along_columns = _cover(down.ridge[columns] >= step, high, rows)
    # Axes: two rows, two columns.
    sides = (
        along_rows[high[:, 0]],
        along_rows[high[:, 1]],
        along_columns[wide[:, 0]].T,
        along_columns[wide[:, 1]].T,
    )
    least = _together(sides)
    best = np.argsort(-least, axis=None, kind="stable")[:MOST_RECTANGLES]
    found = [divmod(int(index), least.shape[1]) for index in best if least.flat[index] >= LEAST_COVERAGE]
    return [(rows[high[p, 0]], rows[high[p, 1]], columns[wide[q, 0]], columns[wide[q, 1]]) for p, q in found]


def _spans(stops: Sequence[int]) -> npt.NDArray[np.intp]:
    """Numbers of every two lines that are far enough apart, (n, 2)."""
    first, second = np.triu_indices(len(stops), 1)
    at = np.asarray(stops, np.intp)
    far = at[second] - at[first] >= LEAST_SIDE_PX - 1
    return np.stack([first[far], second[far]], axis=1)


def _cover(lines: Mask, spans: npt.NDArray[np.intp], stops: Sequence[int]) -> npt.NDArray[np.float64]:
    """Painted part of each line along each span, (lines, spans)."""
    total = np.concatenate([np.zeros((len(lines), 1), np.int64), lines.cumsum(axis=1)], axis=1)
    at = np.asarray(stops, np.intp)
    start, end = at[spans[:, 0]], at[spans[:, 1]] + 1
    return np.asarray((total[:, end] - total[:, start]) / (end - start))


def _together(sides: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Cover of four sides as one number: half the mean, half the least, as another box may hide a part of one."""
    least, total = sides[0], sides[0]
    for side in sides[1:]:
        least, total = np.minimum(least, side), total + side
    return np.asarray((least + total / len(sides)) / 2)


def _judge(across: _Lines, down: _Lines, corners: tuple[int, int, int, int], color: BoxColor) -> Outline | None:
    top, low, left, right = corners
    sides = (
        across.side(top, left, right + 1, -1),
        across.side(low, left, right + 1, 1),
        down.side(left, top, low + 1, -1),
        down.side(right, top, low + 1, 1),
    )
    covered = float(_together([np.asarray(side.cover) for side in sides]))
    if sum(side.meets for side in sides) < LEAST_MEETS:
        return None
    stops = sum(side.stops for side in sides) / 8
    score = covered * (0.5 + 0.5 * stops)
    if covered < LEAST_COVERAGE or score < LEAST_SCORE:
        return None
    return Outline(Box(sides[2].edge, sides[0].edge, sides[3].edge + 1, sides[1].edge + 1), color, score)


def _same(a: Box, b: Box) -> bool:
    return max(abs(a.x0 - b.x0), abs(a.y0 - b.y0), abs(a.x1 - b.x1), abs(a.y1 - b.y1)) <= SAME_PX


def name_outlines(
    outlines: Sequence[Outline], readings: Sequence[Reading], expected: Sequence[str]
) -> dict[int, tuple[str, Reading]]:
    """The label of outlines by their number and the letter that says so, each label and letter once.

    `expected` are the labels asked for (none: any); a legible letter that was not asked for names its outline as well.
    """
    pairs = [
        (score + outline.score + place, number, label, reading)
        for number, outline in enumerate(outlines)
        for reading in readings
        for place in [_placed(reading.box, outline.box)]
        if place >= 0
        for label, score in likely(reading, expected).items()
        if score >= LEAST_LETTER
    ]
    named: dict[int, tuple[str, Reading]] = {}
    for _, number, label, reading in sorted(pairs, key=lambda pair: -pair[0]):
        if number not in named and all(label != name and reading is not other for name, other in named.values()):
            named[number] = (label, reading)
    return named


def _placed(label: Box, box: Box) -> float:
    """How well a letter's black box stands to name an outline: -1 away from it, 0 at a side, more at a corner."""
    d = LABEL_PX
    left = min(abs(label.x0 - box.x0), abs(label.x1 - box.x0))
    above = min(abs(label.y1 - box.y0), abs(label.y0 - box.y0))
    right = min(abs(label.x0 - box.x1), abs(label.x1 - box.x1))
    below = min(abs(label.y1 - box.y1), abs(label.y0 - box.y1))
    if abs(label.x0 - box.x0) <= d and above <= d:
        return UPPER_LEFT
    if min(left, right) <= d and min(above, below) <= d:
        return ANY_CORNER
    across = label.x1 >= box.x0 - d and label.x0 <= box.x1 + d
    along = label.y1 >= box.y0 - d and label.y0 <= box.y1 + d
    return 0.0 if (min(above, below) <= d and across) or (min(left, right) <= d and along) else -1.0
