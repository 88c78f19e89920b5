"""Known answers of depth: the nearer of two points of rendered scenes must have the larger relative depth."""

from __future__ import annotations

from functools import partial

from hybrid.tool import Evidence, KnownAnswer, Posed
from tools._shared.known_answers import DEPTH_ANSWERS, depth_item, number, point_args, rows_of


def _nearer(index: int) -> Posed:
    from hybrid.samples.item import DepthFacts

    made = depth_item(index)
    assert isinstance(made.facts, DepthFacts)  # noqa: S101 - what this task makes
    nearer = made.answer

    def wrong(found: Evidence) -> str | None:
        values = [number(point, "depth_0_1") for point in rows_of(found, "points")]
        if values[nearer] > values[1 - nearer]:
            return None
        return f"the nearer point has relative depth {values[nearer]:.2f}, the farther one {values[1 - nearer]:.2f}"

    return Posed(made.images, {"points": point_args(made.facts.points)}, wrong)


CHECKS = tuple(KnownAnswer(f"nearer point, scene {index}", partial(_nearer, index)) for index in DEPTH_ANSWERS)
