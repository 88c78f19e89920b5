"""Descriptions that the embedded model learns are true of their pictures: compared with the facts of the generators."""

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
from training.sight import describe_view, patches, seen, striped


def _photograph(pixels: Pixels) -> Pixels:
    return np.asarray(Image.open(io.BytesIO(jpeg(pixels))).convert("RGB"))


@pytest.mark.parametrize("number", range(4))
def test_things_are_counted_name_by_name(number: int) -> None:
    request = counting(generator("train", 5, number), number)
    text = describe_view("ground", _photograph(request.images[0]))
    most = len(request.facts.boxes)  # type: ignore[union-attr]
    name = request.facts.name  # type: ignore[union-attr]
    assert f"{name} {most} " in text
    assert f"{name} {most + 1} " not in text


def test_each_flag_is_told_by_its_stripes() -> None:
    results = {}
    for number in range(60):
        flag = item("KnowVisQA", number, 2, "train")
        results.setdefault(flag.right, set()).add(striped(_photograph(flag.pixels)))
    assert set(results) == {*UPRIGHT, *LEVEL}
    assert all(len(stripes) == 1 for stripes in results.values())
    assert len({stripes for (stripes,) in results.values()}) == len(results)
    assert results["Ireland"] == {"upright green white orange"}
    assert results["Germany"] == {"level black red yellow"}


def test_two_pictures_side_by_side_are_told_one_after_the_other() -> None:
    value, other = (_photograph(picture) for picture in pair(1, 3, "train").images)
    sides = np.hstack([value, other])
    assert describe_view("ground", sides) == f"{describe_view('ground', value)}; {describe_view('ground', other)}"
    text = patches(sides, 6, 6)
    for half, columns in ((value, slice(0, 3)), (other, slice(3, 6))):
        names = {name for row in range(6) for name in text[6 * row : 6 * row + 6][columns] if name is not None}
        assert {other_name.place for other_name in names} == {name_value.place for name_value in seen(half)}
