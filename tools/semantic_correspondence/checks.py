"""Known answers of semantic correspondence: the same pattern of four, moved, turned, scaled and in another light.

All patterns have the same two colours, half dark and half bright, and the second picture shows every one at another
place: neither mean colours nor positions tell them apart, only their form does. Features of self-supervised networks
are trained to agree on crops of other scale and colour (DINO, Caron et al. 2021, section 3.1), are matched across views
and light better than any others (Probe3D, El Banani et al. 2024, table 2), and tell textures apart (DINOv2, Oquab et
al. 2024, table 4: DTD). The things are 10 patches wide and turned by 20 degrees at most; a scene of three is longer
than 1024 px, so that it is reduced first.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from hybrid.tool import CheckCase, CheckSeries, KnownAnswer, Pixels
from hybrid.types import Json
from tools._shared.known_answers import SEED, expects, point_args
from tools._shared.patterns import Plane, coloured, lit, pattern

HEIGHT, WIDTH, RADIUS, PERIOD = 480, 640, 84, 42
DARK, BRIGHT, GROUND = (70, 60, 50), (215, 195, 165), (140, 130, 120)
# Forms, pixels per pixel of the plan, and the place of each form in the second picture.
SCENES: tuple[tuple[tuple[str, ...], float, tuple[int, ...]], ...] = (
    (("rings", "stripes", "checks", "spokes"), 1.0, (1, 3, 0, 2)),
    (("dots", "waves", "spokes", "blobs"), 2.2, (3, 2, 1, 0)),
    (("crosses", "rings", "waves", "checks"), 1.0, (2, 0, 3, 1)),
)
MOST_TURNED = 0.35
SMALLER, LARGER = 0.85, 1.2
SERIES = CheckSeries("the same pattern moved, turned and in another light", 10)


def _centres(rng: np.random.Generator) -> list[tuple[float, float]]:
    """One place (x, y) in each quarter of the plan."""
    shifts = rng.uniform(-24, 24, (4, 2))
    return [
        (WIDTH * (0.25 + 0.5 * (n % 2)) + dx, HEIGHT * (0.25 + 0.5 * (n // 2)) + dy)
        for n, (dx, dy) in enumerate(shifts)
    ]


def _scene(things: list[tuple[str, float, float, float]], places: list[tuple[float, float]], zoom: float) -> Plane:
    """Discs of patterns (form, scale, angle, phase) at places on a plain ground, (h, w, 3) of 0..255."""
    import cv2

    height, width = round(HEIGHT * zoom), round(WIDTH * zoom)
    canvas = np.empty((height, width, 3), np.float32)
    canvas[:] = GROUND
    for (form, scale, angle, _), (x, y) in zip(things, places, strict=True):
        radius = round(RADIUS * scale * zoom)
        side = 2 * radius + 1
        made = coloured(pattern(form, side, side, period=PERIOD * scale * zoom, angle=angle), DARK, BRIGHT)
        disc = cv2.circle(np.zeros((side, side), np.float32), (radius, radius), radius - 1, 1.0, -1, cv2.LINE_AA)
        left, top = round(x * zoom) - radius, round(y * zoom) - radius
        window = canvas[max(0, top) : top + side, max(0, left) : left + side]
        rows, columns = (
            slice(max(0, -top), max(0, -top) + window.shape[0]),
            slice(max(0, -left), max(0, -left) + window.shape[1]),
        )
        share = disc[rows, columns, None]
        window[:] = share * made[rows, columns] + (1 - share) * window
    return canvas


@lru_cache(maxsize=1)
def pair(number: int) -> tuple[Pixels, Pixels, list[tuple[float, float]], list[tuple[float, float]]]:
    """Two pictures of scene `number` of `SCENES`, and the centre (x, y) of each form in both, pixels.

    The last one drawn is kept: four questions that follow each other are about one scene.
    """
    forms, zoom, moved = SCENES[number]
    rng = np.random.default_rng((SEED, number))
    first, quarters = _centres(rng), _centres(rng)
    second = [quarters[place] for place in moved]
    plain = [(form, 1.0, 0.0, 0.0) for form in forms]
    changed = [
        (form, float(rng.choice((SMALLER, LARGER))), float(rng.choice((-1, 1)) * rng.uniform(0.15, MOST_TURNED)), 0.0)
        for form in forms
    ]
    here = lit(_scene(plain, first, zoom), 1.0)
    there = _scene(changed, second, zoom)
    fading = np.broadcast_to(np.linspace(0.55, 0.95, there.shape[1], dtype=np.float32), there.shape[:2])
    first, second = ([(x * zoom, y * zoom) for x, y in places] for places in (first, second))
    return here, lit(there, fading, (1.0, 0.95, 0.85)), first, second


def _same_pattern(number: int, place: int) -> CheckCase:
    here, there, first, second = pair(number)
    args: dict[str, Json] = {"point": point_args(first)[place], "candidates": point_args(second)}
    return CheckCase((here, there), args, expects("best_index", place))


CHECKS = tuple(
    KnownAnswer(f"{form}, scene {number + 1}", partial(_same_pattern, number, place), SERIES)
    for number, (forms, _, _) in enumerate(SCENES)
    for place, form in enumerate(forms)
)
