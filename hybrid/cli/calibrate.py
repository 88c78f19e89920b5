"""`hybrid calibrate`: measures the reliability of each tool, cross-validated over folds of questions."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._options import logging_options_of, path_option, tables_option
from hybrid.core.errors import UsageError
from hybrid.display.notes import tell
from hybrid.display.terminal import TEXT, Shape


@click.command("calibrate")
@shared.run
@click.option("--folds", type=types.SEVERAL, default=5, show_default=True)
@click.option("-o", "--out", type=types.ANY_PATH, required=True, help="The trust file, for --trust.")
@click.option(
    "--only", cls=types.Listed, multiple=True, metavar="NAME,NAME", help="Print the routes of these tools, or of mllm."
)
@click.option("--all", "show_all", is_flag=True, help="Print every tool on every route.")
@tables_option
@path_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, with every number.")
@logging_options_of
def command(
    run: Path, folds: int, out: Path, only: tuple[str, ...], tables: Shape, *, show_all: bool, as_json: bool
) -> int:
    """Count how often each tool was right, by route and confidence, in a finished RUN.

    A question is later judged only by the counts of the other folds. If the run has the solver mllm, the MLLM's own
    accuracy is counted too. A tool's statement gets the weight that it earned on questions where tool and MLLM
    disagreed; if these are few, the weight changes little. The file names benchmark, data, model and backends; a run
    with another benchmark, model or backend rejects the file. A run with --tool-output blank, shuffled or oracle cannot
    be counted.

    \b
    Example:
      hybrid calibrate runs/blink-gpt-4o-1a2b3c4d5e -o trust.json
      hybrid run blink --data DIR --model openai:gpt-4o --solver arbiter --trust trust.json
    """
    from hybrid.cli._output import print_failures
    from hybrid.display.tables import RENDERERS
    from hybrid.log.folder import RunFolder
    from hybrid.scoring import calibrate_tables
    from hybrid.scoring.calibrate import measured, measurements, write_trust

    if as_json + show_all + bool(only) > 1:
        raise UsageError("--only and --all choose tables, and --json has every number: give only one of them")
    folder = RunFolder.existing(run)
    answers = write_trust(folder, out, folds, only)
    rows = [row for row in measurements(answers) if not only or row[0][0] in only]
    unchecked = measured(folder.manifest, answers).unchecked
    if as_json:
        facts = {"run": str(run), "trust": str(out), "folds": folds, "unchecked": unchecked}
        click.echo(json.dumps({**facts, "measured": calibrate_tables.as_json(rows)}))
    elif only or show_all:
        click.echo(RENDERERS[TEXT[tables]](calibrate_tables.by_route(rows)), nl=False)
    else:
        click.echo("\n".join(calibrate_tables.headline(rows)))
    for name in unchecked:
        tell(f"unchecked weights: {name} answered, but its known answers were not checked")
    tell(f"wrote {out}")
    damage = [line for solver in folder.solvers() for line in folder.recorded(solver).damage]
    print_failures(damage)
    return 3 if damage else 0
