"""The questions as `hybrid.table` gives them: csv for a spreadsheet, parquet that `datasets` reads.

hybrid export RUN --to table -o questions.csv
"""

from __future__ import annotations

from pathlib import Path

from hybrid.errors import UsageError
from hybrid.exporting._arrow import write
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written
from hybrid.scoring.records import QuestionTable


class Table(Exporter):
    """One file, by its ending."""

    form = "table"
    about = "a row a question and solver with what is counted of it, .csv or .parquet; all solvers, no texts"
    takes = ()

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`."""
        del options
        if path.suffix not in (".csv", ".parquet"):
            raise UsageError(f"-o {path}: the format table writes .csv or .parquet")
        made = QuestionTable(run.scored)
        if path.suffix == ".parquet":
            return write(run, made, made.columns, path, self.form)
        if not made:
            raise UsageError(f"{run.folder.path} has no question that was asked")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made.as_csv(), newline="")
        return Written((path,))


EXPORTER = Table()
