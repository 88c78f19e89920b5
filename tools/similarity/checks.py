"""Known answers of similarity: a pattern larger, turned and in a dimmer light, among other patterns in its colours.

What is unlike has exactly the colours of the first picture, what is alike has not: mean colours alone are wrong every
time. The features of the networks that are read here are trained to agree on crops of another scale, brightness and
tint (DINO, Caron et al. 2021, section 3.1) or on captions, and name textures (DTD: DINOv2, Oquab et al. 2024, table 4;
SigLIP, Zhai et al. 2023, through CLIP's protocol). Content is asked for, the feature of the whole picture: patches at
the same place are not the same after a turn.
"""

from __future__ import annotations

from functools import partial

from hybrid.tool import CheckCase, CheckSeries, KnownAnswer, Pixels
from tools._shared.known_answers import expects
from tools._shared.patterns import FORMS, coloured, lit, pattern

SIDE, PERIOD = 320, 64
DARK, BRIGHT = (80, 60, 40), (230, 210, 180)
LIGHT, TINT = 0.6, (1.0, 0.95, 0.85)
LARGER, TURNED = 1.2, 0.25
SERIES = CheckSeries("the same pattern in another light", 7)


def _picture(form: str, zoom: float, *, larger: float = 1.0, angle: float = 0.0, light: float = 1.0) -> Pixels:
    side = round(SIDE * zoom)
    plane = pattern(form, side, side, period=PERIOD * zoom * larger, angle=angle)
    return lit(coloured(plane, DARK, BRIGHT), light, (1, 1, 1) if light == 1 else TINT)


def _alike(number: int) -> CheckCase:
    forms = list(FORMS)
    zoom = 3.5 if number == 0 else 1.0
    others = [_picture(forms[(number + step) % len(forms)], zoom) for step in (2, 5)]
    same = _picture(forms[number], zoom, larger=LARGER, angle=TURNED, light=LIGHT)
    place = number % (len(others) + 1)
    candidates = [*others[:place], same, *others[place:]]
    return CheckCase((_picture(forms[number], zoom), *candidates), {"aspect": "content"}, expects("best", place))


CHECKS = tuple(
    KnownAnswer(f"{form} in another light", partial(_alike, number), SERIES) for number, form in enumerate(FORMS)
)
