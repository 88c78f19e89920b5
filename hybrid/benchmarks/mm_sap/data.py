"""MM-SAP's parquet tables -> questions, each in seeded orders of its options. A library module of `mm_sap`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hybrid.benchmarks._shared.parquet import Row, rows
from hybrid.benchmarks.base import Source
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
from hybrid.errors import DataError, UsageError
from hybrid.types import BrokenQuestion, Kind, Question, StoredImage

SETTINGS: Mapping[str, tuple[str, str]] = {
    "shuffles": ("5", "how many seeded orders of the options are asked (1 to 20), or `stored`: the data's own order"),
    "shuffle_seed": ("0", "a whole number that the orders are drawn from"),
    "refusal_prompt": ("off", "on | off: the added instruction to choose the refusal where the answer is not known"),
}
MOST_SHUFFLES = 20


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


def read_settings(given: Mapping[str, str]) -> Settings:
    """Check the values; missing keys have their defaults. Raises `UsageError` naming the setting."""
    chosen = {key: given.get(key, default) for key, (default, _) in SETTINGS.items()}
    count, seed, prompt = chosen["shuffles"], chosen["shuffle_seed"], chosen["refusal_prompt"]
    if count != "stored" and not (count.isdecimal() and 1 <= int(count) <= MOST_SHUFFLES):
        raise UsageError(f"--setting shuffles={count}: expected 1 to {MOST_SHUFFLES}, or stored")
    if not seed.removeprefix("-").isdecimal():
        raise UsageError(f"--setting shuffle_seed={seed}: expected a whole number")
    if prompt not in ("on", "off"):
        raise UsageError(f"--setting refusal_prompt={prompt}: the values are: on, off")
    return Settings(None if count == "stored" else int(count), int(seed), prompt == "on")


def tables(folder: Path) -> tuple[Table, ...]:
    """The parquet files under a folder with their columns. Raises `DataError` for none, or one without the columns."""
    paths = sorted(folder.rglob("*.parquet"))
    if not paths:
        raise DataError(f"{folder} holds no MM-SAP data: expected parquet files of BasicVisQA, KnowVisQA, BeyondVisQA")
    return tuple(_table(path) for path in paths)


def _table(path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        columns = resolve(pq.read_schema(path).names, str(path))
        answers = pq.read_table(path, columns=[columns.answer])[columns.answer].to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a readable parquet file ({error})") from error
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


def questions_of(source: Source) -> Iterator[Question | BrokenQuestion]:
    """All questions of the chosen sets, variants of one side by side. Ids count the rows of a set from 1."""
    settings = read_settings(source.settings)
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
        raise DataError(f"{where}: {value!r} names none of the four options beside the refusal")
    return place


def _image(row: Row, columns: Columns, source: Source, identity: str) -> StoredImage:
    where = f"{row.where}, question {identity}, column {columns.image}"
    value = row.values.get(columns.image)
    name = value.get("path") if isinstance(value, dict) and not value.get("bytes") else value
    if isinstance(name, str):
        root = source.folder.resolve()
        path = (root / name).resolve()
        if not path.is_relative_to(root) or not path.is_file():
            raise DataError(f"{where}: there is no file {name!r} inside {source.folder}")
        return source.store.put(path.read_bytes(), where)
    data = row.image(columns.image)
    if data is None:
        raise DataError(f"{where}: the question has no image")
    return source.store.put(data, where)
