"""Tables of questions as files: JSON lines, CSV, TSV, parquet; rows one by one, and again by their place.

A table of a million rows is read in two passes: the first keeps of each row its place, the second reads the rows that
are asked for. No more than one row is held. A row that cannot be read is a `DataError` in its place, and costs itself.
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
from hybrid.benchmarks._shared.rows import MAX_ROWS, DataRow, opened, read_group, rows
from hybrid.errors import DataError

ENDINGS: Final = (".jsonl", ".csv", ".tsv", ".parquet")
LARGEST_LINE: Final = 400_000_000
"""Bytes of one line, and characters of one cell of a CSV file: a picture of 200 MB in base64 is shorter."""
MOST_COLUMNS: Final = 10_000
"""Different keys of the rows of a file."""
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class At:
    """The place of a row: the byte where it begins and its line, or its number in the file for both, from 0 and 1."""

    offset: int
    line: int


Row = tuple[At, DataRow | DataError]


class Table(Protocol):
    """One file of rows."""

    path: Path
    counted: str
    """The unit of `At.line`: lines or rows."""

    def columns(self) -> tuple[str, ...]:
        """The names of its columns; of JSON lines every key of a row."""
        ...

    def scan(self, columns: Sequence[str]) -> Iterator[Row]:
        """Every row in order, with at least these columns."""
        ...

    def some(self, places: Sequence[At]) -> Iterator[Row]:
        """The rows at these places, whole, in the order of `places` where the table can."""
        ...


def table_of(folder: Path, path: Path) -> Table:
    """The table of a file. Raises `DataError` for a file outside of the folder, or of another ending."""
    check_table(folder, path)
    match path.suffix.lower():
        case ".jsonl":
            return JsonLines(path)
        case ".csv":
            return Separated(path, ",")
        case ".tsv":
            return Separated(path, "\t")
        case ".parquet":
            return Parquet(folder, path)
    raise DataError(f"{path}: a table of questions ends in {', '.join(ENDINGS)}")


class _Lines:
    """The lines of a file as text, and where the next one begins."""

    def __init__(self, file: BinaryIO, line: int) -> None:
        self._file, self.line = file, line
        self.too_long = self.not_text = False

    def __iter__(self) -> Iterator[str]:
        while data := self._file.readline(LARGEST_LINE):
            self.line += 1
            if len(data) == LARGEST_LINE and not data.endswith(b"\n"):
                self.too_long = True
                while (rest := self._file.readline(LARGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
                data = b"\n"
            try:
                yield data.decode()
            except UnicodeDecodeError:
                self.not_text = True
                yield data.decode(errors="replace")

    def fault(self, where: str) -> DataError | None:
        """Why the lines since the last question cannot be read."""
        too_long, not_text = self.too_long, self.not_text
        self.too_long = self.not_text = False
        if too_long:
            return DataError(f"{where}: more than {LARGEST_LINE:,} bytes in one line")
        return DataError(f"{where}: is not text in UTF-8") if not_text else None


class JsonLines:
    """A JSON object a line."""

    def __init__(self, path: Path) -> None:
        self.path, self.counted = path, "line"

    def columns(self) -> tuple[str, ...]:
        """The keys of all rows: what few of them have counts too."""
        state = self.path.stat()
        return _keys(self.path, (state.st_mtime_ns, state.st_size))

    def scan(self, columns: Sequence[str]) -> Iterator[Row]:
        """Every line that is not blank."""
        del columns
        with _open(self.path) as file:
            lines = _Lines(file, 0)
            offset = _past_bom(file)
            for text in lines:
                if text.strip() or lines.too_long:
                    where = f"{self.path}:{lines.line}"
                    yield At(offset, lines.line), lines.fault(where) or _object(text, where)
                offset = file.tell()

    def some(self, places: Sequence[At]) -> Iterator[Row]:
        """Those lines, in any order."""
        with _open(self.path) as file:
            for at in places:
                file.seek(at.offset)
                lines = _Lines(file, at.line - 1)
                text = next(iter(lines), "")
                where = f"{self.path}:{at.line}"
                yield at, lines.fault(where) or _object(text, where)


@lru_cache(maxsize=4)
def _keys(path: Path, stamp: tuple[int, int]) -> tuple[str, ...]:
    del stamp
    named: dict[str, None] = {}
    for _, row in JsonLines(path).scan(()):
        if isinstance(row, DataRow):
            named |= dict.fromkeys(row.values)
            if len(named) > MOST_COLUMNS:
                raise DataError(f"{path}: more than {MOST_COLUMNS:,} different keys; a row has its columns as keys")
    return tuple(named)


def _object(text: str, where: str) -> DataRow | DataError:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        return DataError(f"{where}: not JSON ({error})")
    if not isinstance(values, dict):
        return DataError(f"{where}: expected an object, found {type(values).__name__}")
    return DataRow(values, where)


class Separated:
    """A CSV or TSV file with a head of names; fields may be quoted and hold line breaks (RFC 4180)."""

    def __init__(self, path: Path, delimiter: str) -> None:
        self.path, self.counted, self._delimiter = path, "line", delimiter

    def columns(self) -> tuple[str, ...]:
        """The names of the head."""
        with _open(self.path) as file:
            _past_bom(file)
            return self._head(_Lines(file, 0))

    def _head(self, lines: _Lines) -> tuple[str, ...]:
        where = f"{self.path}:1"
        head = next(self._records(lines), None)
        if head is None:
            raise DataError(f"{where}: the file is empty; its first line has the names of the columns")
        if fault := lines.fault(where):
            raise fault
        if isinstance(head, str):
            raise DataError(f"{where}: {head}")
        names = tuple(name.strip() for name in head)
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise DataError(f"{where}: the column {twice[0]!r:.80} is there twice")
        return names

    def _records(self, lines: _Lines) -> Iterator[list[str] | str]:
        """The fields of each record, or why it is none."""
        csv.field_size_limit(max(csv.field_size_limit(), LARGEST_LINE))
        reader = csv.reader(lines, delimiter=self._delimiter, strict=False)
        while True:
            try:
                record = next(reader, None)
            except csv.Error as error:
                yield str(error)
                continue
            if record is None:
                return
            yield record

    def scan(self, columns: Sequence[str]) -> Iterator[Row]:
        """Every record that is not blank."""
        del columns
        with _open(self.path) as file:
            _past_bom(file)
            lines = _Lines(file, 0)
            names = self._head(lines)
            offset, line = file.tell(), lines.line + 1
            for record in self._records(lines):
                where = f"{self.path}:{line}"
                fault = lines.fault(where)
                if record or fault:
                    yield At(offset, line), fault or _record(names, record, where)
                offset, line = file.tell(), lines.line + 1

    def some(self, places: Sequence[At]) -> Iterator[Row]:
        """Those records, in any order."""
        names = self.columns()
        with _open(self.path) as file:
            for at in places:
                file.seek(at.offset)
                lines = _Lines(file, at.line - 1)
                where = f"{self.path}:{at.line}"
                record = next(self._records(lines), "the file is shorter than it was")
                yield at, lines.fault(where) or _record(names, record, where)


def _record(names: Sequence[str], record: list[str] | str, where: str) -> DataRow | DataError:
    if isinstance(record, str):
        return DataError(f"{where}: {record}")
    if len(record) > len(names):
        return DataError(
            f"{where}: {len(record)} fields for {len(names)} columns; quote a field that holds a separator"
        )
    values: Mapping[str, Any] = dict(itertools.zip_longest(names, record))
    return DataRow({name: value for name, value in values.items() if value}, where)


class Parquet:
    """A parquet file."""

    def __init__(self, folder: Path, path: Path) -> None:
        self.path, self.counted, self._folder = path, "row", folder

    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        with opened(self._folder, self.path) as file:
            return tuple(file.schema_arrow.names)

    def scan(self, columns: Sequence[str]) -> Iterator[Row]:
        """Every row with these columns alone."""
        number = 0
        with opened(self._folder, self.path, columns) as file:
            for group in range(file.num_row_groups):
                for cells in read_group(file, group, columns):
                    number += 1
                    yield At(number - 1, number), DataRow(cells.values, f"{self.path}, row {number}", cells.unread)

    def some(self, places: Sequence[At]) -> Iterator[Row]:
        """Those rows in the order of the file; row groups without any are passed over."""
        wanted = {at.line: at for at in places}
        with opened(self._folder, self.path) as file:
            ends = list(
                itertools.accumulate(file.metadata.row_group(each).num_rows for each in range(file.num_row_groups))
            )
        begins = [0, *ends]
        groups = {
            group
            for group, (begin, end) in enumerate(itertools.pairwise(begins))
            if any(line in wanted for line in range(begin + 1, end + 1))
        }
        numbers = (line for group in sorted(groups) for line in range(begins[group] + 1, begins[group + 1] + 1))
        for number, row in zip(numbers, rows(self._folder, self.path, (), groups), strict=True):
            if number in wanted:
                yield wanted[number], row


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or error})") from error


def _past_bom(file: BinaryIO) -> int:
    """Pass over a byte order mark; returns where the text begins."""
    if file.read(len(_BOM)) != _BOM:
        file.seek(0)
    return file.tell()


def refuse_rows(count: int, path: Path) -> None:
    """Raise `DataError` for more rows than any table has."""
    if count > MAX_ROWS:
        raise DataError(f"{path} has more than {MAX_ROWS:,} rows")
