"""The questions as in `hybrid.table`: csv for spreadsheets, or parquet for `datasets`.

hybrid export RUN --to table -o questions.csv
"""

from __future__ import annotations

from pathlib import Path

from hybrid.core.files import write_atomic
from hybrid.exporting.base import ExportedRun
from hybrid.exporting.parquet import ParquetExporter
from hybrid.scoring.records import TABLE, QuestionTable


class TableExporter(ParquetExporter):
    """One file, whose suffix selects the format."""

    form = "table"
    about = "one row per question and solver with its counts, .csv or .parquet; all solvers, no texts"
    takes = ()
    columns = TABLE
    suffixes = (".csv", ".parquet")

    def write(self, run: ExportedRun, table: QuestionTable, path: Path) -> None:
        """Write the rows."""
        if path.suffix == ".csv":
            write_atomic(path, table.as_csv().encode("utf-8", "replace"))
        else:
            super().write(run, table, path)


EXPORTER = TableExporter()
