"""Records of a file of JSON lines, read one at a time: of all others only id and place are in memory.

    index = index_lines(path, extent, known, checked)
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar, overload

from hybrid.manifest import Extent, Measure

T = TypeVar("T")

BLOCK = 1 << 20
"""Bytes that are read at a time while a file is compared with its sha256."""

NameOf = Callable[[bytes], str]
"""The id of a line. Raises `ValueError` where the line is no record."""


_ID = re.compile(rb'\{"id":("(?:[^"\\]|\\.)*")[,}]')


def known_id(line: bytes) -> str:
    """The id of a line that was written here: it comes first. Raises `ValueError` for a line of another form."""
    found = _ID.match(line)
    if found is None:
        raise ValueError("a line of another form")
    name: str = json.loads(found[1])
    return name


class Places:
    """Where the lines of a file begin and how long they are, by id; the first line of an id counts."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """By id the number of its line among those kept here, in their order."""
        self._starts = array("Q")
        self._lengths = array("Q")

    def add(self, name: str, start: int, length: int) -> bool:
        """Keep a line, unless one of its id is kept; whether it is."""
        if self.numbers.setdefault(name, len(self._starts)) != len(self._starts):
            return False
        self._starts.append(start)
        self._lengths.append(length)
        return True

    def sort(self, names: Sequence[str]) -> None:
        """Put the ids into this order; it holds all of them."""
        self.numbers = {name: self.numbers[name] for name in names}

    def of(self, name: str) -> tuple[int, int]:
        """Start and length in bytes. Raises `KeyError`."""
        number = self.numbers[name]
        return self._starts[number], self._lengths[number]


class RecordLines(Mapping[str, T], Generic[T]):
    """The records of an open file, by id, in the order of their places; each is read anew whenever it is asked for.

    Args:
        file: a descriptor, which is closed with this object; any thread may read.
        places: where the lines are.
        read: makes a record of a line; raises `ValueError` for a line that is none.
    """

    def __init__(self, file: int, places: Places, read: Callable[[bytes], T]) -> None:
        self._file = file
        self._places = places
        self._read = read
        self._end = weakref.finalize(self, os.close, file)

    def line(self, name: str) -> bytes:
        """The bytes of a record's line, with its end. Raises `KeyError`."""
        start, length = self._places.of(name)
        return os.pread(self._file, length, start)

    def __getitem__(self, name: str) -> T:
        return self._read(self.line(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._places.numbers)

    def __len__(self) -> int:
        return len(self._places.numbers)

    def __contains__(self, name: object) -> bool:
        return name in self._places.numbers

    def is_file(self, path: Path) -> bool:
        """Whether `path` is the file that is open here, and as long as it was."""
        try:
            there, here = path.stat(), os.fstat(self._file)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino, there.st_mtime_ns) == (here.st_dev, here.st_ino, here.st_mtime_ns)


class Chosen(Sequence[T], Generic[T]):
    """Some records of a mapping as a sequence, each read when it is asked for."""

    def __init__(self, records: Mapping[str, T], names: Sequence[str]) -> None:
        self._records = records
        self.ids = names

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        if isinstance(place, slice):
            return tuple(self._records[name] for name in self.ids[place])
        return self._records[self.ids[place]]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[T]:
        return (self._records[name] for name in self.ids)


@dataclass(frozen=True)
class LineIndex:
    """What a file of lines holds.

    `unreadable` are the numbers of lines that are no records, from 1, each with what is wrong with it; `repeated` those
    of lines whose id was there before.
    """

    places: Places
    measure: Measure
    unreadable: tuple[tuple[int, ValueError], ...] = ()
    repeated: tuple[tuple[int, str], ...] = ()
    file: int | None = None
    """A descriptor of the file, which belongs to whoever has the index; None where there is no file."""

    def records(self, read: Callable[[bytes], T]) -> Mapping[str, T]:
        """The records, by id; from now on the descriptor belongs to them."""
        return {} if self.file is None else RecordLines(self.file, self.places, read)


def index_lines(path: Path, before: Extent | None, known: NameOf, checked: NameOf) -> LineIndex:
    """Find every record of a file. A last line without its end, left by a crash, is passed over.

    Args:
        path: the file; one that is not there holds nothing.
        before: what was there when a command last ended in order. While the file begins with just that, its lines are
            as they were written: only their ids are read.
        known: reads the id of such a line.
        checked: reads the id of any other line, and checks that it is a sound record.
    """
    if not path.exists():
        return LineIndex(Places(), Measure(before))
    with path.open("rb") as file:
        found = _Indexing(Measure(before))
        if before is not None and (prefix := _same_prefix(file, before)) is not None:
            found.take(file, known, checked, before.bytes, prefix)
        else:
            found.take(file, checked, checked)
        repeated, unreadable = tuple(found.repeated), tuple(found.unreadable)
        return LineIndex(found.places, found.measure, unreadable, repeated, os.dup(file.fileno()))


def _same_prefix(file: BinaryIO, before: Extent) -> Measure | None:
    """The measure of so many bytes as there were before, where they are the same; the file is at its start again."""
    sha256, left = hashlib.sha256(), before.bytes
    while left and (block := file.read(min(left, BLOCK))):
        sha256.update(block)
        left -= len(block)
    file.seek(0)
    return None if left or sha256.hexdigest() != before.sha256 else Measure(before, sha256)


@dataclass
class _Indexing:
    """An index while its file is read."""

    measure: Measure
    places: Places = field(default_factory=Places)
    unreadable: list[tuple[int, ValueError]] = field(default_factory=list)
    repeated: list[tuple[int, str]] = field(default_factory=list)

    def take(
        self, file: BinaryIO, known: NameOf, checked: NameOf, trusted: int = 0, after: Measure | None = None
    ) -> None:
        """Read all lines; those within the first `trusted` bytes, of which `after` is the measure, are known."""
        start = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            end = start + len(line)
            if end > trusted:
                self.measure.add(line)
            elif end == trusted and after is not None:
                self.measure = after
            try:
                name = self._name(line, known if end <= trusted else checked, checked)
            except ValueError as error:
                self.unreadable.append((number, error))
            else:
                if not self.places.add(name, start, len(line)):
                    self.repeated.append((number, name))
            start = end

    @staticmethod
    def _name(line: bytes, first: NameOf, checked: NameOf) -> str:
        try:
            return first(line)
        except ValueError:
            return checked(line)
