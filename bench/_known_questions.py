"""Generated questions with known answers for every tool, and what counts as a right answer.

`KNOWN["depth"].make(index, seed)` returns a question; its `right(finding, store)` is True, False, or None if the tool
does not decide. If no generated image can prove a tool's answer (would people look there?), its questions only measure
time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from bench.marked_scenes import marked_scene
from hybrid.benchmarks.blink.sample import item
from hybrid.core.images import ImageStore, encode
from hybrid.core.types import Box, Finding, Json
from hybrid.marks.marks_json import marks_from
from hybrid.samples.item import BoxFacts, CountFacts, RelationFacts, jpeg
from hybrid.samples.pop_out import PopOutScene, pop_out
from hybrid.samples.seeds import generator
from hybrid.tool import Pixels
from tools._shared.boxes import overlap
from tools._shared.known_answers import box_arg, darker, point_args
from tools.attributes import disc
from tools.relation import PHRASES
from tools.segmentation import shape_area

# Minimum overlap of a mask's box with the shape's box, and maximum relative error of its area.
MIN_OVERLAP, AREA_OFF = 0.7, 0.3

Judgement = Callable[[Finding, ImageStore], bool | None]

NEAR_PX = 3.0
WORDS = ("STREET", "MARKET", "EXIT", "BAKERY", "PLATFORM", "APRIL", "LIBRARY", "DANGER", "BRIDGE", "OPEN")


@dataclass(frozen=True)
class Question:
    """Image files, arguments, and a function that decides whether a tool output is right."""

    files: tuple[bytes, ...]
    args: Mapping[str, Json]
    right: Judgement


@dataclass(frozen=True)
class Known:
    """A generator of a tool's questions, and the criterion of a right answer; None if only time is measured."""

    rule: str | None
    make: Callable[[int, int], Question]


Maker = Callable[[int, int], Question]


def _question(pictures: Sequence[Pixels], args: Mapping[str, Json], right: Judgement) -> Question:
    return Question(tuple(jpeg(pixels) for pixels in pictures), args, right)


def _is(key: str, expected: Json) -> Judgement:
    """Return a check that a field of `data` has a value; the result is None if the field is null."""
    return lambda result, _: None if result.data[key] is None else result.data[key] == expected


def _scene(index: int, seed: int, fewest: int = 3, most: int = 7) -> tuple[np.random.Generator, PopOutScene]:
    rng = generator("evaluate", seed, index)
    return rng, pop_out(rng, int(rng.integers(fewest, most)))


def attributes(index: int, seed: int) -> Question:
    """Draw a disc of one colour, with two descriptions."""
    colours = {"red": (220, 30, 30), "blue": (30, 30, 220), "green": (30, 160, 40), "yellow": (230, 210, 30)}
    value, other = generator("evaluate", seed, index).permutation(list(colours))[:2]
    texts = [f"a {value} circle", f"a {other} circle"]
    return _question(
        [disc(colours[str(value)])], {"texts": list(texts[:: 1 if index % 2 else -1])}, _is("best", 1 - index % 2)
    )


def _blink_form(task: str, key: str, answers: Sequence[Json], args: Mapping[str, Json]) -> Maker:
    """Make generated questions of a BLINK task; the output's field `key` must be one of `answers`."""

    def make(index: int, seed: int) -> Question:
        drawn_item = item(task, index, seed)
        return _question(drawn_item.images, args, _is(key, answers[drawn_item.answer]))

    return make


def crop(index: int, seed: int) -> Question:
    """Ask for the crop of a box at scale 1."""
    _, scene = _scene(index, seed)
    pixels, edges = scene.draw(), [int(edge) for edge in scene.objects[0].box]
    pixel = pixels[edges[1] : edges[3], edges[0] : edges[2]]

    def same(finding: Finding, store: ImageStore) -> bool:
        return np.array_equal(store.pixels(finding.images[0].image), pixel)

    return Question((encode(pixels),), {"box": box_arg(edges), "scale": 1.0}, same)


def detection(index: int, seed: int) -> Question:
    """Ask how many things with a given name there are."""
    drawn_item = item("Counting", index, seed)
    assert isinstance(drawn_item.facts, CountFacts)  # noqa: S101 - the only type of this task
    name, count = str(drawn_item.facts.name), len(drawn_item.facts.boxes)

    def has_count(finding: Finding, _: ImageStore) -> bool:
        counts = finding.data["counts"]
        return isinstance(counts, Mapping) and counts.get(name) == count

    return _question(drawn_item.images, {"names": [name]}, has_count)


def forensics(index: int, seed: int) -> Question:
    """Show a generated image and its copy: neither is a photograph, so no answer is right."""
    _, scene = _scene(index, seed)
    return _question([scene.draw(), item("Relative_Depth", index, seed).images[0]], {}, lambda result, _: None)


def localization(index: int, seed: int) -> Question:
    """Show two drawn boxes, as in BLINK."""
    drawn_item = item("Object_Localization", index, seed)
    assert isinstance(drawn_item.facts, BoxFacts)  # noqa: S101 - the only type of this task
    args: dict[str, Json] = {"name": str(drawn_item.facts.name), "labels": ["A", "B"]}
    return _question(drawn_item.images, args, _is("best", "AB"[drawn_item.answer]))


def markers(index: int, seed: int) -> Question:
    """Draw rings of any colour, size and font, and ask for their letters."""
    scene = marked_scene(generator("evaluate", seed, index))
    labels: list[Json] = [str(point.label) for point in scene.points]

    def all_found(finding: Finding, _: ImageStore) -> bool:
        marks = marks_from(finding.data)
        seen = {mark.label: mark for mark in marks.points}
        near = [
            (mark := seen.get(point.label)) is not None and np.hypot(mark.x - point.x, mark.y - point.y) <= NEAR_PX
            for point in scene.points
        ]
        return all(near) and len(marks.points) + len(marks.boxes) == len(labels)

    return Question((encode(scene.pixels),), {"labels": labels}, all_found)


def ocr(index: int, seed: int) -> Question:
    """Draw a word and a number in plain capitals."""
    rng = generator("evaluate", seed, index)
    text = f"{rng.choice(WORDS)} {rng.integers(10, 100)}"
    canvas = np.full((160, 560, 3), int(rng.integers(200, 250)), np.uint8)
    cv2.putText(canvas, text, (40, 100), cv2.FONT_HERSHEY_SIMPLEX, 2.0, (20, 20, 20), 4, cv2.LINE_AA)

    def read(finding: Finding, _: ImageStore) -> bool:
        return re.sub(r"\W", "", str(finding.data["text"])).upper() == text.replace(" ", "")

    return _question([canvas], {}, read)


def reflectance(index: int, seed: int) -> Question:
    """Show two marked points under light and shade, as in BLINK; the answer is A, B or the same."""
    drawn_item = item("Relative_Reflectance", index, seed)

    def judged(finding: Finding, _: ImageStore) -> bool | None:
        verdict = "C" if finding.data["same"] else finding.data["darker"]
        return None if verdict is None else verdict == "ABC"[drawn_item.answer]

    return _question(drawn_item.images, {"labels": ["A", "B"]}, judged)


def relation(index: int, seed: int) -> Question:
    """Ask whether a thing is above, below, left or right of another."""
    drawn_item = item("Spatial_Relation", index, seed)
    facts = drawn_item.facts
    assert isinstance(facts, RelationFacts)  # noqa: S101 - the only type of this task
    args: dict[str, Json] = {
        "subject": str(facts.first),
        "relation": PHRASES[facts.relation],
        "reference": str(facts.second),
    }
    return _question(drawn_item.images, args, _is("holds", facts.holds))


def saliency(index: int, seed: int) -> Question:
    """Draw three to six coloured things among grey ones; their boxes are in random order."""
    rng, scene = _scene(index, seed)
    boxes: list[Json] = [box_arg(scene.objects[rank].box, str(rank)) for rank in rng.permutation(len(scene.objects))]
    return _question([scene.draw()], {"boxes": boxes}, _is("most_salient", "0"))


def scanpath(index: int, seed: int) -> Question:
    """Measure time only: where people would look at a generated image is unknown."""
    return _question([_scene(index, seed)[1].draw()], {}, lambda result, _: None)


def segmentation(index: int, seed: int) -> Question:
    """Draw a plain coloured shape, and give the box around it."""
    _, scene = _scene(index, seed, 2, 4)
    shape = scene.objects[0]
    expected, full = Box(*shape.box), shape_area(shape)

    def cut_out(finding: Finding, _: ImageStore) -> bool:
        box, pixels = finding.data["box_px"], finding.data["area_px"]
        if not isinstance(box, list) or not isinstance(pixels, int | float):
            return False
        found_box = Box(*(float(str(edge)) for edge in box))
        return overlap(found_box, expected) >= MIN_OVERLAP and abs(pixels / full - 1) <= AREA_OFF

    return _question([scene.draw()], {"box": box_arg(shape.box)}, cut_out)


def semantic_correspondence(index: int, seed: int) -> Question:
    """Show one of three things, and its darker copy."""
    _, scene = _scene(index, seed, 3, 4)
    picture = scene.draw()
    centres = [((x0 + x1) / 2, (y0 + y1) / 2) for x0, y0, x1, y1 in (item.box for item in scene.objects)]
    points = point_args(centres)
    args: dict[str, Json] = {"point": points[index % 3], "candidates": points}
    return _question([picture, darker(picture)], args, _is("best_index", index % 3))


def similarity(index: int, seed: int) -> Question:
    """Show a darker copy of the first image and another image."""
    picture, other = (item("Relative_Depth", 2 * index + place, seed).images[0] for place in (0, 1))
    pictures = [darker(picture), other]
    return _question([picture, *pictures[:: 1 if index % 2 else -1]], {}, _is("best", 1 - index % 2))


# Generators by name of the tool. Those in BLINK's form show marked points in one or two pictures, a picture without a
# corner and two pieces, or two views.
KNOWN: Mapping[str, Known] = {
    "attributes": Known("the colour of a disc, of two", attributes),
    "crop": Known("every pixel of a box at scale 1", crop),
    "detection": Known("the number of things of a name", detection),
    "forensics": Known(None, forensics),
    "localization": Known("the drawn box that fits, of two", localization),
    "markers": Known("every mark within 3 px with its letter, and no other", markers),
    "ocr": Known("every letter and digit of a line in capitals", ocr),
    "reflectance": Known("the darker of two marked points, or the same", reflectance),
    "relation": Known("whether it holds", relation),
    "saliency": Known("the most salient of three to six things", saliency),
    "scanpath": Known(None, scanpath),
    "segmentation": Known("mask of a shape from its box: overlap 0.7, area within 30 %", segmentation),
    "semantic_correspondence": Known("the same thing in a darker copy, of three", semantic_correspondence),
    "similarity": Known("a darker copy, not another picture", similarity),
    "correspondence": Known("the marked point, of four", _blink_form("Visual_Correspondence", "best", "ABCD", {})),
    "depth": Known(
        "the nearer of two marked points", _blink_form("Relative_Depth", "nearer", "AB", {"labels": ["A", "B"]})
    ),
    "jigsaw": Known("the piece that continues, of two", _blink_form("Jigsaw", "best", (0, 1), {})),
    "motion": Known(
        "the camera's side, left or right", _blink_form("Multi-view_Reasoning", "moved", ("left", "right"), {})
    ),
}
