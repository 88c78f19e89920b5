"""Converts MM-SAP's parquet tables to questions, each in seeded orders of its options."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hybrid.benchmarks._shared.paths import read_located
from hybrid.benchmarks._shared.rows import DataRow, opened, read_group
from hybrid.benchmarks.base import Source
from hybrid.benchmarks.mm_sap.columns import (
    SetColumns,
    option_number,
    options_of,
    origin_of,
    refusal_of,
    resolve,
)
from hybrid.core.errors import DataError
from hybrid.core.types import Kind, Question, StoredImage


def paths(folder: Path) -> tuple[Path, ...]:
    """Return the parquet files under a folder, including unusable ones. Raises `DataError` if there are none."""
    files = tuple(sorted(folder.rglob("*.parquet")))
    if not files:
        raise DataError(
            f"{folder} contains no MM-SAP data: expected parquet files of BasicVisQA, KnowVisQA, BeyondVisQA"
        )
    return files


def columns_of(folder: Path, path: Path) -> SetColumns:
    """Return the columns of a file. Raises `DataError` if it is unreadable or lacks columns."""
    with opened(folder, path) as file:
        columns = resolve(file.schema_arrow.names, str(path))
        groups = range(file.num_row_groups)
        read = [row for group in groups for row in read_group(file, group, [columns.answer], path, 0)]
    return replace(columns, origin=origin_of([row.values.get(columns.answer) for row in read], str(path)))


def order_of(identity: str, shuffle: int, seed: int, count: int) -> tuple[int, ...]:
    """Return a seeded order: shown option k is stored option `order[k]`."""
    places = list(range(count))
    random.Random(f"mm_sap/{seed}/{identity}/{shuffle}").shuffle(places)
    return tuple(places)


def variants_of(
    identity: str, name: str, row: DataRow, *, columns: SetColumns, source: Source, settings: Mapping[str, str]
) -> list[Question]:
    """Make one question for each order of its options. Raises `DataError` for an unusable row."""
    text = row.text(columns.question)
    options = options_of(row, columns)
    refusal = refusal_of(row, columns, options)
    value, location = row.cell(columns.answer), f"{row.where}, column {columns.answer}"
    correct = option_number(value, columns, options)
    if name == "BeyondVisQA":
        empty = value is None or (isinstance(value, str) and value.strip().casefold() in ("", "none", "null"))
        if not empty and correct != refusal:
            raise DataError(
                f"{location}: {value!r} must be the refusal or empty, because no option of BeyondVisQA is correct"
            )
        correct = None
    elif correct is None or correct == refusal:
        raise DataError(f"{location}: {value!r} is not one of the four options besides the refusal")
    image = _image_of(row, columns.image, identity, source)
    kind = str(row.cell(columns.type) or "") if columns.type else ""
    orders = {"": tuple(range(len(options)))}
    if settings["shuffles"] != "stored":
        seed = int(settings["shuffle_seed"])
        orders = {f"s{k}": order_of(identity, k, seed, len(options)) for k in range(int(settings["shuffles"]))}
    return [
        Question(
            id=f"{identity}#{shuffle}" if shuffle else identity,
            task=name,
            images=(image,),
            text=text,
            kind=Kind.CHOICE,
            choices=tuple(options[place] for place in order),
            target={"correct": None if correct is None else order.index(correct), "refusal": order.index(refusal)},
            route="choice",
            groups={"type": kind or name, "shuffle": shuffle or "stored"},
            protocol={"refusal": order.index(refusal), "refusal_prompt": settings["refusal_prompt"] == "on"},
            cluster=identity,
        )
        for shuffle, order in orders.items()
    ]


def _image_of(row: DataRow, column: str, identity: str, source: Source) -> StoredImage:
    """Return the stored image of a row, from its file or its bytes. Raises `DataError` if it has none."""
    cell, location = row.cell(column), f"{row.where}, question {identity}, column {column}"
    file = cell.get("path") if isinstance(cell, dict) and not cell.get("bytes") else cell
    if isinstance(file, str):
        return source.store.put(read_located(source.folder, file, location), location)
    image = row.stored_image(column, source.store, identity)
    if image is None:
        raise DataError(f"{location}: the question has no image")
    return image
