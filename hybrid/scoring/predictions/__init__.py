"""Predictions in formats that belong to no single benchmark: `hybrid score FILE --benchmark blink --data DIR`.

Each format has one module: `vlmevalkit` (sheets, tsv, xlsx and csv), `lmms_eval` (sample logs, jsonl), `inspect` (logs,
eval and json), `every_eval_ever`, `flat` (ids and answers). Each recognises its files by columns or fields, not by
name. `join` matches the rows to the benchmark's questions; to add a format, add a module to `recognise`.
"""

from __future__ import annotations

from pathlib import Path

from hybrid.scoring.predictions.base import Recognised

FORMATS = (
    "VLMEvalKit sheets (.tsv, .xlsx, .csv), lmms-eval sample logs (.jsonl), Inspect logs (.eval, .json), files of "
    "Every Eval Ever and answers by id (.json)"
)


def recognise(path: Path) -> Recognised | None:
    """Return the predictions at `path`, a file or a folder; None if no reader recognises them.

    Raises:
        DataError: an unusable file of a known format; the message names file and row.
        UsageError: a folder with several sets of predictions.
    """
    # Imported here, because every run imports this package to show scores, but few runs read predictions.
    from hybrid.scoring.predictions import every_eval_ever, flat, inspect, lmms_eval, vlmevalkit

    for read in (vlmevalkit.read, lmms_eval.read, inspect.read, every_eval_ever.read, flat.read):
        if (recognised := read(path)) is not None:
            return recognised
    return None
