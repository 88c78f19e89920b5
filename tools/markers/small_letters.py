"""Read letters below 8 px, whose pixels depend on the position of the letter relative to the pixel grid.

The brightness that separates a letter from its box (`hybrid/marks/letters.py`) is lost if several pixels become one.
Therefore full boxes are compared with rendered ones that were halved at each grid offset.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import lru_cache
from itertools import accumulate, product
from typing import Any

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


@lru_cache(maxsize=1)
def boxes() -> dict[tuple[int, int], tuple[dict[str, slice], npt.NDArray[np.float32]]]:
    """Render every label's black box as a vector of length 1 and mean 0, by rows and columns.

    Returns the rows of each label in the array of the vectors, and this array (boxes, pixels).
    """
    import cv2

    templates = defaultdict(list)
    for label, font, height, dy, dx in product(LABELS, BANK_FONTS, HEIGHTS_PX, (0, 1), (0, 1)):
        patch = label_patch(label, MarkStyle(letter_px=height, font=font))[dy:, dx:, 0]
        rows, columns = patch.shape[0] // 2, patch.shape[1] // 2
        # Drop pixels that are mixed with the surroundings of the box.
        box = cv2.resize(patch[: 2 * rows, : 2 * columns], (columns, rows), interpolation=cv2.INTER_AREA)
        templates[rows, columns].append((label, _unit(box.reshape(1, -1))[0]))
    return {size: _by_label(rendered) for size, rendered in templates.items()}


def _by_label(
    rendered: list[tuple[str, npt.NDArray[np.float32]]],
) -> tuple[dict[str, slice], npt.NDArray[np.float32]]:
    """Stack boxes that are in the order of their labels."""
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

    small = cv2.resize(grey, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    black = cv2.boxFilter((small <= BLACK).astype(np.float32), -1, (7, 7)) >= SHARE
    ys, xs = np.argwhere(black & (cv2.dilate(small, np.ones((3, 3), np.uint8)) >= WHITE)).T + MARGIN_PX
    # A box cut by the border continues in black.
    padded = np.pad(small, MARGIN_PX, "edge")
    found = {label: np.full(len(ys), -1, np.float32) for label in LABELS}
    shapes = {label: np.zeros((len(ys), 2), np.int64) for label in LABELS}
    for (height, width), (rows, templates) in boxes().items():
        windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width))
        patches = _unit(windows[ys - height // 2, xs - width // 2].reshape(len(ys), height * width))
        correlations = templates @ patches.T
        for label, part in rows.items():
            fit = correlations[part].max(axis=0)
            better = fit > found[label]
            found[label][better], shapes[label][better] = fit[better], (height, width)
    fits = {label: np.full(padded.shape, -1, np.float32) for label in LABELS}
    sizes = {label: np.zeros((*padded.shape, 2), np.int64) for label in LABELS}
    for label in LABELS:
        fits[label][ys, xs], sizes[label][ys, xs] = found[label], shapes[label]
    best = np.maximum.reduce(list(fits.values()))
    peaks = np.argwhere((best == cv2.dilate(best, np.ones((5, 5), np.uint8))) & (best >= LEAST))
    readings = []
    for y, x in sorted(peaks.tolist(), key=lambda place: -float(best[tuple(place)]))[:MAX_CANDIDATES]:
        near = {label: float(fit[y - 1 : y + 2, x - 1 : x + 2].max()) for label, fit in fits.items()}
        scores = tuple(sorted(near.items(), key=lambda item: -item[1]))
        height, width = sizes[scores[0][0]][y, x].tolist()
        x0, y0 = 2 * (x - width // 2 - MARGIN_PX), 2 * (y - height // 2 - MARGIN_PX)
        x1, y1 = x0 + 2 * width, y0 + 2 * height
        # Painting over must leave no edge, and up to half a pixel beside the box may belong to it.
        box = Box(x0 - 2, y0 - 2, x1 + 2, y1 + 2)
        readings.append(LetterReading(Box(x0 + 3, y0 + 2, x1 - 3, y1 - 2), box, scores, False))
    return readings
