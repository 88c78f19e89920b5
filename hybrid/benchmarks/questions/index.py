"""The first pass over a table: the positions of its rows by task, so that a task can be read without the others.

index = index_of(folder, path, columns, task="counting", rows=1)
index.tasks                   # in the order of their first rows
index.places["counting"]      # rows of one unit next to each other

A row without a readable task counts with the row before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from hybrid.benchmarks._shared.rows import MAX_ROWS, DataRow
from hybrid.benchmarks.questions.cells import parse_list, scalar_text
from hybrid.benchmarks.questions.columns import Columns
from hybrid.benchmarks.questions.tables import At, DataTable, table_of
from hybrid.core.errors import DataError

CIRCULAR_STEP: Final = 1_000_000
# Largest length of an id, a task, a cluster or a group, such as the name of a file.
MAX_NAME_LENGTH: Final = 200


@dataclass(frozen=True)
class Index:
    """The positions of the rows of a table."""

    places: Mapping[str, tuple[At, ...]]
    # The first row with an id, by the hash of the id.
    first: Mapping[int, At]
    # Number of a row from 0, by its line; empty if units are not counted by rows.
    number: Mapping[int, int]
    # Hash of the question and options of each row whose id may belong to a rotation or its base, by line.
    content: Mapping[int, int] = field(default_factory=dict)
    # Values of the column `route` by task.
    routes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks in the order of their first rows."""
        return tuple(self.places)

    def place_of(self, identity: str) -> At | None:
        """Return the position of the first row with that id; None if no row has it."""
        return self.first.get(hashed(identity))

    def rotation_of(self, identity: str, at: At) -> str | None:
        """Return the id of a row that is a rotation of another row in a circular table; None for any other row.

        Ids of other tables may look the same (262148000 in VQAv2), so a rotation must have the question and the options
        of its base.
        """
        if not self.content or not is_number(identity) or (turn := int(identity) // CIRCULAR_STEP) == 0:
            return None
        base = self.place_of(str(int(identity) % CIRCULAR_STEP))
        if base is None or self.content.get(base.line, -1) != self.content.get(at.line):
            return None
        return f"{int(identity) % CIRCULAR_STEP}#circ{turn}"


def hashed(text: str) -> int:
    """Hash a text to 63 bits: for a million texts, the probability of a collision is below one in ten million."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()) >> 1


def index_of(folder: Path, path: Path, columns: Columns, task: str, rows: int) -> Index:
    """Return the index of the current version of a file; the index is cached.

    Args:
        folder: folder of the data set.
        path: path of the table.
        columns: columns of the table.
        task: task of all rows without a task column.
        rows: number of consecutive rows that form one unit.

    Raises:
        DataError: the file cannot be read, or has too many rows.
    """
    state = path.stat()
    return _index(folder, path, (state.st_mtime_ns, state.st_size), columns=columns, task=task, rows=rows)


@lru_cache(maxsize=4)
def _index(folder: Path, path: Path, stamp: tuple[int, int], *, columns: Columns, task: str, rows: int) -> Index:
    del stamp
    table = table_of(folder, path)
    first: dict[int, At] = {}
    numbers: dict[int, int] = {}
    by_task: dict[str, list[At]] = {}
    units: dict[int, int] = {}
    content: dict[int, int] = {}
    routes: dict[str, dict[str, None]] = {}
    for number, (at, row, task_name, identity) in enumerate(_rows(table, columns, task)):
        if number > MAX_ROWS:
            raise DataError(f"{path} has more than {MAX_ROWS:,} rows")
        by_task.setdefault(task_name, []).append(at)
        if columns.route and (route := _name(row, columns.route)):
            routes.setdefault(task_name, {})[route] = None
        if identity is not None:
            first.setdefault(hashed(identity), at)
        if rows > 1:
            numbers[at.line] = number
        unit = None
        if columns.cluster:
            with suppress(DataError):
                unit = None if isinstance(row, DataError) else cluster_in(row, columns.cluster)
        elif columns.circular and identity and is_number(identity):
            unit = str(int(identity) % CIRCULAR_STEP)
            if isinstance(row, DataRow):
                content[at.line] = _content(row, columns)
        if unit:
            units[at.line] = hashed(unit)
    places_by_task = {name: _together(places, units) for name, places in by_task.items()}
    routes_by_task = {name: tuple(values) for name, values in routes.items()}
    return Index(places_by_task, first, numbers, content, routes_by_task)


def _content(row: DataRow, columns: Columns) -> int:
    """Hash a row's question and its options; the order of the options makes no difference."""
    cells = []
    for column in columns.choices:
        with suppress(DataError):
            value = row.cell(column)
            cells += sorted(map(str, parse_list(value) or [value]))
    with suppress(DataError):
        return hashed("\n".join((str(row.cell(columns.question)), *sorted(cells))))
    return hash(row.where)


def _rows(table: DataTable, columns: Columns, task: str) -> Iterator[tuple[At, DataRow | DataError, str, str | None]]:
    previous_task = ""
    waiting: list[tuple[At, DataRow | DataError, str | None]] = []
    for at, row in table.scan(columns.indexed):
        identity = _name(row, columns.id) if columns.id else None
        name = (_name(row, columns.task) if columns.task else task) or previous_task
        if not name:
            waiting.append((at, row, identity))
            continue
        for earlier in waiting:
            yield earlier[0], earlier[1], name, earlier[2]
        waiting.clear()
        yield at, row, name, identity
        previous_task = name
    for earlier in waiting:
        yield earlier[0], earlier[1], task, earlier[2]


def _name(row: DataRow | DataError, column: str) -> str | None:
    """Return the name in a cell; None if the cell has no valid name."""
    try:
        return None if isinstance(row, DataError) else name_in(row, column)
    except DataError:
        return None


def name_in(row: DataRow, column: str) -> str | None:
    """Return the name in a cell; None if it is empty. Raises `DataError` for an invalid or too long name."""
    text = scalar_text(row, column)
    if text is None:
        return None
    if len(text) > MAX_NAME_LENGTH or not text.isprintable():
        raise DataError(
            f"{row.where}, column {column}: {text[:40]!r} is not a name of at most {MAX_NAME_LENGTH} characters"
        )
    return text


def cluster_in(row: DataRow, column: str) -> str:
    """Return the name of a row's unit; a text that is too long is shortened and hashed. Raises `DataError`."""
    text = " ".join((scalar_text(row, column) or "").split())
    return text if len(text) <= MAX_NAME_LENGTH else f"{text[:40]} {hashed(text):x}"


def is_number(identity: str) -> bool:
    """Return whether an id is a whole number without a sign."""
    return identity.isascii() and identity.isdigit() and len(identity) < 16


def _together(places: list[At], units: Mapping[int, int]) -> tuple[At, ...]:
    """Put the rows of a unit next to each other; order the units by their first rows."""
    if not units:
        return tuple(places)
    grouped: dict[int, list[At]] = {}
    for at in places:
        grouped.setdefault(units.get(at.line, -at.line), []).append(at)
    return tuple(at for members in grouped.values() for at in members)
