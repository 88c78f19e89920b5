"""Pairs of rendered pictures that differ in one attribute, with the facts that make every answer true.

`pair(index, seed)` makes pair `index`, from 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from hybrid.samples.item import pick, until
from hybrid.samples.layouts import (
    SHAPES,
    Name,
    Rect,
    arrange,
    backdrop,
    fits,
    high_camera,
    named_solid,
    random_names,
    rectangle,
)
from hybrid.samples.scenes import Ball, Camera, Solid, render
from hybrid.samples.seeds import Purpose, generator
from hybrid.samples.textures import NAMED_COLOURS
from hybrid.tool import Pixels

Edit = Literal["colour", "shape", "count", "order"]
EDITS: tuple[Edit, ...] = ("colour", "shape", "count", "order")

WIDTH, HEIGHT = 256, 192
# Smallest horizontal distance between the centres of two objects.
MIN_GAP_PX = 14.0


@dataclass(frozen=True, eq=False)
class ImagePair:
    """The natural (0) and the manipulated (1) picture, RGB (HEIGHT, WIDTH, 3) uint8, and their objects.

    `names[k]` lists the objects in picture k from left to right, `rects[k]` the box of each in pixels. `edit` is the
    difference. No two objects in a picture have the same colour.
    """

    edit: Edit
    images: tuple[Pixels, Pixels]
    names: tuple[tuple[Name, ...], tuple[Name, ...]]
    rects: tuple[tuple[Rect, ...], tuple[Rect, ...]]


class _Thing(NamedTuple):
    name: Name
    solid: Solid


def pair(index: int, seed: int, purpose: Purpose = "sample") -> ImagePair:
    """Make pair `index`; the edits alternate. Raises `HybridError` if no pair could be constructed."""
    rng = generator(purpose, seed, index, 0)
    edit = EDITS[index % len(EDITS)]
    camera = high_camera(rng, WIDTH, HEIGHT)
    earlier, later = until("pair of scenes", lambda: _scenes(rng, camera, edit))
    ground = backdrop(rng, [], 9.0, calm=True)
    if rng.random() < 0.5:
        earlier, later = later, earlier
    scenes = [replace(ground, solids=tuple(placed.solid for placed in scene_items)) for scene_items in (earlier, later)]
    images = tuple(render(scene, camera, rng).rgb for scene in scenes)
    names = tuple(tuple(placed.name for placed in scene_items) for scene_items in (earlier, later))
    rects = tuple(tuple(rectangle(camera, placed.solid) for placed in scene_items) for scene_items in (earlier, later))
    return ImagePair(edit, (images[0], images[1]), (names[0], names[1]), (rects[0], rects[1]))


def spare_colours(names: Sequence[Name]) -> tuple[str, ...]:
    """Return the colours that no object has."""
    return tuple(colour for colour in NAMED_COLOURS if colour not in {name.colour for name in names})


def _scenes(rng: np.random.Generator, camera: Camera, edit: Edit) -> tuple[list[_Thing], list[_Thing]] | None:
    """Return two lists of objects from left to right, or None if they do not fit or cannot be distinguished."""
    names = random_names(rng, 3)
    solids = arrange(rng, camera, names, sizes_m=(0.22, 0.34))
    if solids is None:
        return None
    earlier = [_Thing(name, solid) for name, solid in zip(names, solids, strict=True)]
    after = _edited(rng, camera, earlier, edit)
    if after is None:
        return None

    def column(placed: _Thing) -> float:
        return float(camera.project(np.array([placed.solid.centre]))[0, 0])

    earlier, after = sorted(earlier, key=column), sorted(after, key=column)
    gaps = [column(b) - column(a) for scene_items in (earlier, after) for a, b in itertools.pairwise(scene_items)]
    return (earlier, after) if min(gaps) >= MIN_GAP_PX else None


def _edited(rng: np.random.Generator, camera: Camera, scene_items: list[_Thing], edit: Edit) -> list[_Thing] | None:
    place = pick(rng, len(scene_items))
    old = scene_items[place].name
    if edit == "count":
        colour = str(rng.choice(spare_colours([placed.name for placed in scene_items])))
        name = Name(colour, SHAPES[pick(rng, len(SHAPES))])
        added = arrange(rng, camera, [name], [placed.solid for placed in scene_items], (0.22, 0.34))
        return None if added is None else [*scene_items, _Thing(name, added[0])]
    if edit == "order":
        other = (place + 1 + pick(rng, len(scene_items) - 1)) % len(scene_items)
        swapped = {place: scene_items[other].name, other: old}
        if swapped[place] == swapped[other]:
            return None
    elif edit == "colour":
        swapped = {place: Name(str(rng.choice(spare_colours([placed.name for placed in scene_items]))), old.shape)}
    else:
        swapped = {place: Name(old.colour, SHAPES[1 - SHAPES.index(old.shape)])}
    edited = list(scene_items)
    for k, name in sorted(swapped.items()):
        # Replace the object by another object of the same size at the same position.
        solid = scene_items[k].solid
        size = solid.radius if isinstance(solid, Ball) else solid.half[2]
        edited[k] = _Thing(name, named_solid(rng, name, solid.centre[0], solid.centre[1], size))
    rects = [rectangle(camera, placed.solid) for placed in edited]
    fitting = (fits(camera, rect, rects[:k] + rects[k + 1 :]) for k, rect in enumerate(rects))
    return edited if all(fitting) else None
