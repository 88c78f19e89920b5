"""Pictures in which some coloured objects stand out from grey ones, in a known order, with fixations of people.

Run: `scene = pop_out(np.random.default_rng(0), 4)`, then `scene.draw()` and `free_viewing(rng, scene)`.
The scanpaths follow a rule and are not recorded: they fit the pictures and prove nothing about human eyes.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.core.types import Scanpath
from hybrid.samples.item import until
from hybrid.samples.layouts import Name, Rect, apart
from hybrid.samples.textures import NAMED_COLOURS
from hybrid.tool import Pixels

WIDTH, HEIGHT = 448, 320
# Largest number of salient objects: each has its own colour.
MAX_THINGS = len(NAMED_COLOURS)
SHAPES = ("square", "circle")

# `MAX_PX` is half the side of the most salient object. Each further object is smaller by the factor `SHRINK` and closer
# to the colour of the ground by `FADE`, so its area and its contrast are below those of every object before it.
MAX_PX, SHRINK, FADE = 42.0, 0.8, 0.1
GREY_PX, GREY_CONTRAST = (9, 13), 16
MARGIN_PX = 8

SUBJECTS = 5
# Standard deviation of a fixation around its object, as a fraction of the picture's size.
JITTER = 0.012


@dataclass(frozen=True)
class NamedObject:
    """A salient object: its name and the square around it, in whole pixels."""

    name: Name
    box: Rect

    @property
    def centre(self) -> tuple[float, float]:
        """x, y as fractions of the picture."""
        x0, y0, x1, y1 = self.box
        return (x0 + x1) / 2 / WIDTH, (y0 + y1) / 2 / HEIGHT


@dataclass(frozen=True)
class PopOutScene:
    """`objects` from the most to the least salient; `greys` are the squares around objects that are not salient."""

    objects: tuple[NamedObject, ...]
    greys: tuple[Rect, ...]
    seed: int

    def draw(self) -> Pixels:
        """Draw the picture, (HEIGHT, WIDTH, 3); deterministic."""
        rng = np.random.default_rng(self.seed)
        ground = float(rng.uniform(105, 150))
        canvas = np.full((HEIGHT, WIDTH, 3), ground)
        for box in self.greys:
            tone = ground + float(rng.choice([-1, 1])) * GREY_CONTRAST
            _fill(canvas, box, SHAPES[int(rng.integers(2))], (tone, tone, tone))
        for rank, item in enumerate(self.objects):
            pure = np.array(NAMED_COLOURS[item.name.colour]) ** (1 / 2.2) * 255
            mixed = pure + (ground - pure) * FADE * rank
            _fill(canvas, item.box, item.name.shape, (float(mixed[0]), float(mixed[1]), float(mixed[2])))
        noisy = canvas + cv2.GaussianBlur(rng.normal(0, 1, canvas.shape), (0, 0), 1.5) * 8
        return np.asarray(np.clip(noisy, 0, 255), np.uint8)


def pop_out(rng: np.random.Generator, count: int) -> PopOutScene:
    """Make a scene with `count` salient objects, 1 to `MAX_THINGS`, among 6 to 11 grey objects, without overlap."""
    colours = rng.permutation(list(NAMED_COLOURS))[:count]
    halves = [MAX_PX * SHRINK**rank for rank in range(count)]
    greys = [float(rng.integers(*GREY_PX)) for _ in range(int(rng.integers(6, 12)))]
    boxes = until("arrangement of things that stand out", lambda: _arranged(rng, [*halves, *greys]))
    names = [Name(str(colour), SHAPES[int(rng.integers(2))]) for colour in colours]
    items = tuple(NamedObject(name, box) for name, box in zip(names, boxes, strict=False))
    return PopOutScene(items, boxes[count:], int(rng.integers(2**31)))


def free_viewing(rng: np.random.Generator, scene: PopOutScene, subjects: int = SUBJECTS) -> tuple[Scanpath, ...]:
    """Return paths of people without a task: from the centre to the objects in order of saliency, then repeated.

    Neighbours in the order are sometimes swapped. A path has 4 to 8 fixations, which are longer at more salient
    objects.
    """
    paths = []
    for _ in range(subjects):
        ranks = list(range(len(scene.objects)))
        for place in range(len(ranks) - 1):
            if rng.random() < 0.15:
                ranks[place], ranks[place + 1] = ranks[place + 1], ranks[place]
        length = int(rng.integers(4, 9)) - 1
        paths.append(_path(rng, scene, [ranks[step % len(ranks)] for step in range(length)]))
    return tuple(paths)


def searching(
    rng: np.random.Generator, scene: PopOutScene, target: int, subjects: int = SUBJECTS
) -> tuple[Scanpath, ...]:
    """Return paths of people who search for object `target`: from the centre, via at most two others, to the target."""
    others = [rank for rank in range(len(scene.objects)) if rank != target]
    paths = []
    for _ in range(subjects):
        passed = others[: int(rng.integers(0, min(2, len(others)) + 1))]
        paths.append(_path(rng, scene, [*passed, target, *([target] if rng.random() < 0.4 else [])]))
    return tuple(paths)


def _path(rng: np.random.Generator, scene: PopOutScene, visits: list[int]) -> Scanpath:
    """Make a fixation in the centre, then one on each visited object; all durations of a path differ."""
    spots = [(0.5, 0.5), *(scene.objects[rank].centre for rank in visits)]
    jittered = np.clip(np.array(spots) + rng.normal(0, JITTER, (len(spots), 2)), 0, 1).round(2)
    weights = [0.2, *(SHRINK**rank for rank in visits)]
    times = [round(110 + 380 * weight + float(rng.uniform(-25, 25))) for weight in weights]
    while len(set(times)) < len(times):
        times = [time + place if times.count(time) > 1 else time for place, time in enumerate(times)]
    return Scanpath(
        tuple(jittered[:, 0].tolist()), tuple(jittered[:, 1].tolist()), tuple(float(time) for time in times)
    )


def _arranged(rng: np.random.Generator, halves: list[float]) -> tuple[Rect, ...] | None:
    """Return separate squares of these half sizes inside the picture; None without enough space."""
    rects: list[Rect] = []
    for half in halves:
        for _ in range(80):
            side = 2 * round(half)
            x0 = int(rng.integers(MARGIN_PX, WIDTH - MARGIN_PX - side))
            y0 = int(rng.integers(MARGIN_PX, HEIGHT - MARGIN_PX - side))
            box = (float(x0), float(y0), float(x0 + side), float(y0 + side))
            if apart(box, rects, MARGIN_PX):
                rects.append(box)
                break
        else:
            return None
    return tuple(rects)


def _fill(canvas: npt.NDArray[np.float64], box: Rect, shape: str, colour: tuple[float, float, float]) -> None:
    x0, y0, x1, y1 = (round(value) for value in box)
    if shape == "square":
        cv2.rectangle(canvas, (x0, y0), (x1 - 1, y1 - 1), colour, -1)
    else:
        half = (x1 - x0) // 2
        cv2.circle(canvas, (x0 + half, y0 + half), half - 1, colour, -1, cv2.LINE_8)
