"""Questions about objects: number, position, relations, and which surface is darker.

Run: `counting(np.random.default_rng(0), answer=2)`; `hybrid.benchmarks.blink.sample` turns items into official rows.
"""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from hybrid.core.types import Box
from hybrid.samples.item import (
    BoxFacts,
    CountFacts,
    Item,
    ReflectanceFacts,
    RelationFacts,
    Spot,
    boxed,
    pick,
    ringed,
    until,
)
from hybrid.samples.layouts import (
    Name,
    Rect,
    arrange,
    backdrop,
    high_camera,
    named_solid,
    random_camera,
    random_names,
    random_solid,
    rectangle,
)
from hybrid.samples.scenes import FIRST_SOLID, LUMINANCE, SKY, Camera, RenderedView, Scene, Solid, Wall, render
from hybrid.samples.textures import MAX_ALBEDO, MIN_ALBEDO, plain

WIDTH, HEIGHT = 480, 360
# Largest number of objects in a counting question.
MAX_THINGS = 7
# Smallest ratio of albedos that count as different.
DARKER_RATIO = 1.6
# Largest ratio of albedos that count as the same, while the light on them differs by at least `LIGHT_RATIO`.
SAME_RATIO = 1.06
LIGHT_RATIO = 1.35
# Range of the standard deviation, in logarithms, of a paint's red, green and blue around grey, drawn for each picture.
#
# It makes the chromaticities of a picture's segments spread as in photographs; `bench/reflectance.py --spread` measures
# the spread in both. In photographs a part of the spread is due to coloured light; here the light is white.
TINT = (0.1, 0.6)
# Length of haze (`haze_m`), so large that there is hardly any haze, as indoors. Intrinsic Images in the Wild, the
# source of BLINK's items, shows interiors.
CLEAR_M = 2000.0
# Range of the intersection over union of a wrong box with the tight box.
WRONG_OVERLAP = (0.4, 0.65)

# Smallest side of a boxed object (`LARGE_PX`), so that the corners of its two boxes can be a letter's size
# (`LETTER_PX`) apart.
LARGE_PX, LETTER_PX = 64, 18


def share_of_union(a: Box, b: Box) -> float:
    """Return the intersection over union of two boxes, 0..1."""
    inside = max(0.0, min(a.x1, b.x1) - max(a.x0, b.x0)) * max(0.0, min(a.y1, b.y1) - max(a.y0, b.y0))
    return inside / ((a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - inside)


def counting(rng: np.random.Generator, answer: int) -> Item:
    """Ask for the number of objects of one colour and shape among others; the choices ascend by one."""
    count = int(rng.integers(max(1, answer), MAX_THINGS + 1))
    target, *others = random_names(rng, 3)
    names = [target] * count + [others[pick(rng, 2)] for _ in range(int(rng.integers(2, 5)))]
    camera = high_camera(rng, WIDTH, HEIGHT)
    solids = until("arrangement of objects side by side", lambda: arrange(rng, camera, names))
    view = render(stage(rng, solids), camera, rng)
    boxes = tuple(_tight(view, number) for number in range(count))
    return Item(
        f"How many {target}s are there in the image?",
        (view.rgb,),
        tuple(str(count - answer + step) for step in range(4)),
        answer,
        CountFacts(target, boxes),
    )


def object_localization(rng: np.random.Generator, answer: int) -> Item:
    """Ask which of two boxes fits a named object: the tight box, or a shifted and resized box."""
    names = random_names(rng, int(rng.integers(3, 6)))
    camera = high_camera(rng, WIDTH, HEIGHT)
    solids = until("arrangement with a large first object", lambda: _led_by_a_large_one(rng, camera, names))
    view = render(stage(rng, solids), camera, rng)
    tight = _tight(view, 0)
    wrong = until("box that fits badly", lambda: _misfit(rng, tight))
    boxes = (tight, wrong) if answer == 0 else (wrong, tight)
    return Item(
        f"The image shows two bounding boxes, Box A (red) and Box B (green). Which one encloses the {names[0]} more "
        "accurately?",
        (boxed(view.rgb, *boxes),),
        ("Box A", "Box B"),
        answer,
        BoxFacts(names[0], tight, boxes),
    )


def spatial_relation(rng: np.random.Generator, answer: int) -> Item:
    """Ask whether one named object is left of, right of, above or beneath another object: yes or no."""
    upright = rng.random() < 0.4
    names = random_names(rng, int(rng.integers(2, 5)))
    camera = high_camera(rng, WIDTH, HEIGHT)
    solids = until("arrangement of two objects in a relation", lambda: _related(rng, camera, names, upright=upright))
    if upright:
        names = (names[0], Name(names[1].colour, "cube"), *names[2:])
    view = render(stage(rng, solids), camera, rng)
    holds = answer == 0
    first, second = (0, 1) if rng.random() < 0.5 else (1, 0)
    relations = ("above", "beneath") if upright else ("at the left side of", "at the right side of")
    # Solid 0 is the upper or left solid, so the first relation is true exactly for the order (0, 1).
    relation = relations[first if holds else 1 - first]
    return Item(
        f"Is the {names[first]} {relation} the {names[second]}?",
        (view.rgb,),
        ("yes", "no"),
        answer,
        RelationFacts(names[first], names[second], relation, holds, (_tight(view, first), _tight(view, second))),
    )


def relative_reflectance(rng: np.random.Generator, answer: int) -> Item:
    """Ask which of two points is on the darker surface, independent of the light, or whether both are about equal."""
    view, (first, second) = until("pair of surface points", lambda: _surface_pair(rng, answer))
    albedo = cv2.blur(view.albedo, (5, 5))
    places = [(int(y), int(x)) for x, y in (first, second)]
    albedos, lights = ([float(values[place]) for place in places] for values in (albedo, view.light))
    return Item(
        "Two points on the image are circled and labeled A and B. Judging the colour of the surfaces themselves and "
        "not the light on them, which point is darker, or are they about the same?",
        (ringed(view.rgb, [(first, "A"), (second, "B")], "white"),),
        ("A is darker", "B is darker", "About the same"),
        answer,
        ReflectanceFacts((first, second), (albedos[0], albedos[1]), (lights[0], lights[1])),
    )


def stage(rng: np.random.Generator, solids: tuple[Solid, ...]) -> Scene:
    """Put objects on calm ground, in half of the scenes in front of a wall."""
    wall_m = float(rng.uniform(9, 12)) if rng.random() < 0.5 else None
    return backdrop(rng, solids, wall_m, calm=True)


def _tight(view: RenderedView, number: int) -> Rect:
    """Return the smallest box around a solid's visible pixels."""
    rows, columns = np.nonzero(view.ids == FIRST_SOLID + number)
    return float(columns.min()), float(rows.min()), float(columns.max() + 1), float(rows.max() + 1)


def _led_by_a_large_one(rng: np.random.Generator, camera: Camera, names: tuple[Name, ...]) -> tuple[Solid, ...] | None:
    """Arrange objects side by side, the first at least `LARGE_PX` wide and high."""
    first = arrange(rng, camera, names[:1], sizes_m=(0.25, 0.42))
    if first is None:
        return None
    x0, y0, x1, y1 = rectangle(camera, first[0])
    others = arrange(rng, camera, names[1:], first, sizes_m=(0.2, 0.42))
    return (*first, *others) if others is not None and min(x1 - x0, y1 - y0) >= LARGE_PX else None


def _misfit(rng: np.random.Generator, tight: Rect) -> Rect | None:
    """Move every side of the tight box; None if the new box fits too well or too badly, or would hide a letter."""
    width, height = tight[2] - tight[0], tight[3] - tight[1]
    scale = np.array([width, height, width, height])
    x0, y0, x1, y1 = (float(value) for value in np.rint(np.array(tight) + rng.uniform(-0.4, 0.4, 4) * scale))
    if x0 < 2 or y0 < 2 or x1 > WIDTH - 2 or y1 > HEIGHT - 2 or x1 - x0 < 12 or y1 - y0 < 12:
        return None
    if abs(x0 - tight[0]) < LETTER_PX and abs(y0 - tight[1]) < LETTER_PX:
        return None
    return (
        (x0, y0, x1, y1)
        if WRONG_OVERLAP[0] <= share_of_union(Box(*tight), Box(x0, y0, x1, y1)) <= WRONG_OVERLAP[1]
        else None
    )


def _related(
    rng: np.random.Generator, camera: Camera, names: tuple[Name, ...], *, upright: bool
) -> tuple[Solid, ...] | None:
    """If `upright`, arrange the first object on a cube of the second object's colour, with the others next to them.

    Otherwise arrange the first object to the left of the second, in separate columns, and the others anywhere.
    """
    if not upright:
        solids = arrange(rng, camera, names, sizes_m=(0.2, 0.38))
        if solids is None:
            return None
        corners = [camera.project(solid.corners())[:, 0] for solid in solids[:2]]
        return solids if corners[0].max() + 12 < corners[1].min() else None
    x, y, size = float(rng.uniform(-0.8, 0.8)), float(rng.uniform(3.0, 5.0)), float(rng.uniform(0.25, 0.35))
    upper = named_solid(rng, names[0], x, y, size * float(rng.uniform(0.6, 0.85)), base_m=2 * size)
    lower = named_solid(rng, Name(names[1].colour, "cube"), x, y, size)
    others = arrange(rng, camera, names[2:], (upper, lower))
    return None if others is None else (upper, lower, *others)


def _painted(rng: np.random.Generator) -> Scene:
    """Paint solids, ground and wall with four colours, each 1.7 to 2 times as bright as the colour before."""
    step, level = float(rng.uniform(1.7, 2.0)), float(rng.uniform(0.06, 0.09))
    tint = float(rng.uniform(*TINT))
    paints = []
    for number in range(4):
        # The paint is grey except for the tint, and has the chosen luminance.
        colour = np.exp(rng.normal(0, tint, 3))
        mixed = np.clip(level * step**number * colour / (colour @ LUMINANCE), MIN_ALBEDO, MAX_ALBEDO)
        paints.append(plain(rng, (float(mixed[0]), float(mixed[1]), float(mixed[2])), grain=0.015))
    solids: list[Solid] = []
    for _ in range(60):
        x, y, size = float(rng.uniform(-2.2, 2.2)), float(rng.uniform(2.6, 6.0)), float(rng.uniform(0.3, 0.55))
        if all(np.hypot(x - solid.centre[0], y - solid.centre[1]) > 1.1 for solid in solids):
            solids.append(random_solid(rng, x, y, paints[pick(rng, 4)], size))
        if len(solids) == 8:
            break
    scene = backdrop(rng, solids, 7.0, calm=True)
    wall = Wall(float(rng.uniform(6.8, 8)), float(rng.uniform(-0.3, 0.3)), paints[pick(rng, 4)])
    sunlight, ambient = 1.2 * scene.sunlight, 0.6 * scene.ambient
    return replace(scene, ground=paints[pick(rng, 4)], wall=wall, sunlight=sunlight, ambient=ambient, haze_m=CLEAR_M)


# Number of surface points among which a pair is searched.
POINTS = 200


def _surface_pair(rng: np.random.Generator, answer: int) -> tuple[RenderedView, tuple[Spot, Spot]] | None:
    """Render a scene and find two points for which `answer` is true; light misleads in half of the unequal pairs."""
    view = render(_painted(rng), random_camera(rng, WIDTH, HEIGHT), rng)
    # Candidates are well-exposed points on one surface in one light, away from the borders; the surface is chosen
    # first.
    window = np.ones((13, 13), np.uint8)
    one_surface = cv2.dilate(view.ids, window) == cv2.erode(view.ids, window)
    one_light = cv2.dilate(view.light, window) / cv2.erode(view.light, window) < 1.25
    grey = cv2.blur(cv2.cvtColor(view.rgb, cv2.COLOR_RGB2GRAY), (5, 5))
    flat = one_surface & one_light & (grey > 14) & (grey < 222) & (view.ids != SKY)
    flat[:30], flat[-14:], flat[:, :14], flat[:, -14:] = False, False, False, False
    surfaces = [np.flatnonzero(flat & (view.ids == number)) for number in np.unique(view.ids[flat])]
    selected = (surfaces[pick(rng, len(surfaces))] for _ in range(POINTS))
    places = np.array([place[pick(rng, place.size)] for place in selected], dtype=np.int64)
    albedo, light = cv2.blur(view.albedo, (5, 5)).ravel()[places], view.light.ravel()[places]
    x, y = places % WIDTH, places // WIDTH
    # Entry [a, b] is for point a as A and point b as B.
    brighter = albedo[None, :] / albedo[:, None]
    lit = light[None, :] / light[:, None]
    distant = np.hypot(x[None, :] - x[:, None], y[None, :] - y[:, None]) > 45
    if answer == 2:
        usable = distant & (np.maximum(brighter, 1 / brighter) < SAME_RATIO) & (np.maximum(lit, 1 / lit) > LIGHT_RATIO)
    else:
        usable = distant & ((brighter if answer == 0 else 1 / brighter) > DARKER_RATIO)
        misleading = usable & ((brighter * lit - 1) * (brighter - 1) < 0)
        if rng.random() < 0.5 and misleading.any():
            usable = misleading
    pairs = np.argwhere(usable)
    if len(pairs) == 0:
        return None
    a, b = pairs[pick(rng, len(pairs))]
    return view, ((float(x[a]), float(y[a])), (float(x[b]), float(y[b])))
