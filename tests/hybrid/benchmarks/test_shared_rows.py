"""If images are stored in advance, the rows and their order stay the same, and each error stays at its row."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from hybrid.benchmarks._shared.rows import DataRow, stored_ahead
from hybrid.core.errors import DataError
from hybrid.core.images import ImageStore
from tests.image_bytes import saved

COLUMNS = ("image_1", "image_2")


def png(grey: int) -> bytes:
    return saved(Image.new("L", (8, 6), grey))


def row(number: int, **cells: object) -> DataRow:
    return DataRow({"image_1": {"bytes": png(number), "path": "x.png"}, **cells}, f"row {number}")


def test_the_rows_before_damage_come_before_its_error(tmp_path: Path) -> None:
    def source() -> Iterator[DataRow]:
        yield from map(row, range(10))
        raise DataError("the file cannot be read to its end")

    rows = stored_ahead(source(), ImageStore(tmp_path), COLUMNS)
    assert [next(rows).where for _ in range(10)] == [f"row {number}" for number in range(10)]
    with pytest.raises(DataError, match="to its end"):
        next(rows)
