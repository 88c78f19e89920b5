"""Generated questions in BLINK's official parquet layout, for tests, the quickstart and load tests.

Answers are known by construction. Pictures and wording are this project's own, so a score on them is never a BLINK
result. Item i depends only on (seed, task, i), so more rows never change the first rows.

Run: `python -c "from hybrid.benchmarks.blink.sample import TASKS, write; write('sample', TASKS, per_task=20, seed=0)"`
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hybrid.benchmarks._shared.samples import (
    check_item,
    check_request,
    dealt,
    indices_to_draw,
    table_schema,
    write_parquet,
)
from hybrid.core.types import LETTERS
from hybrid.samples import geometry, objects
from hybrid.samples.item import Item, jpeg
from hybrid.samples.seeds import Purpose, generator

if TYPE_CHECKING:
    import pyarrow as pa

SPLIT = "val"
FILE_NAME = f"{SPLIT}-00000-of-00001.parquet"
# Quality of the published files, computed from their quantisation tables. Published and generated files subsample
# colour.
JPEG_QUALITY = 75


@dataclass(frozen=True)
class SampleTask:
    """A task that can be generated: `make(rng, answer)` builds an item whose right choice is number `answer`."""

    make: Callable[[np.random.Generator, int], Item]
    choices: int


# Keyed by BLINK's task name, in alphabetical order.
TASKS: Mapping[str, SampleTask] = {
    "Counting": SampleTask(objects.counting, 4),
    "Jigsaw": SampleTask(geometry.jigsaw, 2),
    "Multi-view_Reasoning": SampleTask(geometry.multi_view_reasoning, 2),
    "Object_Localization": SampleTask(objects.object_localization, 2),
    "Relative_Depth": SampleTask(geometry.relative_depth, 2),
    "Relative_Reflectance": SampleTask(objects.relative_reflectance, 3),
    "Spatial_Relation": SampleTask(objects.spatial_relation, 2),
    "Visual_Correspondence": SampleTask(geometry.visual_correspondence, 4),
}


@dataclass(frozen=True, eq=False)
class SampleRow:
    """One row with BLINK's columns; `images` are 1 to 4 JPEG files in order."""

    idx: str
    question: str
    sub_task: str
    images: tuple[bytes, ...]
    choices: tuple[str, ...]
    answer: str
    prompt: str


def letter(task: str, index: int, seed: int, purpose: Purpose = "sample") -> int:
    """Return the index of the right choice of row `index` (from 0); each `purpose` has its own answers (`seeds.py`).

    The rows form blocks of as many rows as the task has choices; each block contains every letter once, in an
    independent order. Raises `UsageError` like `item`.
    """
    check_item(task, TASKS, index, seed)
    return dealt(TASKS[task].choices, index, purpose, seed, zlib.crc32(task.encode()))


def item(task: str, index: int, seed: int, purpose: Purpose = "sample") -> Item:
    """Make item `index` (from 0) of a task, with the facts that make its answer true.

    Raises:
        UsageError: an unknown task, a negative index or seed.
        HybridError: no such item could be constructed from this seed.
    """
    answer = letter(task, index, seed, purpose)
    return TASKS[task].make(generator(purpose, seed, zlib.crc32(task.encode()), 1, index), answer)


def row(task: str, index: int, seed: int, purpose: Purpose = "sample") -> SampleRow:
    """Make row `index` (from 0; its idx counts from 1, as BLINK's does). Raises `UsageError` like `item`."""
    generated = item(task, index, seed, purpose)
    options = "\n".join(f"({LETTERS[number]}) {choice}" for number, choice in enumerate(generated.choices))
    return SampleRow(
        idx=f"{SPLIT}_{task}_{index + 1}",
        question=generated.question,
        sub_task=task,
        images=tuple(jpeg(pixels, JPEG_QUALITY) for pixels in generated.images),
        choices=generated.choices,
        answer=f"({LETTERS[generated.answer]})",
        prompt=f"{generated.question}\nSelect from the following choices.\n{options}",
    )


def schema() -> pa.Schema:
    """Return the arrow schema of BLINK's files."""
    return table_schema(
        ("text", "idx question sub_task"),
        ("image", "image_1 image_2 image_3 image_4"),
        ("texts", "choices"),
        ("text", "answer prompt filter explanation"),
    )


def write(
    folder: Path | str, tasks: Iterable[str], per_task: int, seed: int, purpose: Purpose = "sample"
) -> tuple[Path, ...]:
    """Write `TASK/val-00000-of-00001.parquet` for every task; the same call gives the same bytes on one machine.

    Raises `UsageError` like `check_request`; nothing is written then.
    """
    task_names = tuple(tasks)
    check_request(task_names, TASKS, per_task, seed)
    paths = []
    for task in task_names:
        items = [row(task, index, seed, purpose) for index in indices_to_draw(task, per_task)]
        images = (
            {f"image_{n}": {"bytes": data, "path": None} for n, data in enumerate(item.images, 1)} for item in items
        )
        # Columns of the schema that a row lacks are empty.
        cells = [{**vars(item), **pictures} for item, pictures in zip(items, images, strict=True)]
        paths.append(write_parquet(Path(folder) / task / FILE_NAME, [cells], schema()))
    return tuple(paths)
