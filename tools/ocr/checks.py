"""Known answers of ocr: plain words in capitals must be read, each where it stands, in small and in large pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from hybrid.tool import CheckCase, Evidence, KnownAnswer, Pixels
from tools._shared.known_answers import rows_of

# A text and the left end of its baseline, pixels.
Line = tuple[str, tuple[int, int]]
# How far the middle of a box may lie from that of its letters: finders leave equal margins around a line.
NEAR_PX = 5.0
# Colours of letters and ground.
INK: Mapping[str, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    "dark on light": ((20, 20, 20), (245, 245, 245)),
    "light on blue": ((240, 240, 225), (30, 60, 140)),
}


def _page(size: tuple[int, int], lines: Sequence[Line], ink: str, height: float) -> CheckCase:
    """Lines on a page (H, W), whose capitals are about 22 * `height` px high."""
    letters, ground = INK[ink]
    canvas = np.full((*size, 3), ground, np.uint8)
    places = [_written(canvas, line, height, letters) for line in lines]

    def wrong(evidence: Evidence) -> str | None:
        rows = rows_of(evidence, "lines")
        for (text, _), place in zip(lines, places, strict=True):
            row = next((one for one in rows if _letters(text) in _letters(str(one["text"]))), None)
            if row is None:
                return f"{text!r} is not among what it read, {str(evidence.data['text'])[:60]!r}"
            x0, y0, x1, y1 = np.array(row["box_px"], np.float64)
            middle = np.array([(x0 + x1) / 2, (y0 + y1) / 2])
            off = np.hypot(*(middle - place))
            if off > NEAR_PX:
                return f"the box of {text!r} is {off:.0f} px beside it"
        return None

    return CheckCase((canvas,), {}, wrong)


def _written(
    canvas: Pixels, line: Line, height: float, ink: tuple[int, int, int]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Write a line; the middle of its letters, (x, y) in pixels."""
    import cv2

    alone = np.zeros(canvas.shape[:2], np.uint8)
    cv2.putText(alone, line[0], line[1], cv2.FONT_HERSHEY_SIMPLEX, height, 255, max(2, round(2 * height)), cv2.LINE_AA)
    cv2.putText(canvas, line[0], line[1], cv2.FONT_HERSHEY_SIMPLEX, height, ink, max(2, round(2 * height)), cv2.LINE_AA)
    rows, columns = np.flatnonzero(alone.any(axis=1)), np.flatnonzero(alone.any(axis=0))
    return np.array([(columns[0] + columns[-1]) / 2, (rows[0] + rows[-1]) / 2])


def _letters(text: str) -> str:
    return "".join(letter for letter in text.upper() if letter.isalnum())


CHECKS = (
    KnownAnswer("the word STREET", partial(_page, (300, 480), [("STREET", (40, 170))], "dark on light", 2.0)),
    KnownAnswer("the words 27 APRIL", partial(_page, (300, 480), [("27 APRIL", (40, 170))], "dark on light", 2.0)),
    KnownAnswer(
        "three lines and their places",
        partial(
            _page,
            (480, 640),
            [("MARKET", (60, 90)), ("GARDEN 52", (300, 260)), ("NO ENTRY", (90, 430))],
            "light on blue",
            1.6,
        ),
    ),
    KnownAnswer(
        "two lines of a large picture",
        partial(_page, (1000, 2800), [("HARBOUR", (1900, 220)), ("TICKETS", (200, 860))], "dark on light", 4.0),
    ),
)
