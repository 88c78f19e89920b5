"""Read letters below 8 px, whose pixels depend on the position of the letter relative to the pixel grid.

The brightness that separates a letter from its box (`hybrid/marks/letters.py`) is lost if several pixels become one.
Therefore full boxes are compared with rendered ones that were halved at each grid offset.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.core.types import Box
from hybrid.marks.drawing import LABELS, MarkStyle, label_patch
from hybrid.marks.letters import BANK_FONTS, MAX_CANDIDATES, Grey, LetterReading

# Letter heights in pixels of an image at twice its size. A letter of 11 px has 11 px there if the image was halved, and
# 13 to 17 px if it was reduced to 0.6 to 0.75 times its size.
HEIGHTS_PX = (10, 11, 13, 15, 17)
# Minimum correlation at which a box is a candidate.
LEAST = 0.6
# Highest grey level of a black pixel, smallest share of black pixels in a square of 7 px, and lowest grey level of the
# brightest pixel in the centre of that square. In rendered boxes, even if they are brightened, the share is at least
# 0.16 and the letters reach level 128.
BLACK, SHARE, WHITE = 30, 0.12, 110
# Margin around the picture: more than half the width of the widest box.
MARGIN_PX = 16
# The label with a wide box.
WORD = "REF"
# Number of candidates that are compared at once, few enough to stay in the processor's cache.
PART = 1024
# Bounds of the float32 error of a product of a template and grey levels, and of a correlation from `_correlations`. For
# up to 26 x 12 grey levels, a vector of a norm below 2300, products differ by less than 0.05 whatever the order of the
# sums.
PRODUCT_ERROR, CORRELATION_ERROR = 0.05, 1e-4


@lru_cache(maxsize=1)
def boxes() -> dict[tuple[int, int], tuple[dict[str, slice], npt.NDArray[np.float32]]]:
    """Render the black boxes of every label as vectors of length 1 and mean 0, grouped by height and width.

    For each size, return the rows of each label in the array of vectors, and this array (boxes, pixels).
    """
    import cv2

    templates = defaultdict(list)
    for label, font, height in product(LABELS, BANK_FONTS, HEIGHTS_PX):
        rendered = label_patch(label, MarkStyle(letter_px=height, font=font))
        for dy, dx in product((0, 1), (0, 1)):
            patch = rendered[dy:, dx:, 0]
            rows, columns = patch.shape[0] // 2, patch.shape[1] // 2
            # Drop pixels that are mixed with the surroundings of the box.
            box = cv2.resize(patch[: 2 * rows, : 2 * columns], (columns, rows), interpolation=cv2.INTER_AREA)
            templates[rows, columns].append((label, _unit(box.reshape(1, -1))[0]))
    return {size: _by_label(boxes_of_size) for size, boxes_of_size in templates.items()}


class _FramedBoxes(NamedTuple):
    """Boxes of many sizes in one frame around a candidate's pixel, so that one product compares all of them.

    `rows` and `columns` are the frame's pixels. `templates` (boxes, pixels) are 0 outside of the boxes; each of
    `starts` (groups,) is the first row of a group of one label and one size. `inside` (groups, pixels) is 1 in the box
    of a group.
    """

    rows: slice
    columns: slice
    templates: npt.NDArray[np.float32]
    starts: npt.NDArray[np.intp]
    inside: npt.NDArray[np.float32]
    groups: tuple[tuple[str, tuple[int, int]], ...]


@lru_cache(maxsize=1)
def _frames() -> tuple[_FramedBoxes, ...]:
    """Return the boxes of single letters and, in a wider frame, those of words."""
    groups = [(label, size) for size, (rows, _) in boxes().items() for label in rows]
    return tuple(
        _build_frame([group for group in groups if (group[0] == WORD) == is_word]) for is_word in (False, True)
    )


def _build_frame(groups: Sequence[tuple[str, tuple[int, int]]]) -> _FramedBoxes:
    up, left = (max(size[axis] // 2 for _, size in groups) for axis in (0, 1))
    down, right = (max(size[axis] - size[axis] // 2 for _, size in groups) for axis in (0, 1))
    templates, inside = [], []
    for label, (height, width) in groups:
        rows, vectors = boxes()[height, width]
        canvas = np.zeros((rows[label].stop - rows[label].start + 1, up + down, left + right), np.float32)
        place = slice(up - height // 2, up - height // 2 + height), slice(left - width // 2, left - width // 2 + width)
        canvas[:-1, *place] = vectors[rows[label]].reshape(-1, height, width)
        canvas[-1, *place] = 1
        flat = canvas.reshape(len(canvas), -1)
        templates.append(flat[:-1])
        inside.append(flat[-1])
    return _FramedBoxes(
        slice(MARGIN_PX - up, MARGIN_PX + down),
        slice(MARGIN_PX - left, MARGIN_PX + right),
        np.concatenate(templates),
        np.cumsum([0, *(len(part) for part in templates[:-1])]),
        np.stack(inside),
        tuple(groups),
    )


def _by_label(
    rendered: list[tuple[str, npt.NDArray[np.float32]]],
) -> tuple[dict[str, slice], npt.NDArray[np.float32]]:
    """Stack boxes that are ordered by label; return the rows of each label, and the stack."""
    counts = Counter(label for label, _ in rendered)
    ends = accumulate(counts.values())
    rows = {label: slice(end - counts[label], end) for label, end in zip(counts, ends, strict=True)}
    return rows, np.stack([box for _, box in rendered])


def _unit(vectors: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    level = vectors - vectors.mean(axis=1, keepdims=True, dtype=np.float32)
    length = np.sqrt(np.square(level).sum(axis=1, keepdims=True))
    return np.asarray(level / (length + 1e-6), np.float32)


def small_letters(grey: Grey) -> list[LetterReading]:
    """Read letters that resemble a rendered one in an image (H, W) at twice its size, best correlation first."""
    import cv2

    small = np.asarray(cv2.resize(grey, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), np.uint8)
    black = cv2.boxFilter((small <= BLACK).astype(np.float32), -1, (7, 7)) >= SHARE
    ys, xs = np.nonzero(black & (cv2.dilate(small, np.ones((3, 3), np.uint8)) >= WHITE))
    candidates = _Candidates(small, ys, xs)
    best = np.full(small.shape, -1, np.float32)
    best[ys, xs] = candidates.best_correlations()
    peaks = np.argwhere((best == cv2.dilate(best, np.ones((5, 5), np.uint8))) & (best >= LEAST))
    places = sorted(((y, x) for y, x in peaks.tolist()), key=lambda place: -float(best[place]))
    return candidates.readings(places[:MAX_CANDIDATES])


class _Candidates:
    """The pixels (N,) of an image (H, W) that may be the middle of a letter's box."""

    def __init__(self, small: Grey, ys: npt.NDArray[np.intp], xs: npt.NDArray[np.intp]) -> None:
        # Repeat the border pixels, so that a box cut by the border continues in black.
        self._padded = np.pad(small, MARGIN_PX, "edge")
        self._ys, self._xs = ys, xs
        self._number = np.full((small.shape[0] + 2, small.shape[1] + 2), -1)
        self._number[ys + 1, xs + 1] = np.arange(len(ys))

    def best_correlations(self) -> npt.NDArray[np.float32]:
        """Return the best correlation of each candidate (N,), or -1 for candidates below `LEAST`."""
        best = np.full(len(self._ys), -1, np.float32)
        for numbers, size in self._select_possible(
            np.arange(len(self._ys)), lambda low: np.maximum(low.max(axis=0), LEAST)
        ):
            best[numbers] = np.maximum(best[numbers], self._correlations(size, numbers).max(axis=0))
        return best

    def _select_possible(
        self, numbers: npt.NDArray[np.intp], least: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
    ) -> Iterator[tuple[npt.NDArray[np.intp], tuple[int, int]]]:
        """Yield up to `PART` candidates, and a size of box at which their correlation may reach `least`.

        `least` maps lower bounds of the correlations to thresholds that broadcast to (groups, candidates).
        """
        for start in range(0, len(numbers), PART):
            part = numbers[start : start + PART]
            low, high = (
                np.concatenate(bounds)
                for bounds in zip(*(self._bounds(framed, part) for framed in _frames()), strict=True)
            )
            reach = high >= least(low)
            by_size = {size: np.zeros(len(part), np.bool_) for size in boxes()}
            for (_, size), group in zip(_groups(), reach, strict=True):
                by_size[size] |= group
            yield from ((part[needed], size) for size, needed in by_size.items() if needed.any())

    def _bounds(self, framed: _FramedBoxes, part: npt.NDArray[np.intp]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return lower and upper bounds (groups, part) of each group's best correlation, from one product for all."""
        windows = np.lib.stride_tricks.sliding_window_view(self._padded, (2 * MARGIN_PX, 2 * MARGIN_PX))
        values = windows[:, :, framed.rows, framed.columns][self._ys[part], self._xs[part]]
        # With grey levels relative to 128, the sums of up to 26 x 12 levels and of their squares are exact in float32.
        level = values.reshape(len(values), -1).astype(np.float32) - 128
        products = np.maximum.reduceat(framed.templates @ level.T, framed.starts, axis=0)
        sums, squares = framed.inside @ level.T, framed.inside @ np.square(level).T
        spread = squares - np.square(sums, dtype=np.float64) / framed.inside.sum(axis=1, keepdims=True)
        length = np.sqrt(np.maximum(spread, 0)) + 1e-6
        low, high = ((products + side * PRODUCT_ERROR) / length + side * CORRELATION_ERROR for side in (-1, 1))
        return low, high

    def _correlations(self, size: tuple[int, int], numbers: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        """Return the correlations of at most `PART` candidates with the boxes of a size, (boxes, numbers)."""
        height, width = size
        windows = np.lib.stride_tricks.sliding_window_view(self._padded, size)
        rows = self._ys[numbers] + (MARGIN_PX - height // 2)
        columns = self._xs[numbers] + (MARGIN_PX - width // 2)
        # If a product has few columns, its rounding depends on their number. So there are as many columns as there
        # would be for all candidates.
        count = min(len(self._ys), PART)
        at = numbers if count < PART else np.arange(len(numbers))
        patches = np.zeros((count, height * width), np.float32)
        patches[at] = _unit(windows[rows, columns].reshape(len(numbers), height * width))
        return np.asarray((boxes()[size][1] @ patches.T)[:, at])

    def readings(self, places: Sequence[tuple[int, int]]) -> list[LetterReading]:
        """Return the letters at pixels (y, x) of the image."""
        near = [self._number[y : y + 3, x : x + 3].ravel() for y, x in places]
        numbers = np.unique(np.concatenate(near)) if near else np.empty(0, np.intp)
        numbers = numbers[numbers >= 0]
        fits = {label: np.full(len(self._ys) + 1, -1, np.float32) for label in LABELS}
        sizes = {label: np.zeros((len(self._ys), 2), np.int64) for label in LABELS}
        for part, size in self._select_possible(numbers, _best_of_label):
            correlations = self._correlations(size, part)
            for label, rows in boxes()[size][0].items():
                fit = correlations[rows].max(axis=0)
                better = fit > fits[label][part]
                fits[label][part[better]], sizes[label][part[better]] = fit[better], size
        # The last entry of `fits` belongs to pixels that are not candidates.
        return [
            _make_reading(
                place,
                {label: float(fit[around].max()) for label, fit in fits.items()},
                {label: tuple(size[around[4]].tolist()) for label, size in sizes.items()},
            )
            for place, around in zip(places, near, strict=True)
        ]


@lru_cache(maxsize=1)
def _groups() -> tuple[tuple[str, tuple[int, int]], ...]:
    return tuple(group for framed in _frames() for group in framed.groups)


def _best_of_label(low: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the largest value among the groups of the same label, (groups, candidates)."""
    labels = np.array([label for label, _ in _groups()])
    best = np.empty_like(low)
    for label in LABELS:
        best[labels == label] = low[labels == label].max(axis=0)
    return best


def _make_reading(place: tuple[int, int], fits: dict[str, float], sizes: dict[str, tuple[int, int]]) -> LetterReading:
    """Make the reading of a letter whose box has its middle at (y, x), from correlations and sizes by label."""
    scores = tuple(sorted(fits.items(), key=lambda item: -item[1]))
    (y, x), (height, width) = place, sizes[scores[0][0]]
    x0, y0 = 2 * (x - width // 2), 2 * (y - height // 2)
    x1, y1 = x0 + 2 * width, y0 + 2 * height
    # Painting over must leave no edge, and up to half a pixel beside the box may belong to it.
    box = Box(x0 - 2, y0 - 2, x1 + 2, y1 + 2)
    return LetterReading(Box(x0 + 3, y0 + 2, x1 - 3, y1 - 2), box, scores, False)
