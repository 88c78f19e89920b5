"""Records read one at a time: what is known to be as it was written is not checked again, and anything else is."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.log.lines import FileExtent, LineFormat, LineIndex, index_lines


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


def extent(data: bytes) -> FileExtent:
    return FileExtent(data.count(b"\n"), len(data), hashlib.sha256(data).hexdigest())


def indexed(path: Path, before: FileExtent | None) -> tuple[LineIndex, list[bytes]]:
    """The index, and the lines that were checked."""
    checked: list[bytes] = []

    def check(one: bytes) -> Row:
        checked.append(one)
        found = json.loads(one)
        if not isinstance(found, dict):
            raise ValueError("no object")  # noqa: TRY004 - as pydantic does
        return Failed(found["id"], found["error"]) if "error" in found else Row(found["id"], found["text"])

    head = re.compile(rb'\{"id":("(?:[^"\\]|\\.)*"),"(text|error)":')
    return index_lines(path, before, LineFormat(head, check, Failed)), checked


def read(one: bytes) -> str:
    found = json.loads(one)
    return str(found.get("text", found.get("error")))


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
