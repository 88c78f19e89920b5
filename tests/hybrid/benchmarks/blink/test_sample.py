"""Rows in BLINK's layout: columns, letters, bytes."""

import io
import json
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, JpegImagePlugin

from hybrid.benchmarks.blink.sample import FILE_NAME, TASKS, letter, row, schema, write
from hybrid.core.images import decode
from tests.tables import stored

IMAGES = {"Jigsaw": 3, "Multi-view_Reasoning": 2, "Visual_Correspondence": 2}
CHOICES = stored(__file__, "CHOICES")


# Cached, because several tests use the same row.
once = cache(row)


@pytest.mark.parametrize("task", TASKS)
def test_a_row_has_the_official_form(task: str) -> None:
    built = once(task, 0, 0)
    assert built.idx == f"val_{task}_1"
    assert built.sub_task == task
    assert len(built.images) == IMAGES.get(task, 1)
    assert built.choices == tuple(CHOICES.get(task, built.choices))
    assert len(built.choices) == TASKS[task].choices
    lines = built.prompt.split("\n")
    assert lines[:2] == [built.question, "Select from the following choices."]
    assert lines[2:] == [f"({'ABCD'[n]}) {choice}" for n, choice in enumerate(built.choices)]
    assert built.answer in {f"({letter})" for letter in "ABCD"[: len(built.choices)]}
    for data in built.images:
        assert decode(data, built.idx).std() > 5


@settings(max_examples=60)
@given(task=st.sampled_from(sorted(TASKS)), seed=st.integers(0, 10**9), block=st.integers(0, 10**4))
def test_every_block_of_rows_holds_each_letter_once(task: str, seed: int, block: int) -> None:
    size = TASKS[task].choices
    assert sorted([letter(task, block * size + place, seed) for place in range(size)]) == list(range(size))


def test_longer_files_begin_alike(tmp_path: Path) -> None:
    short, longer = (write(tmp_path / str(rows), ("Spatial_Relation",), rows, 7)[0] for rows in (1, 2))
    assert short == tmp_path / "1" / "Spatial_Relation" / FILE_NAME
    assert pq.read_table(longer).to_pylist()[:1] == pq.read_table(short).to_pylist()


@pytest.mark.shared_data
@pytest.mark.parametrize("task", ["Jigsaw", "Relative_Depth", "Spatial_Relation"])
def test_columns_are_those_of_the_published_files(shared_data: Path, tmp_path: Path, task: str) -> None:
    published = pq.read_schema(shared_data / "blink" / task / FILE_NAME)
    (path,) = write(tmp_path, [task], 1, 0)
    actual = pq.read_schema(path)
    assert actual.equals(published)
    assert schema().equals(published)
    features = (json.loads(item.metadata[b"huggingface"])["info"]["features"] for item in (actual, published))
    assert next(features) == next(features)


@pytest.mark.shared_data
def test_pictures_are_compressed_as_the_published_ones(shared_data: Path) -> None:
    table = pq.read_table(shared_data / "blink" / "Relative_Depth" / FILE_NAME)
    published = Image.open(io.BytesIO(table["image_1"][0].as_py()["bytes"]))
    stream = Image.open(io.BytesIO(once("Relative_Depth", 0, 0).images[0]))
    assert isinstance(published, JpegImagePlugin.JpegImageFile)
    assert isinstance(stream, JpegImagePlugin.JpegImageFile)
    assert stream.quantization == published.quantization
    assert JpegImagePlugin.get_sampling(stream) == JpegImagePlugin.get_sampling(published)
