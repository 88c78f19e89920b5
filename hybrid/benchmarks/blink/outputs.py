"""BLINK's published model outputs: `saved_outputs/MODEL/TASK.json`, file names with spaces or with underscores.

Files are named `TASK_concat.json` if the pictures of a question were sent as one.

Each file is {"val": [...], "test": [...]} of rows {"idx", "answer", "full_prediction", "prediction"}. The answers of
the test rows are "hidden"; only val rows are scored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hybrid.benchmarks.base import PredictedRow
from hybrid.core.errors import DataError
from hybrid.core.generated_mark import ID_PREFIX

# Ending of a file name if questions were asked with their pictures joined into one.
CONCAT = "_concat"


def read_outputs(path: Path) -> tuple[PredictedRow, ...] | None:
    """Return every recorded val reply of a folder or file, in the order of the files; None for another layout.

    Raises:
        DataError: a file is not JSON, a row lacks a field, or an id appears twice or belongs to another task.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path] if path.suffix == ".json" else []
    rows: dict[str, PredictedRow] = {}
    stems = {file.stem for file in files}
    if concatenated := sorted(stem for stem in stems if f"{stem}{CONCAT}" in stems):
        raise DataError(
            f"{path} contains {concatenated[0]}.json and {concatenated[0]}{CONCAT}.json: they come from two runs; put "
            "each into its own folder"
        )
    for file in files:
        splits = splits_of(file)
        if "val" not in splits:
            return None
        for row in rows_of(file, {"val": splits["val"]}):
            if row.answer is None or row.stored is None:
                raise DataError(f"{row.where}: expected idx, answer, full_prediction and prediction")
            if not str(row.id).removeprefix(ID_PREFIX).startswith(f"val_{row.task}_"):
                raise DataError(f"{row.where}: the id {row.id!r} does not belong to the file's task {row.task}")
            earlier = rows.setdefault(str(row.id), row)
            if earlier is not row:
                raise DataError(f"{row.where}: the id {row.id!r} also appears in {earlier.where}")
    return tuple(rows.values()) or None


def task_of(file: Path) -> str:
    """Return the task that a file is named after."""
    return file.stem.replace(" ", "_").removesuffix(CONCAT)


def splits_of(file: Path) -> Mapping[str, list[Any]]:
    """Return the lists of rows in a file by split; empty for another layout. Raises `DataError` for broken JSON."""
    try:
        content = json.loads(file.read_bytes())
    except ValueError as error:
        raise DataError(f"{file} is not JSON ({error})") from error
    return {key: rows for key, rows in content.items() if isinstance(rows, list)} if isinstance(content, dict) else {}


def rows_of(file: Path, splits: Mapping[str, list[Any]]) -> Iterator[PredictedRow]:
    """Yield the rows of some splits; a null `full_prediction` is an empty reply. Raises `DataError` for a bad field."""
    for split, rows in splits.items():
        for number, row in enumerate(rows, 1):
            location = f"{file}, {split} row {number}"
            if not isinstance(row, dict) or not isinstance(row.get("idx"), str):
                raise DataError(f"{location}: no 'idx'")
            text = row.get("full_prediction", ...)
            if text is not None and not isinstance(text, str):
                raise DataError(f"{location}: 'full_prediction' is missing, or neither text nor null")
            yield PredictedRow(
                location,
                text or "",
                id=row["idx"],
                task=task_of(file),
                answer=str(row["answer"]) if "answer" in row else None,
                stored=str(row["prediction"] or "") if "prediction" in row else None,
            )
