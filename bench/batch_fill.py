"""The fill of a learned tool's batches, for the image sizes of BLINK.

    uv run python -m bench.batch_fill --data ../shared/data/blink [--in-flight 64] [--stream 2000]

The tool is depth with a tiny Depth Anything, whose shapes come from the published processor (short side 518 px, sides
multiples of 14). Images go through its lane with a fixed number in flight; a pass takes 1 ms per image. The fill is
images / passes / batch size. `once` uses the images of a task in the order of its file; `stream` draws the requested
number from its sizes. `first come` is a lane that ignores shapes, so that a batch needs one pass per shape; `lane`
fills batches by shape; `ordered` is the lane if the run sorts the questions first; `most` is the highest possible fill.
"""

from __future__ import annotations

import asyncio
import io
import random
import tempfile
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from PIL import Image

from bench._frame import options
from bench._networks import NETWORKS
from hybrid.core.errors import HybridError
from hybrid.core.types import Kind, Question, StoredImage
from hybrid.display.tables import Column, Table, as_text
from hybrid.plugins.registry import load
from hybrid.running.run import group_by_shape
from hybrid.serving.batching import Lane
from hybrid.tool import Request, Tool
from tools._shared.batches import by_form

Size = tuple[int, int]
PASS_S = 0.001
SIDE_PX = 518


def sizes_of(path: Path) -> list[Size]:
    """Return the width and height of every image of a BLINK file, in order."""
    return [
        Image.open(io.BytesIO(value["bytes"])).size
        for row in pq.read_table(path).to_pylist()
        for name, value in row.items()
        if name.startswith("image") and value
    ]


def forms_of(sizes: set[Size], tool: Tool) -> dict[Size, Hashable]:
    """Return the input shapes of the tool's learned backend for images of these sizes."""
    import transformers

    backend: Any = next(card for card in tool.card.backends if card.name == "learned").make()
    with tempfile.TemporaryDirectory() as folder:
        NETWORKS["depth_anything_v2_small"].build(Path(folder), real=False)
        processor: Any = transformers.DPTImageProcessor
        processor.from_pretrained(folder, size={"height": SIDE_PX, "width": SIDE_PX}).save_pretrained(folder)
        backend.setup("cpu", folder)
    blank = {size: np.zeros((size[1], size[0], 3), np.uint8) for size in sizes}
    return {size: backend.batch_key(backend.prepare(Request((value,), tool.args()))) for size, value in blank.items()}


def in_order(sizes: Sequence[Size]) -> list[Size]:
    """Return the sizes in the order in which a run asks questions about such images."""
    questions = [
        Question(str(n), "", (StoredImage("0" * 64, *size, "image/jpeg"),), "", Kind.CHOICE)
        for n, size in enumerate(sizes)
    ]
    return [(item.images[0].width, item.images[0].height) for item in group_by_shape(questions)]


async def passes(forms: Sequence[Hashable], batch: int, in_flight: int, form: Callable[[Hashable], Hashable]) -> int:
    """Return how many passes a lane needs for inputs of these shapes."""
    built = 0

    async def run(inputs: Sequence[Hashable]) -> list[Hashable | HybridError]:
        nonlocal built
        built += len(by_form(inputs, batch))
        await asyncio.sleep(PASS_S * len(inputs))
        return list(inputs)

    async def prepared(hashable: Hashable) -> Hashable:
        return hashable

    lane: Lane[Hashable, Hashable] = Lane(batch, run, form=form)
    queue = iter(forms)

    async def worker() -> None:
        for item in queue:
            async with lane.room:
                await lane.submit(prepared(item))

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(worker())
    return built


def fills(data: Path, in_flight: int, stream: int) -> Iterator[tuple[str, ...]]:
    """Yield two rows per task: the numbers of images and shapes, and the fill of batches, 0..1, for each method."""
    tool: Tool = load("tools", "depth")
    batch = max(card.batch for card in tool.card.backends)
    tasks = {path.parent.name: sizes_of(path) for path in sorted(data.glob("*/*.parquet"))}
    forms = forms_of({size for sizes in tasks.values() for size in sizes}, tool)
    for task, sizes in tasks.items():
        for kind, seen in (("once", sizes), ("stream", random.Random(0).choices(sizes, k=stream))):
            values = [forms[size] for size in seen]
            items = [
                asyncio.run(passes(values, batch, in_flight, lambda item: None)),
                asyncio.run(passes(values, batch, in_flight, lambda value: value)),
                asyncio.run(
                    passes([forms[size] for size in in_order(seen)], batch, in_flight, lambda first_item: first_item)
                ),
                len(by_form(values, batch)),
            ]
            shares = (f"{len(values) / number / batch:.2f}" for number in items)
            yield task, kind, str(len(values)), str(len(set(values))), *shares


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    flags = options(__doc__, {"--data": ..., "--in-flight": 64, "--stream": 2000}, arguments)
    columns = (Column("task", "left"), Column("", "left"), *map(Column, ("pictures", "shapes", "first come")))
    rows = tuple(fills(flags.data, flags.in_flight, flags.stream))
    print(as_text(Table("Fill of batches", (*columns, *map(Column, ("lane", "ordered", "most"))), rows)))


if __name__ == "__main__":
    main()
