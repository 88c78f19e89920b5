"""Known answers of attributes: the colour of one drawn thing, among four colours.

Red and blue, and yellow and what becomes of it, change places when channels are in the wrong order, and every colour
does when a picture is inverted. That image-text networks name the colour of a single thing is well supported: colours
are words of their training captions, and where they fail is in binding colours to one of several things (Lewis et al.
2024, "Does CLIP bind concepts?": single adjective and noun above 90 %).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from hybrid.tool import CheckCase, CheckSeries, KnownAnswer, Pixels
from tools._shared.known_answers import expects

COLOURS = {"red": (220, 30, 30), "green": (30, 160, 60), "blue": (30, 60, 220), "yellow": (240, 215, 30)}
SHAPES = ("circle", "square")
SERIES = CheckSeries("the colour of a thing", 7)


def disc(colour: tuple[int, int, int]) -> Pixels:
    """A disc of an RGB colour on grey, (320, 320, 3)."""
    import cv2

    canvas = np.full((320, 320, 3), 128, np.uint8)
    return np.asarray(cv2.circle(canvas, (160, 160), 110, colour, -1, cv2.LINE_AA), np.uint8)


def _thing(colour: str, shape: str) -> CheckCase:
    names = list(COLOURS)
    picture = disc(COLOURS[colour])
    if shape == "square":
        # Larger than what any network takes, so that it is reduced first.
        picture = np.full((1280, 1280, 3), 235, np.uint8)
        picture[320:960, 320:960] = COLOURS[colour]
    texts = [f"a {name} {shape}" for name in names]
    return CheckCase((picture,), {"texts": texts}, expects("best", names.index(colour)))


CHECKS = tuple(
    KnownAnswer(f"a {colour} {shape}", partial(_thing, colour, shape), SERIES) for shape in SHAPES for colour in COLOURS
)
