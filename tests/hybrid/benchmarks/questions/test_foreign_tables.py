"""Tables as users have them: stray quotes, other separators and encodings, pictures in other places."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.questions.tables import table_of
from hybrid.core.errors import DataError
from hybrid.core.types import BrokenQuestion, Question
from tests.tables import cases

HEAD = ("id", "image", "question", "A", "B", "answer")


def rows(count: int = 20) -> list[list[str]]:
    return [[f"q{number}", "red.png", f"Which of {number}?", "one", "two", "A"] for number in range(1, count + 1)]


def joined(built: Any, table: list[list[str]], separator: str, ending: str) -> Path:
    path = built.folder / f"questions{ending}"
    path.write_text("".join(separator.join(row) + "\n" for row in [list(HEAD), *table]))
    return path


def read(built: Any, path: Path) -> dict[str, str]:
    """Return the text or the error of each question."""
    return {item.id: item.text if isinstance(item, Question) else item.error for item in built.read_questions(path)}


@pytest.mark.parametrize(*cases(__file__, "test_a_mark_takes_no_rows_of_a_narrow_or_gappy_table"))
def test_a_mark_takes_no_rows_of_a_narrow_or_gappy_table(table_writer: Any, lines: list[str]) -> None:
    path = table_writer.folder / "questions.csv"
    path.write_text("\n".join(lines) + "\n")
    (at, first), *rest = table_of(table_writer.folder, path).scan(())
    assert at.line == 2
    assert isinstance(first, DataError)
    assert len(rest) == sum(bool(line) for line in lines[2:])


def test_a_mark_inside_of_a_text_is_its_own(table_writer: Any) -> None:
    table = rows(3)
    table[1][2] = '"Left" or "right"?'
    parsed = read(table_writer, joined(table_writer, table, "\t", ".tsv"))
    assert parsed["q2"].startswith('Left or "right"?')
    assert len(parsed) == 3


words = st.text("ab;\"\n' ", max_size=12)


@given(table=st.lists(st.tuples(*[words] * 5), min_size=1, max_size=6), separator=st.sampled_from([",", "\t"]))
def test_what_a_writer_has_quoted_is_read_as_it_was(
    table: list[tuple[str, ...]], separator: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("written")
    path = folder / ("questions.csv" if separator == "," else "questions.tsv")
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=separator).writerows([HEAD, *([f"q{n}", *row] for n, row in enumerate(table))])
    for output, row in zip(table, [row for _, row in table_of(folder, path).scan(HEAD)], strict=True):
        assert not isinstance(row, DataError)
        expected = {name: text for name, text in zip(HEAD[1:], output, strict=True) if text}
        assert {name: row.values.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("ending", "content", "message"),
    [
        (".csv", "\ufeffid,image".encode("utf-16"), r"text in UTF-16; .* iconv -f UTF-16 -t UTF-8"),
        (".tsv", "id\timage\tquestion".encode("utf-16-le"), "text in UTF-16"),
        (".csv", b"id,image,question,A,B,answer\rq1,red.png,Which?,one,two,A\r", "end in CR only"),
        (".json", b'{"id": 1}', "expected a list of objects, found dict"),
        (".json", b"[1", "not JSON"),
        (".jsonl", b'{"id": 1},\n{"id": 2},\n', "questions.jsonl:1: not JSON"),
        (".jsonl", b'[{"id": 1}]', "questions.jsonl:1: expected an object, found list"),
        (".xlsx", b"PK", "the name of a table of questions must end in .jsonl, .csv, .tsv, .parquet, .json"),
    ],
)
def test_a_table_that_is_not_read_is_named_with_the_way_to_convert_it(
    table_writer: Any, ending: str, content: bytes, message: str
) -> None:
    path = table_writer.folder / f"questions{ending}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        table_writer.read_questions(path)


def test_a_list_of_objects_is_read(table_writer: Any) -> None:
    path = table_writer.folder / "questions.json"
    path.write_text(json.dumps([table_writer.row(id="q1"), 7, table_writer.row(id="q3", answer=["one"])]))
    first, missing, third = table_writer.read_questions(path)
    assert isinstance(first, Question)
    assert first.id == "q1"
    assert isinstance(missing, BrokenQuestion)
    assert "questions.json, row 2: expected an object" in missing.error
    assert isinstance(third, Question)
    assert third.target == "A"
