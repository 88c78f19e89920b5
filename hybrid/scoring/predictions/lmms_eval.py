"""Sample logs of lmms-eval: `DATE_samples_TASK.jsonl`, one file per task, one JSON object per line.

Fields: `doc_id` (the row of the data set's split, from 0), `target` (the gold answer), `filtered_resps` (the reply
after filters), `resps` (the reply before filters; omitted if equal), and the metric's own entry. `blink_acc` of
BLINK has `id`, `sub_task` and `pred_parsed`, the letter that its own extraction found; `hybrid_acc` of exports by
`hybrid export` has `id`, `sub_task`, `score` and `cluster`. If the data row is saved in `doc` (`idx`, `question`,
`choices`, ...), it is read too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybrid.benchmarks.base import PredictedRow
from hybrid.core.errors import DataError
from hybrid.display.terminal import how_many
from hybrid.log.lines import json_lines
from hybrid.scoring.predictions.base import Recognised, letter_of

IDS = ("idx", "id", "question_id")
SAMPLES = "*samples_*.jsonl"


def read(path: Path) -> Recognised | None:
    """Return the rows of a log, or of all logs (`*samples_*.jsonl`) in a folder and its direct subfolders; else None.

    Raises:
        DataError: a line that is not JSON, or lacks a field.
    """
    files = sorted({*path.glob(SAMPLES), *path.glob(f"*/{SAMPLES}")}) if path.is_dir() else [path]
    logs = []
    for file in files:
        if file.suffix != ".jsonl":
            continue
        with file.open("rb") as lines:
            try:
                line = json.loads(next(lines, b""))
            except ValueError:
                continue
        if isinstance(line, dict) and "doc_id" in line and ("filtered_resps" in line or "resps" in line):
            logs.append(file)
    if not logs:
        return None
    tasks = {file: match[1] if (match := re.search(r"samples_(.+)$", file.stem)) else None for file in logs}
    samples = [(values, tasks[file], location) for file in logs for values, location in json_lines(file)]
    rows = tuple(_row(*sample) for sample in samples)
    counts = [len(_replies(values)) for values, _, _ in samples]
    several = [count for count in counts if count > 1]
    many = f"{min(several)} to {max(several)}" if len(set(several)) > 1 else str(max(several, default=1))
    notes = (
        (f"{len(several)} of {len(rows)} lines contain {many} replies each: only the first is scored",)
        if several
        else ()
    )
    return Recognised(
        f"lmms-eval sample log ({how_many(len(logs), 'file')}, {how_many(len(rows), 'row')})", rows, notes
    )


def _row(values: Mapping[str, Any], file_task: str | None, location: str) -> PredictedRow:
    doc_id = values.get("doc_id")
    if not isinstance(doc_id, int) or isinstance(doc_id, bool) or doc_id < 0:
        raise DataError(f"{location}, field doc_id: expected a whole number from 0, found {doc_id!r}")
    doc = _table(values.get("doc"))
    entries = [entry for entry in map(_table, values.values()) if entry is not doc]
    parsed = next((entry["pred_parsed"] for entry in entries if "pred_parsed" in entry), None)
    choices = doc.get("choices")
    target = values.get("target", doc.get("answer"))
    return PredictedRow(
        where=location,
        reply=_reply(values, location),
        id=next((str(entry[key]) for entry in (doc, *entries) for key in IDS if entry.get(key) is not None), None),
        task=next((str(entry["sub_task"]) for entry in (doc, *entries) if entry.get("sub_task")), file_task),
        place=doc_id + 1,
        text=doc["question"] if isinstance(doc.get("question"), str) else None,
        choices=tuple(map(str, choices)) if isinstance(choices, list) else (),
        answer=None if target is None else letter_of(str(target)),
        stored=None if parsed is None else str(parsed),
        cluster=next((str(entry["cluster"]) for entry in entries if entry.get("cluster")), ""),
    )


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _replies(values: Mapping[str, Any]) -> list[Any]:
    """Return the replies on one line, in order; several if the model was asked several times."""
    value = values.get("resps", values.get("filtered_resps"))
    # Unwrap the list of the line's requests and the list of replies to each.
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    replies = value if isinstance(value, list) else [value]
    return [reply[0] if isinstance(reply, list) and len(reply) == 1 else reply for reply in replies]


def _reply(values: Mapping[str, Any], location: str) -> str:
    """Return the first full reply of the model: from `resps` if present, else from `filtered_resps`."""
    value: Any = next(iter(_replies(values)), None)
    if isinstance(value, list):
        value = next(iter(value), None)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{location}, field filtered_resps: expected text, found {type(value).__name__}")
    return value
