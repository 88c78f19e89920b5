"""Helpers for writers of generated questions: checks of their arguments, and parquet files."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hybrid.core.errors import UsageError
from hybrid.core.files import write_atomic
from hybrid.display.notes import tell
from hybrid.display.terminal import how_many
from hybrid.samples.seeds import Purpose, generator

if TYPE_CHECKING:
    import pyarrow as pa

# Least number of questions whose drawing takes so long that its progress is shown, and the seconds between two notes.
LONG_TASK: Final = 25
NOTE_S: Final = 5.0


def indices_to_draw(label: str, count: int) -> Iterator[int]:
    """Yield 0 to `count` - 1, the questions to draw; notes show the progress if there are at least `LONG_TASK`."""
    noted = time.monotonic()
    if count >= LONG_TASK:
        tell(f"drawing {how_many(count)} of {label} ...")
    for index in range(count):
        if count >= LONG_TASK and time.monotonic() - noted >= NOTE_S:
            noted = time.monotonic()
            tell(f"drawing {how_many(count)} of {label}: {index} done")
        yield index


def check_request(tasks: Sequence[str], names: Iterable[str], per_task: int, seed: int) -> None:
    """Raise `UsageError` for an unknown task, `per_task` below 1, or a negative seed."""
    for task in tasks:
        check_item(task, names, 0, 0)
    if per_task < 1 or seed < 0:
        raise UsageError(f"per_task {per_task} must be at least 1 and seed {seed} must not be negative")


def check_item(task: str, names: Iterable[str], index: int, seed: int) -> None:
    """Raise `UsageError` for an unknown task, or a negative index or seed."""
    if task not in names:
        raise UsageError(f"task {task!r} cannot be generated; available: {', '.join(names)}")
    if seed < 0 or index < 0:
        raise UsageError(f"seed {seed} and index {index} must not be negative")


def dealt(answers: int, index: int, purpose: Purpose, seed: int, *key: int) -> int:
    """Return the right answer of row `index`: each block of `answers` rows has every answer once, in random order."""
    block, place = divmod(index, answers)
    return int(generator(purpose, seed, *key, 0, block).permutation(answers)[place])


def table_schema(*columns: tuple[str, str], features: bool = True) -> pa.Schema:
    """Build an arrow schema, with the feature types that `datasets` reads from its metadata.

    `columns` are pairs of a type (`text`, `texts`, `image` or `number`) and column names, in order.
    """
    import pyarrow as pa

    text = {"dtype": "string", "_type": "Value"}
    forms: dict[str, tuple[pa.DataType, object]] = {
        "text": (pa.string(), text),
        "texts": (pa.list_(pa.string()), {"feature": text, "_type": "List"}),
        "image": (pa.struct([("bytes", pa.binary()), ("path", pa.string())]), {"_type": "Image"}),
        "number": (pa.int64(), {"dtype": "int64", "_type": "Value"}),
    }
    columns_by_name = {name: forms[form] for form, names in columns for name in names.split()}
    info = json.dumps({"info": {"features": {name: feature for name, (_, feature) in columns_by_name.items()}}})
    fields = [(name, form) for name, (form, _) in columns_by_name.items()]
    return pa.schema(fields, metadata={"huggingface": info} if features else None)


def write_parquet(
    path: Path, tables: Iterable[Sequence[Mapping[str, object]]], schema: pa.Schema, group: int | None = None
) -> Path:
    """Write lists of rows one after the other, in row groups of at most `group` rows each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, schema) as writer:
        for table in tables:
            writer.write_table(pa.Table.from_pylist(list(table), schema=schema), row_group_size=group)
    write_atomic(path, buffer.getvalue())
    return path
