"""Descriptions that the embedded model learns are true of their pictures: held to the facts of the generators."""

import io

import numpy as np
import pytest
from PIL import Image

from hybrid.benchmarks.mm_sap.sample import LEVEL, UPRIGHT, item
from hybrid.benchmarks.mvp_bench.sample_pairs import pair
from hybrid.samples.item import jpeg
from hybrid.samples.objects import counting
from hybrid.samples.seeds import generator
from hybrid.tool import Pixels
from training.sight import patches, said, seen, striped


def _photograph(pixels: Pixels) -> Pixels:
    return np.asarray(Image.open(io.BytesIO(jpeg(pixels))).convert("RGB"))


@pytest.mark.parametrize("number", range(4))
def test_things_are_counted_name_by_name(number: int) -> None:
    asked = counting(generator("train", 5, number), number)
    told = said("ground", _photograph(asked.images[0]))
    most = len(asked.facts.boxes)  # type: ignore[union-attr]
    name = asked.facts.name  # type: ignore[union-attr]
    assert f"{name} {most} " in told
    assert f"{name} {most + 1} " not in told


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
