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

from hybrid.benchmarks.hvsbench.data import (
    count,
    human_paths,
    letter,
    of_another_image,
    order,
    rows,
    subjects,
    types_present,
)
from hybrid.errors import DataError
from hybrid.types import Scanpath

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


def test_rows_of_one_type_over_row_groups(tmp_path: Path) -> None:
    tasks = ["Q1", "Q2", "Q2", "Q10", "Q1"]
    path = write(tmp_path / "a.parquet", [record(n, task) for n, task in enumerate(tasks)])
    found = list(rows(tmp_path, path, "Q2"))
    assert [row.values["index"] for row in found] == [1, 2]
    assert [row.where for row in found] == [f"{path}, row 2", f"{path}, row 3"]
    assert found[0].image("image") == b"x"
    assert "image" not in next(rows(tmp_path, path, "Q1", images=False)).values
    assert len(list(rows(tmp_path, path))) == 5
    assert types_present(tmp_path, [path]) == ("Q1", "Q2", "Q10")


def test_rows_of_no_known_type_alone_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [record(0, "Q14"), record(1, "Q14")])
    with pytest.raises(DataError, match=r"a.parquet, row 1, column question_type: 'Q14' is none of Q1 to Q13"):
        types_present(tmp_path, [path])


def test_a_row_of_no_known_type_may_be_of_any(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [record(0, "Q1"), record(1, "Q2"), record(2, "Q14")])
    assert types_present(tmp_path, [path]) == ("Q1", "Q2")
    assert [row.values["index"] for row in rows(tmp_path, path, "Q2")] == [1, 2]


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
    path = write(
        tmp_path / "a.parquet",
        [{**record(0, "Q1"), column: value}],
        {column: kind},
    )
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


@pytest.mark.parametrize("text", ["", "C", "b", "the cow", "AB", "None"])
def test_a_letter_that_was_not_offered(text: str) -> None:
    with pytest.raises(DataError, match="none of the 2 options"):
        letter(text, ("the dog", "the cat"))


@pytest.mark.parametrize(("text", "number"), [("5", 5), (" 12 ", 12), ("3.0", 3), ("0", 0)])
def test_count(text: str, number: int) -> None:
    assert count(text) == number


@pytest.mark.parametrize("text", ["", "five", "-1", "2.5", "nan", "12345678"])
def test_no_count(text: str) -> None:
    with pytest.raises(DataError):
        count(text)


@pytest.mark.parametrize("text", ["BCA", "B, C, A", "[B] [C] [A]", "B > C > A", "B-C-A"])
def test_order(text: str) -> None:
    assert order(text, ("a", "b", "c")) == "BCA"


@pytest.mark.parametrize("text", ["", "BCD", "BCAA", "B then C"])
def test_no_order(text: str) -> None:
    with pytest.raises(DataError):
        order(text, ("a", "b", "c"))


def as_lists(path: Scanpath) -> str:
    return f"X = {list(path.x)} Y = {list(path.y)} T = {list(path.t_ms)}"


def as_dict(path: Scanpath) -> dict[str, list[float]]:
    return {"X": list(path.x), "Y": list(path.y), "T": list(path.t_ms)}


def as_points(path: Scanpath) -> list[list[float]]:
    return [list(point) for point in zip(path.x, path.y, path.t_ms, strict=True)]


@pytest.mark.parametrize(
    "text",
    [
        f"{as_lists(ONE)}\n{as_lists(TWO)}",
        f"{as_lists(ONE)}; {as_lists(TWO)}".replace(" = ", ": "),
        json.dumps([as_dict(ONE), as_dict(TWO)]),
        str([as_dict(ONE), as_dict(TWO)]),
        str({"subject 1": as_dict(ONE), "subject 2": as_dict(TWO)}),
        json.dumps({"x": [ONE.x, TWO.x], "y": [ONE.y, TWO.y], "t": [ONE.t_ms, TWO.t_ms]}),
        json.dumps([as_points(ONE), as_points(TWO)]),
    ],
)
def test_several_human_paths(text: str) -> None:
    assert human_paths(text) == (ONE, TWO)


@pytest.mark.parametrize(
    "text", [as_lists(ONE), json.dumps(as_dict(ONE)), str(as_dict(ONE)), json.dumps(as_points(ONE))]
)
def test_one_human_path(text: str) -> None:
    assert human_paths(text) == (ONE,)


def test_durations_may_be_missing() -> None:
    assert human_paths("X = [0.1, 0.2] Y = [0.3, 0.4]") == (Scanpath((0.1, 0.2), (0.3, 0.4), ()),)
    assert human_paths("[[0.1, 0.3], [0.2, 0.4]]") == (Scanpath((0.1, 0.2), (0.3, 0.4), ()),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no scanpath"),
        ("somewhere", "holds no scanpath"),
        ("X = [0.1] Y = [0.2] T = [5]", "scanpath 1 has 1 fixation"),
        ("X = [0.1, nan] Y = [0.2, 0.2] T = [5, 5]", "not finite"),
        ('{"X": [0.1, NaN], "Y": [0.2, 0.2], "T": [5, 5]}', "not finite"),
        ("X = [0.1, 0.2] Y = [0.2] T = [5, 5]", "lists of 2, 1 and 2"),
        ('{"X": [0.1, 0.2], "Y": [0.2], "T": [5, 5]}', "lists of 2, 1 and 2"),
        ("X = [101, 200] Y = [30, 40] T = [5, 5]", "outside the image"),
        ("X = [0.1, 0.2] Y = [0.3, 0.4] T = [5, -5]", "negative duration"),
        (f"{as_lists(ONE)} X = [0.1] Y = [0.1] T = [5]", "scanpath 2 has 1 fixation"),
        ('{"X": 3, "Y": 4}', "must be lists"),
        ('{"X": ["a"], "Y": ["b"]}', "must hold numbers"),
        ("[]", "no scanpath"),
        ("[[[[[[0.1, 0.2]]]]]]", "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_answers_that_are_no_scanpath(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        human_paths(text)


@settings(max_examples=60)
@given(text=st.text(max_size=60) | st.from_regex(r"[\[{(]?[XYT\"'0-9.,:= \[\]{}-]{0,60}", fullmatch=True))
def test_any_answer_gives_checked_paths_or_a_data_error(text: str) -> None:
    try:
        found = human_paths(text)
    except DataError:
        return
    assert found
    assert all(len(path.x) == len(path.y) >= 2 for path in found)


@settings(max_examples=50)
@given(
    points=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 5000)), min_size=2, max_size=12),
    form=st.sampled_from([as_lists, lambda path: json.dumps(as_dict(path)), lambda path: str(as_points(path))]),
)
def test_every_form_comes_back(points: list[tuple[float, float, float]], form: Any) -> None:
    path = Scanpath(*(tuple(column) for column in zip(*points, strict=True)))
    assert human_paths(form(path)) == (path,)


def test_paths_of_one_image_are_pooled_over_rows(tmp_path: Path) -> None:
    shared = {"real_image_path": "a.jpg"}
    path = write(
        tmp_path / "a.parquet",
        [
            record(0, "Q9", answer=as_lists(ONE), question="Give 2 values.", **shared),
            record(1, "Q9", answer=f"{as_lists(TWO)} {as_lists(ONE)}", question="Give 3 values.", **shared),
            record(2, "Q9", answer=as_lists(TWO)),
            record(3, "Q12", answer=as_lists(TWO), **shared),
            record(4, "Q9", answer="broken", **shared),
            record(5, "Q9", answer=as_lists(TWO), question="Search for a cup.", **shared),
        ],
    )
    pool = subjects(tmp_path, [path], "Q9")
    where = [f"{path}, row {number}" for number in range(1, 7)]
    assert pool[where[0]].paths == pool[where[1]].paths == (ONE, TWO)
    assert pool[where[2]].paths == (TWO,)
    assert pool[where[5]].paths == (TWO,)
    assert set(pool) == {where[0], where[1], where[2], where[5]}
    assert of_another_image(pool, where[2], "seed") in (ONE, TWO)
    assert {of_another_image(pool, where[0], str(seed)) for seed in range(9)} == {TWO}


def test_without_another_image_there_is_no_random_path(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [record(0, "Q9", answer=as_lists(ONE))])
    assert of_another_image(subjects(tmp_path, [path], "Q9"), f"{path}, row 1", "seed") is None
