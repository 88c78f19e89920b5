"""Known answers of segmentation: extent and area of a plain shape from its box; the named thing of two."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from hybrid.tool import CheckCase, Evidence, KnownAnswer
from hybrid.types import Json
from tools._shared.known_answers import BALL, CUBE, ball_and_cube, box_arg, number, point_args, pop_out_scene

if TYPE_CHECKING:
    from hybrid.samples.pop_out import Thing

# How far an edge of the mask may lie beside that of its shape; on a picture `LARGE` times as large twice as far.
NEAR_PX = 5.0
# Largest relative error of a mask's area on a plain shape.
AREA_OFF = 0.08
# By so much the box that is given is larger than the shape: a box that is given back is no answer.
LOOSE_PX = 9
LARGE = 4


def shape_area(thing: Thing) -> float:
    """Pixels that a plain shape covers, by its box."""
    x0, y0, x1, y1 = thing.box
    return (x1 - x0) * (y1 - y0) * (np.pi / 4 if thing.name.shape == "circle" else 1.0)


def _shape(scene: int, by: Literal["box", "point"], scale: int = 1) -> CheckCase:
    import cv2

    made = pop_out_scene(scene, 2)
    thing = made.things[0]
    picture = cv2.resize(made.draw(), None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    height, width = picture.shape[:2]
    edges = [edge * scale for edge in thing.box]
    whole, near = shape_area(thing) * scale**2, NEAR_PX * (2 if scale > 1 else 1)
    spare = LOOSE_PX * scale
    box = (
        max(0, edges[0] - spare),
        max(0, edges[1] - spare),
        min(width, edges[2] + spare),
        min(height, edges[3] + spare),
    )

    def wrong(evidence: Evidence) -> str | None:
        seen = evidence.data["box_px"]
        if not isinstance(seen, list):
            return "nothing was found"
        off = [float(str(there)) - here for there, here in zip(seen, edges, strict=True)]
        if max(map(abs, off)) > near:
            return f"an edge of the mask is {max(off, key=abs):.0f} px beside the {thing.name.shape}'s"
        ratio = number(evidence.data, "area_px") / whole
        return None if abs(ratio - 1) <= AREA_OFF else f"the mask has {ratio:.2f} of the {thing.name.shape}'s area"

    middle = ((edges[0] + edges[2]) / 2, (edges[1] + edges[3]) / 2)
    args: dict[str, Json] = {"box": box_arg(box)} if by == "box" else {"points": list(point_args([middle]))}
    return CheckCase((np.asarray(picture, np.uint8),), args, wrong)


def _named(thing: str) -> CheckCase:
    picture, boxes = ball_and_cube()
    box = boxes[thing]

    def wrong(evidence: Evidence) -> str | None:
        outline = evidence.data["outline_px"]
        if not isinstance(outline, list) or not outline:
            return "nothing was found"
        x, y = np.mean(np.array(outline, float), axis=0)
        if box.x0 <= x < box.x1 and box.y0 <= y < box.y1:
            return None
        place = f"{box.x0:.0f}-{box.x1:.0f}, {box.y0:.0f}-{box.y1:.0f}"
        return f"the mask's largest part is about ({x:.0f}, {y:.0f}) px, {thing} at {place}"

    return CheckCase((picture,), {"words": thing}, wrong)


CHECKS = (
    *(KnownAnswer(f"coloured shape by its box, scene {scene}", partial(_shape, scene, "box")) for scene in (3, 4)),
    *(KnownAnswer(f"coloured shape by a point, scene {scene}", partial(_shape, scene, "point")) for scene in (4, 5)),
    KnownAnswer("coloured shape in a large picture", partial(_shape, 6, "box", LARGE)),
    *(KnownAnswer(f"{thing}, named", partial(_named, thing)) for thing in (BALL, CUBE)),
)
