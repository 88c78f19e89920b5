"""Known answers of saliency: the one coloured thing among grey ones must rank first, wherever it stands in the list."""

from __future__ import annotations

from functools import partial

from hybrid.tool import KnownAnswer, Posed
from tools._shared.known_answers import box_arg, expects, pop_out_scene


def _pop_out(number: int) -> Posed:
    made = pop_out_scene(number, 1)
    boxes = [box_arg(box, f"grey {place}") for place, box in enumerate(made.greys[:4], 1)]
    boxes.insert(number, box_arg(made.things[0].box, "coloured"))
    return Posed((made.draw(),), {"boxes": boxes}, expects("most_salient", "coloured"))


CHECKS = tuple(KnownAnswer(f"pop-out, scene {number}", partial(_pop_out, number)) for number in (1, 2))
