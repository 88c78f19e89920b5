"""ActiView's data: questions, settings, views, bad input."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from hybrid.benchmarks.actiview import BENCHMARK
from hybrid.benchmarks.actiview.data import TASKS, task_of
from hybrid.benchmarks.actiview.sample import write
from hybrid.benchmarks.actiview.settings import read_settings
from hybrid.benchmarks.actiview.views import GRIDS, cut, lined, places, shrink_to_part, stitch, turn
from hybrid.core.errors import DataError, UsageError
from hybrid.core.images import ImageStore, decode
from hybrid.core.types import BrokenQuestion
from tests.hybrid.benchmarks import mounted
from tests.image_bytes import saved
from tests.tables import cases

asked, sound = partial(mounted.read_questions, BENCHMARK), partial(mounted.sound, BENCHMARK)

MADE = ("counting", "geo_loc")
PER_TASK = 3


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory, shrunk: Callable[[Path], Path]) -> Path:
    folder = tmp_path_factory.mktemp("actiview")
    write(folder, MADE, PER_TASK, 3)
    return shrunk(folder)


@pytest.fixture
def copy(sample: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample, tmp_path / "copy"))


def edit(folder: Path, name: str, change: Callable[[Any], Any]) -> None:
    path = folder / "asset" / name
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def put(folder: Path, name: str, place: Sequence[str | int], value: object) -> None:
    """Replace a value in a file; its position is given by keys and indices, outermost first."""

    def change(content: Any) -> None:
        for step in place[:-1]:
            content = content[step]
        content[place[-1]] = value

    edit(folder, name, change)


@pytest.mark.parametrize("splits", [6, 16, *(pytest.param(number, marks=pytest.mark.system) for number in (8, 9))])
def test_more_parts_are_cut_from_the_original(sample: Path, tmp_path: Path, splits: int) -> None:
    question = sound(sample, tmp_path, splits=str(splits))[0]
    columns, rows = GRIDS[splits]
    assert len(question.images) == 2 + splits
    row = json.loads((sample / "asset" / "data.json").read_text())["data"][PER_TASK]
    original = decode((sample / row["images"][0]).read_bytes(), "original")
    height, width = original.shape[0] // rows, original.shape[1] // columns
    assert {(image.width, image.height) for image in question.images} == {(width, height)}
    second = ImageStore(tmp_path / "store").pixels(question.images[3])
    assert np.array_equal(second, original[height : 2 * height, :width])
    assert question.target == {"answer": "ABCDEFG"[row["answer"]], "views": None}


def test_categories_have_the_papers_sizes() -> None:
    assert sum(BENCHMARK.card.tasks.values()) == 325
    by_type: dict[str, int] = {}
    for task, facts in TASKS.items():
        by_type[facts["type"]] = by_type.get(facts["type"], 0) + BENCHMARK.card.tasks[task]
    assert by_type == {"I": 108, "II": 143, "III": 74}
    for category, task in (
        ("geo-loc(counrty)", "geo_loc"),
        ("daily loc", "daily_loc"),
        ("event-single", "event_single"),
        ("event-multi", "event_multi"),
        ("object-rel", "object_rel"),
        ("counting with distraction", "counting"),
    ):
        assert task_of(category, "here") == task
    with pytest.raises(DataError, match="row 7, field category: 'weather'"):
        task_of("weather", "data.json, row 7")


@pytest.mark.shared_data
def test_published_clue_views(shared_data: Path) -> None:
    views = json.loads((shared_data / "actiview" / "groundtruth_views.json").read_text())
    assert len(views) == sum(BENCHMARK.card.tasks.values())
    assert sum(map(len, views)) == 859


@settings(max_examples=40)
@given(splits=st.sampled_from(sorted(GRIDS)), width=st.integers(8, 60), height=st.integers(8, 60))
def test_parts_tile_the_picture_column_by_column(splits: int, width: int, height: int) -> None:
    pixels = np.random.default_rng(width * 61 + height).integers(0, 255, (height, width, 3)).astype(np.uint8)
    columns, rows = GRIDS[splits]
    parts = cut(pixels, splits)
    assert len(parts) == splits
    together = np.concatenate(
        [np.concatenate(parts[column * rows : (column + 1) * rows], axis=0) for column in range(columns)], axis=1
    )
    assert np.array_equal(together, pixels[: together.shape[0], : together.shape[1]])
    assert shrink_to_part(pixels, splits).shape == parts[0].shape
    assert lined(pixels, splits).shape == pixels.shape


def test_lines_divide_and_places_have_names() -> None:
    grey = np.full((200, 300, 3), 90, np.uint8)
    drawing = lined(grey, 4)
    assert tuple(drawing[50, 150]) == (255, 0, 0) == tuple(drawing[100, 20])
    assert tuple(drawing[50, 144]) == (255, 255, 255)
    assert tuple(drawing[50, 20]) == (90, 90, 90)
    assert (grey == 90).all()
    assert places(4) == "1 is upper left; 2 is lower left; 3 is upper right; 4 is lower right"
    assert places(6).endswith("6 is column 3 from the left, row 2 from the top")
    assert stitch([grey, grey]).shape == (200, 600, 3)
    assert stitch([grey] * 20).shape == (4096 * 200 // 6000, 4096, 3)
    assert turn(3, 4) == (3, 4, 1, 2)


@pytest.mark.parametrize(*cases(__file__, "test_combinations_without_a_meaning_are_refused"))
def test_combinations_without_a_meaning_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_settings(BENCHMARK.card.resolve_settings(settings))


@pytest.mark.parametrize(*cases(__file__, "test_a_row_that_cannot_be_used_costs_itself_alone", list))
def test_a_row_that_cannot_be_used_costs_itself_alone(
    copy: Path, tmp_path: Path, place: list[str | int], value: object, message: str
) -> None:
    put(copy, "data.json", ["data", 4, *place], value)
    result = asked(copy, tmp_path)
    broken = [question for question in result if isinstance(question, BrokenQuestion)]
    assert [question.id for question in broken] == ["actiview0005"]
    assert message in broken[0].error
    assert len(result) == PER_TASK * len(MADE)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("data.json", lambda d: d.update(data={}), "field data: expected a list of questions"),
        ("groundtruth_views.json", lambda d: d.pop(), "expected 6 lists of views"),
        ("shifting_level.json", lambda d: d.pop("hard"), "field hard: expected 6 first views"),
    ],
)
def test_files_that_cannot_be_used(
    copy: Path, tmp_path: Path, name: str, change: Callable[[Any], Any], message: str
) -> None:
    edit(copy, name, change)
    with pytest.raises(DataError, match=message):
        asked(copy, tmp_path, mode="shift", start="E")


@pytest.mark.parametrize(*cases(__file__, "test_a_bad_row_is_missing_from_each_task_that_it_may_be_of", list))
def test_a_bad_row_is_missing_from_each_task_that_it_may_be_of(
    copy: Path, tmp_path: Path, name: str, place: list[str | int], value: object, message: str, broken_count: int
) -> None:
    put(copy, name, place, value)
    result = asked(copy, tmp_path, mode="shift", start="E")
    broken = [question for question in result if isinstance(question, BrokenQuestion)]
    assert len(broken) == broken_count == len({question.task for question in broken})
    assert all(re.search(message, question.error) for question in broken)
    assert len(result) - broken_count == PER_TASK * len(MADE) - 1


def test_missing_and_broken_files(copy: Path, tmp_path: Path) -> None:
    (copy / "asset" / "groundtruth_views.json").write_text("{")
    with pytest.raises(DataError, match=r"groundtruth_views.json cannot be read as JSON"):
        asked(copy, tmp_path)
    with pytest.raises(DataError, match=r"contains no ActiView data: expected asset/data.json"):
        asked(tmp_path, tmp_path)


def test_flags_that_do_not_give_the_views_are_reported(
    copy: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(copy, "data.json", ["data", 0, "contains_bbox"], ["no", "no", "no", 9])
    put(copy, "groundtruth_views.json", [0], [1])
    assert len(sound(copy, tmp_path)) == PER_TASK * len(MADE)
    assert "row 1: contains_bbox ['no', 'no', 'no', 9] does not give the views (1,)" in caplog.text


def test_odd_pictures_are_read(copy: Path, tmp_path: Path) -> None:
    for name in json.loads((copy / "asset" / "data.json").read_text())["data"][0]["images"]:
        (copy / name).write_bytes(saved(Image.new("L", (1, 1), 7)))
    by_id = {question.id: question for question in sound(copy, tmp_path)}
    assert {(image.width, image.height) for image in by_id["actiview0001"].images} == {(1, 1)}
    broken = [question for question in asked(copy, tmp_path, splits="9") if isinstance(question, BrokenQuestion)]
    assert [question.id for question in broken] == ["actiview0001"]
    assert "1 x 1 pixels cannot be cut into 3 columns and 3 rows" in broken[0].error
