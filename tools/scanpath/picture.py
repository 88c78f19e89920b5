"""Draw a scanpath over an image: `with_path(pixels, fixations)` joins numbered discs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from hybrid.tool import Pixels
from tools._shared.overlay import DARK, WHITE, extent

LINE = (255, 240, 90)


def with_path(pixels: Pixels, fixations: Sequence[tuple[float, float, int]]) -> Pixels:
    """A copy of a picture (H, W, 3) with fixations (x, y in its px, duration in ms) joined by a line.

    Each is a disc with its number, whose area grows with the duration.
    """
    import cv2

    out = np.ascontiguousarray(pixels).copy()
    height, width = out.shape[:2]
    scale = max(0.4, min(height, width) / 500)
    spots = [(round(x), round(y)) for x, y, _ in fixations]
    line = max(1, round(2 * scale))
    for start, end in itertools.pairwise(spots):
        cv2.line(out, start, end, DARK, line + 2, cv2.LINE_AA)
        cv2.line(out, start, end, LINE, line, cv2.LINE_AA)
    longest = max((ms for _, _, ms in fixations), default=1)
    placed: list[tuple[int, int]] = []
    for number, ((x, y), (_, _, ms)) in enumerate(zip(spots, fixations, strict=True), 1):
        radius = max(2, round(17 * scale * float(np.sqrt(ms / longest))))
        centre = _free((x, y), radius, placed, width)
        placed.append(centre)
        cv2.circle(out, centre, radius, DARK, cv2.FILLED, cv2.LINE_AA)
        cv2.circle(out, centre, radius, LINE, line, cv2.LINE_AA)
        _centred(out, str(number), centre, 0.62 * scale)
    return out


def _free(at: tuple[int, int], radius: int, taken: Sequence[tuple[int, int]], width: int) -> tuple[int, int]:
    """A place for a disc: next to an earlier one whose number it would hide, where a place was visited again."""
    x, y = at
    while any(np.hypot(x - a, y - b) < radius for a, b in taken) and x + radius < width:
        x += radius
    return x, y


def _centred(out: Pixels, text: str, at: tuple[int, int], font: float) -> None:
    import cv2

    width, height = extent(text, font)
    cv2.putText(
        out, text, (at[0] - width // 2, at[1] + height // 2), cv2.FONT_HERSHEY_SIMPLEX, font, WHITE, 1, cv2.LINE_AA
    )
