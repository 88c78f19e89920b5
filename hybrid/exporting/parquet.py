"""A table with a row per question and solver, for pandas, polars, DuckDB, `datasets` or the viewer of Hugging Face.

    hybrid export RUN --to parquet -o run.parquet

`hybrid/scoring/records.py` lists the columns with type and meaning; `docs/exchange.md` prints them. Rows are in the
order of the solvers, then of the questions. The file's metadata has `hybrid_version`, `run_sha256` and `identity` (the
run's configuration as JSON).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

from hybrid.core.errors import UsageError, needed_by
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written
from hybrid.scoring.records import PARQUET, QuestionTable, RecordColumn
from hybrid.version import __version__

__all__ = ["EXPORTER", "ParquetExporter"]


class ParquetExporter(Exporter):
    """One file with the columns that `hybrid/scoring/records.py` lists."""

    form = "parquet"
    about = "a table with one row per question and solver, typed columns; all solvers, every prompt, no images"
    columns: ClassVar[tuple[RecordColumn, ...]] = PARQUET
    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`. Also raises `UsageError` if no question was asked."""
        del options
        if path.suffix not in self.suffixes:
            raise UsageError(f"-o {path}: the format {self.form} writes {' or '.join(self.suffixes)}")
        table = QuestionTable(run.scored, self.columns)
        if not table:
            raise UsageError(f"{run.folder.path} has no question that was asked")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.write(run, table, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return Written((path,))

    def write(self, run: ExportedRun, table: QuestionTable, path: Path) -> None:
        """Write the rows; each column has its type even if it is empty."""
        with needed_by(f"--to {self.form}"):
            import pyarrow as pa
            import pyarrow.parquet as pq

        kinds = {
            "string": pa.string(),
            "list<string>": pa.list_(pa.string()),
            "int32": pa.int32(),
            "int64": pa.int64(),
            "double": pa.float64(),
            "timestamp[us, UTC]": pa.timestamp("us", "UTC"),
        }
        metadata = {
            "hybrid_version": __version__,
            "identity": json.dumps(run.shown_identity),
            **{name: fact if isinstance(fact, str) else json.dumps(fact) for name, fact in run.facts.items()},
        }
        schema = pa.schema([(name, kinds[kind]) for name, kind in table.columns.items()], metadata=metadata)
        pq.write_table(pa.Table.from_pylist(list(table), schema=schema), path)


EXPORTER = ParquetExporter()
