"""Known answers of motion: the camera goes to its left in one pair of views and to its right in the other."""

from __future__ import annotations

from functools import partial

from hybrid.tool import KnownAnswer, Posed
from tools._shared.known_answers import expects, known_item


def _side(index: int) -> Posed:
    from hybrid.samples.geometry import multi_view_reasoning

    made = known_item(multi_view_reasoning, "Multi-view_Reasoning", index, index)
    return Posed(made.images, {}, expects("moved", ("left", "right")[made.answer]))


CHECKS = tuple(KnownAnswer(f"camera's side, pair {index}", partial(_side, index)) for index in (0, 1))
