"""Rows whose images are stored ahead: the same rows, in their order, with what is wrong where it is wrong."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from hybrid.benchmarks._shared.rows import MOST_AHEAD, DataRow, stored_ahead
from hybrid.errors import DataError
from hybrid.images import ImageStore
from hybrid.types import StoredImage

COLUMNS = ("image_1", "image_2")


def png(grey: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (8, 6), grey).save(buffer, "PNG")
    return buffer.getvalue()


def row(number: int, **cells: object) -> DataRow:
    return DataRow({"image_1": {"bytes": png(number), "path": "x.png"}, **cells}, f"row {number}")


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path)


def test_the_images_are_in_the_store_in_the_order_of_the_rows(store: ImageStore) -> None:
    given = [row(number, image_2=png(200)) for number in range(3 * MOST_AHEAD)]
    for number, each in enumerate(stored_ahead(iter(given), store, COLUMNS)):
        assert each == given[number]
        first, second = (each.stored_image(column, store, "q") for column in COLUMNS)
        assert first is not None
        assert second is not None
        assert (store.read(first), store.read(second)) == (png(number), png(200))


def test_an_image_is_stored_once_and_by_a_thread(store: ImageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    places = []
    put = ImageStore.put

    def seen(self: ImageStore, data: bytes, where: str) -> StoredImage:
        places.append(where)
        return put(self, data, where)

    monkeypatch.setattr(ImageStore, "put", seen)
    (each,) = stored_ahead([row(1)], store, COLUMNS)
    each.stored_image("image_1", store, "q")
    assert places == ["row 1"]


def test_a_broken_image_costs_its_row_and_is_named_as_without_threads(store: ImageStore) -> None:
    given = [row(0), row(1, image_1=b"no picture"), row(2, image_1="a path"), row(3, image_1=None), row(4)]

    def said(each: DataRow) -> str:
        try:
            return str(each.stored_image("image_1", store, "q"))
        except DataError as error:
            return str(error)

    plain = [said(each) for each in given]
    assert [said(each) for each in stored_ahead(iter(given), store, COLUMNS)] == plain
    assert plain[1].startswith("row 1, question q, column image_1: these 10 bytes are not an image")


def test_what_a_limit_leaves_is_not_read_far(store: ImageStore) -> None:
    read = []

    def source() -> Iterator[DataRow]:
        for number in range(100):
            read.append(number)
            yield row(number)

    rows = stored_ahead(source(), store, COLUMNS)
    next(rows)
    assert len(read) == 1
    next(rows)
    assert len(read) == 3
    rows.close()  # type: ignore[attr-defined]
    assert sum(path.is_file() for path in store.root.rglob("*")) <= 3


def test_the_rows_before_damage_come_before_its_error(store: ImageStore) -> None:
    def source() -> Iterator[DataRow]:
        yield from map(row, range(10))
        raise DataError("the file cannot be read to its end")

    rows = stored_ahead(source(), store, COLUMNS)
    assert [next(rows).where for _ in range(10)] == [f"row {number}" for number in range(10)]
    with pytest.raises(DataError, match="to its end"):
        next(rows)
