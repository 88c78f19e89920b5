"""`hybrid compare`: solvers side by side on the same questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from hybrid.cli import _complete
from hybrid.cli._help import Grouped
from hybrid.cli._logging_options import told_options
from hybrid.cli._option_types import BENCHMARK, Listed
from hybrid.cli._path import path_option
from hybrid.cli._table_options import (
    abstain_option,
    allow_failed_option,
    form_options,
    other_labels_option,
    protocol_option,
    published_option,
    tables_option,
)
from hybrid.display.terminal import TEXT, Shape
from hybrid.errors import UsageError

if TYPE_CHECKING:
    from hybrid.scoring.paths import CompareArguments


@click.command("compare", cls=Grouped, rare=("path", "benchmark", "data", "field", "protocol", "margin"))
@click.argument(
    "paths", nargs=-1, shell_complete=_complete.runs, required=True, type=click.Path(path_type=Path, exists=True)
)
@click.option("--by", help="Report by this group (granularity, images, ...) instead of tasks.")
@click.option("--benchmark", type=BENCHMARK, help="For saved predictions among the paths: whose they are.")
@click.option("--data", help="The benchmark's data, for predictions without their questions.")
@click.option("--field", type=click.Choice(["stored", "text"]), help="Of saved predictions: see `hybrid score --help`.")
@protocol_option
@abstain_option
@other_labels_option
@click.option("--baseline", metavar="SOLVER", help="Test every other solver against this one.")
@click.option(
    "--pairs", multiple=True, metavar="A:B", help="Test B against A; may be given several times.  [default: all pairs]"
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    metavar="M",
    help="Non-inferior is what is behind by less than this, in the unit of the headline metric.",
)
@allow_failed_option
@published_option
@click.option(
    "--only",
    cls=Listed,
    multiple=True,
    metavar="NAME,NAME",
    help="Print these tables: metrics, tasks, differences, outcomes, gain, ceiling, agreement, evidence, ...",
)
@click.option("--all", is_flag=True, help="Print every table.")
@tables_option
@form_options
@path_option
@told_options
def command(paths: tuple[Path, ...], form: str | None, tables: Shape, **options: Unpack[CompareArguments]) -> int:
    """Compare solvers: what tools bring in plain sentences, each solver's value, and accuracy by task.

    \b
    Examples:
      hybrid compare runs/blink-gpt-4o-1a2b3c4d5e
      hybrid compare runs/a/arbiter runs/b/arbiter --by granularity --markdown
      hybrid compare runs/real/controller runs/blank/controller runs/real/mllm
      hybrid compare runs/a --baseline mllm --published
      hybrid compare runs/GPT4o runs/GPT4V --only agreement,helped
      hybrid compare runs/a --all
      hybrid compare runs/a --csv > numbers.csv
    \f
    Below, a section for each question that these solvers can answer: whether a gain comes from what the tools say (with
    a run of blank tools), how much of what its parts know a hybrid reaches, how its MLLM used the evidence, which
    mistakes two solvers share.

    A PATH is a run (all its solvers), a solver's folder in a run, or saved predictions (with --benchmark). Of several
    runs each name carries what sets its run apart: "controller [blank]" is that of a run with --tool-output blank,
    "mllm [openai:gpt-4o]" one of several models, which have a table of models by tasks.
    Solvers are compared on the questions that both have; other questions under the same ids are refused. Where a run
    has lost answers, what is wrong with it is printed on stderr and the exit code is 3.
    """
    from hybrid.cli.score import name_failed
    from hybrid.scoring.reports import compare_paths

    if form == "json" and options["published"]:
        raise UsageError("--published prints tables: leave out --json")
    if form in ("json", "csv") and (options["all"] or options["only"]):
        raise UsageError(f"--all and --only choose tables, and --{form} has every number: leave them out")
    report = compare_paths(paths, **options)
    if report.solvers:
        output = json.dumps(report.as_json()) + "\n" if form == "json" else report.render(form or TEXT[tables])
        click.echo(output, nl=False)
    name_failed(report.failed)
    return 3 if report.failed else 0
