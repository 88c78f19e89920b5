"""Questions about named objects in the wording of published benchmarks: number, position, distance, existence.

    SCENES["left_right"].make(words, rng, answer=0)      # "Is the red cube on the left or right side of the blue ball?"

There are two generators: `words` determines the question, `rng` the picture, so that several rows can ask one question
about different pictures. For "existence" it is the other way round: `words` determines the picture, and `rng` the
queried object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hybrid.samples import geometry, objects
from hybrid.samples.item import CountFacts, Item, pick, until
from hybrid.samples.layouts import SHAPES, Name, Rect, arrange, fits, high_camera, random_names, rectangle
from hybrid.samples.scenes import Camera, Solid, render
from hybrid.samples.textures import NAMED_COLOURS
from hybrid.tool import Pixels

WIDTH, HEIGHT = 480, 360
# Size of the picture with a small object to find.
WIDE, HIGH = 960, 720
# Half the height of a small object, in metres: about 30 of the picture's 720 pixels.
SMALL_M = (0.05, 0.09)
# Minimum ratio of the farther object's distance to the nearer object's.
NEARER = 1.3
# Distance by which an object is moved between two pictures.
SIDEWAYS_M = 0.7

Solids = tuple[Solid, ...]


@dataclass(frozen=True)
class SceneKind:
    """`make(words, rng, answer)` draws a question whose right choice is number `answer` of `choices`."""

    make: Callable[[np.random.Generator, np.random.Generator, int], Item]
    choices: int


def _picture(rng: np.random.Generator, camera: Camera, solids: Solids) -> Pixels:
    return render(objects.stage(rng, solids), camera, rng).rgb


def _scene(
    words: np.random.Generator, rng: np.random.Generator, accepts: Callable[[Camera, Solids], bool]
) -> tuple[tuple[Name, ...], Pixels, tuple[Rect, ...]]:
    """Return the names of three objects, a picture with an arrangement that `accepts` allows, and their boxes."""
    names, camera = random_names(words, 3), high_camera(rng, WIDTH, HEIGHT)

    def attempt() -> Solids | None:
        solids = arrange(rng, camera, names, sizes_m=(0.18, 0.34))
        return solids if solids is not None and accepts(camera, solids) else None

    solids = until("arrangement of things", attempt)
    return names, _picture(rng, camera, solids), tuple(rectangle(camera, solid) for solid in solids)


def left_right(words: np.random.Generator, rng: np.random.Generator, answer: int) -> Item:
    """Ask on which side of another object an object is; the choices are sentences."""

    def apart(camera: Camera, solids: Solids) -> bool:
        first, second = (rectangle(camera, solid) for solid in solids[:2])
        return first[2] + 12 < second[0] if answer == 0 else second[2] + 12 < first[0]

    (first, second, _), pixels, boxes = _scene(words, rng, apart)
    choices = tuple(f"The {first} is on the {side} side of the {second}." for side in ("left", "right"))
    question = f"Is the {first} on the left or right side of the {second}?"
    return Item(question, (pixels,), choices, answer, evidence=boxes[:2])


def located(words: np.random.Generator, rng: np.random.Generator, answer: int) -> Item:
    """Ask on which side of another object an object is; the choices are left and right."""
    item = left_right(words, rng, answer)
    first, _, second = item.choices[0].removeprefix("The ").removesuffix(".").partition(" is on the left side of the ")
    question = (
        f"Considering the relative positions of the {first} and the {second} in the image provided, where is the "
        f"{first} located with respect to the {second}?"
    )
    return replace(item, question=question, choices=("left", "right"))


def counting(words: np.random.Generator, rng: np.random.Generator, answer: int) -> Item:
    """Ask for the number of objects of one colour and shape."""
    del words
    item = objects.counting(rng, answer)
    boxes = item.facts.boxes if isinstance(item.facts, CountFacts) else ()
    return replace(item, question=item.question.replace("are there in", "are in"), evidence=boxes)


def depth_order(words: np.random.Generator, rng: np.random.Generator, answer: int) -> Item:
    """Ask which of two objects is nearer to the camera."""

    def ordered(_: Camera, solids: Solids) -> bool:
        first, second = (solid.centre[1] for solid in solids[:2])
        return NEARER * first < second if answer == 0 else NEARER * second < first

    names, pixels, boxes = _scene(words, rng, ordered)
    question = f"Which object is closer to the camera taking this photo, the {names[0]} or the {names[1]}?"
    return Item(question, (pixels,), (str(names[0]), str(names[1])), answer, evidence=boxes[:2])


def distance(words: np.random.Generator, rng: np.random.Generator, answer: int) -> Item:
    """Ask which of two objects is nearer to a third one, in the scene and not in the picture."""

    def ordered(_: Camera, solids: Solids) -> bool:
        places = [np.asarray(solid.centre[:2]) for solid in solids[:3]]
        first, second = (float(np.hypot(*(place - places[2]))) for place in places[:2])
        return NEARER * first < second if answer == 0 else NEARER * second < first

    (first, second, third), pixels, boxes = _scene(words, rng, ordered)
    question = (
        "Estimate the real-world distances between objects in this image. Which object is closer to the "
        f"{third}, the {first} or the {second}?"
    )
    return Item(question, (pixels,), (str(first), str(second)), answer, evidence=boxes)


def attribute(words: np.random.Generator, rng: np.random.Generator, answer: int) -> Item:
    """Ask for the colour of a small object in a large picture; none of the other three objects has its shape."""
    shape = SHAPES[pick(words, len(SHAPES))]
    other = next(candidate for candidate in SHAPES if candidate != shape)
    choices = tuple(str(colour) for colour in words.permutation(list(NAMED_COLOURS))[:4])
    right = choices[answer]
    others = [str(colour) for colour in rng.permutation([colour for colour in NAMED_COLOURS if colour != right])[:3]]
    names = [Name(right, shape), *(Name(colour, other) for colour in others)]
    camera = high_camera(rng, WIDE, HIGH)
    solids = until("arrangement of small things", lambda: arrange(rng, camera, names, sizes_m=SMALL_M))
    (box, *_) = (rectangle(camera, solid) for solid in solids)
    question, pixels = f"What is the color of the {shape}?", _picture(rng, camera, solids)
    return Item(question, (pixels,), choices, answer, evidence=(box,))


def existence(words: np.random.Generator, rng: np.random.Generator, answer: int) -> Item:
    """Ask whether an object of a colour and shape exists: yes (0) or no (1). All rows of a unit share one picture."""
    names, pixels, boxes = _shared(json.dumps(words.bit_generator.state))
    absent = [Name(colour, shape) for colour in NAMED_COLOURS for shape in SHAPES if Name(colour, shape) not in names]
    target = (names if answer == 0 else absent)[pick(rng, 3 if answer == 0 else len(absent))]
    article = "an" if target.colour[0] in "aeiou" else "a"
    # An absent object has no evidence in the picture.
    seen = (boxes[names.index(target)],) if target in names else ()
    return Item(f"Is there {article} {target} in the image?", (pixels,), ("yes", "no"), answer, evidence=seen)


@lru_cache(maxsize=1)
def _shared(state: str) -> tuple[tuple[Name, ...], Pixels, tuple[Rect, ...]]:
    """Return three names, their picture and boxes, drawn by a generator in this state; cached for a unit's rows."""
    words = np.random.default_rng()
    words.bit_generator.state = json.loads(state)
    return _scene(words, words, lambda *_: True)


def camera_moved(words: np.random.Generator, rng: np.random.Generator, answer: int) -> Item:
    """Ask whether the camera went left or right around an object between two pictures."""
    del words
    item = geometry.multi_view_reasoning(rng, answer)
    question = "How did the camera likely move around the object between the first image and the second?"
    return replace(item, question=question, choices=("moved left", "moved right"))


def thing_moved(words: np.random.Generator, rng: np.random.Generator, answer: int) -> Item:
    """Ask whether an object was moved to the left or right between two pictures."""
    names = random_names(words, 3)
    camera = high_camera(rng, WIDTH, HEIGHT)

    def attempt() -> tuple[Solids, Solids] | None:
        first_frame = arrange(rng, camera, names, sizes_m=(0.18, 0.34))
        if first_frame is None:
            return None
        x, y, z = first_frame[0].centre
        moved = replace(first_frame[0], centre=(x + (SIDEWAYS_M if answer else -SIDEWAYS_M), y, z))
        free = fits(camera, rectangle(camera, moved), [rectangle(camera, solid) for solid in first_frame[1:]])
        return (first_frame, (moved, *first_frame[1:])) if free else None

    pictures = until("thing with room to move", attempt)
    seed = int(rng.integers(2**31))
    first, second = (_picture(np.random.default_rng(seed), camera, solids) for solids in pictures)
    question = f"In which direction was the {names[0]} moved between the first image and the second?"
    return Item(question, (first, second), (f"{names[0]} was moved left", f"{names[0]} was moved right"), answer)


# Scenes by their name in recipes.
SCENES: Mapping[str, SceneKind] = {
    "attribute": SceneKind(attribute, 4),
    "camera_moved": SceneKind(camera_moved, 2),
    "counting": SceneKind(counting, 4),
    "depth_order": SceneKind(depth_order, 2),
    "distance": SceneKind(distance, 2),
    "existence": SceneKind(existence, 2),
    "left_right": SceneKind(left_right, 2),
    "located": SceneKind(located, 2),
    "thing_moved": SceneKind(thing_moved, 2),
}
