"""BLINK's published model outputs: `saved_outputs/MODEL/TASK.json`, file names with spaces or with underscores.

Each file is {"val": [...], "test": [...]} of rows {"idx", "answer", "full_prediction", "prediction"}. The answers of
the test rows are "hidden"; by default only val rows are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.errors import DataError


@dataclass(frozen=True)
class Output:
    """One recorded reply: the model's full text, and the letter that the authors' extraction stored."""

    id: str
    task: str
    gold: str
    text: str
    stored: str
    where: str


def read_outputs(path: Path, split: str = "val") -> tuple[Output, ...] | None:
    """Every recorded reply of a folder or file, in the order of the files; None when it is not this layout.

    Raises:
        DataError: a file is not JSON, a row lacks a field, or an id stands there twice.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path] if path.suffix == ".json" else []
    found: list[Output] = []
    seen: dict[str, str] = {}
    for file in files:
        content = _load(file)
        if not isinstance(content, dict) or not isinstance(content.get(split), list):
            return None
        for output in _rows(file, content[split], split):
            if output.id in seen:
                raise DataError(f"{output.where}: the id {output.id!r} also stands in {seen[output.id]}")
            seen[output.id] = output.where
            found.append(output)
    return tuple(found) or None


def _load(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except ValueError as error:
        raise DataError(f"{file} is not JSON ({error})") from error


def _rows(file: Path, rows: list[Any], split: str) -> Iterator[Output]:
    task = file.stem.replace(" ", "_")
    for number, row in enumerate(rows, 1):
        where = f"{file}, {split} row {number}"
        if not isinstance(row, dict) or not {"idx", "answer", "full_prediction", "prediction"} <= row.keys():
            raise DataError(f"{where}: expected idx, answer, full_prediction and prediction")
        if not str(row["idx"]).startswith(f"{split}_{task}_"):
            raise DataError(f"{where}: the id {row['idx']!r} does not belong to the file's task {task}")
        yield Output(
            str(row["idx"]),
            task,
            str(row["answer"]),
            str(row["full_prediction"] or ""),
            str(row["prediction"] or ""),
            where,
        )
