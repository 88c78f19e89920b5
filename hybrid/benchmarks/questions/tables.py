"""Tables of questions as files: JSON Lines or a list, CSV, TSV, parquet; rows can be read in order or by position.

A table of a million rows is read in two passes: the first stores the position of each row, the second reads the
requested rows. At most one row is in memory, except that a JSON list is read as a whole. An unreadable row is a
`DataError` in its position, and affects no other row.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

from hybrid.benchmarks._shared.paths import check_table
from hybrid.benchmarks._shared.rows import DataRow, json_object, opened, read_group, rows
from hybrid.core.errors import DataError

ENDINGS: Final = (".jsonl", ".csv", ".tsv", ".parquet", ".json")
# Largest size of a line in bytes, and of a CSV cell in characters: a picture of 200 MB in base64 is smaller.
MAX_LINE_BYTES: Final = 400_000_000
# Largest number of different keys in the rows of a file.
MAX_COLUMNS: Final = 10_000
_BOM: Final = b"\xef\xbb\xbf"
_CONVERT: Final = "if it was saved on Windows, convert it: iconv -f {} -t UTF-8 OLD > NEW"


@dataclass(frozen=True, slots=True)
class At:
    """The position of a row in a table.

    In a file of lines, `offset` is the byte offset of the row and `line` its line, from 1. In other files, both are the
    number of the row, counted from 0 in `offset` and from 1 in `line`.
    """

    offset: int
    line: int


Row = tuple[At, DataRow | DataError]


class DataTable(Protocol):
    """One file of rows."""

    path: Path
    # The unit of `At.line`: lines or rows.
    counted: str

    def columns(self) -> tuple[str, ...]:
        """Return the names of the table's columns; for JSON Lines, the keys of all rows."""
        ...

    def scan(self, columns: Sequence[str]) -> Iterator[Row]:
        """Yield every row in order, with at least these columns."""
        ...

    def some(self, places: Sequence[At]) -> Iterator[Row]:
        """Yield the full rows at these positions, in the order of `places` if the kind of table permits this order."""
        ...


def table_of(folder: Path, path: Path) -> DataTable:
    """Open the table in a file. Raises `DataError` for a file outside the folder, or with another ending."""
    check_table(folder, path)
    match path.suffix.lower():
        case ".jsonl":
            return JsonLines(path)
        case ".json":
            return JsonList(path)
        case ".csv":
            return Separated(path, _separator(path, ","))
        case ".tsv":
            return Separated(path, _separator(path, "\t"))
        case ".parquet":
            return ParquetTable(folder, path)
    raise DataError(f"{path}: the name of a table of questions must end in {', '.join(ENDINGS)}")


class _Lines:
    """The lines of a file as text, and the position of the next line."""

    def __init__(self, file: BinaryIO, line: int) -> None:
        self._file, self.line = file, line
        self.too_long = False
        self.not_text = ""

    def tell(self) -> int:
        """Return the byte offset of the next line."""
        return self._file.tell()

    def seek(self, offset: int, line: int) -> None:
        """Go back to a byte offset with `line` lines before it."""
        self._file.seek(offset)
        self.line = line

    def __iter__(self) -> Iterator[str]:
        while data := self._file.readline(MAX_LINE_BYTES):
            self.line += 1
            if len(data) == MAX_LINE_BYTES and not data.endswith(b"\n"):
                self.too_long = True
                while (rest := self._file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                    pass
                data = b"\n"
            try:
                yield data.decode()
            except UnicodeDecodeError as error:
                self.not_text = f"byte 0x{data[error.start]:02x}, the {error.start + 1}th of line {self.line}"
                yield data.decode(errors="replace")

    def fault(self, location: str) -> DataError | None:
        """Return why the lines since the last call cannot be read, or None."""
        too_long, not_text = self.too_long, self.not_text
        self.too_long, self.not_text = False, ""
        if too_long:
            return DataError(f"{location}: more than {MAX_LINE_BYTES:,} bytes in one line")
        return (
            DataError(f"{location}: is not text in UTF-8 ({not_text}); {_CONVERT.format('CP1252')}")
            if not_text
            else None
        )


class JsonLines:
    """A file with one JSON object per line."""

    def __init__(self, path: Path) -> None:
        self.path, self.counted = path, "line"

    def columns(self) -> tuple[str, ...]:
        """Return the keys of all rows, including rare ones."""
        state = self.path.stat()
        return _keys(self.path, (state.st_mtime_ns, state.st_size))

    def scan(self, columns: Sequence[str]) -> Iterator[Row]:
        """Yield every line that is not blank."""
        del columns
        with _open(self.path) as file:
            lines = _Lines(file, 0)
            offset = _past_bom(file)
            for text in lines:
                if text.strip() or lines.too_long:
                    location = f"{self.path}:{lines.line}"
                    yield At(offset, lines.line), lines.fault(location) or _object(text, location)
                offset = file.tell()

    def some(self, places: Sequence[At]) -> Iterator[Row]:
        """Yield the lines at these positions, in any order."""
        with _open(self.path) as file:
            for at in places:
                file.seek(at.offset)
                lines = _Lines(file, at.line - 1)
                text = next(iter(lines), "")
                location = f"{self.path}:{at.line}"
                yield at, lines.fault(location) or _object(text, location)


@lru_cache(maxsize=4)
def _keys(path: Path, stamp: tuple[int, int]) -> tuple[str, ...]:
    del stamp
    column_names: dict[str, None] = {}
    fault: DataError | None = None
    for _, row in JsonLines(path).scan(()):
        if isinstance(row, DataError):
            fault = fault or row
            continue
        column_names |= dict.fromkeys(row.values)
        if len(column_names) > MAX_COLUMNS:
            raise DataError(
                f"{path}: the rows have more than {MAX_COLUMNS:,} different keys, but keys must be names of columns"
            )
    if fault and not column_names:
        raise fault
    return tuple(column_names)


class JsonList:
    """A list of JSON objects, which is read into memory."""

    def __init__(self, path: Path) -> None:
        self.path, self.counted = path, "row"

    def columns(self) -> tuple[str, ...]:
        """Return the keys of all rows."""
        return tuple(dict.fromkeys(key for row in self._rows() if isinstance(row, dict) for key in row))

    def scan(self, columns: Sequence[str]) -> Iterator[Row]:
        """Yield every row."""
        del columns
        return self.some([At(place, place + 1) for place in range(len(self._rows()))])

    def some(self, places: Sequence[At]) -> Iterator[Row]:
        """Yield the rows at these positions."""
        rows = self._rows()
        for at in places:
            location, row = f"{self.path}, row {at.line}", rows[at.offset]
            yield at, DataRow(row, location) if isinstance(row, dict) else DataError(f"{location}: expected an object")

    def _rows(self) -> list[Any]:
        state = self.path.stat()
        return _list(self.path, (state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=1)
def _list(path: Path, stamp: tuple[int, int]) -> list[Any]:
    if stamp[1] > MAX_LINE_BYTES:
        raise DataError(
            f"{path}: a list may have {MAX_LINE_BYTES:,} bytes, and this one has more: write one object "
            "per line (.jsonl)"
        )
    with _open(path) as file:
        _past_bom(file)
        try:
            records = json.loads(file.read())
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: not JSON ({error})") from error
    if not isinstance(records, list):
        raise DataError(f"{path}: expected a list of objects, found {type(records).__name__}")
    return records


def _object(text: str, location: str) -> DataRow | DataError:
    values = json_object(text, location)
    return values if isinstance(values, DataError) else DataRow(values, location)


class Separated:
    """A CSV or TSV file with a header; fields may be quoted and contain line breaks (RFC 4180)."""

    def __init__(self, path: Path, delimiter: str) -> None:
        self.path, self.counted, self._delimiter = path, "line", delimiter

    def columns(self) -> tuple[str, ...]:
        """Return the names in the header."""
        with _open(self.path) as file:
            _past_bom(file)
            return self._head(_Lines(file, 0))

    def _head(self, lines: _Lines) -> tuple[str, ...]:
        location = f"{self.path}:1"
        head = self._next(lines, 0)
        if head is None:
            raise DataError(f"{location}: the file is empty; its first line has the names of the columns")
        if isinstance(head, DataError):
            raise head
        names = tuple(name.strip() for name in head)
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise DataError(f"{location}: the column {twice[0]!r:.80} appears twice")
        return names

    def _next(self, lines: _Lines, columns: int) -> list[str] | DataError | None:
        """Return the fields of the next record, the error of an invalid record, or None at the end of the file.

        A quotation mark at the start of a field may belong to its text: the field would then extend over the following
        rows to the next mark. Only the first line of such a record is lost.
        """
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
        begin, number = lines.tell(), lines.line
        location, like_rows = f"{self.path}:{number + 1}", list[bool]()

        def physical() -> Iterator[str]:
            for text in lines:
                # Test whether the line has as many fields as the table has columns. A comma followed by a blank belongs
                # to prose and is not counted.
                marks = text.count(self._delimiter) + 1
                like = marks >= columns if self._delimiter != "," else marks - text.count(", ") == columns
                like_rows.append(like)
                yield text

        reason, takes_rows = "a quotation mark opens a field that is never closed", False
        try:
            record = next(csv.reader(physical(), delimiter=self._delimiter, strict=True), None)
            first_too, rest = like_rows[:1] == [True], like_rows[1:]
            if not (rest and first_too and (rest[-1] or 2 * sum(rest) >= len(rest))):
                return lines.fault(location) or record
            reason = (
                f"a quotation mark opens a field that includes lines {number + 1} to {lines.line}, which look like rows"
            )
            takes_rows = True
        except csv.Error:
            pass
        lines.fault(location)
        lines.seek(begin, number)
        first = next(iter(lines))
        try:
            # Parse the first line together with a second line. If the first line leaves a quoted field open, the parser
            # joins the two lines. A quotation mark inside a field that is not quoted is only text.
            loose = list(csv.reader((first, "x"), delimiter=self._delimiter))
        except csv.Error as error:
            return lines.fault(location) or DataError(f"{location}: {error}")
        if len(loose) == 2 and not takes_rows:
            return lines.fault(location) or loose[0]
        return lines.fault(location) or DataError(
            f'{location}: {reason}; quote the field and double each quotation mark inside it (""), or write JSON lines'
        )

    def scan(self, columns: Sequence[str]) -> Iterator[Row]:
        """Yield every record that is not blank."""
        del columns
        with _open(self.path) as file:
            _past_bom(file)
            lines = _Lines(file, 0)
            names = self._head(lines)
            while True:
                at = At(file.tell(), lines.line + 1)
                record = self._next(lines, len(names))
                if record is None:
                    return
                if isinstance(record, DataError) or any(map(str.strip, record)):
                    yield at, _record(names, record, f"{self.path}:{at.line}")

    def some(self, places: Sequence[At]) -> Iterator[Row]:
        """Yield the records at these positions, in any order."""
        names = self.columns()
        with _open(self.path) as file:
            for at in places:
                file.seek(at.offset)
                location = f"{self.path}:{at.line}"
                record = self._next(_Lines(file, at.line - 1), len(names))
                yield at, _record(names, record or DataError(f"{location}: the file is shorter than it was"), location)


def _separator(path: Path, usual: str) -> str:
    """Return the separator of a table: `usual`, or one of `,`, `;` and tab if the header uses it instead."""
    with _open(path) as file:
        head = file.readline(MAX_LINE_BYTES)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head[:100]:
        raise DataError(f"{path}: is text in UTF-16; {_CONVERT.format('UTF-16')}")
    if b"\r" in head.rstrip(b"\r\n"):
        raise DataError(f"{path}: its lines end in CR only; convert it: tr '\\r' '\\n' < OLD > NEW")
    counts = {mark: head.count(mark.encode()) for mark in (",", ";", "\t")}
    return usual if counts[usual] or not any(counts.values()) else max(counts, key=lambda mark: counts[mark])


def _record(names: Sequence[str], record: list[str] | DataError, location: str) -> DataRow | DataError:
    if isinstance(record, DataError):
        return record
    if len(record) > len(names):
        return DataError(
            f"{location}: {len(record)} fields for {len(names)} columns; quote a field that contains a separator"
        )
    values: Mapping[str, Any] = dict(itertools.zip_longest(names, record))
    return DataRow({name: value for name, value in values.items() if value}, location)


class ParquetTable:
    """A parquet file."""

    def __init__(self, folder: Path, path: Path) -> None:
        self.path, self.counted, self._folder = path, "row", folder

    def columns(self) -> tuple[str, ...]:
        """Return the names of the table's columns."""
        with opened(self._folder, self.path) as file:
            return tuple(file.schema_arrow.names)

    def scan(self, columns: Sequence[str]) -> Iterator[Row]:
        """Yield every row, with only these columns."""
        number = 0
        with opened(self._folder, self.path, columns) as file:
            for group in range(file.num_row_groups):
                for row in read_group(file, group, columns, self.path, number):
                    number += 1
                    yield At(number - 1, number), row

    def some(self, places: Sequence[At]) -> Iterator[Row]:
        """Yield the rows at these positions, in the order of the file; skip row groups that have none of these rows."""
        by_line = {at.line: at for at in places}
        with opened(self._folder, self.path) as file:
            ends = list(
                itertools.accumulate(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))
            )
        begins = [0, *ends]
        groups = {
            group
            for group, (begin, end) in enumerate(itertools.pairwise(begins))
            if any(line in by_line for line in range(begin + 1, end + 1))
        }
        numbers = (line for group in sorted(groups) for line in range(begins[group] + 1, begins[group + 1] + 1))
        for number, row in zip(numbers, rows(self._folder, self.path, (), groups), strict=True):
            if number in by_line:
                yield by_line[number], row


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or error})") from error


def _past_bom(file: BinaryIO) -> int:
    """Skip a byte order mark; return the offset of the text."""
    if file.read(len(_BOM)) != _BOM:
        file.seek(0)
    return file.tell()
