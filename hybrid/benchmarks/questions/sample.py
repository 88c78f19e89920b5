"""Generated rows in the layout of a recipe's own table, so that `--data sample` is read like the data.

Answers are known by construction. The pictures are rendered and the wording fills the data's templates with other
objects, so a score on them is never a result of the benchmark. A row depends only on (seed, task, its number), so a
larger sample begins with the smaller one.

    write(Path("sample"), recipe, tasks=("Count",), per_task=20, seed=0)
"""

from __future__ import annotations

import base64
import csv
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hybrid.benchmarks._shared.samples import check_request, dealt, write_parquet
from hybrid.benchmarks.questions.parts import Samples, SampleScene
from hybrid.benchmarks.questions.schema import Recipe
from hybrid.core.errors import UsageError
from hybrid.core.files import write_atomic
from hybrid.core.types import LETTERS, Kind
from hybrid.samples.item import Item, jpeg
from hybrid.samples.layouts import Rect
from hybrid.samples.named import SCENES
from hybrid.samples.seeds import Purpose, generator

# Replaces a `*` in the pattern of the data's files.
PART: Final = "00000-of-00001"
ROW_GROUP: Final = 20
# Streams of the random generator, one per decision.
_WORDS, _PICTURES = 1, 2


@dataclass(frozen=True)
class _Row:
    """A row before it is written: the pictures as JPEG files, the other cells by column."""

    number: int
    images: tuple[bytes, ...]
    cells: Mapping[str, object]
    # The boxes (x0, y0, x1, y1) of the first picture that have to be seen.
    evidence: tuple[Rect, ...] = ()


def write(
    folder: Path, recipe: Recipe, tasks: Sequence[str], *, per_task: int, seed: int, purpose: Purpose = "sample"
) -> Path:
    """Write the table with at least `per_task` rows of each task, in full units; equal calls give equal bytes.

    Raises `UsageError` for a scene, a task, a number or a seed that cannot be generated; nothing is written then.
    """
    for scene in _of(recipe).scenes:
        if scene.scene not in SCENES:
            raise UsageError(
                f"{recipe.name}: samples: {scene.scene!r:.40} is not a scene; available: {', '.join(SCENES)}"
            )
    check_request(tasks, recipe.scenes, per_task, seed)
    units = -(-per_task // _of(recipe).rows)
    rows = [row for task in tasks for row in _rows(recipe, task, units, seed, purpose)]
    path = folder / recipe.hub.files[0].format(split=recipe.hub.splits[0]).replace("*", PART)
    path.parent.mkdir(parents=True, exist_ok=True)
    _WRITERS[path.suffix](path, recipe.layout.columns.get("image", ("image",)), rows)
    if recipe.layout.evidence_beside is not None and path.suffix == ".jsonl":
        for row in rows:
            boxes = {recipe.layout.evidence_beside: _boxes(recipe, row.evidence)}
            write_atomic(path.parent / f"images/{row.number}_0.json", json.dumps(boxes).encode())
    return path


def format_options(pattern: str, options: Sequence[str], *, lower: bool = False) -> str:
    """Join options to one text that a pattern of `options.py` splits."""
    if pattern.startswith("["):
        return json.dumps(list(options))
    first, _, rest = pattern.replace("\\n", "\n").partition("X")
    between, _, _ = rest.partition("Y")
    gap = between.removesuffix(first.replace("a", "b"))
    letters = LETTERS.lower() if lower else LETTERS
    return gap.join(first.replace("a", letter) + option for letter, option in zip(letters, options, strict=False))


def _boxes(recipe: Recipe, evidence: Sequence[Rect]) -> list[list[float]]:
    """Return the boxes of a row in the recipe's form."""
    corners = [[round(number, 1) for number in box] for box in evidence]
    sized = [[x0, y0, round(x1 - x0, 1), round(y1 - y0, 1)] for x0, y0, x1, y1 in corners]
    return sized if recipe.layout.evidence_form == "xywh" else corners


def _of(recipe: Recipe) -> Samples:
    if recipe.samples is None:
        raise UsageError(f"--data sample: {recipe.name} has no generated questions; its recipe has no samples:")
    return recipe.samples


def _rows(recipe: Recipe, task: str, units: int, seed: int, purpose: Purpose) -> Iterator[_Row]:
    sample, scenes, key = _of(recipe), recipe.scenes, zlib.crc32(f"{recipe.name}/{task}".encode())
    earlier_tasks = list(scenes).index(task)
    for unit in range(units):
        scene = scenes[task][unit % len(scenes[task])]
        for place in range(sample.rows):
            index = unit * sample.rows + place
            scene_number = unit if sample.cyclic else index
            answer = dealt(SCENES[scene.scene].choices, scene_number, purpose, seed, key)
            if place == 0 or not sample.cyclic:
                # Draw a new item for every row, except that all rotations of one question share the item of the first
                # row.
                words = generator(purpose, seed, key, _WORDS, unit)
                item = SCENES[scene.scene].make(words, generator(purpose, seed, key, _PICTURES, scene_number), answer)
                images = tuple(jpeg(pixels, 85) for pixels in item.images)
            number = 1 + earlier_tasks + index * len(scenes)
            # The rows of a cycle rotate the options.
            by, options = place * sample.cyclic, len(item.choices)
            choices = tuple(item.choices[(number - by) % options] for number in range(options))
            rotation = replace(item, choices=choices, answer=(item.answer + by) % options)
            yield _Row(
                number, images, _cells(recipe, scene, rotation, number=number, unit=unit, place=place), item.evidence
            )


def _cells(recipe: Recipe, scene: SampleScene, item: Item, *, number: int, unit: int, place: int) -> dict[str, object]:
    layout, sample = recipe.layout, _of(recipe)
    lower = sample.letter == "(a)"
    template = scene.question or sample.question
    options = format_options(layout.split_choices or "(a) X\\n(b) Y", item.choices, lower=lower)
    (question,), choice_columns = layout.columns["question"], layout.columns.get("choices", ())
    cells: dict[str, object] = {
        name: texts[place % len(texts)].replace("{unit}", str(unit)) for name, texts in scene.cells.items()
    }
    cells[question] = template.format(question=item.question, choices=options, unit=unit)
    for column in layout.columns.get("id", ()):
        cells[column] = number
    if len(choice_columns) > 1:
        cells |= dict(zip(choice_columns, (*item.choices, *[None] * len(choice_columns)), strict=False))
    elif choice_columns and choice_columns != (question,):
        cells[choice_columns[0]] = options if layout.split_choices else list(item.choices)
    has_options = bool(choice_columns) and (choice_columns != (question,) or "{choices}" in template)
    (answer,) = layout.columns["answer"]
    if layout.evidence_beside is None:
        # Generated rows have this column even if the data lack it, because the scene knows where the answer is visible.
        boxes = [{"image": 1, "box": box} for box in _boxes(recipe, item.evidence)]
        cells[layout.columns.get("evidence", ("evidence",))[0]] = json.dumps(boxes)
    cells[answer] = item.choices[item.answer]
    if has_options and layout.kind is not Kind.YES_NO and layout.answer in ("index0", "index1"):
        cells[answer] = item.answer + (layout.answer == "index1")
    elif has_options and layout.kind is not Kind.YES_NO and layout.answer != "text":
        letter = LETTERS[item.answer]
        cells[answer] = sample.letter.replace("A", letter).replace("a", letter.lower())
    return cells


def _parquet(path: Path, columns: Sequence[str], rows: Sequence[_Row]) -> None:
    import pyarrow as pa

    several = len(columns) == 1 and any(len(row.images) > 1 for row in rows)
    records: list[dict[str, object]] = []
    for row in rows:
        pictures = [{"bytes": data, "path": None} for data in row.images]
        image_cells: dict[str, Any] = {columns[0]: pictures} if several else dict(zip(columns, pictures, strict=False))
        records.append({**row.cells, **image_cells})
    write_parquet(path, [records], pa.Table.from_pylist(records).schema, ROW_GROUP)


def _text(path: Path, columns: Sequence[str], rows: Sequence[_Row]) -> None:
    """Write JSON Lines and CSV with pictures in separate files, TSV with pictures in base64."""
    records: list[dict[str, object]] = []
    for row in rows:
        image_cells: dict[str, str] = {}
        for place, (column, data) in enumerate(zip(columns, row.images, strict=False)):
            image_cells[column] = f"images/{row.number}_{place}.jpg"
            if path.suffix == ".tsv":
                image_cells[column] = base64.b64encode(data).decode()
            else:
                write_atomic(path.parent / image_cells[column], data)
        records.append({**row.cells, **image_cells})
    table = io.StringIO()
    if path.suffix == ".jsonl":
        table.writelines(json.dumps(cells) + "\n" for cells in records)
    else:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        writer = csv.DictWriter(table, list(records[0]), delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
    write_atomic(path, table.getvalue().encode())


_WRITERS: Final = {".parquet": _parquet, ".jsonl": _text, ".csv": _text, ".tsv": _text}
