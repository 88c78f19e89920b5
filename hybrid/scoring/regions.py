"""The regions that tool calls look at, in pixels of a question's pictures, and whether they cover annotations.

    annotated(question)                       # the column `evidence`, or a box or point as the answer
    looks_of(question, attempt)               # each call with a region, in order

**Region of a call.** The region consists of the boxes (`x0`, `y0`, `x1`, `y1`) and points (`x`, `y`) in the call's
arguments; in every tool's schema coordinates have these names (`hybrid/solving/coordinates.py` converts frames by
them). If there are none, the region consists of the parts that the tool cropped and, for a call on one picture, the
boxes in its output (`box_px`). Coordinates in a crop are mapped to the picture from which it was cropped. A call has no
region if its boxes together cover more than half of a picture, because it selects no place.

**Covers.** A box covers an annotated box if it contains at least half of its area, and so its centre. Neither full
containment nor intersection over union is required, because a crop through the middle of a thing still shows it, and so
does a generous crop. A point covers an annotated box that contains it. A box covers an annotated point that it
contains; a point covers an annotated point within `NEAR` of the picture's longer side, or within the tolerance of the
answer.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from hybrid.core.types import AnnotatedPlace, Attempt, Box, ImageRef, Kind, Point, Question, StoredImage
from hybrid.scoring.attempt_facts import TracedCall, calls_of

# Share of the annotated box that a region must contain.
HALF: Final = 0.5
# If a call's boxes cover more than this share of a picture, the call does not count as looking at a place.
WHOLE: Final = 0.5
# Largest distance from an annotated point at which a call's point counts as a look at it, as a share of the picture's
# longer side. A question may set its own distance (`within`).
NEAR: Final = 0.05
# Longest chain of crops of crops that is followed.
DEPTH: Final = 16

Place = Box | Point


@dataclass(frozen=True, slots=True)
class LookedRegion:
    """A box or point in pixels of an image, and the image's indices (from 0) in the question."""

    image: StoredImage
    place: Place
    # Several if the question shows one image more than once.
    indices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """The regions of one call, all in pictures of the question."""

    tool: str
    regions: tuple[LookedRegion, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """An annotated place in an image, which is a picture of the question.

    `index` is the picture's index (from 0) in the question. If the place is a point, a call's point counts as a look
    at it up to a distance of `within` pixels.
    """

    image: StoredImage
    place: Place
    within: float
    index: int = 0


def annotated(question: Question) -> tuple[Target, ...]:
    """Return the annotated places, else a right answer that is a box or point in a single picture."""
    targets, places = [], question.evidence or _answer_place(question)
    for annotation in places:
        if 1 <= annotation.image <= len(question.images):
            image = question.images[annotation.image - 1]
            targets.append(Target(image, annotation.place, _within(question, image), annotation.image - 1))
    return tuple(targets)


def _answer_place(question: Question) -> tuple[AnnotatedPlace, ...]:
    if question.kind not in (Kind.BOX, Kind.POINT) or len(question.images) != 1:
        return ()
    target: Any = question.target
    numbers: Any = (target.get("box") or target.get("point")) if isinstance(target, Mapping) else target
    place = _place_of(numbers)
    return () if place is None else (AnnotatedPlace(place),)


def _within(question: Question, image: StoredImage) -> float:
    within = question.target.get("within") if isinstance(question.target, Mapping) else None
    return float(within) if isinstance(within, int | float) else NEAR * max(image.width, image.height)


def covers(place: Place, target: Target) -> bool:
    """Return whether a box or point in the target's image covers the target, as defined in the module's docstring."""
    annotated_place = target.place
    if isinstance(place, Point) and isinstance(annotated_place, Point):
        return math.hypot(place.x - annotated_place.x, place.y - annotated_place.y) <= target.within
    if isinstance(place, Point):
        return isinstance(annotated_place, Box) and _holds(annotated_place, place.x, place.y)
    if isinstance(annotated_place, Point):
        return _holds(place, annotated_place.x, annotated_place.y)
    shared = max(0.0, min(place.x1, annotated_place.x1) - max(place.x0, annotated_place.x0))
    shared *= max(0.0, min(place.y1, annotated_place.y1) - max(place.y0, annotated_place.y0))
    # A region that shares half of the box's area covers at least half of each side, and so includes the centre.
    return shared >= HALF * area(annotated_place)


def look_covers(look: Look, target: Target) -> bool:
    """Return whether any region of a call covers an annotated place."""
    regions = (region for region in look.regions if region.image.sha256 == target.image.sha256)
    return any(covers(region.place, target) for region in regions)


def looks_of(question: Question, attempt: Attempt) -> tuple[Look, ...]:
    """Return the calls that answered and have a region in the question's pictures, in order."""
    indices, looks = defaultdict[str, tuple[int, ...]](tuple), list[Look]()
    for index, image in enumerate(question.images):
        indices[image.sha256] += (index,)
    for exchange in attempt.exchanges:
        images_by_tools = [ref for step in exchange.reply.steps for ref in step.images]
        refs = {ref.name: ref for ref in (*exchange.prompt.images, *exchange.prompt.derived, *images_by_tools)}
        for call in calls_of(exchange):
            if call.fault is None:
                regions = tuple(
                    replace(region, indices=indices[region.image.sha256])
                    for region in _regions(call, refs)
                    if region.image.sha256 in indices
                )
                if regions and not _is_everywhere(regions):
                    looks.append(Look(call.tool, regions))
    return tuple(looks)


def _regions(call: TracedCall, refs: Mapping[str, ImageRef]) -> list[LookedRegion]:
    images = [refs.get(name) for name in call.images]
    places: list[tuple[ImageRef | None, Place | None]]
    places = [(images[number - 1], place) for number, place in places_in(call.args) if number <= len(images)]
    if not places and call.finding is not None:
        places = [(refs.get(ref.parent or ""), ref.box) for ref in call.finding.images if _is_cut(ref, refs)]
        if not places and len(images) == 1:
            places = [(images[0], box) for box in output_boxes(call.finding.data)]
    regions = (_in_original(ref, place, refs) for ref, place in places if ref is not None and place is not None)
    return [region for region in regions if region is not None]


def _is_cut(ref: ImageRef, refs: Mapping[str, ImageRef]) -> bool:
    """Return whether an image is a crop of another image, and not a drawing over all of it."""
    parent = refs.get(ref.parent or "")
    if ref.box is None or parent is None:
        return False
    return ref.box != Box(0, 0, parent.image.width, parent.image.height)


def places_in(node: Any, image: int = 1) -> Iterator[tuple[int, Place]]:
    """Yield the boxes and points of a call's arguments with the number of their image (from 1), at any depth."""
    if isinstance(node, Mapping):
        number = node.get("image")
        image = number if isinstance(number, int) and not isinstance(number, bool) and number >= 1 else image
        for keys in (("x0", "y0", "x1", "y1"), ("x", "y")):
            place = _place_of([node.get(key) for key in keys])
            if place is not None:
                yield image, place
        for value in node.values():
            yield from places_in(value, image)
    elif isinstance(node, list | tuple):
        for item in node:
            yield from places_in(item, image)


def output_boxes(node: Any) -> Iterator[Box]:
    """Yield the boxes in a tool's output (`box_px`), at any depth."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            place = _place_of(value) if key == "box_px" else None
            if isinstance(place, Box):
                yield place
            else:
                yield from output_boxes(value)
    elif isinstance(node, list | tuple):
        for item in node:
            yield from output_boxes(item)


def _place_of(numbers: Any) -> Place | None:
    """Return the box of four finite numbers or the point of two; None for anything else."""
    if not isinstance(numbers, list | tuple) or len(numbers) not in (2, 4):
        return None
    if not all(isinstance(n, int | float) and not isinstance(n, bool) and math.isfinite(n) for n in numbers):
        return None
    if len(numbers) == 2:
        return Point(*numbers)
    return Box(*numbers) if numbers[0] < numbers[2] and numbers[1] < numbers[3] else None


def _in_original(ref: ImageRef, place: Place, refs: Mapping[str, ImageRef]) -> LookedRegion | None:
    """Map a position in a crop to pixels of the image that was cropped first; None if the mapping is unknown."""
    for _ in range(DEPTH):
        parent = refs.get(ref.parent or "")
        if parent is None:
            # A box may extend over the border; the part outside shows nothing.
            return _clipped(ref.image, place)
        box = ref.box
        if box is None and (ref.image.width, ref.image.height) != (parent.image.width, parent.image.height):
            return None
        box = box or Box(0, 0, parent.image.width, parent.image.height)
        across, down = (box.x1 - box.x0) / ref.image.width, (box.y1 - box.y0) / ref.image.height
        if isinstance(place, Point):
            place = Point(box.x0 + place.x * across, box.y0 + place.y * down)
        else:
            x0, x1 = (box.x0 + x * across for x in (place.x0, place.x1))
            y0, y1 = (box.y0 + y * down for y in (place.y0, place.y1))
            place = Box(x0, y0, x1, y1)
        ref = parent
    return None


def _clipped(image: StoredImage, place: Place) -> LookedRegion | None:
    if isinstance(place, Point):
        inside = 0 <= place.x <= image.width and 0 <= place.y <= image.height
        return LookedRegion(image, place) if inside else None
    box = Box(max(0, place.x0), max(0, place.y0), min(image.width, place.x1), min(image.height, place.y1))
    return LookedRegion(image, box) if box.x0 < box.x1 and box.y0 < box.y1 else None


def _is_everywhere(regions: Sequence[LookedRegion]) -> bool:
    """Return whether the boxes of a call together cover more than half of a picture; overlaps count once."""
    boxes = defaultdict[StoredImage, list[Box]](list)
    for region in regions:
        if isinstance(region.place, Box):
            boxes[region.image].append(region.place)
    most = {image: WHOLE * image.width * image.height for image in boxes}
    # Compute the sum of the areas first: it is quick to compute, and the union is never larger.
    return any(sum(map(area, of)) > most[image] and area_of_union(of) > most[image] for image, of in boxes.items())


def area_of_union(boxes: Sequence[Box]) -> float:
    """Return the area that boxes cover together, in square pixels."""
    boxes, total = sorted(set(boxes), key=lambda box: box.y0), 0.0
    # Columns between two neighbouring vertical edges are covered over their whole width, or not at all.
    for x0, x1 in pairwise(sorted({x for box in boxes for x in (box.x0, box.x1)})):
        bottom = -math.inf
        for box in boxes:
            if box.x0 <= x0 and x1 <= box.x1 and box.y1 > bottom:
                total += (x1 - x0) * (box.y1 - max(bottom, box.y0))
                bottom = box.y1
    return total


def area(box: Box) -> float:
    """Return the area of a box, in square pixels."""
    return (box.x1 - box.x0) * (box.y1 - box.y0)


def _holds(box: Box, x: float, y: float) -> bool:
    return box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1
