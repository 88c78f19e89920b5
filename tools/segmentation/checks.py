"""Known answers of segmentation: extent and area of a plain shape from its box; the named thing of two."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hybrid.tool import Evidence, KnownAnswer, Posed
from hybrid.types import Box
from tools._shared.boxes import overlap
from tools._shared.known_answers import BALL, CUBE, ball_and_cube, box_arg, number, pop_out_scene

if TYPE_CHECKING:
    from hybrid.samples.pop_out import Thing

LEAST_OVERLAP = 0.7
AREA_OFF = 0.3
"""Largest relative error of a mask's area on a plain shape."""


def shape_area(thing: Thing) -> float:
    """Pixels that a plain shape covers, by its box."""
    x0, y0, x1, y1 = thing.box
    return (x1 - x0) * (y1 - y0) * (np.pi / 4 if thing.name.shape == "circle" else 1.0)


def _shape(scene: int) -> Posed:
    made = pop_out_scene(scene, 2)
    thing = made.things[0]
    whole = shape_area(thing)

    def wrong(found: Evidence) -> str | None:
        box = found.data["box_px"]
        if not isinstance(box, list):
            return "nothing was found"
        shared = overlap(Box(*(float(str(edge)) for edge in box)), Box(*thing.box))
        if shared < LEAST_OVERLAP:
            return f"the mask's box overlaps the {thing.name.shape} by {shared:.2f} (intersection over union)"
        ratio = number(found.data, "area_px") / whole
        return None if abs(ratio - 1) <= AREA_OFF else f"the mask has {ratio:.2f} of the {thing.name.shape}'s area"

    return Posed((made.draw(),), {"box": box_arg(thing.box)}, wrong)


def _named(thing: str) -> Posed:
    picture, boxes = ball_and_cube()
    box = boxes[thing]

    def wrong(found: Evidence) -> str | None:
        outline = found.data["outline_px"]
        if not isinstance(outline, list) or not outline:
            return "nothing was found"
        x, y = np.mean(np.array(outline, float), axis=0)
        if box.x0 <= x < box.x1 and box.y0 <= y < box.y1:
            return None
        place = f"{box.x0:.0f}-{box.x1:.0f}, {box.y0:.0f}-{box.y1:.0f}"
        return f"the mask's largest part is about ({x:.0f}, {y:.0f}) px, {thing} at {place}"

    return Posed((picture,), {"words": thing}, wrong)


CHECKS = (
    *(KnownAnswer(f"coloured shape, scene {scene}", partial(_shape, scene)) for scene in (3, 4)),
    *(KnownAnswer(f"{thing}, named", partial(_named, thing)) for thing in (BALL, CUBE)),
)
