"""Descriptions that the embedded model learns are true of their pictures: held to the facts of the generators."""

import io

import numpy as np
import pytest
from PIL import Image

from hybrid.benchmarks.mm_sap.sample import LEVEL, UPRIGHT, item
from hybrid.benchmarks.mvp_bench.sample_pairs import pair
from hybrid.samples.item import jpeg
from hybrid.samples.objects import counting
from hybrid.samples.pop_out import pop_out
from hybrid.samples.seeds import generator
from hybrid.tool import Pixels
from training.sight import SHAPES, Thing, described, patches, said, seen, striped


def _photograph(pixels: Pixels) -> Pixels:
    return np.asarray(Image.open(io.BytesIO(jpeg(pixels))).convert("RGB"))


def _names(things: tuple[Thing, ...]) -> list[str]:
    return [f"{thing.colour} {'ball' if thing.round else 'cube'}" for thing in things]


def test_things_on_the_ground_are_told_from_left_to_right() -> None:
    told = [
        _names(seen(_photograph(picture))) == [str(name) for name in names]
        for number in range(10)
        for made in [pair(number, 3, "train")]
        for picture, names in zip(made.images, made.names, strict=True)
    ]
    assert sum(told) >= 19


@pytest.mark.parametrize("number", range(4))
def test_things_are_counted_name_by_name(number: int) -> None:
    asked = counting(generator("train", 5, number), number)
    told = said("ground", _photograph(asked.images[0]))
    most = len(asked.facts.boxes)  # type: ignore[union-attr]
    name = asked.facts.name  # type: ignore[union-attr]
    assert f"{name} {most} " in told
    assert f"{name} {most + 1} " not in told


@pytest.mark.parametrize("count", range(1, 5))
def test_flat_things_are_told_from_the_most_to_the_least_prominent(count: int) -> None:
    scene = pop_out(generator("train", 5, count), count)
    told = said("prominence", _photograph(scene.draw()))
    assert [part.split()[1:3] for part in told.split(", ")] == [str(thing.name).split() for thing in scene.things]


def test_where_a_thing_is_stands_in_tenths_and_the_numbers_count_on() -> None:
    things = [Thing("red", True, 0.23, 0.61, 0.1), Thing("red", True, 0.44, 0.4, 0.1), Thing("blue", False, 0.9, 1, 0)]
    assert described(things, SHAPES["ground"]) == "1 red ball 1 0.2 0.60, 2 red ball 2 0.4 0.40, 3 blue cube 1 0.9 1.00"
    assert described(things[2:], SHAPES["prominence"]) == "1 blue square 1 0.9 1.00"
    assert described([], SHAPES["ground"]) == "nothing"


def test_each_flag_is_told_by_its_stripes() -> None:
    told = {}
    for number in range(60):
        flag = item("KnowVisQA", number, 2, "train")
        told.setdefault(flag.right, set()).add(striped(_photograph(flag.pixels)))
    assert set(told) == {*UPRIGHT, *LEVEL}
    assert all(len(stripes) == 1 for stripes in told.values())
    assert len({stripes for (stripes,) in told.values()}) == len(told)
    assert told["Ireland"] == {"upright green white orange"}
    assert told["Germany"] == {"level black red yellow"}


def test_two_pictures_side_by_side_are_told_one_after_the_other() -> None:
    one, other = (_photograph(picture) for picture in pair(1, 3, "train").images)
    both = np.hstack([one, other])
    assert said("ground", both) == f"{said('ground', one)}; {said('ground', other)}"
    shown = patches(both, 6, 6)
    for half, columns in ((one, slice(0, 3)), (other, slice(3, 6))):
        things = {thing for row in range(6) for thing in shown[6 * row : 6 * row + 6][columns] if thing is not None}
        assert {thing.place for thing in things} == {thing.place for thing in seen(half)}


def test_a_part_shows_the_thing_that_takes_most_of_it() -> None:
    picture = np.full((60, 90, 3), 120, np.uint8)
    picture[12:18, 32:44] = (160, 30, 30)
    picture[45:60, 0:20] = (40, 60, 190)
    picture[2:8, 50:56] = (40, 60, 190)
    picture[50:53, 80:84] = (160, 30, 30)
    shown = patches(picture, 3, 3)
    assert {place: thing.colour for place, thing in enumerate(shown) if thing is not None} == {1: "red", 6: "blue"}


def test_nothing_is_seen_on_a_grey_picture() -> None:
    grey = np.full((40, 50, 3), 120, np.uint8)
    assert seen(grey) == ()
    assert patches(grey, 2, 2) == [None] * 4
