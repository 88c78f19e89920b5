"""Known answers of scanpath: of two things the one that is searched for must be looked at first, in either role."""

from __future__ import annotations

from functools import partial

from hybrid.tool import CheckCase, Evidence, KnownAnswer
from tools._shared.known_answers import BALL, CUBE, ball_and_cube, number, rows_of


def _sought(thing: str) -> CheckCase:
    picture, boxes = ball_and_cube()

    def wrong(evidence: Evidence) -> str | None:
        for fixation in rows_of(evidence, "fixations"):
            x, y = number(fixation, "x_px"), number(fixation, "y_px")
            seen = [name for name, box in boxes.items() if box.x0 <= x < box.x1 and box.y0 <= y < box.y1]
            if seen:
                return None if seen == [thing] else f"{seen[0]} is looked at first"
        return "neither thing is looked at"

    return CheckCase((picture,), {"target": thing, "fixations": 4}, wrong)


CHECKS = tuple(KnownAnswer(f"search for {thing}", partial(_sought, thing)) for thing in (BALL, CUBE))
