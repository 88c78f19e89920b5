"""`hybrid tools metrics RUN`: what each tool did in a run, including tools from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hybrid.cli import _options as shared
from hybrid.cli._options import path_option, tables_option
from hybrid.display.terminal import TEXT, Shape


@click.command("metrics")
@shared.run
@path_option
@tables_option
@shared.as_json
def metrics(run: Path, tables: Shape, *, as_json: bool) -> int:
    """For each tool in RUN, count calls, faults and seconds, and how often its answer was right, by route.

    Nothing is called: the rules read the recorded outputs. If no rule reads a tool's output, its answers are unknown.

    \b
    Example:
      hybrid tools metrics runs/tally --path my_tools
    """
    from hybrid.display.tables import RENDERERS
    from hybrid.log.folder import RunFolder
    from hybrid.scoring import tool_metrics
    from hybrid.scoring.paths import scored_at

    rows = [row for scored in scored_at(run, {}) for row in tool_metrics.tool_metrics(scored)]
    if as_json:
        click.echo(json.dumps({"run": str(run), "tools": tool_metrics.as_json(rows)}))
    else:
        click.echo(RENDERERS[TEXT[tables]](tool_metrics.metrics_table(RunFolder.existing(run), rows)), nl=False)
    return 0
