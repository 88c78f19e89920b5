"""Detects thin straight lines of one colour along the rows of a picture: their positions, extents and ends.

A line is a ridge of the colour's excess over the other channels. Averaging along the line suppresses noise, so that
even a line that JPEG turned grey on its complementary colour stands out. Areas covered by another colour's lines and by
the letters' black boxes are excluded from the average, because the order of drawing is unknown there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Map = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

MIN_SIDE_PX = 20
# Number of pixels averaged along a line: fewer than the shortest side has, but enough to suppress noise.
ALONG_PX = 15
# Distances at which a line is compared with its surroundings: outside any line of up to `WIDEST_PX`, and closer, in
# case the line of another box runs there.
BESIDE_PX = (5, 3)
WIDEST_PX = 8
# Minimum share of the averaged pixels that must be visible.
MIN_SEEN = 0.1
MAX_LINES = 20
# Ridge height in grey levels above which more contrast does not count, because the ridge certainly is a drawn line.
CLEAR_STEP = 160.0
# Rows on each side of a line that belong to it.
APART_PX = 3
# Minimum ridge at a pixel, relative to the side's median, at which the pixel counts as painted.
MIN_PART = 0.2
# Ridge height in grey levels below which nothing counts as painted.
MIN_STEP = 12.0
NEAR_PX = 8
# Larger than any grey level or difference: -FAR_BELOW, or FAR_BELOW, marks a place without a visible value.
FAR_BELOW = 1000.0
# Value of a hidden pixel, as a share of that of a painted pixel, so that covered sides stay plausible.
UNSEEN = 0.7
# Visible length of a side required to locate its edge by colour.
MIN_SEEN_PX = 10


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a box: the height of its ridge in grey levels, and the share of the side that exists."""

    # Painted part, 0..1, where a hidden pixel counts as `UNSEEN`.
    cover: float
    # Visibly painted part, 0..1.
    shown: float
    # Number of its two ends that reach a corner.
    meets: int
    # Number of its two ends that do not continue beyond the corner.
    stops: int
    level: float


@dataclass(frozen=True, eq=False)
class Run:
    """A row and the mask (W,) of its pixels that are on a line."""

    row: int
    on: Mask


class LineScores:
    """The ridges of a colour's excess (H, W) along rows; for the transposed excess, those along columns.

    `hidden` (H, W) is true where something else is drawn on the picture.
    """

    def __init__(self, excess: Map, hidden: Mask | None = None) -> None:
        import cv2

        self.excess = excess
        self.hidden = np.zeros(excess.shape, bool) if hidden is None else hidden
        mean = _along(excess)
        # The average along a row depends on no other row, so only rows with hidden pixels need their own.
        rows = np.flatnonzero(self.hidden.any(axis=1))
        if len(rows):
            mean[rows] = _visible_mean(excess[rows], self.hidden[rows])
        # In a picture of few rows, some have no neighbour at all.
        has_gaps = len(rows) > 0 or len(mean) < 2 * max(BESIDE_PX)
        closest = _nearest_level(mean, BESIDE_PX[0], has_gaps)
        for step in BESIDE_PX[1:]:
            cv2.min(closest, _nearest_level(mean, step, has_gaps), dst=closest)
        if has_gaps:
            self.hidden = self.hidden | (mean <= -FAR_BELOW) | (closest >= FAR_BELOW)
        ridge = np.subtract(mean, closest, out=closest)
        self.ridge: Map = np.maximum(ridge, 0, out=ridge)

    def strongest(self, step: float) -> list[Run]:
        """Return the lines with the strongest long ridges, by row; at most `MAX_LINES`.

        Two lines may be in adjacent rows if their columns differ: sides of boxes that overlap.
        """
        import cv2

        long = cv2.morphologyEx(
            (self.ridge >= step).view(np.uint8), cv2.MORPH_OPEN, np.ones((1, MIN_SIDE_PX), np.uint8)
        )
        if not long.any():
            return []
        weight = np.minimum(self.ridge, CLEAR_STEP) * long
        total = weight.sum(axis=1)
        runs: list[Run] = []
        while len(runs) < MAX_LINES:
            row = int(total.argmax())
            if total[row] <= 0:
                break
            lit = weight[row] > 0
            runs.append(Run(row, lit))
            low, high = max(0, row - APART_PX), row + APART_PX + 1
            # The average extends a line by half a window beyond its ends.
            longer = cv2.dilate(lit[None].astype(np.uint8), np.ones((1, ALONG_PX), np.uint8))[0] > 0
            short_runs = ((weight[low:high] > 0) & ~longer).astype(np.uint8)
            still = cv2.morphologyEx(short_runs, cv2.MORPH_OPEN, np.ones((1, MIN_SIDE_PX), np.uint8))
            weight[low:high] = np.where(still > 0, weight[low:high], 0)
            weight[row] = 0
            total[low:high] = weight[low:high].sum(axis=1)
        return sorted(runs, key=lambda run: run.row)

    def cover(
        self, rows: Sequence[int], spans: npt.NDArray[np.intp], step: float
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the painted part of each row along each span of columns (ends inclusive), and the visible share."""
        seen = ~self.hidden[rows]
        painted = (self.ridge[rows] >= step) & seen
        return _share(painted + UNSEEN * ~seen, spans), _share(painted, spans)

    def side(self, row: int, start: int, end: int) -> Side:
        """Return the line of a row between two columns (`end` exclusive)."""
        ridge, seen = self.ridge[row, start:end], ~self.hidden[row, start:end]
        level = float(np.median(ridge[seen])) if int(seen.sum()) >= MIN_SEEN_PX else 0.0
        painted = (ridge >= max(MIN_PART * level, MIN_STEP)) & seen
        value = painted + UNSEEN * ~seen
        if level <= 0 and bool(seen.mean() > 0.5):
            return Side(0.0, 0.0, 0, 0, 0.0)
        meets = sum(float(part.mean()) >= 0.5 for part in (value[:NEAR_PX], value[-NEAR_PX:]))
        # The average along the line extends it by half a window beyond its end.
        before_start, after_end = start - ALONG_PX // 2, end + ALONG_PX // 2
        stops = 0
        for first, last in ((before_start - NEAR_PX, before_start), (after_end, after_end + NEAR_PX)):
            part = slice(max(0, first), max(0, last))
            beyond = self.ridge[row, part][~self.hidden[row, part]]
            stops += not beyond.size or float(beyond.mean()) < 0.5 * max(level, 2 * MIN_STEP)
        return Side(float(value.mean()), float(painted.mean()), meets, stops, level)

    def edge(self, row: int, columns: npt.NDArray[np.intp], outwards: int) -> int | None:
        """Return the outermost row (-1 up, 1 down) whose colour is closer to the line than to the outside.

        Return None if fewer than `MIN_SEEN_PX` of the columns are visible, or if either side has no reference.
        """
        columns = columns[~self.hidden[row, columns]]
        if len(columns) < MIN_SEEN_PX:
            return None
        rows = range(max(0, row - BESIDE_PX[0] - 2), min(len(self.excess), row + BESIDE_PX[0] + 3))
        seen = {at: self.excess[at, columns][~self.hidden[at, columns]] for at in rows}
        value = {at: float(np.median(part)) for at, part in seen.items() if len(part) >= MIN_SEEN_PX}
        peak = max((at for at in range(row - 2, row + 3) if at in value), key=lambda at: value[at])
        far = [peak + side * step * outwards for side in (1, -1) for step in (*BESIDE_PX, BESIDE_PX[0] - 1)]
        out = next((value[at] for at in far if at in value), None)
        if out is None:
            return None
        half = (value[peak] + out) / 2
        while value.get(peak + outwards, -FAR_BELOW) >= half and abs(peak + outwards - row) <= WIDEST_PX // 2:
            peak += outwards
        return peak


def _nearest_level(mean: Map, step: int, has_gaps: bool) -> Map:
    """Return the higher of the levels `step` rows above and below (H, W); with `has_gaps`, `FAR_BELOW` if none exists.

    If one of the two is hidden or beyond the picture's border, return the level of the other row.
    """
    import cv2

    level = np.empty_like(mean)
    if len(mean) < 2 * step:
        level.fill(-FAR_BELOW)
        level[step:] = mean[:-step]
        cv2.max(level[:-step], mean[step:], dst=level[:-step])
    else:
        level[:step], level[-step:] = mean[step : 2 * step], mean[-2 * step : -step]
        cv2.max(mean[: -2 * step], mean[2 * step :], dst=level[step:-step])
    if has_gaps:
        np.copyto(level, FAR_BELOW, where=level <= -FAR_BELOW)
    return level


def _visible_mean(excess: Map, hidden: Mask) -> Map:
    """Return the average of the visible pixels along rows; `-FAR_BELOW` where too few are visible."""
    share = _along((~hidden).astype(np.float32))
    visible = _along(np.where(hidden, np.float32(0), excess)) / np.maximum(share, 1e-6)
    return np.where(share > MIN_SEEN, visible, np.float32(-FAR_BELOW))


def _along(values: Map) -> Map:
    import cv2

    return np.asarray(cv2.blur(values, (ALONG_PX, 1), borderType=cv2.BORDER_REFLECT_101), np.float32)


def _share(values: npt.NDArray[np.floating] | Mask, spans: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """Return the mean of each row of values over each span, (rows, spans)."""
    total = np.concatenate([np.zeros((len(values), 1)), values.cumsum(axis=1, dtype=np.float64)], axis=1)
    start, end = spans[:, 0], spans[:, 1] + 1
    return np.asarray((total[:, end] - total[:, start]) / (end - start))
