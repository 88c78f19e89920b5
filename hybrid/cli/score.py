"""`hybrid score`: compute scores and metrics of runs and of imported predictions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._field_options import shared_option
from hybrid.cli._head import paint_head
from hybrid.cli._help import Grouped
from hybrid.cli._logging_options import logging_options_of
from hybrid.cli._options import tables_option
from hybrid.cli._path import path_option
from hybrid.core.errors import UsageError
from hybrid.core.secrets import redact
from hybrid.display.terminal import TEXT, Shape

if TYPE_CHECKING:
    from hybrid.scoring.paths import ScoreArguments
    from hybrid.scoring.reports import ScoreReport


FAILED_SHOWN = 20


@click.command("score", cls=Grouped)
@shared.paths
@click.option("--benchmark", type=types.BENCHMARK, help="The benchmark of saved predictions; a run needs none.")
@shared.data
@click.option(
    "--field",
    type=click.Choice(["stored", "text"]),
    help="For saved predictions: use the stored answer, or parse the full text.  [default: stored, if there is one]",
)
@shared.protocol
@shared_option("unanswered")
@shared_option("allow_failed")
@shared.published
@click.option(
    "--verdicts",
    metavar="FILE|judge",
    help="Also count what a judge read in unparsed replies: a file, or what `hybrid judge` left in the run.",
)
@click.option("--by", help="Report by this group instead of tasks.")
@click.option("-o", "--out", type=types.ANY_PATH, help="Import the predictions as a run into this folder.")
@tables_option
@shared.as_json
@path_option
@logging_options_of
def command(paths: tuple[Path, ...], as_json: bool, tables: Shape, **options: Unpack[ScoreArguments]) -> int:
    """Score runs, or predictions that another program saved. No model is called.

    \b
    Examples:
      hybrid score runs/blink-gpt-4o-1a2b3c4d5e
      hybrid score saved_outputs/GPT4o --benchmark blink --field text --json
      hybrid score GPT4o_BLINK.xlsx --benchmark blink --data DIR
      hybrid score GPT4o.jsonl mcq_GPT4o.jsonl --benchmark mvp_bench --data DIR
      hybrid score runs/blink-gpt-4o-1a2b3c4d5e --verdicts judge
    """
    from hybrid.scoring.reports import score_paths

    if as_json and options["published"]:
        raise UsageError("--published prints tables: leave out --json")
    report = score_paths(paths, **options)
    show(report, tables, as_json=as_json)
    print_failures(report.failed)
    return 3 if report.failed else 0


def show(report: ScoreReport, tables: Shape, *, as_json: bool) -> None:
    """Print the numbers as tables or as JSON."""
    if as_json:
        click.echo(json.dumps(report.as_json()))
    elif report.solvers:
        form = TEXT[tables]
        click.echo(paint_head(report.render(form), form))


def print_failures(lines: Sequence[str]) -> None:
    """Print the first failures on stderr, without secrets, and the number of further failures."""
    for line in lines[:FAILED_SHOWN]:
        click.echo(f"failed: {redact(line)}", err=True)
    if len(lines) > FAILED_SHOWN:
        click.echo(f"failed: and {len(lines) - FAILED_SHOWN} more", err=True)
