"""Files of Every Eval Ever: `UUID.json` next to `UUID_samples.jsonl`, or a folder with one such pair.

Rows have `sample_id`, `input.reference` (the right answer), `output.raw` or `messages`, `error`, and `metadata` with
`task` and `cluster`. Questions are stored as hashes or as one text with their options, so they are joined by id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybrid.benchmarks.base import PredictedRow
from hybrid.core.errors import DataError, UsageError
from hybrid.display.terminal import how_many
from hybrid.log.lines import json_lines
from hybrid.scoring.predictions.base import Recognised, first, letter_of
from hybrid.scoring.predictions.inspect import words_of

SAMPLES = "_samples.jsonl"
MAX_AGGREGATE = 50_000_000
# An id from `hybrid export`: data, solver and the beginning of the run's sha256.
OUR_EVALUATION = re.compile(r"[^/]+/([^/]+)/[0-9a-f]{16}")


def read(path: Path) -> Recognised | None:
    """Return the rows of a sample file, of the file that an aggregate names, or of the only sample file in a folder.

    Raises:
        DataError: a row without required fields, or an aggregate without its rows.
        UsageError: a folder with several sample files.
    """
    if (file := _samples_of(path)) is None:
        return None
    rows, failed, named = [], [], ("", "")
    for values, location in json_lines(file):
        if not isinstance(values.get("sample_id"), str) or "evaluation_id" not in values:
            raise DataError(f"{location}: expected sample_id and evaluation_id")
        named = _solver_of(values)
        if values.get("error"):
            failed.append(values["sample_id"])
        else:
            rows.append(_row(values, location))
    notes = (f"{how_many(len(failed), 'row')} left out, with an error: {first(failed)}",) if failed else ()
    return Recognised(f"Every Eval Ever ({how_many(len(rows), 'row')})", tuple(rows), notes, *named)


def _solver_of(values: Mapping[str, Any]) -> tuple[str, str]:
    """Return the solver and the model of a row; empty texts if another program wrote the row.

    Every repetition of a solver has a file of its own, whose name says nothing.
    """
    ours = OUR_EVALUATION.fullmatch(str(values["evaluation_id"]))
    return (ours[1], str(values.get("model_id") or "")) if ours else ("", "")


def _samples_of(path: Path) -> Path | None:
    """Return the file of rows; None for another format."""
    if path.is_dir():
        files = sorted(path.rglob(f"*{SAMPLES}"))
        if len(files) > 1:
            raise UsageError(
                f"{path} holds {len(files)} files of Every Eval Ever: give one of them, such as {files[0]}"
            )
        return files[0] if files else None
    if path.name.endswith(SAMPLES):
        return path
    if path.suffix.lower() != ".json" or not path.is_file() or path.stat().st_size > MAX_AGGREGATE:
        return None
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not (isinstance(content, dict) and {"schema_version", "evaluation_id"} <= content.keys()):
        return None
    file = path.with_name(f"{path.stem}{SAMPLES}")
    if not file.is_file():
        raise DataError(f"{path}: the file with its rows, {file.name}, is not in the same folder")
    return file


def _row(values: Mapping[str, Any], location: str) -> PredictedRow:
    sample_input, metadata = values.get("input") or {}, values.get("metadata") or {}
    reference, cluster = sample_input.get("reference") or [], metadata.get("cluster")
    return PredictedRow(
        where=location,
        reply=_reply(values),
        id=values["sample_id"],
        task=metadata.get("task"),
        cluster=cluster if isinstance(cluster, str) else "",
        answer=letter_of(str(reference[0])) if len(reference) == 1 else None,
    )


def _reply(values: Mapping[str, Any]) -> str:
    raw = (values.get("output") or {}).get("raw")
    if isinstance(raw, list) and raw:
        return str(raw[-1])
    replies = [message for message in values.get("messages") or () if message.get("role") == "assistant"]
    return words_of(replies[-1]) if replies else ""
