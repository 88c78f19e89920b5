"""Known answers of attributes: a red disc is red and a blue one is blue: colours in the wrong order do not pass."""

from __future__ import annotations

from functools import partial

import cv2
import numpy as np

from hybrid.tool import KnownAnswer, Pixels, Posed
from tools._shared.known_answers import expects


def disc(colour: tuple[int, int, int]) -> Pixels:
    """A disc of an RGB colour on grey, (320, 320, 3)."""
    canvas = np.full((320, 320, 3), 128, np.uint8)
    return np.asarray(cv2.circle(canvas, (160, 160), 110, colour, -1, cv2.LINE_AA), np.uint8)


def _disc(colour: str) -> Posed:
    texts = ("a red circle", "a blue circle")
    picture = disc((220, 30, 30) if colour == "red" else (30, 30, 220))
    return Posed((picture,), {"texts": texts}, expects("best", texts.index(f"a {colour} circle")))


CHECKS = tuple(KnownAnswer(f"a {colour} disc", partial(_disc, colour)) for colour in ("red", "blue"))
