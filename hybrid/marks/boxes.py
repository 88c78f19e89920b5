"""Detects drawn box outlines in red, green or blue: four thin straight lines of one colour that meet at the corners.

All pairs of the rows and of the columns with the strongest lines (`lines.py`) are tried; a box requires that all four
sides are covered and end at its corners. Boxes may overlap: a side covered by another box's line or a letter counts
almost like a painted side, and a letter in its black box suggests an upper left corner. `box_letters.py` decides,
together with the letters, which of the outlines were drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from hybrid.core.types import Box
from hybrid.marks.letters import LetterReading
from hybrid.marks.lines import MIN_SIDE_PX, Excess, LineScores, Mask, Run, median
from hybrid.tool import Pixels

BoxColor = Literal["red", "green", "blue"]
Values = TypeVar("Values", Excess, Mask)
# Colours to search if a picture's colours are unknown.
COLORS: tuple[BoxColor, ...] = ("red", "green")
CHANNELS: tuple[BoxColor, ...] = ("red", "green", "blue")

# Ridge heights in grey levels from which a line is followed. The lowest finds faint lines on smooth pictures, the
# highest finds clear lines in noise.
STEPS = (20.0, 60.0, 120.0)
# Minimum ridge height in grey levels at which a line of one colour covers a line of another colour.
COVERING_STEP = 60.0
# Minimum excess of a colour in grey levels at which a pixel has this colour, even near lines of another colour.
MIN_EXCESS = 40
# Distance from the middle of a line up to which the line and the colour that JPEG spreads extend.
COVERING_PX = 2
MAX_RECTANGLES = 10
MIN_COVERAGE = 0.6
MIN_SCORE = 0.5
# Of the eight ends of the four sides, the number that must reach a corner: a ring has straight runs but no corners.
MIN_MEETS = 5
MIN_LETTER = 0.5
# Largest distance of a letter's black box from its outline.
LABEL_PX = 6
# Minimum share of a side that must be visibly painted, for at least `SIDES_SHOWN` sides.
MIN_SHOWN = 0.4
SIDES_SHOWN = 2
SAME_PX = 16
# Distance from a line's middle to its edge if the edge cannot be measured.
HALF_LINE_PX = 1
# Lines of one colour within this distance form one band, of which only the outer edges are visible.
MERGED_PX = 9

# Middle of the upper, lower, left and right line.
Corners = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Outline:
    """A drawn box, in pixels with x1 and y1 exclusive.

    `score` (0..1) is the painted share of the sides, reduced if lines continue beyond the corners.
    """

    box: Box
    color: BoxColor
    score: float
    corners: Corners
    # Height of the ridges of the outline's lines, in grey levels.
    level: float


class Strokes:
    """The lines of one picture (H, W, 3) in some colours, along rows and along columns."""

    def __init__(self, pixels: Pixels, letters: Sequence[LetterReading], colors: tuple[BoxColor, ...] = COLORS) -> None:
        import cv2

        self.colors = colors
        height, width = pixels.shape[:2]
        under = np.zeros((height, width), bool)
        for reading in letters:
            box = reading.box
            under[max(0, int(box.y0) - 1) : int(box.y1) + 1, max(0, int(box.x0) - 1) : int(box.x1) + 1] = True
        planes = dict(zip(CHANNELS, cv2.split(pixels), strict=True))
        excess: dict[BoxColor, Excess] = {}
        for color in colors:
            others = (planes[channel] for channel in CHANNELS if channel != color)
            excess[color] = np.asarray(cv2.subtract(planes[color], cv2.max(*others), dtype=cv2.CV_16S))
        # Without this lower bound, a gap between two lines of one colour would be a line in the excess of another
        # colour.
        bounded = {color: np.maximum(excess[color], np.int16(-MIN_EXCESS)) for color in colors}
        first = {color: (LineScores(bounded[color]), LineScores(_transpose(bounded[color]))) for color in colors}
        covered = {color: _covered(*first[color]) for color in colors}
        self._lines = {
            color: (LineScores(excess[color], hidden), LineScores(_transpose(excess[color]), _transpose(hidden)))
            for color in colors
            for others in [np.logical_or.reduce([covered[rival] for rival in colors if rival != color])]
            for hidden in [under | (others & (excess[color] < MIN_EXCESS))]
        }
        self._runs: dict[tuple[BoxColor, int, float], list[Run]] = {}
        self._places: dict[tuple[int, float], list[int]] = {}

    def of(self, color: BoxColor) -> tuple[LineScores, LineScores]:
        """Return the lines along rows, and along columns."""
        return self._lines[color]

    def runs(self, color: BoxColor, axis: int, step: float) -> list[Run]:
        """Return the strongest lines along rows (`axis` 0) or columns (1)."""
        key = (color, axis, step)
        if key not in self._runs:
            self._runs[key] = self._lines[color][axis].strongest(step)
        return self._runs[key]

    def places(self, axis: int, step: float) -> list[int]:
        """Return the rows (`axis` 0) or columns (1) of the strongest lines of any colour, ascending."""
        key = (axis, step)
        if key not in self._places:
            self._places[key] = sorted({run.row for color in self.colors for run in self.runs(color, axis, step)})
        return self._places[key]


def _transpose(values: Values) -> Values:
    import cv2

    # OpenCV transposes in less than half of NumPy's time.
    return np.asarray(cv2.transpose(values.view(f"i{values.itemsize}"))).view(values.dtype)


def _covered(across: LineScores, down: LineScores) -> Mask:
    """Return the mask (H, W) of the pixels that one colour's lines cover."""
    import cv2

    masks = []
    for lines in (across, down):
        on = np.zeros(lines.excess.shape, np.uint8)
        for run in lines.strongest(COVERING_STEP):
            on[run.row] |= run.on
        masks.append(cv2.dilate(on, np.ones((2 * COVERING_PX + 1, 1), np.uint8)) > 0)
    return np.asarray(masks[0] | masks[1].T)


def find_outlines(strokes: Strokes, letters: Sequence[LetterReading]) -> list[Outline]:
    """Return all outlines that may be drawn boxes, best first; shared or crossed sides cause several for one box."""
    outlines = set()
    for color in strokes.colors:
        if min(strokes.of(color)[0].excess.shape) < MIN_SIDE_PX:
            return []
        corners: set[Corners] = set()
        for step in STEPS:
            rows, columns = ([run.row for run in strokes.runs(color, axis, step)] for axis in (0, 1))
            corners |= {*_best(strokes.of(color), step, _spans(rows, rows), _spans(columns, columns))}
            corners |= {corner for letter in letters for corner in _at_letter(strokes, color, step, letter)}
        judged = (judge(strokes, color, corner) for corner in sorted(corners))
        outlines |= {outline for outline in judged if outline is not None}
    return sorted(outlines, key=lambda outline: (-outline.score, outline.color, outline.corners))


def distinct_outlines(outlines: Sequence[Outline]) -> list[Outline]:
    """Return the outlines, best first, without those that nearly equal a better outline of the same colour."""
    distinct: list[Outline] = []
    for outline in outlines:
        if not any(outline.color == k.color and farthest(outline.box, k.box) <= SAME_PX for k in distinct):
            distinct.append(outline)
    return distinct


def farthest(a: Box, b: Box) -> float:
    """Return the largest distance between corresponding sides of two boxes, in pixels."""
    return max(abs(a.x0 - b.x0), abs(a.y0 - b.y0), abs(a.x1 - b.x1), abs(a.y1 - b.y1))


def _at_letter(strokes: Strokes, color: BoxColor, step: float, letter: LetterReading) -> list[Corners]:
    """Return candidates with the upper left corner at a letter; a side may be under a line of another colour."""
    rows, columns = (strokes.places(axis, step) for axis in (0, 1))
    box = letter.box
    tops = [row for row in rows if min(abs(row - box.y0), abs(row - box.y1)) <= LABEL_PX]
    lefts = [column for column in columns if abs(column - box.x0) <= LABEL_PX]
    return _best(strokes.of(color), step, _spans(tops, rows), _spans(lefts, columns))


def _spans(first: Sequence[int], second: Sequence[int]) -> npt.NDArray[np.intp]:
    """Return every pair of a line in `first` and a line in `second` that is far enough after it, (n, 2)."""
    pairs = [(a, b) for a in first for b in second if b - a >= MIN_SIDE_PX - 1]
    return np.asarray(pairs, np.intp).reshape(-1, 2)


def _best(
    lines: tuple[LineScores, LineScores], step: float, high: npt.NDArray[np.intp], wide: npt.NDArray[np.intp]
) -> list[Corners]:
    """Return the best covered rectangles between pairs of rows and pairs of columns."""
    if not len(high) or not len(wide):
        return []
    across, down = lines
    sides = [_pick(across, high[:, at], wide, step) for at in (0, 1)]
    sides += [(cover.T, visible.T) for at in (0, 1) for cover, visible in [_pick(down, wide[:, at], high, step)]]
    covered = _together([cover for cover, _ in sides])
    visible_sides = np.sum([part >= MIN_SHOWN for _, part in sides], axis=0)
    covered = np.where(visible_sides >= SIDES_SHOWN, covered, 0)
    order = np.argsort(-covered, axis=None, kind="stable")[:MAX_RECTANGLES]
    places = [divmod(int(index), covered.shape[1]) for index in order if covered.flat[index] >= MIN_COVERAGE]
    return [(int(high[p, 0]), int(high[p, 1]), int(wide[q, 0]), int(wide[q, 1])) for p, q in places]


def _pick(
    lines: LineScores, rows: npt.NDArray[np.intp], spans: npt.NDArray[np.intp], step: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the painted share of each of `rows` along each span, and the share that is visibly painted.

    In the painted share, a hidden pixel counts as `UNSEEN`.
    """
    unique_rows = sorted({*rows.tolist()})
    back = np.searchsorted(unique_rows, rows)
    cover, visible = lines.cover(unique_rows, spans, step)
    return cover[back], visible[back]


def _together(sides: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Combine the covers of four sides: half the mean, half the minimum, as another box may hide a part of a side."""
    least, total = sides[0], sides[0]
    for side in sides[1:]:
        least, total = np.minimum(least, side), total + side
    return np.asarray((least + total / len(sides)) / 2)


def judge(strokes: Strokes, color: BoxColor, corners: Corners) -> Outline | None:
    """Return the outline between four lines, or None if they do not form one box."""
    across, down = strokes.of(color)
    top_edge, bottom_edge, left_edge, right_edge = corners
    sides = (
        across.side(top_edge, left_edge, right_edge + 1),
        across.side(bottom_edge, left_edge, right_edge + 1),
        down.side(left_edge, top_edge, bottom_edge + 1),
        down.side(right_edge, top_edge, bottom_edge + 1),
    )
    covered = float(_together([np.asarray(side.cover) for side in sides]))
    visible_sides = sum(side.shown >= MIN_SHOWN for side in sides)
    if sum(side.meets for side in sides) < MIN_MEETS or visible_sides < SIDES_SHOWN:
        return None
    score = covered * (0.5 + 0.5 * sum(side.stops for side in sides) / 8)
    if covered < MIN_COVERAGE or score < MIN_SCORE:
        return None
    level = median(np.array([side.level for side in sides if side.level > 0]))
    about = Box(
        left_edge - HALF_LINE_PX, top_edge - HALF_LINE_PX, right_edge + HALF_LINE_PX + 1, bottom_edge + HALF_LINE_PX + 1
    )
    return Outline(about, color, score, corners, level)


def measured(strokes: Strokes, outline: Outline, others: Sequence[Outline] = ()) -> Outline:
    """Move an outline's bounds to the outer edges of its lines, using the parts free from lines of `others`."""
    across, down = strokes.of(outline.color)
    top_edge, bottom_edge, left_edge, right_edge = outline.corners
    rivals = [other.corners for other in others if other.color == outline.color and other.corners != outline.corners]
    along_rows = [((rival[0], rival[1]), (rival[2], rival[3])) for rival in rivals]
    along_columns = [((rival[2], rival[3]), (rival[0], rival[1])) for rival in rivals]
    return replace(
        outline,
        box=Box(
            _bound(down, left_edge, (top_edge, bottom_edge), -1, along_columns),
            _bound(across, top_edge, (left_edge, right_edge), -1, along_rows),
            _bound(down, right_edge, (top_edge, bottom_edge), 1, along_columns) + 1,
            _bound(across, bottom_edge, (left_edge, right_edge), 1, along_rows) + 1,
        ),
    )


def _bound(
    lines: LineScores,
    place: int,
    span: tuple[int, int],
    outwards: int,
    rivals: Sequence[tuple[tuple[int, int], tuple[int, int]]],
) -> int:
    """Return the outer edge of a line between two columns; `rivals` are other outlines of its colour.

    If a rival's line merges with this one, the rest of this line determines the edge. If there is no rest and a rival
    is further out, the edge is `HALF_LINE_PX` from the middle.
    """
    inset = min(6, (span[1] + 1 - span[0]) // 4)
    columns = np.arange(span[0] + inset, span[1] + 1 - inset)
    alone = np.ones(len(columns), bool)
    beyond = False
    for rows, (first, last) in rivals:
        near = [row - place for row in rows if abs(row - place) <= MERGED_PX]
        if near:
            alone &= (columns < first - inset) | (columns > last + inset)
            beyond |= any(step * outwards > 0 for step in near)
    edge = lines.edge(place, columns[alone], outwards)
    if edge is None and not beyond:
        edge = lines.edge(place, columns, outwards)
    return place + outwards * HALF_LINE_PX if edge is None else edge
