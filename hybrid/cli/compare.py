"""`hybrid compare`: compares solvers on the same questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._help import Grouped
from hybrid.cli._options import form_options, logging_options_of, path_option, shared_option, tables_option
from hybrid.cli._output import paint_head
from hybrid.core.errors import UsageError
from hybrid.display.terminal import TEXT, Shape

if TYPE_CHECKING:
    from hybrid.scoring.paths import CompareArguments


@click.command("compare", cls=Grouped, rare=("benchmark", "data", "field", "protocol", "margin"))
@shared.paths
@shared.by
@shared.benchmark
@shared.data
@shared.field
@shared.protocol
@shared_option("unanswered")
@shared.other_labels
@shared.baseline
@shared.pairs
@shared.margin
@shared_option("allow_failed")
@shared.published
@click.option(
    "--only",
    cls=types.Listed,
    multiple=True,
    metavar="NAME,NAME",
    help=(
        "Print only these tables, such as metrics, tasks, differences, outcomes, gain, ceiling, agreement or evidence."
    ),
)
@click.option("--all", is_flag=True, help="Print every table.")
@tables_option
@form_options
@path_option
@logging_options_of
def command(paths: tuple[Path, ...], form: str | None, tables: Shape, **options: Unpack[CompareArguments]) -> int:
    """Compare solvers: the effect of tools in plain sentences, each solver's value, and accuracy by task.

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
    The output has a section for each question that these solvers can answer: whether a gain comes from the tool output
    (with a run of blank tools), how close a hybrid comes to the best combination of its parts, how its MLLM used the
    tool output, which mistakes two solvers share.

    A PATH is a run (all its solvers), a solver's folder in a run, or saved predictions (with --benchmark). With
    several runs, each name includes what distinguishes its run: "controller [blank]" comes from --tool-output
    blank, "mllm [openai:gpt-4o]" one of several models. Several models also get a table of models by tasks.
    Solvers are compared on the questions that both have; different questions under the same ids are refused. If a run
    has lost answers, the problem is printed on stderr and the exit code is 3.
    """
    from hybrid.cli._output import print_failures
    from hybrid.scoring.reports import compare_paths

    if form == "json" and options["published"]:
        raise UsageError("--published prints tables: leave out --json")
    if form in ("json", "csv") and (options["all"] or options["only"]):
        raise UsageError(f"--all and --only choose tables, and --{form} has every number: leave them out")
    report = compare_paths(paths, **options)
    if report.solvers:
        plain = form or TEXT[tables]
        output = json.dumps(report.as_json()) + "\n" if form == "json" else paint_head(report.render(plain), plain)
        click.echo(output, nl=False)
    print_failures(report.failed)
    return 3 if report.failed else 0
