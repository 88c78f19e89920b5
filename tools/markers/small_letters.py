"""Read letters below 8 px in an enlarged picture: their strokes are grey, and their boxes one pixel wider than they.

The brightness that tells a letter from its box (`hybrid/marks/letters.py`) is lost where several pixels became one, so
that whole boxes are compared with blurred rendered ones.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hybrid.marks.drawing import LABELS, MarkStyle, label_patch
from hybrid.marks.letters import BANK_FONTS, Grey, LetterReading
from hybrid.types import Box

# In pixels of the enlarged picture.
HEIGHTS_PX = (10, 11, 13)
# Standard deviation of what reducing by half and enlarging again leaves of a pixel.
BLUR_PX = 1.0
# Correlation from which a box is a candidate: drawn letters have 0.75 and more, chance in photographs up to 0.88.
LEAST = 0.6
MAX_CANDIDATES = 40
# Grey levels that the darkest tenth of a box and the brightest one of its letter reach: drawn ones have 13 and
# less, 126 and more; half of what is alike by chance over 29 and under 93.
BLACK, WHITE = 20, 110


@lru_cache(maxsize=1)
def boxes() -> tuple[tuple[str, Grey], ...]:
    """Every label in its black box, (h, w), in each font and height."""
    import cv2

    styles = [MarkStyle(letter_px=height, font=font) for font in BANK_FONTS for height in HEIGHTS_PX]
    drawn = [(label, label_patch(label, style)[..., 0]) for label in LABELS for style in styles]
    return tuple((label, np.asarray(cv2.GaussianBlur(patch, (0, 0), BLUR_PX), np.uint8)) for label, patch in drawn)


def small_letters(grey: Grey) -> list[LetterReading]:
    """Letters that look like a drawn one, of an enlarged image (H, W), best correlation first."""
    import cv2

    fits = {label: np.full(grey.shape, -1, np.float32) for label in LABELS}
    sizes = dict.fromkeys(LABELS, (0, 0))
    for label, box in boxes():
        height, width = box.shape
        if height > grey.shape[0] or width > grey.shape[1]:
            continue
        fit = cv2.matchTemplate(grey, box, cv2.TM_CCOEFF_NORMED)
        rows, columns = slice(height // 2, height // 2 + fit.shape[0]), slice(width // 2, width // 2 + fit.shape[1])
        np.maximum(fits[label][rows, columns], fit, out=fits[label][rows, columns])
        # The last is the highest: what is painted over later must not leave an edge.
        sizes[label] = (height, width)
    best = np.maximum.reduce(list(fits.values()))
    peaks = np.argwhere((best == cv2.dilate(best, np.ones((9, 9), np.uint8))) & (best >= LEAST))
    readings = []
    for y, x in sorted(peaks.tolist(), key=lambda place: -float(best[tuple(place)])):
        near = {label: float(fit[y - 1 : y + 2, x - 1 : x + 2].max()) for label, fit in fits.items()}
        scores = tuple(sorted(near.items(), key=lambda item: -item[1]))
        height, width = sizes[scores[0][0]]
        left, top = x - width // 2, y - height // 2
        inside = grey[max(0, top) : top + height, max(0, left) : left + width]
        middle = grey[max(0, y - 4) : y + 5, max(0, x - 3) : x + 4]
        if np.percentile(inside, 10) <= BLACK and np.percentile(middle, 90) >= WHITE:
            glyph = Box(left + 3, top + 2, left + width - 3, top + height - 2)
            readings.append(LetterReading(glyph, Box(left, top, left + width, top + height), scores, False))
    return readings[:MAX_CANDIDATES]
