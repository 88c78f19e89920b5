"""Questions about objects: counts, boxes, relations and albedo are recovered from the pictures and the facts."""

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from hybrid.core.errors import HybridError
from hybrid.samples.item import BoxFacts, Item, ReflectanceFacts, RelationFacts, until
from hybrid.samples.layouts import Name
from hybrid.samples.objects import counting, object_localization, relative_reflectance, spatial_relation
from hybrid.samples.textures import NAMED_COLOURS
from hybrid.tool import Pixels

MAKERS = {
    "counting": (counting, 4),
    "boxes": (object_localization, 2),
    "relation": (spatial_relation, 2),
    "reflectance": (relative_reflectance, 3),
}


@lru_cache(maxsize=64)
def make_item(kind: str, seed: int) -> Item:
    maker, choices = MAKERS[kind]
    return maker(np.random.default_rng(seed), seed % choices)


def coloured(pixels: Pixels, colour: str) -> npt.NDArray[np.uint8]:
    """Return saturated pixels whose hue is nearest to a named colour, as a mask of 0 and 1."""

    def hue_of(picture: cv2.typing.MatLike) -> npt.NDArray[np.int64]:
        return np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2HSV)[..., 0].astype(int) * 2)

    palette = np.array(list(NAMED_COLOURS.values()))[None]
    names = hue_of(np.asarray(np.rint(255 * palette ** (1 / 2.2)), dtype=np.uint8))[0]
    soft = cv2.GaussianBlur(pixels, (0, 0), 1.0)
    differences = np.abs(hue_of(soft)[..., None] - names)
    nearest = np.minimum(differences, 360 - differences).argmin(axis=2)
    vivid = cv2.cvtColor(soft, cv2.COLOR_RGB2HSV)[..., 1] > 100
    return np.asarray((nearest == list(NAMED_COLOURS).index(colour)) & vivid, dtype=np.uint8)


@pytest.mark.system
def test_the_tight_box_holds_the_object_in_the_picture() -> None:
    checked = 0
    for seed in range(40):
        item = make_item("boxes", seed)
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


def test_every_relation_is_asked() -> None:
    seen = set()
    for seed in range(10):
        facts = make_item("relation", seed).facts
        assert isinstance(facts, RelationFacts)
        seen.add((facts.relation in ("above", "beneath"), facts.holds))
    assert len(seen) == 4


def test_named_objects_have_their_colour_in_the_picture() -> None:
    for seed in range(6):
        item = make_item("relation", seed)
        assert isinstance(item.facts, RelationFacts)
        for name, (x0, y0, x1, y1) in zip((item.facts.first, item.facts.second), item.facts.boxes, strict=True):
            assert coloured(item.images[0], name.colour)[int(y0) : int(y1), int(x0) : int(x1)].mean() > 0.4


@pytest.mark.system
def test_brightness_times_light_explains_the_picture_of_reflectance() -> None:
    agree = 0
    for seed in range(9):
        item = make_item("reflectance", seed)
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
