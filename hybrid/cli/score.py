"""`hybrid score`: compute scores and metrics of runs and of imported predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._help import Grouped
from hybrid.cli._options import logging_options_of, path_option, shared_option, tables_option
from hybrid.cli._output import print_failures, show_scores
from hybrid.core.errors import UsageError
from hybrid.display.terminal import Shape

if TYPE_CHECKING:
    from hybrid.scoring.paths import ScoreArguments


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
    help=(
        "Also score with a judge's verdicts on unparsed replies: from a file, or as `hybrid judge` saved them (judge)."
    ),
)
@click.option("--by", help="Group the tables by this field instead of by task.")
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
    show_scores(report, tables, as_json=as_json)
    print_failures(report.failed)
    return 3 if report.failed else 0
