"""MVP-Bench's published predictions: `MODEL.jsonl` (single run) and `mcq_MODEL.jsonl` (rotations).

Rows are {"question_id", "output", "prompt", "image", "model_id"} in any order and may appear several times. They
contain the raw reply and no gold answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hybrid.benchmarks.base import PredictedRow
from hybrid.benchmarks.mvp_bench.data import image_of, text_of, variant
from hybrid.benchmarks.mvp_bench.parse import read_options
from hybrid.core.errors import DataError
from hybrid.core.types import base_id
from hybrid.log.lines import json_lines

# Prefix of the file with a model's replies to the rotations.
ROTATED = "mcq_"

FIELDS = frozenset({"question_id", "output", "prompt", "image"})


def read_outputs(path: Path) -> tuple[PredictedRow, ...] | None:
    """Return the replies of one model, sorted by question and rotation; None for another layout.

    A folder may contain the two files of one model. Repeated rows count once.

    Raises:
        DataError: a file is not JSON lines, a row lacks a field, an id has two different replies, or the folder
            contains several models.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path] if path.suffix == ".jsonl" else []
    firsts = ((file, next(json_lines(file), None)) for file in files)
    files = [file for file, row in firsts if row and row[0].keys() >= FIELDS and variant(row[0]["question_id"])]
    if not files:
        return None
    models = {file.stem.removeprefix(ROTATED) for file in files}
    if len(models) > 1:
        raise DataError(
            f"{path} contains predictions of {len(models)} models ({', '.join(sorted(models))}): give one file"
        )
    rows: dict[str, PredictedRow] = {}
    for file in files:
        for output in _outputs(file):
            first_output = rows.setdefault(str(output.id), output)
            if first_output.reply != output.reply:
                raise DataError(f"{output.where}: question {output.id} has a different reply in {first_output.where}")
    # Sort by number of the question, then by rotation. Rotations can be sorted as text, because there are fewer than
    # ten.
    return tuple(sorted(rows.values(), key=lambda row: (int(base_id(str(row.id))), str(row.id))))


def _outputs(file: Path) -> Iterator[PredictedRow]:
    for values, location in json_lines(file):
        official = variant(values.get("question_id"))
        if official is None:
            raise DataError(f"{location}, field question_id: {values.get('question_id')!r} is not an MVP-Bench id")
        image, prompt = text_of(values, "image", location), text_of(values, "prompt", location)
        place, choices = image_of(image), read_options(prompt)
        if place is None:
            raise DataError(f"{location}, field image: {image!r} is not an MVP-Bench image")
        text = values.get("output")
        if text is not None and not isinstance(text, str):
            raise DataError(f"{location}, field output: expected text, found {type(text).__name__}")
        task = "cross" if place[1] == "concat" else "single" if choices else "yes_no"
        yield PredictedRow(location, text or "", id=official[0], task=task, text=prompt, choices=choices)
