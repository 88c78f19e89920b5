"""Records read one at a time: what is known to be as it was written is not checked again, and anything else is."""

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.log.lines import Extent, Form, Index, index_lines


@dataclass(frozen=True)
class Row:
    id: str
    text: str


class Failed(Row):
    """A row that tells of an error."""


def line(name: str, text: str = "") -> bytes:
    return json.dumps({"id": name, "text": text}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def error(name: str, text: str = "") -> bytes:
    return line(name, text).replace(b'"text"', b'"error"')


def extent(data: bytes) -> Extent:
    return Extent(data.count(b"\n"), len(data), hashlib.sha256(data).hexdigest())


def indexed(path: Path, before: Extent | None) -> tuple[Index, list[bytes]]:
    """The index, and the lines that were checked."""
    checked: list[bytes] = []

    def check(one: bytes) -> Row:
        checked.append(one)
        found = json.loads(one)
        if not isinstance(found, dict):
            raise ValueError("no object")  # noqa: TRY004 - as pydantic does
        return Failed(found["id"], found["error"]) if "error" in found else Row(found["id"], found["text"])

    head = re.compile(rb'\{"id":("(?:[^"\\]|\\.)*"),"(text|error)":')
    return index_lines(path, before, Form(head, check, Failed)), checked


def read(one: bytes) -> str:
    found = json.loads(one)
    return str(found.get("text", found.get("error")))


def test_only_lines_that_came_after_are_checked(tmp_path: Path) -> None:
    path, old = tmp_path / "lines", line("q1") + line("q2")
    path.write_bytes(old + line("q3"))
    index, checked = indexed(path, extent(old))
    assert checked == [line("q3")]
    assert list(index.records(read)) == ["q1", "q2", "q3"]
    assert index.measure.extent == extent(path.read_bytes())
    assert index.wrong("lines") is None


def test_where_one_byte_is_another_every_line_is_checked(tmp_path: Path) -> None:
    path, old = tmp_path / "lines", line("q1", "a") + line("q2")
    path.write_bytes(old.replace(b'"a"', b'"b"'))
    index, checked = indexed(path, extent(old))
    assert checked == [line("q1", "b"), line("q2")]
    assert not index.same
    assert index.missing == 0


def test_a_line_that_is_none_is_named_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(line("q1") + b"[]\n" + line("q1", "again") + line("q2") + b'{"id":"q3"')
    index, _ = indexed(path, None)
    records = index.records(read)
    assert list(records) == ["q1", "q2"]
    assert records["q1"] == ""
    assert [number for number, _ in index.unreadable] == [2]
    assert index.repeated == [(3, "q1")]
    assert index.measure.extent.lines == 4


def test_a_file_that_is_replaced_keeps_its_content_here(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(line("q1", "first"))
    records = indexed(path, None)[0].records(read)
    (tmp_path / "other").write_bytes(line("q1", "second"))
    (tmp_path / "other").rename(path)
    assert records["q1"] == "first"


def test_the_file_is_closed_with_its_records(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(line("q1"))
    records = indexed(path, None)[0].records(read)
    assert opened(path) == 1
    del records
    assert opened(path) == 0


def opened(path: Path) -> int:
    """How often this process has the file open."""
    return sum(os.path.realpath(file) == str(path.resolve()) for file in Path("/proc/self/fd").iterdir())


def test_no_file_holds_nothing(tmp_path: Path) -> None:
    index, _ = indexed(tmp_path / "none", extent(line("q1")))
    assert index.records(read) == {}
    assert index.missing == 1


def test_a_line_of_an_error_gives_way_to_any_later_one_and_no_other_does(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(
        error("q1", "first")
        + error("q2", "first")
        + line("q3", "said")
        + line("q1", "said")
        + error("q2", "second")
        + error("q3", "late")
    )
    for before in (None, extent(path.read_bytes())):
        index, _ = indexed(path, before)
        assert dict(index.records(read, errors=False)) == {"q3": "said", "q1": "said"}
        assert dict(index.records(read, errors=True)) == {"q2": "second"}
        assert list(index.records(read)) == ["q3", "q1", "q2"]


@given(st.lists(st.text(max_size=8), max_size=8), st.integers(0, 9), st.integers(0, 400))
def test_what_was_trusted_says_what_checking_says(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], trusted: int, cut: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "lines"
    lines = [line(name.encode("utf-8", "replace").decode()) for name in names]
    data = b"".join(lines)
    path.write_bytes(data[: max(len(b"".join(lines[:trusted])), len(data) - cut)])
    quick, slow = indexed(path, extent(b"".join(lines[:trusted])))[0], indexed(path, None)[0]
    assert list(quick.records(read).items()) == list(slow.records(read).items())
    assert (quick.repeated, quick.measure.extent) == (slow.repeated, slow.measure.extent)
