"""Tables as people bring them: marks that quote nothing, other separators and encodings, pictures in other places."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hybrid.benchmarks.questions.tables import table_of
from hybrid.errors import DataError
from hybrid.types import BrokenQuestion, Question

HEAD = ("id", "image", "question", "A", "B", "answer")


def rows(count: int = 20) -> list[list[str]]:
    return [[f"q{number}", "red.png", f"Which of {number}?", "one", "two", "A"] for number in range(1, count + 1)]


def joined(made: Any, table: list[list[str]], separator: str, ending: str) -> Path:
    path = made.folder / f"questions{ending}"
    path.write_text("".join(separator.join(row) + "\n" for row in [list(HEAD), *table]))
    return path


def read(made: Any, path: Path) -> dict[str, str]:
    """The text or the error of each question."""
    return {each.id: each.text if isinstance(each, Question) else each.error for each in made.asked(path)}


@pytest.mark.parametrize("separator", ["\t", ",", ";"])
@pytest.mark.parametrize(
    ("opens", "closes"),
    [
        # A mark opens in row 3 and the next one is that of row 15, in every place that it can have there.
        ('"Big one', 'the "small" one?'),
        ('"Big one', 'the 5"'),
        ('"Big one', '"The other'),
        ('"Big one', "no mark at all"),
        ('"', '"'),
    ],
)
@pytest.mark.parametrize("column", [2, 3, 5])
def test_a_mark_that_quotes_nothing_costs_its_row_alone(
    made: Any, separator: str, opens: str, closes: str, column: int
) -> None:
    table = rows()
    table[2][column], table[14][min(column, 2)] = opens, closes
    found = read(made, joined(made, table, separator, ".tsv" if separator == "\t" else ".csv"))
    whole = {f"q{number}" for number in range(1, 21)} - {"q3", "q15"}
    assert whole <= found.keys()
    assert all(text.startswith(f"Which of {name[1:]}?") for name, text in found.items() if name in whole)
    assert not any("red.png" in text for text in found.values()), "no question holds another row"
    lost = [text for text in found.values() if "questions." in text]
    assert any("questions.tsv:4: " in text or "questions.csv:4: " in text for text in lost)
    assert all("a quotation mark opens a field that" in text for text in lost)


@pytest.mark.parametrize(
    "lines",
    [
        # Few columns and the question first; rows that are short; blank lines.
        ["question,image,answer", '"What is this,red.png,yes', "How many?,red.png,no", 'what is 5",red.png,no'],
        ["id,question,answer", '1,"What,yes', "2", "3", "4", '5,what is 5",no'],
        ["id,question,answer", '1,"What,yes', "", "", "", '2,what is 5",no'],
    ],
)
def test_a_mark_takes_no_rows_of_a_narrow_or_gappy_table(made: Any, lines: list[str]) -> None:
    path = made.folder / "questions.csv"
    path.write_text("\n".join(lines) + "\n")
    (at, first), *rest = table_of(made.folder, path).scan(())
    assert at.line == 2
    assert isinstance(first, DataError)
    assert len(rest) == sum(bool(line) for line in lines[2:])


def test_a_blank_row_of_a_spreadsheet_is_none(made: Any) -> None:
    found = read(made, joined(made, [*rows(2), [""] * 6, [" ", "", "", "", "", ""]], ",", ".csv"))
    assert list(found) == ["q1", "q2"]


def test_a_mark_inside_of_a_text_is_its_own(made: Any) -> None:
    table = rows(3)
    table[1][2] = '"Left" or "right"?'
    found = read(made, joined(made, table, "\t", ".tsv"))
    assert found["q2"].startswith('Left or "right"?')
    assert len(found) == 3


words = st.text("ab;\"\n' ", max_size=12)


@given(table=st.lists(st.tuples(*[words] * 5), min_size=1, max_size=6), separator=st.sampled_from([",", "\t"]))
def test_what_a_writer_has_quoted_is_read_as_it_was(
    table: list[tuple[str, ...]], separator: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("written")
    path = folder / ("questions.csv" if separator == "," else "questions.tsv")
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=separator).writerows([HEAD, *([f"q{n}", *row] for n, row in enumerate(table))])
    read = [row for _, row in table_of(folder, path).scan(HEAD)]
    for written, row in zip(table, read, strict=True):
        assert not isinstance(row, DataError)
        expected = {name: text for name, text in zip(HEAD[1:], written, strict=True) if text}
        assert {name: row.values.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("ending", "content", "said"),
    [
        (".csv", "\ufeffid,image".encode("utf-16"), r"text in UTF-16; .* iconv -f UTF-16 -t UTF-8"),
        (".tsv", "id\timage\tquestion".encode("utf-16-le"), "text in UTF-16"),
        (".csv", b"id,image,question,A,B,answer\rq1,red.png,Which?,one,two,A\r", "end in CR alone"),
        (".json", b'{"id": 1}', "expected a list of objects, found dict"),
        (".json", b"[1", "not JSON"),
        (".jsonl", b'{"id": 1},\n{"id": 2},\n', "questions.jsonl:1: not JSON"),
        (".jsonl", b'[{"id": 1}]', "questions.jsonl:1: expected an object, found list"),
        (".xlsx", b"PK", "a table of questions ends in .jsonl, .csv, .tsv, .parquet, .json"),
    ],
)
def test_a_table_that_is_not_read_is_named_with_the_way_to_convert_it(
    made: Any, ending: str, content: bytes, said: str
) -> None:
    path = made.folder / f"questions{ending}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said):
        made.asked(path)


def test_a_row_that_is_not_utf_8_names_the_byte_and_the_way(made: Any) -> None:
    path = joined(made, rows(3), ",", ".csv")
    path.write_bytes(path.read_bytes().replace(b"Which of 2?", "Où est-il?".encode("cp1252")))
    found = read(made, path)
    (lost,) = (text for name, text in found.items() if name not in ("q1", "q3"))
    assert "questions.csv:3: is not text in UTF-8 (byte 0xf9" in lost
    assert "iconv -f CP1252 -t UTF-8" in lost


@pytest.mark.parametrize(("separator", "ending"), [(";", ".csv"), ("\t", ".csv"), (",", ".tsv"), (";", ".tsv")])
def test_the_separator_is_that_of_the_head(made: Any, separator: str, ending: str) -> None:
    found = read(made, joined(made, rows(2), separator, ending))
    assert list(found) == ["q1", "q2"]
    assert found["q1"].startswith("Which of 1?")


def test_a_list_of_objects_is_read(made: Any) -> None:
    path = made.folder / "questions.json"
    path.write_text(json.dumps([made.row(id="q1"), 7, made.row(id="q3", answer=["one"])]))
    first, lost, third = made.asked(path)
    assert isinstance(first, Question)
    assert first.id == "q1"
    assert isinstance(lost, BrokenQuestion)
    assert "questions.json, row 2: expected an object" in lost.error
    assert isinstance(third, Question)
    assert third.target == "A"


@pytest.mark.parametrize("answer", ['["B"]', "['B']", ["B"], ["two"], '["two"]'])
def test_one_answer_in_a_list_is_that_answer(made: Any, answer: object) -> None:
    (found,) = made.sound(made.table([made.row(answer=answer)]))
    assert found.target == "B"


def test_two_answers_to_one_choice_are_none(made: Any) -> None:
    (lost,) = made.asked(made.table([made.row(answer=["A", "B"])]))
    assert isinstance(lost, BrokenQuestion)


@pytest.mark.parametrize("name", ["photo.jfif", "photo.jpe", "photo.JPG", "photo", "photo.v2.dat", "photo.avif"])
def test_a_picture_is_read_whatever_its_name_ends_in(made: Any, name: str) -> None:
    Image.new("RGB", (8, 6), (250, 20, 20)).save(made.folder / name, "AVIF" if name.endswith("avif") else "JPEG")
    (found,) = made.sound(made.table([made.row(image=name)]))
    assert (found.images[0].width, found.images[0].height) == (8, 6)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("photo.heic", b"\0\0\0\x18ftypheic", "HEIC is not read: convert it to PNG or JPEG"),
        ("drawing.svg", b"<svg/>", "SVG is not read: convert it to PNG or JPEG"),
        ("away.heic", None, "there is no file 'away.heic' inside"),
    ],
)
def test_a_picture_that_lies_there_is_not_called_missing(
    made: Any, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (made.folder / name).write_bytes(content)
    (lost,) = made.asked(made.table([made.row(image=name)]))
    assert isinstance(lost, BrokenQuestion)
    assert said in lost.error
