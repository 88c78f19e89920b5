"""Known answers of jigsaw: the piece that continues the image, even across a dark line that all pieces share.

For the second opinion, all pieces of an image have the same dark line at their seams and equal colours; only their
patterns differ (`_shared/known_answers.py`). Dense features of self-supervised networks are known to recognise one
texture on both sides of a line: k-means and nearest neighbours of DINO's patches segment textures and objects (Caron et
al. 2021, section 4.2.2; Oquab et al. 2024, section 7.4).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from hybrid.tool import CheckCase, CheckSeries, KnownAnswer, Pixels
from tools._shared.known_answers import coloured, expects, known_item, pattern

HEIGHT, WIDTH, LINE = 240, 480, 4
PERIOD = 34
DARK, BRIGHT, EDGE = (90, 70, 60), (225, 200, 150), 30
TEXTURES: list[list[str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["textures"]
SERIES = CheckSeries("the pattern behind an edge", 7)


def _puzzle(index: int) -> CheckCase:
    from hybrid.samples.geometry import jigsaw

    item = known_item(jigsaw, "Jigsaw", index, index)
    return CheckCase(item.images, {}, expects("best", item.answer))


def _edged(number: int) -> CheckCase:
    """Make a pattern with a dark line around the hole; behind this line, every piece has a different pattern."""
    texture, *others = TEXTURES[number]
    place = number % (len(others) + 1)
    patterns = [*others[:place], texture, *others[place:]]
    zoom = 2.5 if number == 0 else 1.0
    size, period = (round(HEIGHT * zoom), round(WIDTH * zoom)), PERIOD * zoom
    wholes = {
        form: np.asarray(coloured(pattern(form, *size, period=period, angle=0.2 * number), DARK, BRIGHT), np.uint8)
        for form in patterns
    }
    height, width = wholes[texture].shape[0] // 2, wholes[texture].shape[1] // 2
    line = round(LINE * zoom)
    reference = wholes[texture].copy()
    reference[height - line :, width - line :] = EDGE
    reference[height:, width:] = 0
    pieces = [wholes[form][height:, width:].copy() for form in patterns]
    for piece in pieces:
        piece[:line], piece[:, :line] = EDGE, EDGE
    return CheckCase((reference, *pieces), {}, expects("best", place))


def probe(picture: Pixels) -> CheckCase:
    """Make a puzzle of an image and two copies of its lower-right quarter: no seam distinguishes equal pieces."""
    height, width = picture.shape[0] // 2 * 2, picture.shape[1] // 2 * 2
    reference = picture[:height, :width].copy()
    piece = reference[height // 2 :, width // 2 :].copy()
    reference[height // 2 :, width // 2 :] = 0
    return CheckCase((reference, piece, piece), {}, expects("best", 0))


def unrelated_pieces(draw: Callable[[int, int], Pixels]) -> CheckCase:
    """Make a puzzle whose two pieces come from images unrelated to the first."""
    reference = draw(HEIGHT, WIDTH).copy()
    reference[HEIGHT // 2 :, WIDTH // 2 :] = 0
    pieces = [draw(HEIGHT, WIDTH)[HEIGHT // 2 :, WIDTH // 2 :].copy() for _ in range(2)]
    return CheckCase((reference, *pieces), {}, expects("best", None))


CHECKS = (
    *(KnownAnswer(f"puzzle {index}", partial(_puzzle, index)) for index in (0, 1)),
    *(
        KnownAnswer(f"{forms[0]} behind an edge {number + 1}", partial(_edged, number), SERIES)
        for number, forms in enumerate(TEXTURES)
    ),
)
