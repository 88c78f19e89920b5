"""Known answers of reflectance: of a dark and a light paint in one light the dark one, whichever comes first."""

from __future__ import annotations

from functools import partial

import cv2
import numpy as np

from hybrid.tool import KnownAnswer, Posed
from tools._shared.known_answers import expects, point_args


def _paints(place: int) -> Posed:
    canvas = np.full((320, 440, 3), (150, 145, 138), np.float32)
    centres = ((120, 160), (320, 160))
    for centre, colour in zip(centres, ((60, 38, 34), (232, 214, 150)), strict=True):
        cv2.circle(canvas, centre, 80, colour, -1, cv2.LINE_AA)
    light = np.linspace(1.05, 0.85, canvas.shape[0], dtype=np.float32)[:, None, None]
    picture = np.clip(canvas * light, 0, 255).astype(np.uint8)
    return Posed((picture,), {"points": point_args(centres[:: -1 if place else 1])}, expects("darker_index", place))


CHECKS = tuple(KnownAnswer(f"dark paint at point {'AB'[place]}", partial(_paints, place)) for place in (0, 1))
