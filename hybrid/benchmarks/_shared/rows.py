"""Reads rows of parquet and JSON files with checked columns: every error names the file, row and column.

Damage affects as little as possible. If a page does not decode, only cells of its row group are lost. An unusable row
becomes a `BrokenQuestion`; so does a file that cannot be opened, if there are others (`lost`). Missing data is
therefore always named and counted as failed. A row without a task counts as missing from each task.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.benchmarks._shared.paths import check_table
from hybrid.core.errors import DataError, needed_by
from hybrid.core.images import ImageStore
from hybrid.core.types import LETTERS, BrokenQuestion, Question, StoredImage

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# Maximum number of rows; no supported table has as many. A damaged file may claim any number.
MAX_ROWS = 10_000_000
# Maximum size of a row group after decompression, in bytes, as the file declares it. Arrow decompresses a group in
# memory, where 50 kB may become gigabytes.
MAX_GROUP_BYTES = 4 * 2**30

# Maximum number of characters in one text, far more than any question or answer has.
MAX_TEXT = 200_000

# Maximum number of rows whose pictures are stored in advance.
MAX_AHEAD = 16
# Number of threads; more would multiply the memory for a large picture.
STORING_THREADS = 2

# Exceptions that damaged tables raise; Arrow itself raises `OSError`, `ValueError`, `MemoryError` or `ArrowException`.
_UNREADABLE = (OSError, ValueError, MemoryError, OverflowError, RecursionError)


@dataclass(frozen=True)
class DataRow:
    """One row. `where` is its location for errors; `unread` maps a column to why its cell cannot be read."""

    values: Mapping[str, Any]
    where: str
    unread: Mapping[str, str] = field(default_factory=dict)
    # Embedded images being put into the store (`stored_ahead`), by column.
    storing: Mapping[str, Future[StoredImage]] = field(default_factory=dict, repr=False, compare=False)

    def cell(self, column: str) -> Any:
        """Return a cell's content; None for a missing column or an empty cell.

        Raises `DataError` if the cell is `unread`.
        """
        if column in self.unread:
            raise DataError(f"{self.where}, column {column}: cannot be read ({self.unread[column]})")
        return self.values.get(column)

    def text(self, column: str) -> str:
        """Return a string. Raises `DataError` for anything else."""
        value = self.cell(column)
        if not isinstance(value, str):
            raise DataError(f"{self.where}, column {column}: expected text, found {type(value).__name__}")
        return checked_text(value, f"{self.where}, column {column}")

    def texts(self, column: str) -> tuple[str, ...]:
        """Return a list of strings: at least two, and at most as many as there are letters."""
        value = self.cell(column)
        location = f"{self.where}, column {column}"
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise DataError(f"{location}: expected a list of texts, found {value!r:.80}")
        if len(value) < 2:
            raise DataError(f"{location}: expected at least two choices, found {value!r:.80}")
        if len(value) > len(LETTERS):
            raise DataError(
                f"{location}: {len(value)} choices are more than the {len(LETTERS)} letters that can label them"
            )
        return tuple(checked_text(item, location) for item in value)

    def image(self, column: str) -> bytes | None:
        """Return the bytes of an embedded image (`{"bytes", "path"}`), or None if the cell is empty."""
        value = self.cell(column)
        if value is None:
            return None
        data = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(data, bytes):
            raise DataError(f"{self.where}, column {column}: expected embedded image bytes")
        return data

    def stored_image(self, column: str, store: ImageStore, identity: str) -> StoredImage | None:
        """Put the embedded image into the store; return None if the cell is empty. Raises `DataError`."""
        data = self.image(column)
        if data is None:
            return None
        if column in self.storing:
            # The error occurs again below, where its location is added.
            with suppress(Exception):
                return self.storing[column].result()
        return store.put(data, f"{self.where}, question {identity}, column {column}")


def checked_text(text: str, location: str) -> str:
    """Return the text. Raises `DataError` if no request can contain it: too long, or with a lone surrogate."""
    if len(text) > MAX_TEXT:
        raise DataError(f"{location}: a text of {len(text):,} characters; at most {MAX_TEXT:,} are read")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{location}: character {error.start + 1} is half of a surrogate pair, which is not valid text"
        ) from error
    return text


def read_questions(
    paths: Iterable[Path],
    task: str,
    folder: Path,
    *,
    read: Callable[[Path], Iterable[DataRow]],
    identify: Callable[[DataRow], str],
    make: Callable[[DataRow, str], Question],
) -> Iterator[Question | BrokenQuestion]:
    """Yield the rows of the files as questions of a task; an unusable row or file becomes a broken question.

    Args:
        paths: the files.
        task: the task of all their rows.
        folder: folder of the data set.
        read: reads the rows of a file. Raises `DataError`.
        identify: returns the id of a row. Raises `DataError`.
        make: makes the question of a row with its id. Raises `DataError`.
    """
    for path in paths:
        try:
            for row in read(path):
                try:
                    identity = identify(row)
                except DataError as error:
                    yield lost(task, folder, row.where, error)
                    continue
                try:
                    yield make(row, identity)
                except DataError as error:
                    yield BrokenQuestion(identity, task, str(error))
        except DataError as error:
            yield lost(task, folder, str(path), error)


def lost(task: str, folder: Path, location: str, error: object) -> BrokenQuestion:
    """Return the placeholder for a row or a file without a readable id; `location` begins with the file's path.

    The id consists of the task and the location, so it is the same on every reading.
    """
    place = re.sub(r"[^\w.-]+", "_", location.removeprefix(str(folder)).lstrip("/\\"))
    return BrokenQuestion(f"{task}:{place}", task, str(error))


def read_json(folder: Path, path: Path) -> Any:
    """Return the content of a JSON file in a data set's folder. Raises `DataError`."""
    check_table(folder, path)
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON ({error})") from error
    except RecursionError as error:
        raise DataError(f"{path} cannot be read as JSON (nested too deeply)") from error


def json_rows(folder: Path, path: Path) -> Iterator[tuple[Mapping[str, Any] | DataError, str]]:
    """Yield every line of a JSON Lines file with its location: an object, or the error of the line.

    Raises `DataError` if the file cannot be read at all.
    """
    check_table(folder, path)
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error})") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            location = f"{path}, line {number}"
            yield json_object(line, location), location


def json_object(line: bytes | str, location: str) -> Mapping[str, Any] | DataError:
    """Return the object in a line of JSON, or an error if the line has no object."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        return DataError(f"{location}: not JSON ({error})")
    if not isinstance(values, dict):
        return DataError(f"{location}: expected an object, found {type(values).__name__}")
    return values


@contextmanager
def opened(folder: Path, path: Path, columns: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a parquet file in a data set's folder.

    Raises `DataError` if the file is not parquet, is outside the folder, lacks a column, or cannot be read to its end.
    Raises `UsageError` if pyarrow is not installed.
    """
    with needed_by(str(path)):
        import pyarrow as pa
        import pyarrow.parquet as pq

    check_table(folder, path)
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, *_UNREADABLE) as error:
        raise DataError(f"{path} is not a readable parquet file ({_reason(error)})") from error
    with file:
        missing = [column for column in columns if column not in file.schema_arrow.names]
        if missing:
            present = ", ".join(file.schema_arrow.names)
            raise DataError(f"{path} lacks the column {', '.join(missing)}; it has: {present}")
        if file.metadata.num_rows > MAX_ROWS:
            raise DataError(f"{path} says that it has {file.metadata.num_rows:,} rows; at most {MAX_ROWS:,} are read")
        groups = (file.metadata.row_group(group) for group in range(file.num_row_groups))
        largest = max((group.total_byte_size for group in groups), default=0)
        if largest > MAX_GROUP_BYTES:
            raise DataError(
                f"{path} has a row group of {largest:,} bytes; at most {MAX_GROUP_BYTES:,} are read: write it with "
                "fewer rows in a group"
            )
        try:
            yield file
        except (pa.ArrowException, *_UNREADABLE) as error:
            raise DataError(f"{path} cannot be read to its end ({_reason(error)})") from error


def check_one(paths: Iterable[Path], check: Callable[[Path], object]) -> None:
    """Raise the first file's `DataError` if `check` rejects every file, because then there is nothing to ask."""
    first: DataError | None = None
    for path in paths:
        try:
            check(path)
        except DataError as error:
            first = first or error
        else:
            return
    if first is not None:
        raise first


def rows(folder: Path, path: Path, columns: Sequence[str], groups: Container[int] | None = None) -> Iterator[DataRow]:
    """Stream the rows of a file in small batches; cells of a page that does not decode are `unread`.

    `columns` are required; if `groups` is given, only the rows of these row groups are read.

    Raises `DataError` like `opened`.
    """
    with opened(folder, path, columns) as file:
        import pyarrow as pa

        row_count = 0
        for group in range(file.num_row_groups):
            count, read = file.metadata.row_group(group).num_rows, 0
            if groups is not None and group not in groups:
                row_count += count
                continue
            for values in _while_readable(file, group):
                read += 1
                yield DataRow(values, f"{path}, row {row_count + read}")
            if read < count:
                yield from read_group(file, group, file.schema_arrow.names, path, row_count)[read:]
            row_count += count
            # Arrow reads full pages, often all pictures of a row group, and would keep that memory for the next row
            # group.
            pa.default_memory_pool().release_unused()


def stored_ahead(read: Iterable[DataRow], store: ImageStore, columns: Sequence[str]) -> Iterator[DataRow]:
    """Yield the rows while threads decode and store the images of the next rows.

    The number of rows stored in advance is at most the number of rows used so far, and at most `MAX_AHEAD`. So a run
    with a small limit stores few images that it does not need.

    Raises the `DataError` of `read`, after yielding the rows before it.
    """
    waiting: deque[DataRow] = deque()
    error: DataError | None = None
    used = 0
    with ThreadPoolExecutor(STORING_THREADS) as pool:
        try:
            try:
                for row in read:
                    waiting.append(_start_storing(row, columns, pool, store))
                    while len(waiting) > min(used, MAX_AHEAD):
                        used += 1
                        yield waiting.popleft()
            except DataError as caught:
                error = caught
            yield from waiting
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    if error is not None:
        raise error


def _start_storing(row: DataRow, columns: Sequence[str], pool: ThreadPoolExecutor, store: ImageStore) -> DataRow:
    """Return the row with the pending results of storing its images; an unreadable image is left for later."""
    storing = {}
    for column in columns:
        with suppress(DataError):
            if (data := row.image(column)) is not None:
                storing[column] = pool.submit(store.put, data, row.where)
    return replace(row, storing=storing)


def _while_readable(file: pq.ParquetFile, group: int) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a row group up to the first batch that does not decode."""
    import pyarrow as pa

    batches = iter(file.iter_batches(batch_size=16, row_groups=[group]))
    while True:
        try:
            batch = next(batches, None)
            records = [] if batch is None else batch.to_pylist()
        except (pa.ArrowException, *_UNREADABLE):
            return
        if batch is None:
            return
        yield from records


def read_group(file: pq.ParquetFile, group: int, columns: Sequence[str], path: Path, rows_before: int) -> list[DataRow]:
    """Return the rows of a row group; if it does not decode, read it column by column.

    `rows_before` is the number of rows before the group.
    """
    import pyarrow as pa

    count = file.metadata.row_group(group).num_rows
    try:
        records = file.read_row_group(group, columns=list(columns)).to_pylist()
    except (pa.ArrowException, *_UNREADABLE):
        records = []
    if len(records) == count:
        return [DataRow(values, f"{path}, row {number}") for number, values in enumerate(records, rows_before + 1)]
    read = {column: _column(file, group, column, count) for column in columns}
    return [
        DataRow(
            {name: cells[place][0] for name, cells in read.items() if cells[place][1] is None},
            f"{path}, row {rows_before + place + 1}",
            {name: error for name, cells in read.items() if (error := cells[place][1]) is not None},
        )
        for place in range(count)
    ]


def _column(file: pq.ParquetFile, group: int, column: str, count: int) -> list[tuple[Any, str | None]]:
    """Return the cells of a column, each with the reason why it could not be read, or None."""
    import pyarrow as pa

    try:
        cells = file.read_row_group(group, columns=[column])[column]
        if len(cells) != count:
            raise ValueError(f"{len(cells)} values for {count} rows")
    except (pa.ArrowException, *_UNREADABLE) as error:
        return [(None, _reason(error))] * count
    column_cells: list[tuple[Any, str | None]] = []
    for cell in cells:
        try:
            column_cells.append((cell.as_py(), None))
        except (pa.ArrowException, *_UNREADABLE) as error:
            column_cells.append((None, _reason(error)))
    return column_cells


def _reason(error: BaseException) -> str:
    """Return the error on one line of limited length."""
    return " ".join(str(error).split())[:200] or type(error).__name__
