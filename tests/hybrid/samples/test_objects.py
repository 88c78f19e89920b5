"""Questions about objects: counts, boxes, relations and albedo are read back from the pictures and the facts."""

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from hybrid.errors import HybridError
from hybrid.samples.item import BoxFacts, CountFacts, Item, ReflectanceFacts, RelationFacts, until
from hybrid.samples.layouts import Name, Rect
from hybrid.samples.objects import (
    DARKER_RATIO,
    LIGHT_RATIO,
    SAME_RATIO,
    counting,
    object_localization,
    relative_reflectance,
    spatial_relation,
)
from hybrid.samples.textures import NAMED_COLOURS
from hybrid.tool import Pixels

MAKERS = {
    "counting": (counting, 4),
    "boxes": (object_localization, 2),
    "relation": (spatial_relation, 2),
    "reflectance": (relative_reflectance, 3),
}


@lru_cache(maxsize=64)
def made(kind: str, seed: int) -> Item:
    maker, choices = MAKERS[kind]
    return maker(np.random.default_rng(seed), seed % choices)


def coloured(pixels: Pixels, colour: str) -> npt.NDArray[np.uint8]:
    """Saturated pixels whose hue is nearest to that of a named colour, as a mask of 0 and 1."""

    def hue_of(picture: cv2.typing.MatLike) -> npt.NDArray[np.int64]:
        return np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2HSV)[..., 0].astype(int) * 2)

    palette = np.array(list(NAMED_COLOURS.values()))[None]
    names = hue_of(np.asarray(np.rint(255 * palette ** (1 / 2.2)), dtype=np.uint8))[0]
    soft = cv2.GaussianBlur(pixels, (0, 0), 1.0)
    apart = np.abs(hue_of(soft)[..., None] - names)
    nearest = np.minimum(apart, 360 - apart).argmin(axis=2)
    vivid = cv2.cvtColor(soft, cv2.COLOR_RGB2HSV)[..., 1] > 100
    return np.asarray((nearest == list(NAMED_COLOURS).index(colour)) & vivid, dtype=np.uint8)


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_items_follow_from_their_seed(kind: str) -> None:
    maker, choices = MAKERS[kind]
    first, other = made(kind, 1), maker(np.random.default_rng(2), 1 % choices)
    again = maker(np.random.default_rng(1), 1 % choices)
    assert np.array_equal(first.images[0], again.images[0])
    assert first.question == again.question
    assert not np.array_equal(first.images[0], other.images[0])
    assert first.answer == 1
    assert len(set(first.choices)) == choices


@pytest.mark.parametrize("seed", range(8))
def test_the_count_is_that_of_the_coloured_spots_in_the_picture(seed: int) -> None:
    item = made("counting", seed)
    assert isinstance(item.facts, CountFacts)
    truth = int(item.choices[item.answer])
    assert truth == len(item.facts.boxes)
    assert f"{item.facts.name}s" in item.question
    assert [int(choice) - int(item.choices[0]) for choice in item.choices] == [0, 1, 2, 3]
    _, _, stats, _ = cv2.connectedComponentsWithStats(coloured(item.images[0], item.facts.name.colour), connectivity=8)
    assert int((stats[1:, cv2.CC_STAT_AREA] > 40).sum()) == truth


def overlap(first: Rect, second: Rect) -> float:
    def area(box: Rect) -> float:
        return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)

    shared = area((
        max(first[0], second[0]),
        max(first[1], second[1]),
        min(first[2], second[2]),
        min(first[3], second[3]),
    ))  # fmt: skip
    return shared / (area(first) + area(second) - shared)


@pytest.mark.parametrize("seed", range(6))
def test_the_answered_box_is_the_tight_one_and_both_are_drawn(seed: int) -> None:
    item = made("boxes", seed)
    facts = item.facts
    assert isinstance(facts, BoxFacts)
    assert facts.drawn[item.answer] == facts.tight
    assert 0.4 <= overlap(*facts.drawn) <= 0.65
    assert str(facts.name) in item.question
    assert item.choices[item.answer] == f"Box {'AB'[item.answer]}"
    for box, rgb in zip(facts.drawn, ((255, 0, 0), (0, 255, 0)), strict=True):
        x0, y0, x1, y1 = (int(side) for side in box)
        sides = np.concatenate([
            item.images[0][y0 + 1, x0:x1], item.images[0][y1 - 2, x0:x1],
            item.images[0][y0:y1, x0 + 1], item.images[0][y0:y1, x1 - 2],
        ])  # fmt: skip
        assert (sides == rgb).all(axis=1).mean() > 0.6


def test_the_tight_box_holds_the_object_in_the_picture() -> None:
    checked = 0
    for seed in range(40):
        item = made("boxes", seed)
        assert isinstance(item.facts, BoxFacts)
        if checked == 3:
            break
        if item.facts.name.colour in ("red", "green", "yellow", "orange"):
            continue  # The red and green outlines, and their mixtures, would be taken for the object.
        rows, columns = np.nonzero(coloured(item.images[0], item.facts.name.colour))
        seen = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
        # The outlines of 3 px hide the object's own border.
        assert np.abs(np.array(seen) - item.facts.tight).max() <= 6
        checked += 1
    assert checked == 3


@pytest.mark.parametrize("seed", range(10))
def test_relations_hold_between_the_boxes(seed: int) -> None:
    item = made("relation", seed)
    facts = item.facts
    assert isinstance(facts, RelationFacts)
    first, second = facts.boxes
    true = {
        "at the left side of": first[2] <= second[0],
        "at the right side of": first[0] >= second[2],
        "above": first[1] < second[1] and first[3] < second[3] and first[0] < second[2] and second[0] < first[2],
        "beneath": first[1] > second[1] and first[3] > second[3] and first[0] < second[2] and second[0] < first[2],
    }
    assert facts.holds == true[facts.relation]
    assert item.choices == ("yes", "no")
    assert item.choices[item.answer] == ("yes" if facts.holds else "no")
    assert item.question == f"Is the {facts.first} {facts.relation} the {facts.second}?"


def test_every_relation_is_asked() -> None:
    asked = set()
    for seed in range(10):
        facts = made("relation", seed).facts
        assert isinstance(facts, RelationFacts)
        asked.add((facts.relation in ("above", "beneath"), facts.holds))
    assert len(asked) == 4


def test_named_objects_have_their_colour_in_the_picture() -> None:
    for seed in range(6):
        item = made("relation", seed)
        assert isinstance(item.facts, RelationFacts)
        for name, (x0, y0, x1, y1) in zip((item.facts.first, item.facts.second), item.facts.boxes, strict=True):
            middle = coloured(item.images[0], name.colour)[int(y0) : int(y1), int(x0) : int(x1)]
            assert middle.mean() > 0.4


@pytest.mark.parametrize("seed", range(9))
def test_albedo_decides_which_surface_is_darker(seed: int) -> None:
    item = made("reflectance", seed)
    facts = item.facts
    assert isinstance(facts, ReflectanceFacts)
    ratio = facts.albedos[1] / facts.albedos[0]
    light = max(facts.lights) / min(facts.lights)
    assert item.choices == ("A is darker", "B is darker", "About the same")
    if item.answer == 2:
        assert max(ratio, 1 / ratio) < SAME_RATIO
        assert light > LIGHT_RATIO
    else:
        assert (ratio if item.answer == 0 else 1 / ratio) > DARKER_RATIO
    for x, y in facts.points:
        ring = item.images[0][int(y) - 5, int(x)]
        assert (ring == 255).all()


def test_brightness_times_light_explains_the_picture_of_reflectance() -> None:
    agree = 0
    for seed in range(9):
        item = made("reflectance", seed)
        assert isinstance(item.facts, ReflectanceFacts)
        grey = cv2.cvtColor(item.images[0], cv2.COLOR_RGB2GRAY).astype(float)
        seen = [grey[int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2].mean() for x, y in item.facts.points]
        expected = [albedo * light for albedo, light in zip(item.facts.albedos, item.facts.lights, strict=True)]
        agree += (seen[0] > seen[1]) == (expected[0] > expected[1])
    assert agree >= 8


def test_until_gives_the_first_result_and_says_when_there_is_none() -> None:
    numbers = iter([None, None, 7, 8])
    assert until("number", lambda: next(numbers)) == 7
    with pytest.raises(HybridError, match="no red ball could be constructed"):
        until(str(Name("red", "ball")), lambda: None)
