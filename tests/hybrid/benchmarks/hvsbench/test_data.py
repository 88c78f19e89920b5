"""HVSBench's files: rows by type, and the forms of the answer column."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.hvsbench.data import human_paths, letter, rows, types_present
from hybrid.core.errors import DataError
from hybrid.core.types import Scanpath
from tests.tables import cases

ONE = Scanpath((0.1, 0.2), (0.3, 0.4), (50, 60))
TWO = Scanpath((0.5, 0.6, 0.7), (0.5, 0.5, 0.5), (7, 8, 9))
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def record(index: int, task: str, **other: Any) -> dict[str, Any]:
    row = {
        "index": index,
        "image": {"bytes": b"x", "path": None},
        "question": "Look.",
        "question_type": task,
        "answer": "A",
    }
    return {**row, "real_image_path": f"{index}.jpg", **other}


def write(
    path: Path, records: list[dict[str, Any]], types: Mapping[str, pa.DataType] | None = None, group: int = 2
) -> Path:
    columns = {
        "index": pa.int64(),
        "image": IMAGE,
        "question": pa.string(),
        "question_type": pa.string(),
        "answer": pa.string(),
    }
    columns |= {"real_image_path": pa.string(), **(types or {})}
    schema = pa.schema([(name, kind) for name, kind in columns.items() if name in records[0]])
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(records, schema), path, row_group_size=group)
    return path


def test_rows_of_no_known_type_alone_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [record(0, "Q14"), record(1, "Q14")])
    with pytest.raises(DataError, match=r"a.parquet, row 1, column question_type: 'Q14' is not one of Q1 to Q13"):
        types_present(tmp_path, [path])


@pytest.mark.parametrize(
    ("column", "kind", "value"),
    [
        ("index", pa.string(), "7"),
        ("answer", pa.int64(), 3),
        ("image", pa.string(), "a.jpg"),
        ("question_type", pa.int64(), 1),
    ],
)
def test_a_column_of_another_type_is_named(tmp_path: Path, column: str, kind: pa.DataType, value: object) -> None:
    path = write(tmp_path / "a.parquet", [{**record(0, "Q1"), column: value}], {column: kind})
    with pytest.raises(DataError, match=f"a.parquet, column {column}: the type"):
        list(rows(tmp_path, path))


def test_a_missing_column_and_another_kind_of_file_are_named(tmp_path: Path) -> None:
    short = record(0, "Q1")
    del short["answer"]
    with pytest.raises(DataError, match="lacks the column answer; it has: index"):
        list(rows(tmp_path, write(tmp_path / "a.parquet", [short])))
    (tmp_path / "b.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match=r"b.parquet is not a readable parquet file"):
        list(rows(tmp_path, tmp_path / "b.parquet"))


@pytest.mark.parametrize("text", ["B", "(B)", "[B]", "B.", " B ", "[B] the cat", "B: the cat", "the cat"])
def test_letter(text: str) -> None:
    assert letter(text, ("the dog", "the cat")) == "B"


def as_lists(path: Scanpath) -> str:
    return f"X = {list(path.x)} Y = {list(path.y)} T = {list(path.t_ms)}"


def as_dict(path: Scanpath) -> dict[str, list[float]]:
    return {"X": list(path.x), "Y": list(path.y), "T": list(path.t_ms)}


def as_points(path: Scanpath) -> list[list[float]]:
    return [list(point) for point in zip(path.x, path.y, path.t_ms, strict=True)]


@pytest.mark.parametrize(*cases(__file__, "test_several_human_paths"))
def test_several_human_paths(text: str) -> None:
    assert human_paths(text) == (ONE, TWO)


@pytest.mark.parametrize(
    ("text", "message"),
    [*cases(__file__, "test_answers_that_are_no_scanpath")[1], ("[" * 100_000, "nested too deeply")],
)
def test_answers_that_are_no_scanpath(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        human_paths(text)


@settings(max_examples=60)
@given(text=st.text(max_size=60) | st.from_regex(r"[\[{(]?[XYT\"'0-9.,:= \[\]{}-]{0,60}", fullmatch=True))
def test_any_answer_gives_checked_paths_or_a_data_error(text: str) -> None:
    try:
        result = human_paths(text)
    except DataError:
        return
    assert result
    assert all(len(path.x) == len(path.y) >= 2 for path in result)


@settings(max_examples=50)
@given(
    points=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 5000)), min_size=2, max_size=12),
    form=st.sampled_from([as_lists, lambda path: json.dumps(as_dict(path)), lambda path: str(as_points(path))]),
)
def test_every_form_comes_back(points: list[tuple[float, float, float]], form: Any) -> None:
    path = Scanpath(*(tuple(column) for column in zip(*points, strict=True)))
    assert human_paths(form(path)) == (path,)
