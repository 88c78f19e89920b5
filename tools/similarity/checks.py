"""Known answers of similarity: a darker copy of a picture is more like it than another picture, in either order."""

from __future__ import annotations

from functools import partial

from hybrid.tool import KnownAnswer, Posed
from tools._shared.known_answers import DEPTH_ANSWERS, darker, depth_item, expects


def _alike(place: int) -> Posed:
    picture, other = (depth_item(index).images[0] for index in list(DEPTH_ANSWERS)[:2])
    candidates = [darker(picture), other]
    return Posed((picture, *(candidates[:: -1 if place else 1])), {"aspect": "all"}, expects("best", place))


CHECKS = tuple(KnownAnswer(f"darker copy at place {place + 2}", partial(_alike, place)) for place in (0, 1))
