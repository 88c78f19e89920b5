"""MM-SAP's parquet tables -> questions, each in seeded orders of its options."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hybrid.benchmarks._shared.paths import inside, read_located
from hybrid.benchmarks._shared.rows import DataRow, check_one, lost, opened, read_group, rows
from hybrid.benchmarks.base import Source
from hybrid.benchmarks.mm_sap.columns import (
    SETS,
    Columns,
    option_number,
    options_of,
    origin_of,
    refusal_of,
    resolve,
    set_in,
    set_of,
)
from hybrid.errors import DataError
from hybrid.types import BrokenQuestion, Kind, Question, StoredImage


def paths(folder: Path) -> tuple[Path, ...]:
    """The parquet files under a folder, those among them that cannot be used too. Raises `DataError` for none."""
    files = tuple(sorted(folder.rglob("*.parquet")))
    if not files:
        raise DataError(f"{folder} holds no MM-SAP data: expected parquet files of BasicVisQA, KnowVisQA, BeyondVisQA")
    return files


def files(folder: Path) -> tuple[Path, ...]:
    """Those of them that are regular files inside the folder."""
    return tuple(path for path in paths(folder) if inside(folder, path))


def columns_of(folder: Path, path: Path) -> Columns:
    """The columns of a file. Raises `DataError` for one that cannot be read, or is without the columns."""
    with opened(folder, path) as file:
        columns = resolve(file.schema_arrow.names, str(path))
        groups = range(file.num_row_groups)
        read = [row for group in groups for row in read_group(file, group, [columns.answer], path, 0)]
    return replace(columns, origin=origin_of([row.values.get(columns.answer) for row in read], str(path)))


def sets_of(folder: Path) -> tuple[str, ...]:
    """The sets that the data holds, in the paper's order. The first row of a file tells, unless a column names sets.

    Of a file that cannot be used its name tells, so that its set is missing by name.

    Raises `DataError` where no file can be used, or no row says its set.
    """
    present: set[str] = set()
    unread: set[str | None] = set()

    def check(path: Path) -> None:
        columns = columns_of(folder, path)
        for number, row in enumerate(rows(folder, path, columns.read)):
            try:
                present.add(set_of(path, folder, row, columns))
            except DataError:
                # Only where no row before said a set is the table at fault.
                if not number:
                    raise
            if columns.set is None:
                return

    for path in paths(folder):
        try:
            check(path)
        except DataError:
            unread.add(set_in(str(path.relative_to(folder))))
    if not present:
        check_one(paths(folder), check)
    return tuple(name for name in SETS if name in present | unread)


def questions_of(source: Source, settings: Mapping[str, str]) -> Iterator[Question | BrokenQuestion]:
    """All questions of the chosen sets, variants of one next to each other. Ids count the rows of a set from 1.

    A file that cannot be used, and a row that does not say its set, are missing from every chosen set that they may
    belong to.
    """
    counts = dict.fromkeys(SETS, 0)
    for path in paths(source.folder):
        try:
            columns = columns_of(source.folder, path)
            for row in rows(source.folder, path, columns.read):
                yield from _questions(row, path, columns, counts, source, settings)
        except DataError as error:
            # It may hold the set that its name says, else any.
            said = set_in(str(path.relative_to(source.folder)))
            for name in source.tasks if said is None else {said} & {*source.tasks}:
                yield lost(name, source.folder, str(path), error)


def _questions(
    row: DataRow, path: Path, columns: Columns, counts: dict[str, int], source: Source, settings: Mapping[str, str]
) -> Iterator[Question | BrokenQuestion]:
    try:
        name = set_of(path, source.folder, row, columns)
    except DataError as error:
        for task in source.tasks:
            yield lost(task, source.folder, row.where, error)
        return
    counts[name] += 1
    if name in source.tasks:
        identity = f"{SETS[name]}_{counts[name]:04d}"
        try:
            yield from _variants(identity, name, row, columns, source, settings)
        except DataError as error:
            yield BrokenQuestion(identity, name, str(error))


def order_of(identity: str, shuffle: int, seed: int, count: int) -> tuple[int, ...]:
    """A seeded order: place k of the shown options holds stored option `order[k]`."""
    places = list(range(count))
    random.Random(f"mm_sap/{seed}/{identity}/{shuffle}").shuffle(places)
    return tuple(places)


def _variants(
    identity: str, name: str, row: DataRow, columns: Columns, source: Source, settings: Mapping[str, str]
) -> list[Question]:
    text = row.text(columns.question)
    options = options_of(row, columns)
    refusal = refusal_of(row, columns, options)
    correct = _correct(name, row, columns, options, refusal)
    image = _image(row, columns, source, identity)
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


def _correct(name: str, row: DataRow, columns: Columns, options: Sequence[str], refusal: int) -> int | None:
    value = row.cell(columns.answer)
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


def _image(row: DataRow, columns: Columns, source: Source, identity: str) -> StoredImage:
    where = f"{row.where}, question {identity}, column {columns.image}"
    value = row.cell(columns.image)
    name = value.get("path") if isinstance(value, dict) and not value.get("bytes") else value
    if isinstance(name, str):
        return source.store.put(read_located(source.folder, name, where), where)
    image = row.stored_image(columns.image, source.store, identity)
    if image is None:
        raise DataError(f"{where}: the question has no image")
    return image
