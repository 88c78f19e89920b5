"""Detects thin straight lines of one colour along the rows of a picture: their positions, extents and ends.

A line is a ridge of the colour's excess over the other channels. Averaging along the line suppresses noise, so that
even a line that JPEG turned grey on its complementary colour stands out. Areas covered by another colour's lines and by
the letters' black boxes are excluded from the average, because the order of drawing is unknown there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Map = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
# Excess of one colour over the other channels in grey levels, and sums of it.
Excess = npt.NDArray[np.int16]
Totals = npt.NDArray[np.float64]
ALL_COLUMNS = slice(None)

MIN_SIDE_PX = 20
# Number of pixels averaged along a line: fewer than the shortest side has, but enough to suppress noise.
ALONG_PX = 15
# Distances at which a line is compared with its surroundings. The first is outside any line of up to `WIDEST_PX`. The
# second is closer, because the line of another box may be at the first.
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
    """One side of a box: how much of it is painted, and the height of its ridge in grey levels (`level`)."""

    # Painted part, 0..1, where a hidden pixel counts as `UNSEEN`.
    cover: float
    # Visibly painted part, 0..1.
    shown: float
    # Number of the side's ends that reach a corner.
    meets: int
    # Number of the side's ends that do not continue beyond the corner.
    stops: int
    level: float


@dataclass(frozen=True, eq=False)
class Run:
    """A row and the mask (W,) of its pixels that are on a line."""

    row: int
    on: Mask


class LineScores:
    """The ridges of a colour's excess (H, W) along rows; for the transposed excess, those along columns.

    `hidden` (H, W) is true where something else is drawn on the picture. The ridges of a row are computed only if the
    row may have a line or is read, because most rows of a picture have no line.
    """

    def __init__(self, excess: Excess, hidden: Mask | None = None) -> None:
        self.excess = excess
        self._hidden = np.zeros(excess.shape, bool) if hidden is None else hidden.copy()
        self._sums = _sums_along(excess)
        # An average along a row depends on no other row, so only rows with hidden pixels need an average of their
        # visible pixels.
        partly = np.flatnonzero(self._hidden.any(axis=1))
        self._own_row = np.full(len(excess), -1)
        self._own_row[partly] = np.arange(len(partly))
        self._own = _visible_mean(excess[partly], self._hidden[partly])
        # In a picture of few rows, some have no neighbour at all.
        self._has_gaps = len(partly) > 0 or len(excess) < 2 * max(BESIDE_PX)
        self._ridge: Map = np.empty(excess.shape, np.float32)
        self._computed = np.zeros(len(excess), bool)
        self._totals: dict[tuple[float, int], Totals] = {}
        # Any `MIN_SIDE_PX // 2` adjacent columns contain a sampled column, so rows without a ridge in the sampled
        # columns have no line. At the border that many columns already count as a line, because OpenCV's opening treats
        # everything beyond the border as lit.
        sampled = slice(MIN_SIDE_PX // 2 - 1, None, MIN_SIDE_PX // 2)
        means = self._means(np.arange(len(excess)), sampled)
        closest = _closest_level(len(excess), np.arange(len(excess)), lambda rows: means[rows])
        self._highest = (means - closest).max(axis=1, initial=0)

    def ridge(self, rows: npt.NDArray[np.intp]) -> Map:
        """Return the ridges of rows, (rows, W)."""
        self._compute(rows)
        return self._ridge[rows]

    def hidden(self, rows: npt.NDArray[np.intp]) -> Mask:
        """Return which pixels of rows are hidden or have no visible value beside them, (rows, W)."""
        self._compute(rows)
        return self._hidden[rows]

    def _means(self, rows: npt.NDArray[np.intp], columns: slice = ALL_COLUMNS) -> Map:
        """Return the averages of the visible pixels along rows at columns, (rows, columns)."""
        means = np.asarray(self._sums[rows, columns] / np.float32(ALONG_PX), np.float32)
        own = self._own_row[rows]
        partly = own >= 0
        if partly.any():
            means[partly] = self._own[own[partly], columns]
        return means

    def _compute(self, rows: npt.NDArray[np.intp]) -> None:
        if self._computed[rows].all():
            return
        rows = rows[~self._computed[rows]]
        self._computed[rows] = True
        means, closest = self._means(rows), _closest_level(len(self.excess), rows, self._means)
        if self._has_gaps:
            self._hidden[rows] |= (means <= -FAR_BELOW) | (closest >= FAR_BELOW)
        self._ridge[rows] = np.maximum(means - closest, 0)

    def strongest(self, step: float) -> list[Run]:
        """Return the lines with the strongest long ridges, by row; at most `MAX_LINES`.

        Two lines may be in adjacent rows if their columns differ, like the sides of overlapping boxes.
        """
        import cv2

        rows = np.flatnonzero(self._highest >= step)
        if not len(rows):
            return []
        ridge = self.ridge(rows)
        long = cv2.morphologyEx((ridge >= step).view(np.uint8), cv2.MORPH_OPEN, np.ones((1, MIN_SIDE_PX), np.uint8))
        has_run = long.any(axis=1)
        rows, weight = rows[has_run], np.minimum(ridge[has_run], CLEAR_STEP) * long[has_run]
        total = weight.sum(axis=1)
        runs: list[Run] = []
        while len(rows) and len(runs) < MAX_LINES:
            at = int(total.argmax())
            if total[at] <= 0:
                break
            lit = weight[at] > 0
            runs.append(Run(int(rows[at]), lit))
            low, high = np.searchsorted(rows, (rows[at] - APART_PX, rows[at] + APART_PX + 1))
            # The average extends a line by half a window beyond its ends.
            longer = cv2.dilate(lit[None].view(np.uint8), np.ones((1, ALONG_PX), np.uint8))[0] > 0
            short_runs = ((weight[low:high] > 0) & ~longer).view(np.uint8)
            still = cv2.morphologyEx(short_runs, cv2.MORPH_OPEN, np.ones((1, MIN_SIDE_PX), np.uint8))
            weight[low:high] = np.where(still > 0, weight[low:high], 0)
            weight[at] = 0
            total[low:high] = weight[low:high].sum(axis=1)
        return sorted(runs, key=lambda run: run.row)

    def cover(
        self, rows: Sequence[int], spans: npt.NDArray[np.intp], step: float
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the painted share of each row along each span of columns, and the share that is visibly painted.

        The ends of spans are inclusive. In the painted share, a hidden pixel counts as `UNSEEN`.
        """
        missing = np.array([row for row in rows if (step, row) not in self._totals], np.intp)
        if len(missing):
            seen = ~self.hidden(missing)
            painted = (self.ridge(missing) >= step) & seen
            totals = np.stack([_totals(painted + UNSEEN * ~seen), _totals(painted)], axis=1)
            self._totals.update(((step, int(row)), total) for row, total in zip(missing, totals, strict=True))
        total = np.array([self._totals[step, row] for row in rows])
        start, end = spans[:, 0], spans[:, 1] + 1
        cover, visible = ((total[:, kind][:, end] - total[:, kind][:, start]) / (end - start) for kind in (0, 1))
        return cover, visible

    def side(self, row: int, start: int, end: int) -> Side:
        """Return the line of a row between two columns (`end` exclusive)."""
        place = np.array([row])
        all_ridges, visible = self.ridge(place)[0], ~self.hidden(place)[0]
        ridge, seen = all_ridges[start:end], visible[start:end]
        count = np.count_nonzero(seen)
        level = median(ridge[seen]) if count >= MIN_SEEN_PX else 0.0
        if level <= 0 and count > len(seen) / 2:
            return Side(0.0, 0.0, 0, 0, 0.0)
        painted = (ridge >= max(MIN_PART * level, MIN_STEP)) & seen
        value = painted + UNSEEN * ~seen
        meets = sum(mean(part) >= 0.5 for part in (value[:NEAR_PX], value[-NEAR_PX:]))
        # Averaging along the line extends it by half a window beyond each end.
        before_start, after_end = start - ALONG_PX // 2, end + ALONG_PX // 2
        stops = 0
        for first, last in ((before_start - NEAR_PX, before_start), (after_end, after_end + NEAR_PX)):
            part = slice(max(0, first), max(0, last))
            beyond = all_ridges[part][visible[part]]
            stops += not beyond.size or mean(beyond) < 0.5 * max(level, 2 * MIN_STEP)
        return Side(mean(value), np.count_nonzero(painted) / len(painted), meets, stops, level)

    def edge(self, row: int, columns: npt.NDArray[np.intp], outwards: int) -> int | None:
        """Return the outermost row, up (`outwards` -1) or down (1), whose colour is closer to the line than to outside.

        Return None if fewer than `MIN_SEEN_PX` of the columns are visible, or if either side has no reference.
        """
        columns = columns[~self.hidden(np.array([row]))[0, columns]]
        if len(columns) < MIN_SEEN_PX:
            return None
        rows = np.arange(max(0, row - BESIDE_PX[0] - 2), min(len(self.excess), row + BESIDE_PX[0] + 3))
        visible = ~self.hidden(rows)[:, columns]
        seen = {int(at): self.excess[at, columns][visible[place]] for place, at in enumerate(rows)}
        value = {at: median(part) for at, part in seen.items() if len(part) >= MIN_SEEN_PX}
        peak = max((at for at in range(row - 2, row + 3) if at in value), key=lambda at: value[at])
        far = [peak + side * step * outwards for side in (1, -1) for step in (*BESIDE_PX, BESIDE_PX[0] - 1)]
        out = next((value[at] for at in far if at in value), None)
        if out is None:
            return None
        half = (value[peak] + out) / 2
        while value.get(peak + outwards, -FAR_BELOW) >= half and abs(peak + outwards - row) <= WIDEST_PX // 2:
            peak += outwards
        return peak


def _closest_level(count: int, rows: npt.NDArray[np.intp], means_of: Callable[[npt.NDArray[np.intp]], Map]) -> Map:
    """Return, for each pixel of the rows, the lowest level beside it over all distances (rows, W).

    A level is the higher one of the averages of the two rows at a distance; if one of them is hidden or beyond the
    picture's border, it is that of the other. The result is `FAR_BELOW` if no distance has a visible level. `count` is
    the number of rows of the picture.
    """
    levels = []
    for step in BESIDE_PX:
        above, below = rows - step, rows + step
        # A row beyond the border is replaced by the row on the other side of the line.
        first = means_of(np.where(above >= 0, above, np.minimum(below, count - 1)))
        level = np.maximum(first, means_of(np.where(below < count, below, np.maximum(above, 0))))
        level[(above < 0) & (below >= count)] = -FAR_BELOW
        level[level <= -FAR_BELOW] = FAR_BELOW
        levels.append(level)
    return np.asarray(np.minimum.reduce(levels), np.float32)


def _visible_mean(excess: Excess, hidden: Mask) -> Map:
    """Return the average of the visible pixels along rows; `-FAR_BELOW` where too few are visible."""
    if not len(excess):
        return np.zeros(excess.shape, np.float32)
    share, visible = (
        _sums_along(values) / np.float32(ALONG_PX) for values in ((~hidden).astype(np.int16), excess * ~hidden)
    )
    return np.where(share > MIN_SEEN, visible / np.maximum(share, 1e-6), np.float32(-FAR_BELOW))


def mean(values: npt.NDArray[np.floating]) -> float:
    """Return NumPy's mean of at least one value; NumPy's own method takes three times as long for few values."""
    return float(np.add.reduce(values) / len(values))


def median(values: npt.NDArray[Any]) -> float:
    """Return NumPy's median of at least one value; NumPy's function takes ten times as long for one side's pixels."""
    ordered, middle = np.sort(values), len(values) // 2
    return float(ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)


def _sums_along(values: Excess) -> Excess:
    """Return the sum of the `ALONG_PX` nearest values along rows, with the values mirrored at the border."""
    import cv2

    sums = cv2.boxFilter(values, cv2.CV_16S, (ALONG_PX, 1), normalize=False, borderType=cv2.BORDER_REFLECT_101)
    return np.asarray(sums, np.int16)


def _totals(values: npt.NDArray[Any]) -> Totals:
    """Return the sums of the first 0 to W values of each row, (rows, W + 1)."""
    total = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(values, axis=1, dtype=np.float64, out=total[:, 1:])
    return total
