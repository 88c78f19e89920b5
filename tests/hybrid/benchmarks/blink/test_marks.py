"""Redrawing BLINK's points: they are erased and drawn in the requested style and height, or an error says why not."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.base import Source
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.benchmarks.blink.marks import Restyle, erase_marks, read_restyle, redraw_marks, redrawn
from hybrid.core.errors import DataError, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.types import BrokenQuestion, Point, Question
from hybrid.marks.drawing import RGB, draw_marks
from hybrid.samples.backgrounds import background
from hybrid.samples.seeds import generator
from hybrid.tool import Pixels

POINTS = (Point(90, 150, "A"), Point(230, 110, "B"))
CHOICES = ("A is closer", "B is closer")


def ground(number: int = 3) -> Pixels:
    return background(generator("evaluate", number), "blobs", 260, 340)


@given(st.integers(4, 20), st.sampled_from(["red", "white", "gray"]))
@settings(max_examples=12)
def test_radius_and_colour_are_those_asked_for(radius: int, color: str) -> None:
    selected = erase_marks(draw_marks(ground(), POINTS), ("A", "B"))
    second = redraw_marks(selected, read_restyle(f"radius:{radius},color:{color}"))
    rgb = RGB["grey" if color == "gray" else color]  # type: ignore[index]
    for mark in selected.marks:
        x, y = round(mark.x), round(mark.y)
        # On each side, the ring changes the outermost pixel of its line, but not the next pixel outside.
        assert tuple(second[y, x + radius]) == tuple(second[y, x - radius]) == tuple(second[y + radius, x]) == rgb
        assert np.array_equal(second[y, x + radius + 1], selected.pixels[y, x + radius + 1])


@pytest.mark.parametrize("value", ["shape:square", "radius:ten", "color:blue", "height:99", "height:4001", "radius:3"])
def test_other_values_are_refused(value: str) -> None:
    with pytest.raises(UsageError, match="--setting marks="):
        BENCHMARK.card.resolve_settings({"marks": value})


@pytest.mark.parametrize("value", ["radius:10,color:red,height:1024", "height:100", "height:4000", "color:gray"])
def test_values_of_the_paper_are_taken(value: str) -> None:
    assert BENCHMARK.card.resolve_settings({"marks": value})["marks"] == value
    assert read_restyle(value) != Restyle()


def test_a_letter_that_cannot_be_seen_cannot_be_taken_off() -> None:
    pixels = draw_marks(ground(), POINTS)
    # Both rings are visible, but the letter that identifies B is under a patch.
    pixels[60:100, 215:250] = ground()[60:100, 215:250]
    with pytest.raises(DataError, match=r"--setting marks: the (letter|mark) B was not found"):
        erase_marks(pixels, ("A", "B"))


def test_one_question_that_cannot_be_redrawn_costs_no_other(tmp_path: Path, fakes: Any) -> None:
    def row(number: int, pixels: Pixels) -> dict[str, Any]:
        return {
            "idx": f"val_Relative_Depth_{number}",
            "prompt": "Which point is closer?\n(A) A is closer\n(B) B is closer",
            "choices": list(CHOICES),
            "answer": "(A)",
            "image_1": fakes.encoded(pixels),
        }

    fakes.write_task(tmp_path, "Relative_Depth", [row(1, ground()), row(2, draw_marks(ground(), POINTS))])
    source = Source(tmp_path, ImageStore(tmp_path / "i"), "val", ("Relative_Depth",), {"marks": "radius:10,height:300"})
    broken, sound = BENCHMARK.questions(source)
    assert isinstance(broken, BrokenQuestion)
    assert re.search("val_Relative_Depth_1: .*|--setting marks: the mark A, B was not found", broken.error)
    assert isinstance(sound, Question)
    assert sound.images[0].height == 300


def test_pictures_of_two_images_are_marked_by_reference_and_letters(tmp_path: Path) -> None:
    store = ImageStore(tmp_path)
    images = [draw_marks(ground(1), [Point(120, 120, "REF")]), draw_marks(ground(2), POINTS)]
    choices = ("Point A", "Point B")
    built = redrawn("radius:12,height:400", [store.put_pixels(item) for item in images], choices, store)
    assert [image.height for image in built] == [400, 400]
    with pytest.raises(DataError, match="3 images"):
        redrawn("radius:12", [store.put_pixels(ground())] * 3, choices, store)


@pytest.mark.system
@pytest.mark.shared_data
def test_real_pictures_are_redrawn_or_told(shared_data: Path, tmp_path: Path, fakes: Any) -> None:
    rows = pq.read_table(shared_data / "blink" / "Relative_Depth" / "val-00000-of-00001.parquet").to_pylist()
    fakes.write_task(tmp_path, "Relative_Depth", rows[::3])
    source = Source(tmp_path, ImageStore(tmp_path / "i"), "val", ("Relative_Depth",), {"marks": "radius:10"})
    items = list(BENCHMARK.questions(source))
    broken = [item for item in items if isinstance(item, BrokenQuestion)]
    assert len(items) == 21
    assert len(broken) <= 1
    assert all("--setting marks: the letter" in entry.error for entry in broken)
