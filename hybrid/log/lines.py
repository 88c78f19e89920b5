"""Files of JSON lines, read one record at a time: of all others only id and place are in memory.

    index = index_lines(path, extent, form)
    records = index.records(read)
    len(records), records["q7"]

The file that was opened is read whatever becomes of its name: one that is replaced keeps its old content here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import weakref
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

from hybrid.errors import DataError

T = TypeVar("T")


@dataclass(frozen=True)
class FileExtent:
    """How much of a file of lines there is: whole lines, their bytes, and the sha256 of these."""

    lines: int
    bytes: int
    sha256: str


class ExtentHasher:
    """Measures lines as they pass."""

    def __init__(self) -> None:
        self._lines = self._bytes = 0
        self._sha256 = hashlib.sha256()

    def add(self, data: bytes, lines: int = 1) -> None:
        """Count one more line, or several at once."""
        self._lines += lines
        self._bytes += len(data)
        self._sha256.update(data)

    @property
    def extent(self) -> FileExtent:
        """All that has passed."""
        return FileExtent(self._lines, self._bytes, self._sha256.hexdigest())


class HasId(Protocol):
    """A record that a line holds."""

    @property
    def id(self) -> str:
        """No two records of a file have the same."""


@dataclass(frozen=True)
class LineFormat:
    """How the lines of a file look.

    A line holds a record, or tells of one that could not be made, with `error` in place of its content.
    """

    # Matches the begin of a line that was written here: group 1 is the id as JSON, group 2 `error` or another key.
    head: re.Pattern[bytes]
    # The record of any line. Raises `ValueError`.
    read: Callable[[bytes], HasId]
    # Type of what `read` makes of a line that tells of an error.
    error: type

    def id_of(self, line: bytes, *, is_known: bool) -> tuple[str, bool]:
        """The id of a line and whether it tells of an error; unless it is `known` to be sound, all of it is read.

        Raises:
            ValueError: it is no record.
        """
        if is_known and (head := self.head.match(line)):
            name: str = json.loads(head[1])
            return name, head[2] == b"error"
        record = self.read(line)
        return record.id, isinstance(record, self.error)


class LineOffsets:
    """Where the lines of a file begin and how long they are."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """By id the number of its line among those kept here, in their order."""
        self._starts = array("Q")
        self._lengths = array("Q")

    def add(self, name: str, start: int, length: int) -> None:
        """Keep a line, in place of another one of its id, and after all others."""
        self.numbers.pop(name, None)
        self.numbers[name] = len(self._starts)
        self._starts.append(start)
        self._lengths.append(length)

    def read(self, file: int, number: int) -> bytes:
        """The bytes of a line, with its end."""
        return os.pread(file, self._lengths[number], self._starts[number])


_STAMP = ("st_dev", "st_ino", "st_mtime_ns", "st_size")


class OpenFile:
    """A descriptor that is closed when the last object that reads through it is gone."""

    def __init__(self, file: int) -> None:
        self.number = file
        self._opened = os.fstat(file)
        self._end = weakref.finalize(self, os.close, file)

    def is_at(self, path: Path) -> bool:
        """Whether `path` is the file that was opened here, and as it was then."""
        try:
            now = path.stat()
        except OSError:
            return False
        return all(getattr(now, name) == getattr(self._opened, name) for name in _STAMP)


class Records(Mapping[str, T], Generic[T]):
    """Records of an open file by id, in the order of their lines; each is read anew whenever it is asked for.

    Args:
        file: any thread may read it.
        places: where its lines are.
        read: makes a record of a line; raises `ValueError` for a line that is none.
        numbers: of these lines alone; None for all.
    """

    def __init__(
        self, file: OpenFile, places: LineOffsets, read: Callable[[bytes], T], numbers: Mapping[str, int] | None = None
    ) -> None:
        self.file = file
        self._places = places
        self._numbers = places.numbers if numbers is None else numbers
        self._read = read

    def line(self, name: str) -> bytes:
        """The bytes of a record's line, with its end. Raises `KeyError`."""
        return self._places.read(self.file.number, self._numbers[name])

    def __getitem__(self, name: str) -> T:
        return self._read(self.line(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers


@dataclass
class LineIndex:
    """The index of a file of lines."""

    before: FileExtent | None
    places: LineOffsets = field(default_factory=LineOffsets)
    # Ids of the lines that tell of an error.
    errors: set[str] = field(default_factory=set)
    measure: ExtentHasher = field(default_factory=ExtentHasher)
    # Numbers of lines that are no records, from 1, each with what is wrong with it.
    unreadable: list[tuple[int, ValueError]] = field(default_factory=list)
    # Numbers of lines whose id was there before.
    repeated: list[tuple[int, str]] = field(default_factory=list)
    # Whether the file begins with just what was there before.
    same: bool = True
    # None where there is no file.
    file: OpenFile | None = None

    def records(self, read: Callable[[bytes], T], *, errors: bool | None = None) -> Mapping[str, T]:
        """The records by id: all, or those that tell of an error, or all others."""
        if self.file is None:
            return {}
        numbers = self.places.numbers
        if errors is not None and (errors or self.errors):
            numbers = {name: number for name, number in numbers.items() if (name in self.errors) is errors}
        return Records(self.file, self.places, read, numbers)

    @property
    def missing(self) -> int:
        """How many of the lines that were there are not."""
        return 0 if self.before is None or self.same else max(0, self.before.lines - self.measure.extent.lines)

    def describe_damage(self, what: str) -> str | None:
        """The lines that are missing or changed, as the end of a sentence; None where all are as they were."""
        if self.before is None or self.same:
            return None
        if self.missing:
            return f"holds {self.measure.extent.lines} of the {self.before.lines} {what} that were written"
        return f"was changed: its first {self.before.lines} {what} are not those that were written"


def index_lines(path: Path, previous: FileExtent | None, form: LineFormat) -> LineIndex:
    """Find every record of a file. A last line without its end, left by a crash, is passed over.

    The first line of an id counts; one that tells of an error gives way to any later line of its id.

    Args:
        path: the file; one that is not there holds nothing.
        previous: what was there when a command last ended in order. While the file begins with just that, its lines are
            as they were written: only their ids are read.
        form: of its lines.
    """
    if not path.exists():
        return LineIndex(previous, same=previous is None or not previous.lines)
    with path.open("rb") as file:
        open_file = OpenFile(os.dup(file.fileno()))
        index = _read_all(file, previous, form, trusted=previous is not None)
        if not index.same:
            file.seek(0)
            index = _read_all(file, previous, form, trusted=False)
        index.file = open_file
        return index


def _read_all(file: BinaryIO, previous: FileExtent | None, form: LineFormat, *, trusted: bool) -> LineIndex:
    """Read all lines; where those of before are `trusted` and turn out to be others, the reading ends there."""
    index = LineIndex(previous, same=previous is None or not previous.bytes)
    trusted_bytes = previous.bytes if previous is not None and trusted else 0
    end = 0
    for number, line in enumerate(file, 1):
        if not line.endswith(b"\n"):
            break
        start, end = end, end + len(line)
        index.measure.add(line)
        try:
            name, error = form.id_of(line, is_known=end <= trusted_bytes)
        except ValueError as wrong:
            index.unreadable.append((number, wrong))
        else:
            is_known = name in index.places.numbers
            if is_known:
                index.repeated.append((number, name))
            # One that tells of an error gives way to any later line of its id.
            if not is_known or name in index.errors:
                index.places.add(name, start, len(line))
                (index.errors.add if error else index.errors.discard)(name)
        if previous is not None and end == previous.bytes:
            index.same = index.measure.extent.sha256 == previous.sha256
        if trusted and end >= trusted_bytes and not index.same:
            break
    return index


def whole_lines(path: Path) -> Iterator[bytes]:
    """Every line of a file that has its end; none where there is no file."""
    if not path.exists():
        return
    with path.open("rb") as file:
        yield from (line for line in file if line.endswith(b"\n"))


def json_lines(path: Path, data: bytes | None = None) -> Iterator[tuple[dict[str, Any], str]]:
    """Every object of the file (`data`, where it has been read) with its place. Raises `DataError` for anything else.

    Only a line feed ends a line: a JSON text may hold U+2028 and its like as they are.
    """
    try:
        lines = (path.read_bytes() if data is None else data).split(b"\n")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error})") from error
    for number, line in enumerate(lines, 1):
        location = f"{path}, line {number}"
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except ValueError as error:
            raise DataError(f"{location}: not JSON ({error})") from error
        if not isinstance(values, dict):
            raise DataError(f"{location}: expected an object, found {type(values).__name__}")
        yield values, location
