"""Rows of a parquet file with checked columns: every error names the file, the row and the column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.errors import DataError


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


def rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """Stream the rows of a file in small batches. Raises `DataError` when it is not parquet or lacks a column."""
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
        number = 0
        try:
            for batch in file.iter_batches(batch_size=16):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(values, f"{path}, row {number}")
        except pa.ArrowException as error:
            raise DataError(f"{path} cannot be read after row {number} ({error})") from error
