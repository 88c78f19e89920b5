"""VLMEvalKit's sheets are recognised by their columns and joined with the data; unusable sheets are refused."""

import csv
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.errors import DataError, UsageError
from hybrid.scoring.predictions import recognise
from hybrid.scoring.predictions.vlmevalkit import read
from tests.tables import cases

HEADING = ("index", "question", "A", "B", "C", "D", "answer", "category", "prediction")


def line(index: Any, reply: str = "A", **changes: str) -> dict[str, Any]:
    facts = {"index": index, "question": "Which?", "A": "left", "B": "right", "answer": "A", "category": "Counting"}
    return {**facts, "prediction": reply, **changes}


def tsv(path: Path, rows: Sequence[dict[str, Any]], heading: Sequence[str] = HEADING) -> Path:
    """Write a sheet as VLMEvalKit does: tabs, every cell quoted."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, heading, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def xlsx(path: Path, rows: Sequence[dict[str, Any]], heading: Sequence[str] = HEADING) -> Path:
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(list(heading))
    for row in rows:
        sheet.append([row.get(name) for name in heading])
    book.save(path)
    return path


@pytest.mark.parametrize(*cases(__file__, "test_a_row_that_cannot_be_used_is_named", list))
def test_a_row_that_cannot_be_used_is_named(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tsv(tmp_path / "a.tsv", rows))


def test_a_file_that_is_no_such_sheet_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.tsv, line 1: .* missing: index, prediction; found: question"):
        read(tsv(tmp_path / "a.tsv", [{"question": "q"}], ("question",)))
    (tmp_path / "b.xlsx").write_bytes(b"no workbook")
    with pytest.raises(DataError, match=r"b\.xlsx is not a workbook"):
        read(tmp_path / "b.xlsx")
    (tmp_path / "c.tsv").write_bytes(b"index\tquestion\tprediction\n1\t\xff\tA\n")
    with pytest.raises(DataError, match=r"c\.tsv:2: is not text in UTF-8"):
        read(tmp_path / "c.tsv")
    (tmp_path / "d.tsv").write_text("index\tquestion\tprediction\n1\tq\tA\tmore\n")
    with pytest.raises(DataError, match=r"d\.tsv:2: 4 fields for 3 columns"):
        read(tmp_path / "d.tsv")
    (tmp_path / "e.tsv").write_text("")
    with pytest.raises(DataError, match="the file is empty"):
        read(tmp_path / "e.tsv")


def test_a_folder_may_hold_one_sheet(tmp_path: Path) -> None:
    assert recognise(tmp_path) is None
    tsv(tmp_path / "a.tsv", [line(1)])
    result = recognise(tmp_path)
    assert result is not None
    assert len(result.rows) == 1
    tsv(tmp_path / "b.tsv", [line(1)])
    with pytest.raises(UsageError, match=r"holds 2 sheets \(a\.tsv, b\.tsv\): give one of them"):
        recognise(tmp_path)


@settings(max_examples=40)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x00")), min_size=1, max_size=4))
def test_every_reply_comes_back_as_it_was_written(tmp_path: Path, replies: list[str]) -> None:
    parsed = read(tsv(tmp_path / "a.tsv", [line(number, reply) for number, reply in enumerate(replies)]))
    assert parsed is not None
    assert [row.reply for row in parsed.rows] == replies


def test_a_reply_that_became_a_formula_is_read_as_its_text(tmp_path: Path) -> None:
    from openpyxl.worksheet.formula import ArrayFormula

    path = xlsx(tmp_path / "a.xlsx", [line(1, "=B"), line(2, "=(A) it is nearer"), line(3, "B")])
    from openpyxl import load_workbook

    book = load_workbook(path)
    book.worksheets[0]["I4"] = ArrayFormula("I4", "=A")
    book.save(path)
    parsed = read(path)
    assert parsed is not None
    assert [row.reply for row in parsed.rows] == ["=B", "=(A) it is nearer", "{=A}"]


def test_control_characters_that_a_workbook_encodes_come_back(tmp_path: Path) -> None:
    """Encoded control characters are decoded: xlsxwriter, with which VLMEvalKit writes workbooks, encodes a carriage
    return as `_x000D_`."""
    replies = ["B_x000D_\nbecause it is nearer", "_x000b_A", "the name _x_ and _x0041_"]
    parsed = read(xlsx(tmp_path / "a.xlsx", [line(number, reply) for number, reply in enumerate(replies)]))
    assert parsed is not None
    assert [row.reply for row in parsed.rows] == ["B\r\nbecause it is nearer", "\vA", replies[2]]


def test_empty_and_cut_cells_are_counted_apart_and_named(tmp_path: Path) -> None:
    long = "x" * 32_767
    parsed = read(xlsx(tmp_path / "a.xlsx", [line(1, long), line(2, ""), line(3, long[1:]), line(4, "  ")]))
    assert parsed is not None
    empty, cut = parsed.notes
    assert empty == "2 of 4 cells of prediction are empty, and count as no answer: Counting 2, Counting 4"
    assert cut.startswith("1 of 4 replies have 32,767 characters, the length at which a workbook cuts a text")
    assert cut.endswith("Counting 1")
    sheet = read(tsv(tmp_path / "a.tsv", [line(1, long)]))
    assert sheet is not None
    assert sheet.notes == (), "a .tsv cuts nothing"


def test_an_index_that_is_a_name_is_the_id(tmp_path: Path) -> None:
    parsed = read(tsv(tmp_path / "a.tsv", [line("left-1"), line("left-2")]))
    assert parsed is not None
    assert [(row.id, row.index) for row in parsed.rows] == [("left-1", None), ("left-2", None)]


SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<worksheet", "<!DOCTYPE worksheet><worksheet", "sheet1.xml: a document type"),
        ("</sheetData>", "", "is not a workbook that can be read"),
        ("<sheetData>", "<sheetData>" + " " * 2**20, "bytes are read; write the sheet as .tsv"),
        ('r="A2"', 'r="XFE2"', "line 2"),
    ],
)
def test_a_workbook_whose_parts_are_odd_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    monkeypatch.setattr("hybrid.scoring.predictions.vlmevalkit.MAX_UNPACKED", 2**20)
    full = xlsx(tmp_path / "whole.xlsx", [{"index": 0, "question": "q", "prediction": "A"}])
    with zipfile.ZipFile(full) as source, zipfile.ZipFile(tmp_path / "odd.xlsx", "w", zipfile.ZIP_DEFLATED) as odd:
        for name in source.namelist():
            text = source.read(name).decode()
            assert name != SHEET or old in text
            odd.writestr(name, text.replace(old, new) if name == SHEET else text)
    with pytest.raises(DataError, match=rf"odd\.xlsx.*{message}"):
        read(tmp_path / "odd.xlsx")
    assert read(full) is not None


def test_an_encrypted_workbook_is_one_line(tmp_path: Path) -> None:
    path = xlsx(tmp_path / "a.xlsx", [{"index": 0, "question": "q", "prediction": "A"}])
    data = path.read_bytes()
    for header, offset in ((b"PK\x03\x04", 2), (b"PK\x01\x02", 4)):
        # The flags follow the version fields of a zip header; their lowest bit marks an encrypted file.
        pattern = re.escape(header) + b"." * offset + b"."
        data = re.sub(pattern, lambda result: result[0][:-1] + b"\x01", data, flags=re.DOTALL)
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"is not a workbook .*encrypted"):
        read(path)


def test_a_csv_file_with_the_columns_of_a_sheet_is_one(tmp_path: Path) -> None:
    sheet, other = tmp_path / "a.csv", tmp_path / "b.csv"
    sheet.write_bytes(b'\xef\xbb\xbfindex,question,prediction\n1.0,"Which, left?",A\n')
    other.write_text("id,answer\n1,A\n")
    assert read(other) is None
    predictions = read(sheet)
    assert predictions is not None
    assert [(row.index, row.text, row.reply) for row in predictions.rows] == [(1, "Which, left?", "A")]
    assert predictions.format == "VLMEvalKit sheet (csv, 1 row)"
