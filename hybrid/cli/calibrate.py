"""`hybrid calibrate`: reliability of each tool, out of fold by question."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hybrid.scoring.calibrate import CountedTestimony
    from hybrid.solving.trust import Key
    from hybrid.tables import Table


@click.command("calibrate")
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The trust file, for --trust.")
def command(run: Path, folds: int, out: Path) -> int:
    """Count how often each tool was right, by route and confidence, in a finished RUN.

    A question is later judged only by what was counted on the other folds. The MLLM's own accuracy is counted too
    where the run has the solver mllm. The file names benchmark, data, model and backends; a run with another benchmark,
    model or backend refuses it. A run with --tool-output blank, shuffled or oracle cannot be counted.

    \b
    Example:
      hybrid calibrate runs/blink-1a2b3c4d5e -o trust.json
      hybrid run blink --data DIR --model openai:gpt-4o --solver arbiter --trust trust.json
    """
    from hybrid.cli.score import name_failed
    from hybrid.run_folder import RunFolder
    from hybrid.scoring.calibrate import measured, write_trust
    from hybrid.tables import as_text

    folder = RunFolder.existing(run)
    found = write_trust(folder, out, folds)
    click.echo(as_text(_table(found)), nl=False)
    for name in measured(folder.manifest, found).unchecked:
        click.echo(f"unchecked weights: {name} answered without having been asked for known answers", err=True)
    click.echo(f"wrote {out}", err=True)
    damage = [line for solver in folder.solvers() for line in folder.recorded(solver).damage]
    name_failed(damage)
    return 3 if damage else 0


def _table(found: tuple[CountedTestimony, ...]) -> Table:
    from hybrid.stats import wilson
    from hybrid.tables import Column, Table, accuracy, bounds, share

    counts: dict[Key, list[bool]] = defaultdict(list)
    for case in found:
        counts[case.key].append(case.right)
    rows = tuple(
        (*key, share(sum(right), len(right)), accuracy(sum(right) / len(right)), bounds(wilson(sum(right), len(right))))
        for key, right in sorted(counts.items())
    )
    columns = tuple(Column(name, "left") for name in ("tool", "backend", "route"))
    numbers = tuple(Column(name) for name in ("right", "reliability", "95 %"))
    return Table("How often a testimony was right", (*columns, *numbers), rows)
