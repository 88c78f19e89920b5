"""A table with a row a question and solver, for pandas, polars, DuckDB or the Hugging Face hub's viewer.

    hybrid export RUN --to parquet -o run.parquet

`COLUMNS` lists the columns with type and meaning; `docs/exchange.md` prints them. Rows come in the order of the
solvers, then of the questions. The file's metadata holds `hybrid_version`, `run_sha256` and `identity` (the run's
configuration as JSON).
"""

from __future__ import annotations

from pathlib import Path

from hybrid.exporting._arrow import write
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written
from hybrid.scoring.records import PARQUET as COLUMNS
from hybrid.scoring.records import SolverRows

__all__ = ["COLUMNS", "EXPORTER"]


class Parquet(Exporter):
    """One file."""

    form = "parquet"
    about = "a table with a row a question and solver, typed columns; all solvers, every ask, no images"

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`."""
        del options
        rows = [{one.name: one.of(row) for one in COLUMNS} for scored in run.scored for row in SolverRows(scored)]
        return write(run, rows, {one.name: one.type for one in COLUMNS}, path, self.form)


EXPORTER = Parquet()
