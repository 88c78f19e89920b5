"""Where a call looked, and which regions cover an annotated place."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hybrid.core.types import (
    AnnotatedPlace,
    Attempt,
    Box,
    Exchange,
    ImageRef,
    Kind,
    Point,
    Prompt,
    Question,
    Reply,
    Step,
    StoredImage,
)
from hybrid.scoring.regions import Look, LookedRegion, Target, annotated, area_of_union, covers, look_covers, looks_of

PHOTO, SECOND = (StoredImage(f"{number:064x}", 1000, 800, "image/png") for number in (1, 2))
CROP = StoredImage(f"{3:064x}", 400, 200, "image/png")
WANTED = Box(100, 100, 200, 200)


@pytest.mark.parametrize(
    ("place", "annotation", "is_covered"),
    [
        (Box(100, 100, 200, 200), WANTED, True),
        (Box(0, 0, 300, 300), WANTED, True),
        # The region has the centre and exactly half of the area.
        (Box(100, 100, 150, 200), WANTED, True),
        # The region has a little less than half of the area, beside the centre.
        (Box(151, 100, 200, 200), WANTED, False),
        # The region has the centre, but less than half of the area.
        (Box(130, 130, 170, 170), WANTED, False),
        (Box(300, 300, 400, 400), WANTED, False),
        (Point(100, 200), WANTED, True),
        (Point(99, 150), WANTED, False),
        (Box(0, 0, 60, 60), Point(60, 60), True),
        (Box(0, 0, 60, 60), Point(61, 60), False),
        (Point(130, 140), Point(100, 100), True),
        (Point(131, 140), Point(100, 100), False),
    ],
)
def test_what_covers(place: Any, annotation: Any, is_covered: bool) -> None:
    # 5 % of the longer side is 50 px: (30, 40) is within, (31, 40) is not.
    (target,) = annotated(_question(AnnotatedPlace(annotation)))
    assert covers(place, target) is is_covered


def test_a_tolerance_of_the_answer_replaces_the_usual_distance() -> None:
    question = _question(kind=Kind.POINT, target={"point": [100, 100], "within": 3.0})
    assert annotated(question) == (Target(PHOTO, Point(100, 100), 3.0),)
    assert [covers(Point(100, 100 + d), annotated(question)[0]) for d in (3, 4)] == [True, False]


def test_what_is_annotated() -> None:
    assert annotated(_question()) == ()
    box = _question(kind=Kind.BOX, target={"box": [1, 2, 3, 4]})
    assert [target.place for target in annotated(box)] == [Box(1, 2, 3, 4)]
    # The annotation has priority over the answer's box.
    question = _question(AnnotatedPlace(Box(5, 5, 9, 9)), kind=Kind.BOX, target={"box": [1, 2, 3, 4]})
    assert [target.place for target in annotated(question)] == [Box(5, 5, 9, 9)]
    # A benchmark's own target, and a number that is not a box.
    assert [target.place for target in annotated(_question(kind=Kind.POINT, target=[1, 2, 3, 4]))] == [Box(1, 2, 3, 4)]
    assert annotated(_question(kind=Kind.POINT, target={"box": ["a", 2, 3, 4]})) == ()
    # An annotation on a picture that the question does not have.
    assert annotated(_question(AnnotatedPlace(WANTED, 3))) == ()


def test_boxes_and_points_of_arguments() -> None:
    box = {"x0": 10, "y0": 20, "x1": 30, "y1": 40}
    assert _places({"box": box}) == [[Box(10, 20, 30, 40)]]
    assert _places({"points": [{"x": 1, "y": 2, "label": "A"}, {"x": 3, "y": 4}]}) == [[Point(1, 2), Point(3, 4)]]
    # A letter alone names no place. A box with negative sides is invalid, and so are a boolean and NaN as coordinates.
    assert _places({"point": {"label": "A"}}) == []
    assert _places({"box": {"x0": 30, "y0": 20, "x1": 10, "y1": 40}}) == []
    assert _places({"point": {"x": True, "y": 2}}) == []
    assert _places({"point": {"x": float("nan"), "y": 2}}) == []
    # The part outside of the border is cut off.
    assert _places({"box": {"x0": 900, "y0": -5, "x1": 1200, "y1": 40}}) == [[Box(900, 0, 1000, 40)]]
    assert _places({"point": {"x": 1200, "y": 2}}) == []


def test_the_image_of_an_argument() -> None:
    args = {"points": [{"x": 1, "y": 2}], "candidates": [{"x": 3, "y": 4, "image": 2}]}
    (look,) = looks_of(_question(), _attempt(_step(args, images=["img:1", "img:2"])))
    assert [(region.image, region.place) for region in look.regions] == [(PHOTO, Point(1, 2)), (SECOND, Point(3, 4))]
    # An image number beyond the images of the call is ignored.
    assert _places({"points": [{"x": 3, "y": 4, "image": 9}]}) == []


def test_coordinates_in_a_crop_are_those_of_the_photo() -> None:
    cut = ImageRef("crop:1", CROP, "img:1", Box(200, 300, 400, 400), 2.0)
    first = _step({"box": {"x0": 200, "y0": 300, "x1": 400, "y1": 400}}, made=(cut,))
    second = _step({"box": {"x0": 100, "y0": 50, "x1": 200, "y1": 100}}, images=["crop:1"])
    looks = looks_of(_question(), _attempt(first, second))
    assert [look.regions[0].place for look in looks] == [Box(200, 300, 400, 400), Box(250, 325, 300, 350)]
    assert {look.regions[0].image for look in looks} == {PHOTO}


def test_parts_cut_out_and_boxes_put_out_count_without_arguments() -> None:
    cut = ImageRef("crop:1", CROP, "img:1", Box(200, 300, 400, 400), 2.0)
    overlay = ImageRef("overlay:1", PHOTO, "img:1", Box(0, 0, 1000, 800))
    assert _places({}, made=(cut, overlay)) == [[Box(200, 300, 400, 400)]]
    output = {"detections": [{"name": "cat", "box_px": [1, 2, 30, 40]}, {"name": "dog", "box_px": None}]}
    assert _places({"names": ["cat"]}, data=output) == [[Box(1, 2, 30, 40)]]
    # Choosing which of two pictures a box belongs to would be a guess.
    assert _places({}, data=output, images=["img:1", "img:2"]) == []
    # The arguments define the intended region, whatever the result.
    assert _places({"point": {"x": 5, "y": 6}}, data=output) == [[Point(5, 6)]]


def test_a_call_for_everything_has_no_region() -> None:
    half = {"x0": 0, "y0": 0, "x1": 500, "y1": 800}
    assert _places({"box": half}) == [[Box(0, 0, 500, 800)]]
    assert _places({"box": {**half, "x1": 501}}) == []
    quadrants = [
        ImageRef(
            f"crop:{n}", CROP, "img:1", Box(500 * (n % 2), 400 * (n // 2), 500 + 500 * (n % 2), 400 + 400 * (n // 2))
        )
        for n in range(4)
    ]
    assert _places({}, made=tuple(quadrants)) == []


def test_overlaps_of_the_boxes_of_a_call_count_once() -> None:
    # The output has 90 detections in the same 12 % of the picture; the call has one box of 30 % twice.
    small = {"detections": [{"box_px": [0, 0, 300 + n % 3, 320 - n % 5]} for n in range(90)]}
    assert len(_places({}, data=small)[0]) == 90
    box = {"x0": 0, "y0": 0, "x1": 600, "y1": 400}
    assert _places({"boxes": [box, box]}) == [[Box(0, 0, 600, 400)] * 2]
    # Two boxes of 30 % side by side cover 60 % of the picture.
    assert _places({"boxes": [box, {**box, "y0": 400, "y1": 800}]}) == []


@pytest.mark.parametrize("seed", range(5))
def test_the_area_of_a_union_counts_pixels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask, boxes = np.zeros((60, 60), bool), []
    for x, y, width, height in rng.integers(1, 30, (rng.integers(1, 20), 4)).tolist():
        mask[y : y + height, x : x + width] = True
        boxes.append(Box(x, y, x + width, y + height))
    assert area_of_union(boxes) == mask.sum()


def test_a_region_has_the_indices_of_its_picture() -> None:
    point = {"x": 1, "y": 2}
    (look,) = looks_of(_question(), _attempt(_step({"point": point}, images=["img:2"])))
    assert look.regions[0].indices == (1,)
    twice = replace(_question(), images=(PHOTO, SECOND, PHOTO))
    (look,) = looks_of(twice, _attempt(_step({"point": point})))
    assert look.regions[0].indices == (0, 2)
    assert annotated(_question(AnnotatedPlace(WANTED, 2)))[0].index == 1


def test_a_fault_and_a_foreign_picture_have_no_region() -> None:
    args = {"point": {"x": 5, "y": 6}}
    assert _places(args, fault="tool_error") == []
    assert _places(args, images=["img:7"]) == []
    assert looks_of(Question("q", "t", (SECOND,), "?", Kind.TEXT), _attempt(_step(args))) == ()


def test_a_region_of_another_picture_covers_nothing() -> None:
    (target,) = annotated(_question(AnnotatedPlace(WANTED, 2)))
    assert not look_covers(Look("crop", (LookedRegion(PHOTO, WANTED),)), target)
    assert look_covers(Look("crop", (LookedRegion(SECOND, WANTED),)), target)


def _question(*evidence: AnnotatedPlace, kind: Kind = Kind.TEXT, target: Any = None) -> Question:
    images = (PHOTO,) if kind is not Kind.TEXT else (PHOTO, SECOND)
    return Question("q", "t", images, "?", kind, target=target, evidence=evidence)


def _step(args: Any, images: Sequence[str] = ("img:1",), made: Any = (), data: Any = None, fault: Any = None) -> Step:
    facts = {"images": list(images), "args": args, "data": data or {}, "confidence": 1.0}
    return Step("tool", "a tool", "text", fault=fault, data=facts, images=made)


def _attempt(*steps: Step) -> Attempt:
    prompt = Prompt(("?", ImageRef("img:1", PHOTO), ImageRef("img:2", SECOND)), Kind.TEXT)
    return Attempt("q", (Exchange(prompt, Reply("", steps=steps)),), 1.0)


def _places(args: Any, **step: Any) -> list[list[Any]]:
    looks = looks_of(_question(), _attempt(_step(args, **step)))
    return [[region.place for region in look.regions] for look in looks]
