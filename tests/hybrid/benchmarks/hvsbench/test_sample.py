"""Generated HVSBench questions: the official layout, correct answers, reproducible bytes."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hybrid.benchmarks.hvsbench.sample import FILE_NAME, TASKS, make_question, write
from hybrid.core.errors import UsageError
from hybrid.core.images import decode
from hybrid.core.types import LETTERS
from hybrid.samples.pop_out import HEIGHT, WIDTH

COLUMNS = [
    *("index", "image", "question", "question_type", "answer"),
    *("answer_type", "category", "split", "real_image_path", "origin_dataset"),
]


def rows(folder: Path) -> list[dict[str, object]]:
    result: list[dict[str, object]] = pq.read_table(folder / "data" / FILE_NAME).to_pylist()
    return result


def test_the_official_columns_and_every_type(tmp_path: Path) -> None:
    write(tmp_path, tuple(TASKS), 2, 0)
    table = pq.read_table(tmp_path / "data" / FILE_NAME)
    assert table.schema.names == COLUMNS
    assert str(table.schema.field("index").type) == "int64"
    assert json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]["image"] == {"_type": "Image"}
    result = rows(tmp_path)
    assert [row["question_type"] for row in result] == [task for task in TASKS for _ in range(2)]
    assert len({row["index"] for row in result}) == len(result)
    cell = result[0]["image"]
    assert isinstance(cell, dict)
    assert decode(cell["bytes"], "row 1").shape == (HEIGHT, WIDTH, 3)


def test_more_rows_change_none(tmp_path: Path) -> None:
    for per_task in (3, 4):
        write(tmp_path / str(per_task), ("Q3", "Q12"), per_task, 1)
    assert rows(tmp_path / "3")[:3] == rows(tmp_path / "4")[:3]
    with pytest.raises(UsageError):
        write(tmp_path / "more", ("Q1",), 1_000_001, 0)


@pytest.mark.parametrize("task", [task for task in TASKS if task not in {"Q2", "Q3", "Q9", "Q12"}])
def test_every_block_of_rows_holds_each_letter_once(task: str) -> None:
    size = TASKS[task].answers
    for block in range(3):
        letters = [make_question(task, block * size + place, 5).answer for place in range(size)]
        assert sorted(letters) == list(LETTERS[:size])
