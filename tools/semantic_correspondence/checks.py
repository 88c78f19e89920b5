"""Known answers of semantic_correspondence: the same thing of three in a darker copy."""

from __future__ import annotations

from functools import partial

from hybrid.tool import KnownAnswer, Posed
from hybrid.types import Json
from tools._shared.known_answers import darker, expects, point_args, pop_out_scene


def _same_thing(place: int) -> Posed:
    made = pop_out_scene(5, 3)
    centres = [((x0 + x1) / 2, (y0 + y1) / 2) for x0, y0, x1, y1 in (thing.box for thing in made.things)]
    args: dict[str, Json] = {"point": point_args(centres)[place], "candidates": point_args(centres)}
    picture = made.draw()
    return Posed((picture, darker(picture)), args, expects("best_index", place))


CHECKS = tuple(KnownAnswer(f"the same thing, thing {place + 1}", partial(_same_thing, place)) for place in range(3))
