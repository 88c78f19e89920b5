"""Known answers of jigsaw: the piece that goes on; behind an edge that fits both, the one with the pattern."""

from __future__ import annotations

from functools import partial

import cv2
import numpy as np

from hybrid.tool import KnownAnswer, Pixels, Posed
from tools._shared.known_answers import SEED, expects, known_item


def _puzzle(index: int) -> Posed:
    from hybrid.samples.geometry import jigsaw

    made = known_item(jigsaw, "Jigsaw", index, index)
    return Posed(made.images, {}, expects("best", made.answer))


def _edged(place: int) -> Posed:
    """Warm blobs with a dark line round the hole; one piece has blobs behind its line, the other blue stripes."""
    side, line = 160, 3
    rng = np.random.default_rng((SEED, place))
    whole = np.full((2 * side, 2 * side, 3), (225, 190, 120), np.uint8)
    for x, y in rng.integers(0, 2 * side, (160, 2)):
        cv2.circle(whole, (int(x), int(y)), 9, (150, 60, 30), -1, cv2.LINE_AA)
    other = np.full((side, side, 3), (60, 110, 200), np.uint8)
    other[:, (np.arange(side) // 8) % 2 == 0] = (235, 240, 250)
    pieces = [whole[side:, side:].copy(), other]
    for piece in pieces:
        piece[:line], piece[:, :line] = 40, 40
    reference = whole.copy()
    reference[side - line :, side - line :] = 40
    reference[side:, side:] = 0
    return Posed((reference, *(pieces[:: -1 if place else 1])), {}, expects("best", place))


def probe(picture: Pixels) -> Posed:
    """A puzzle of the picture and its own lower-right quarter, twice: no seam tells two equal pieces apart."""
    height, width = picture.shape[0] // 2 * 2, picture.shape[1] // 2 * 2
    reference = picture[:height, :width].copy()
    piece = reference[height // 2 :, width // 2 :].copy()
    reference[height // 2 :, width // 2 :] = 0
    return Posed((reference, piece, piece), {}, expects("best", 0))


CHECKS = (
    *(KnownAnswer(f"puzzle {index}", partial(_puzzle, index)) for index in (0, 1)),
    *(KnownAnswer(f"pattern behind an edge, piece {place + 2}", partial(_edged, place)) for place in (0, 1)),
)
