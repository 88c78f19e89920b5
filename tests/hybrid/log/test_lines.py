"""Records are read one at a time. Lines known to be unchanged are not checked again; all others are."""

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
    """A row with an error."""


def line(name: str, text: str = "") -> bytes:
    return json.dumps({"id": name, "text": text}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def error(name: str, text: str = "") -> bytes:
    return line(name, text).replace(b'"text"', b'"error"')


def extent(data: bytes) -> FileExtent:
    return FileExtent(data.count(b"\n"), len(data), hashlib.sha256(data).hexdigest())


def indexed(path: Path, prefix: FileExtent | None) -> tuple[LineIndex, list[bytes]]:
    """Return the index, and the lines that were checked."""
    checked: list[bytes] = []

    def check(item: bytes) -> Row:
        checked.append(item)
        data = json.loads(item)
        if not isinstance(data, dict):
            raise ValueError("no object")  # noqa: TRY004 - as pydantic does
        return Failed(data["id"], data["error"]) if "error" in data else Row(data["id"], data["text"])

    head = re.compile(rb'\{"id":("(?:[^"\\]|\\.)*"),"(text|error)":')
    return index_lines(path, prefix, LineFormat(head, check, Failed)), checked


def read(item: bytes) -> str:
    data = json.loads(item)
    return str(data.get("text", data.get("error")))


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
