"""Known answers of saliency: the one thing on a ground draws the eye, whichever of the two is bright or patterned.

Every pair of looks is shown both ways round, once as the thing and once as the ground: a bias to the brighter,
the redder or the busier is right once of twice. Attention of self-supervised transformers falls on the thing (Caron et
al. 2021, section 4.2.2; with registers Darcet et al. 2024, figure 1).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from hybrid.tool import CheckCase, CheckSeries, KnownAnswer
from hybrid.types import Json
from tools._shared.known_answers import box_arg, expects
from tools._shared.patterns import coloured, pattern

HEIGHT, WIDTH, RADIUS, PERIOD = 360, 480, 62, 24
LOOKS: tuple[tuple[str, str], ...] = (("dark", "bright"), ("red", "green"), ("stripes", "grey"), ("blue", "yellow"))
COLOURS = {
    "dark": (45, 45, 50),
    "bright": (215, 210, 205),
    "red": (185, 50, 45),
    "green": (50, 120, 60),
    "blue": (40, 60, 170),
    "yellow": (225, 195, 60),
}
GREY, LOW, HIGH = (130, 125, 120), (60, 55, 50), (200, 195, 190)
PLACES = ((170, 200), (300, 150), (310, 215), (165, 150))
BESIDE = ((64, 64), (416, 64), (64, 296), (416, 296))
SERIES = CheckSeries("the thing on the ground", 6)


def _look(name: str) -> npt.NDArray[np.float32]:
    if name in COLOURS or name == "grey":
        return np.full((HEIGHT, WIDTH, 3), COLOURS.get(name, GREY), np.float32)
    return coloured(pattern(name, HEIGHT, WIDTH, period=PERIOD, angle=0.3), LOW, HIGH)


def _thing(thing: str, ground: str, number: int) -> CheckCase:
    import cv2

    (x, y), zoom = PLACES[number % len(PLACES)], 3 if number == 0 else 1
    disc = cv2.circle(np.zeros((HEIGHT, WIDTH), np.float32), (x, y), RADIUS, 1.0, -1, cv2.LINE_AA)[..., None]
    picture = np.asarray(disc * _look(thing) + (1 - disc) * _look(ground), np.uint8)
    picture = np.asarray(cv2.resize(picture, (WIDTH * zoom, HEIGHT * zoom), interpolation=cv2.INTER_CUBIC), np.uint8)
    half = RADIUS - 4
    boxes: list[Json] = [
        box_arg([zoom * side for side in (cx - half, cy - half, cx + half, cy + half)], label)
        for (cx, cy), label in zip(
            (*BESIDE, (x, y)), ("ground 1", "ground 2", "ground 3", "ground 4", "thing"), strict=True
        )
    ]
    # The thing stands at another place of the list every time.
    boxes = boxes[number % 5 :] + boxes[: number % 5]
    return CheckCase((picture,), {"boxes": boxes}, expects("most_salient", "thing"))


CHECKS = tuple(
    KnownAnswer(f"{thing} on {ground}", partial(_thing, thing, ground, 2 * number + turn), SERIES)
    for number, looks in enumerate(LOOKS)
    for turn, (thing, ground) in enumerate((looks, looks[::-1]))
)
