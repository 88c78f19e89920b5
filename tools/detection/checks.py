"""Known answers of detection: stop signs, which open and closed sets know, are found at their size and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from hybrid.tool import CheckCase, Evidence, KnownAnswer, Pixels
from hybrid.types import Box, Json
from tools._shared.boxes import overlap
from tools._shared.known_answers import rows_of

NAME = "stop sign"
# Everyday classes, of which every closed set has one.
PROBE_NAMES = ("person", NAME)
# Intersection over union from which a box is that of a sign.
LEAST_OVERLAP = 0.5
# Of the signs of a picture.
LEAST_FOUND = 0.75
# How far boxes may lie beside their signs and how much larger or smaller they may be, as fractions of the signs' sides
# and as medians: a network errs at an edge here and there, an error of scale or place is that of all.
NEAR = 0.035

# The middle of a sign, x and y, and its radius, in pixels of a picture of 640 x 480.
Sign = tuple[float, float, float]
SCENES: Sequence[tuple[str, float, Sequence[Sign]]] = (
    ("four signs", 1.0, ((110, 130, 62), (520, 120, 70), (300, 200, 84), (470, 330, 58))),
    ("four signs in a large picture", 2.4, ((130, 140, 66), (500, 140, 76), (330, 240, 60), (520, 320, 64))),
)


def street(scale: float, signs: Sequence[Sign]) -> tuple[Pixels, list[Box]]:
    """Signs on poles before a sky, houses and a road, and the box of each."""
    import cv2

    width, height = round(640 * scale), round(480 * scale)
    down = np.linspace(0, 40, height)[:, None, None]
    canvas = np.tile((np.array((150, 185, 205)) + down).astype(np.uint8), (1, width, 1))
    road = round(0.8 * height)
    canvas[road:] = (92, 92, 96)
    for number in range(5):
        left = round(number * width / 5)
        cv2.rectangle(
            canvas,
            (left, round((0.35 + 0.06 * (number % 3)) * height)),
            (left + width // 5 - 4, road),
            (168 - 12 * number, 150 - 6 * number, 132),
            -1,
        )
    boxes = []
    for x, y, radius in signs:
        centre, reach = (x * scale, y * scale), radius * scale
        pole = round(0.06 * reach)
        cv2.rectangle(
            canvas,
            (round(centre[0]) - pole, round(centre[1])),
            (round(centre[0]) + pole, round(0.9 * height)),
            (120, 122, 125),
            -1,
        )
        for share, colour in ((1.0, (245, 245, 245)), (0.97, (190, 22, 30))):
            cv2.fillPoly(canvas, [_octagon(centre, share * reach)], colour, cv2.LINE_AA)
        size = reach / 50
        (across, high), _ = cv2.getTextSize("STOP", cv2.FONT_HERSHEY_SIMPLEX, size, 1)
        cv2.putText(
            canvas,
            "STOP",
            (round(centre[0] - across / 2), round(centre[1] + high / 2)),
            cv2.FONT_HERSHEY_SIMPLEX,
            size,
            (250, 250, 250),
            max(2, round(reach / 14)),
            cv2.LINE_AA,
        )
        edge = reach * np.cos(np.pi / 8)
        boxes.append(Box(centre[0] - edge, centre[1] - edge, centre[0] + edge, centre[1] + edge))
    noise = cv2.GaussianBlur(
        np.random.default_rng(len(signs)).normal(0, 1, canvas.shape).astype(np.float32), (0, 0), 1.2
    )
    return np.clip(canvas + 8 * noise, 0, 255).astype(np.uint8), boxes


def _octagon(centre: tuple[float, float], radius: float) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    """Eight corners, with a side on top."""
    angles = np.pi / 8 + np.arange(8) * np.pi / 4
    return np.rint(np.array(centre) + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)).astype(np.int32)


def _signs(scale: float, signs: Sequence[Sign]) -> CheckCase:
    picture, boxes = street(scale, signs)

    def wrong(evidence: Evidence) -> str | None:
        seen = [_box(row["box_px"]) for row in rows_of(evidence, "boxes")]
        pairs = [(box, max(seen, key=lambda one: overlap(one, box))) for box in boxes] if seen else []
        pairs = [(box, one) for box, one in pairs if overlap(box, one) >= LEAST_OVERLAP]
        if len(pairs) < LEAST_FOUND * len(boxes):
            return f"{len(pairs)} of {len(boxes)} signs were found"
        if len(seen) > 2 * len(boxes):
            return f"{len(seen)} boxes for {len(boxes)} signs"
        apart = np.median([_unlike(box, one) for box, one in pairs], axis=0)
        for said, value in zip(("to the right of", "below", "wider than", "higher than"), apart, strict=True):
            if abs(value) > NEAR:
                return f"boxes are {value:.1%} {said} their signs"
        return None

    return CheckCase((picture,), {"names": [NAME]}, wrong)


def _unlike(box: Box, found: Box) -> tuple[float, float, float, float]:
    """How far a found box lies to the right and below, and how much wider and higher it is, of the box's side."""
    side = box.x1 - box.x0
    left, top, right, bottom = (there - here for there, here in zip(_edges(found), _edges(box), strict=True))
    return (left + right) / 2 / side, (top + bottom) / 2 / side, (right - left) / side, (bottom - top) / side


def _edges(box: Box) -> tuple[float, float, float, float]:
    return box.x0, box.y0, box.x1, box.y1


def _none() -> CheckCase:
    picture, _ = street(1.0, ())

    def wrong(evidence: Evidence) -> str | None:
        seen = rows_of(evidence, "boxes")
        return f"{len(seen)} signs were found where there is none" if seen else None

    return CheckCase((picture,), {"names": [NAME]}, wrong)


def _box(edges: Json) -> Box:
    x0, y0, x1, y1 = (float(edge) for edge in np.array(edges, np.float64))
    return Box(x0, y0, x1, y1)


def probe(picture: Pixels) -> CheckCase:
    """A question about any picture, with names of which every set of classes has one."""
    return CheckCase((picture,), {"names": list(PROBE_NAMES)}, lambda _: None)


CHECKS = (
    *(KnownAnswer(name, partial(_signs, scale, signs)) for name, scale, signs in SCENES),
    KnownAnswer("a street without signs", _none),
)
