"""Rows of tables with checked columns, out of parquet and JSON files: every error names the file, row and column."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.errors import DataError
from hybrid.images import ImageStore
from hybrid.types import StoredImage

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass(frozen=True)
class Row:
    """One row; `where` is what an error says about its place."""

    values: Mapping[str, Any]
    where: str

    def text(self, column: str) -> str:
        """A string. Raises `DataError` for anything else."""
        value = self.values.get(column)
        if not isinstance(value, str):
            raise DataError(f"{self.where}, column {column}: expected text, found {type(value).__name__}")
        return value

    def texts(self, column: str) -> tuple[str, ...]:
        """A list of at least two strings."""
        value = self.values.get(column)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise DataError(f"{self.where}, column {column}: expected a list of texts, found {value!r:.80}")
        if len(value) < 2:
            raise DataError(f"{self.where}, column {column}: expected at least two choices, found {value!r:.80}")
        return tuple(value)

    def image(self, column: str) -> bytes | None:
        """The bytes of an embedded image (`{"bytes", "path"}`), or None where the cell is empty."""
        value = self.values.get(column)
        if value is None:
            return None
        data = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(data, bytes):
            raise DataError(f"{self.where}, column {column}: expected embedded image bytes")
        return data

    def stored_image(self, column: str, store: ImageStore, identity: str) -> StoredImage | None:
        """The embedded image put into the store, or None where the cell is empty. Raises `DataError`."""
        data = self.image(column)
        return None if data is None else store.put(data, f"{self.where}, question {identity}, column {column}")


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises `DataError`."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON ({error})") from error


def located(folder: Path, name: str, below: Sequence[str] = ("",)) -> Path | None:
    """A file that a row names, relative to one of the folders `below`; None where none is there or it is outside."""
    root = folder.resolve()
    found = ((root / base / name).resolve() for base in below)
    return next((path for path in found if path.is_relative_to(root) and path.is_file()), None)


def read_located(folder: Path, name: str, where: str, below: Sequence[str] = ("",)) -> bytes:
    """The content of such a file. Raises `DataError` where there is none."""
    path = located(folder, name, below)
    if path is None:
        raise DataError(f"{where}: there is no file {name!r} inside {folder}")
    return path.read_bytes()


@contextmanager
def opened(path: Path, columns: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """An open parquet file. Raises `DataError` when it is none, lacks a column, or cannot be read to its end."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a readable parquet file ({error})") from error
    with file:
        missing = [column for column in columns if column not in file.schema_arrow.names]
        if missing:
            found = ", ".join(file.schema_arrow.names)
            raise DataError(f"{path} lacks the column {', '.join(missing)}; it has: {found}")
        try:
            yield file
        except pa.ArrowException as error:
            raise DataError(f"{path} cannot be read to its end ({error})") from error


def rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """Stream the rows of a file in small batches. Raises `DataError` as `opened` does."""
    with opened(path, columns) as file:
        batches = (values for batch in file.iter_batches(batch_size=16) for values in batch.to_pylist())
        for number, values in enumerate(batches, 1):
            yield Row(values, f"{path}, row {number}")
