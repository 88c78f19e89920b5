"""Files of JSON lines, read one record at a time; only the id and offset of each line are in memory.

    index = index_lines(path, extent, form)
    records = index.records(read)
    len(records), records["q7"]

The opened file stays readable even if another file replaces it under its name.
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
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

from hybrid.core.errors import DataError

T = TypeVar("T")


@dataclass(frozen=True)
class FileExtent:
    """Size of a file of lines: number of complete lines, number of their bytes, and sha256 of their content."""

    lines: int
    bytes: int
    sha256: str


class ExtentHasher:
    """Counts and hashes lines as they are added."""

    def __init__(self) -> None:
        self._lines = self._bytes = 0
        self._sha256 = hashlib.sha256()

    def add(self, data: bytes, lines: int = 1) -> None:
        """Add one line, or several at once."""
        self._lines += lines
        self._bytes += len(data)
        self._sha256.update(data)

    @property
    def extent(self) -> FileExtent:
        """The extent of all added lines."""
        return FileExtent(self._lines, self._bytes, self._sha256.hexdigest())


class HasId(Protocol):
    """A record with an id."""

    @property
    def id(self) -> str:
        """Unique within a file."""


@dataclass(frozen=True)
class LineFormat:
    """The format of the lines of a file.

    A line contains a record, or its id with an `error` if the record could not be made.
    """

    # Matches the start of a line written by this program: group 1 is the id as JSON, group 2 `error` or another key.
    head: re.Pattern[bytes]
    # Reads the record of any line. Raises `ValueError`.
    read: Callable[[bytes], HasId]
    # Type that `read` returns for a line with an error.
    error: type

    def id_of(self, line: bytes, *, is_known: bool) -> tuple[str, bool]:
        """Return the id of a line and whether it has an error; parses the whole line unless it `is_known` to be valid.

        Raises:
            ValueError: the line is not a record.
        """
        if is_known and (head := self.head.match(line)):
            name: str = json.loads(head[1])
            return name, head[2] == b"error"
        record = self.read(line)
        return record.id, isinstance(record, self.error)


class LineOffsets:
    """Offsets and lengths of the lines of a file."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """Maps each id to the index of its line in the arrays below, in order."""
        self._starts = array("Q")
        self._lengths = array("Q")

    def add(self, name: str, start: int, length: int) -> None:
        """Append a line; it replaces an earlier one with the same id."""
        self.numbers.pop(name, None)
        self.numbers[name] = len(self._starts)
        self._starts.append(start)
        self._lengths.append(length)

    def read(self, file: int, number: int) -> bytes:
        """Read the bytes of a line, with its line feed."""
        return os.pread(file, self._lengths[number], self._starts[number])


_STAMP = ("st_dev", "st_ino", "st_mtime_ns", "st_size")


class OpenFile:
    """A file descriptor that is closed when the last object that uses it is gone."""

    def __init__(self, file: int) -> None:
        self.number = file
        self._opened = os.fstat(file)
        self._end = weakref.finalize(self, os.close, file)

    def is_at(self, path: Path) -> bool:
        """Return whether `path` is still the file that was opened, unchanged."""
        try:
            now = path.stat()
        except OSError:
            return False
        return all(getattr(now, name) == getattr(self._opened, name) for name in _STAMP)


class Records(Mapping[str, T], Generic[T]):
    """Records of an open file by id, in the order of their lines; each access reads the record again.

    Args:
        file: the open file; thread-safe.
        places: offsets of its lines.
        read: reads the record of a line; raises `ValueError` if it is not a record.
        numbers: line indices by id, to restrict the records; None for all.
    """

    def __init__(
        self, file: OpenFile, places: LineOffsets, read: Callable[[bytes], T], numbers: Mapping[str, int] | None = None
    ) -> None:
        self.file = file
        self._places = places
        self._numbers = places.numbers if numbers is None else numbers
        self._read = read

    def line(self, name: str) -> bytes:
        """Read the line of a record, with its line feed. Raises `KeyError`."""
        return self._places.read(self.file.number, self._numbers[name])

    def __getitem__(self, name: str) -> T:
        return self._read(self.line(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def cached(self) -> Records[T]:
        """Return the same records; each stays in memory once it was read."""
        return _CachedRecords(self.file, self._places, self._read, self._numbers)


class _CachedRecords(Records[T]):
    @cached_property
    def _cache(self) -> dict[str, T]:
        return {}

    def __getitem__(self, name: str) -> T:
        if name not in self._cache:
            self._cache[name] = super().__getitem__(name)
        return self._cache[name]


@dataclass
class LineIndex:
    """The index of a file of lines."""

    before: FileExtent | None
    places: LineOffsets = field(default_factory=LineOffsets)
    # Ids of the lines with an error.
    errors: set[str] = field(default_factory=set)
    measure: ExtentHasher = field(default_factory=ExtentHasher)
    # Numbers (from 1) of lines that are not records, each with the reason.
    unreadable: list[tuple[int, ValueError]] = field(default_factory=list)
    # Numbers of lines that repeat an earlier id.
    repeated: list[tuple[int, str]] = field(default_factory=list)
    # Whether the file starts with exactly the previous content.
    same: bool = True
    # None if there is no file.
    file: OpenFile | None = None

    def records(self, read: Callable[[bytes], T], *, errors: bool | None = None) -> Mapping[str, T]:
        """Return the records by id: all, only those with an error (True), or only those without (False)."""
        if self.file is None:
            return {}
        numbers = self.places.numbers
        if errors is not None and (errors or self.errors):
            numbers = {name: number for name, number in numbers.items() if (name in self.errors) is errors}
        return Records(self.file, self.places, read, numbers)

    @property
    def missing(self) -> int:
        """Number of earlier lines that are missing now."""
        return 0 if self.before is None or self.same else max(0, self.before.lines - self.measure.extent.lines)

    def describe_damage(self, what: str) -> str | None:
        """Describe missing or changed lines as the end of a sentence; None if there are none."""
        if self.before is None or self.same:
            return None
        if self.missing:
            return f"holds {self.measure.extent.lines} of the {self.before.lines} {what} that were written"
        return f"was changed: its first {self.before.lines} {what} are not those that were written"


def index_lines(path: Path, previous: FileExtent | None, form: LineFormat) -> LineIndex:
    """Index every record of a file. An incomplete last line, left by a crash, is skipped.

    The first line of an id counts; a line with an error is replaced by any later line of its id.

    Args:
        path: the file; a missing one counts as empty.
        previous: its extent when the last command ended normally. As long as the file starts with exactly that content,
            its lines are unchanged, so only their ids are read.
        form: the format of its lines.
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
    """Index all lines. If the earlier lines are `trusted` but turn out to have changed, stop after them."""
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
            # A line with an error is replaced by any later line of its id.
            if not is_known or name in index.errors:
                index.places.add(name, start, len(line))
                (index.errors.add if error else index.errors.discard)(name)
        if previous is not None and end == previous.bytes:
            index.same = index.measure.extent.sha256 == previous.sha256
        if trusted and end >= trusted_bytes and not index.same:
            break
    return index


def whole_lines(path: Path) -> Iterator[bytes]:
    """Yield every complete line of a file; none if the file is missing."""
    if not path.exists():
        return
    with path.open("rb") as file:
        yield from (line for line in file if line.endswith(b"\n"))


def json_lines(path: Path, data: bytes | None = None) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield every object of a JSON lines file (or of `data`) with its location. Raises `DataError` for anything else.

    Only a line feed ends a line: JSON strings may contain U+2028 and the like.
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
