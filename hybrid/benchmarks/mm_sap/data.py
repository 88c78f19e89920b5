"""MM-SAP's parquet tables -> questions, each in seeded orders of its options."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hybrid.benchmarks._shared.rows import Row, opened, read_located, rows
from hybrid.benchmarks.base import Setting, Source
from hybrid.benchmarks.mm_sap.columns import (
    SETS,
    Columns,
    option_number,
    options_of,
    origin_of,
    refusal_of,
    resolve,
    set_of,
)
from hybrid.errors import DataError
from hybrid.types import BrokenQuestion, Kind, Question, StoredImage

SETTINGS = (
    Setting(
        "shuffles",
        "5",
        ("1 to 20", "stored"),
        "how many seeded orders of the options are asked, or the data's own order",
        r"stored|0*([1-9]|1\d|20)",
    ),
    Setting("shuffle_seed", "0", ("whole numbers",), "what the orders are drawn from", r"-?\d+"),
    Setting(
        "refusal_prompt",
        "off",
        ("on", "off"),
        "the added instruction to choose the refusal where the answer is not known",
    ),
)


@dataclass(frozen=True)
class Settings:
    """Checked settings; no `shuffles` is the stored order."""

    shuffles: int | None
    seed: int
    refusal_prompt: bool


@dataclass(frozen=True)
class Table:
    """A file of questions and where its columns are."""

    path: Path
    columns: Columns


def read_settings(chosen: Mapping[str, str]) -> Settings:
    """The settings as a card chose them."""
    count = chosen["shuffles"]
    return Settings(
        None if count == "stored" else int(count), int(chosen["shuffle_seed"]), chosen["refusal_prompt"] == "on"
    )


def tables(folder: Path) -> tuple[Table, ...]:
    """The parquet files under a folder with their columns. Raises `DataError` for none, or one without the columns."""
    paths = sorted(folder.rglob("*.parquet"))
    if not paths:
        raise DataError(f"{folder} holds no MM-SAP data: expected parquet files of BasicVisQA, KnowVisQA, BeyondVisQA")
    return tuple(_table(path) for path in paths)


def _table(path: Path) -> Table:
    with opened(path) as file:
        columns = resolve(file.schema_arrow.names, str(path))
        answers = file.read(columns=[columns.answer])[columns.answer].to_pylist()
    return Table(path, replace(columns, origin=origin_of(answers, str(path))))


def rows_by_set(folder: Path, table: Table) -> Iterator[tuple[str, Row]]:
    """The rows of a table, each with its set."""
    for row in rows(table.path, table.columns.read):
        yield set_of(table.path, folder, row, table.columns), row


def sets_of(folder: Path) -> tuple[str, ...]:
    """The sets that the data holds, in the paper's order. The first row of a file tells, unless a column names sets."""
    present: set[str] = set()
    for table in tables(folder):
        for name, _ in rows_by_set(folder, table):
            present.add(name)
            if table.columns.set is None:
                break
    return tuple(name for name in SETS if name in present)


def questions_of(source: Source, settings: Settings) -> Iterator[Question | BrokenQuestion]:
    """All questions of the chosen sets, variants of one next to each other. Ids count the rows of a set from 1."""
    counts = dict.fromkeys(SETS, 0)
    for table in tables(source.folder):
        for name, row in rows_by_set(source.folder, table):
            counts[name] += 1
            if name not in source.tasks:
                continue
            identity = f"{SETS[name][0]}_{counts[name]:04d}"
            try:
                yield from _variants(identity, name, row, table.columns, source, settings)
            except DataError as error:
                yield BrokenQuestion(identity, name, str(error))


def order_of(identity: str, shuffle: int, seed: int, count: int) -> tuple[int, ...]:
    """A seeded order: place k of the shown options holds stored option `order[k]`."""
    places = list(range(count))
    random.Random(f"mm_sap/{seed}/{identity}/{shuffle}").shuffle(places)
    return tuple(places)


def _variants(
    identity: str, name: str, row: Row, columns: Columns, source: Source, settings: Settings
) -> list[Question]:
    text = row.text(columns.question)
    options = options_of(row, columns)
    refusal = refusal_of(row, columns, options)
    correct = _correct(name, row, columns, options, refusal)
    image = _image(row, columns, source, identity)
    kind = str(row.values.get(columns.type) or "") if columns.type else ""
    if settings.shuffles is None:
        orders: Sequence[tuple[str, tuple[int, ...]]] = (("", tuple(range(len(options)))),)
    else:
        orders = [(f"s{k}", order_of(identity, k, settings.seed, len(options))) for k in range(settings.shuffles)]
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
            protocol={"refusal": order.index(refusal), "refusal_prompt": settings.refusal_prompt},
            cluster=identity,
        )
        for shuffle, order in orders
    ]


def _correct(name: str, row: Row, columns: Columns, options: Sequence[str], refusal: int) -> int | None:
    value = row.values.get(columns.answer)
    place = option_number(value, columns, options)
    where = f"{row.where}, column {columns.answer}"
    if name == "BeyondVisQA":
        empty = value is None or (isinstance(value, str) and value.strip().casefold() in ("", "none", "null"))
        if empty or place == refusal:
            return None
        raise DataError(f"{where}: {value!r} must be the refusal or empty, because no option of BeyondVisQA is correct")
    if place is None or place == refusal:
        raise DataError(f"{where}: {value!r} names none of the four options next to the refusal")
    return place


def _image(row: Row, columns: Columns, source: Source, identity: str) -> StoredImage:
    where = f"{row.where}, question {identity}, column {columns.image}"
    value = row.values.get(columns.image)
    name = value.get("path") if isinstance(value, dict) and not value.get("bytes") else value
    if isinstance(name, str):
        return source.store.put(read_located(source.folder, name, where), where)
    image = row.stored_image(columns.image, source.store, identity)
    if image is None:
        raise DataError(f"{where}: the question has no image")
    return image
