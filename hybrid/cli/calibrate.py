"""`hybrid calibrate`: reliability of each tool, out of fold by question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hybrid.cli import _complete
from hybrid.cli._logging_options import told_options
from hybrid.cli._table_options import tables_option
from hybrid.cli._tool_path import tool_path_option
from hybrid.display.notes import tell
from hybrid.display.terminal import TEXT, Shape

if TYPE_CHECKING:
    from hybrid.display.tables import Table
    from hybrid.scoring.calibrate import CountedAnswer


@click.command("calibrate")
@click.argument("run", shell_complete=_complete.runs, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The trust file, for --trust.")
@tables_option
@told_options
@tool_path_option
def command(run: Path, folds: int, out: Path, tables: Shape) -> int:
    """Count how often each tool was right, by route and confidence, in a finished RUN.

    A question is later judged only by what was counted on the other folds. The MLLM's own accuracy is counted too
    where the run has the solver mllm. What a witness claims is recalibrated by an intercept and a slope that fit the
    cases; a few of them change little. The file names benchmark, data, model and backends; a run with another
    benchmark, model or backend refuses it. A run with --tool-output blank, shuffled or oracle cannot be counted.

    \b
    Example:
      hybrid calibrate runs/blink-gpt-4o-1a2b3c4d5e -o trust.json
      hybrid run blink --data DIR --model openai:gpt-4o --solver arbiter --trust trust.json
    """
    from hybrid.cli.score import name_failed
    from hybrid.display.tables import RENDERERS
    from hybrid.log.folder import RunFolder
    from hybrid.scoring.calibrate import measured, write_trust

    folder = RunFolder.existing(run)
    counted = write_trust(folder, out, folds)
    click.echo(RENDERERS[TEXT[tables]](_table(counted)), nl=False)
    for name in measured(folder.manifest, counted).unchecked:
        tell(f"unchecked weights: {name} answered without having been asked for known answers")
    tell(f"wrote {out}")
    damage = [line for solver in folder.solvers() for line in folder.recorded(solver).damage]
    name_failed(damage)
    return 3 if damage else 0


def _table(counted: tuple[CountedAnswer, ...]) -> Table:
    from hybrid.display.tables import Column, Table, accuracy, bounds
    from hybrid.scoring.calibrate import measurements
    from hybrid.stats import wilson

    rows = tuple(
        (
            *key,
            f"{measured.right:g}/{measured.n}",
            accuracy(measured.right / measured.n),
            # The sum of graded answers is no count of right ones.
            bounds(wilson(int(measured.right), measured.n) if measured.right.is_integer() else None),
            f"{measured.recalibration.intercept:+.2f}",
            f"{measured.recalibration.slope:.2f}",
        )
        for key, measured in measurements(counted)
    )
    columns = tuple(Column(name, "left") for name in ("tool", "backend", "route"))
    numbers = tuple(Column(name) for name in ("right", "reliability", "95 %", "intercept", "slope"))
    return Table("How often a testimony was right, and what that makes of its log-odds", (*columns, *numbers), rows)
