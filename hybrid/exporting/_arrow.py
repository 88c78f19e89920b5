"""Rows with typed columns as a parquet file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hybrid.errors import UsageError, needed_by
from hybrid.exporting.base import ExportedRun, Written
from hybrid.version import __version__


def write(
    run: ExportedRun, rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], path: Path, form: str
) -> Written:
    """The file of these rows; `types` has each column's in the words of Arrow. Raises `UsageError` without a row."""
    with needed_by(f"--to {form}"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    if not rows:
        raise UsageError(f"{run.folder.path} has no question that was asked")
    text = pa.string()
    known = {
        "string": text,
        "list<string>": pa.list_(text),
        "map<string, string>": pa.map_(text, text),
        "map<string, double>": pa.map_(text, pa.float64()),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "timestamp[us, UTC]": pa.timestamp("us", "UTC"),
    }
    metadata = {
        "hybrid_version": __version__,
        "run_sha256": run.sha256,
        "identity": json.dumps(run.identity),
        "no_answer": run.options.abstain,
        "conclusion": json.dumps([sentence.text for sentence in run.conclusion]),
    }
    schema = pa.schema([(name, known[kind]) for name, kind in types.items()], metadata=metadata)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return Written((path,))
