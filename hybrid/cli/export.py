"""`hybrid export`: write a run in the format of another tool."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli import _option_types as types
from hybrid.cli._help import Grouped
from hybrid.cli._option_types import CheckedText
from hybrid.cli._options import logging_options_of, path_option
from hybrid.cli._output import paint_head
from hybrid.config.values import check_plugin
from hybrid.core.errors import UsageError
from hybrid.display.notes import tell
from hybrid.display.terminal import one_line
from hybrid.plugins.registry import load, names

if TYPE_CHECKING:
    from hybrid.exporting.base import Exporter

FORMATS = "hybrid.exporting"
TO = click.option(
    "--to",
    "form",
    required=True,
    type=CheckedText("text", partial(check_plugin, noun="format", package=FORMATS)),
    metavar="FORMAT",
    help=f"One of {', '.join(names(FORMATS))}.",
)


@click.command("export", cls=Grouped)
@click.argument("run", type=types.RUN_OR_SOLVER, metavar="RUN[/SOLVER]")
@TO
@click.option("-o", "--out", type=types.ANY_PATH, required=True, help="The file or folder to write; it must not exist.")
@click.option(
    "--images",
    type=click.Choice(["attached", "none"]),
    help="Whether pictures go into an inspect log.  [default: attached]",
)
@click.option(
    "--only",
    type=click.Choice(["right", "helped", "all"]),
    help="Which conversations to write: those with a right answer (right), those right with tools and wrong without "
    "(helped), or all.  [default: right]",
)
@click.option(
    "--max-turns", type=types.NUMBER, metavar="N", help="Leave out conversations with more than N model turns."
)
@click.option(
    "--allow",
    type=click.Choice(["test-split", "generated"]),
    multiple=True,
    help="Allow training data from a benchmark's split, or results on generated questions.",
)
@click.option(
    "--questions",
    type=click.Choice(["hashed", "shown"]),
    help="Whether every_eval_ever contains the texts of questions.  [default: hashed]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@path_option
@logging_options_of
def command(run: Path, form: str, out: Path, as_json: bool, **format_options: Any) -> int:
    """Write a run in the format of another tool. No model is called.

    lmms_eval and vlmevalkit keep one reply per question, and `hybrid score` can read them back; inspect and parquet
    keep every prompt and reply; conversations and sharegpt are for training tool use, verifiers for training with
    rewards, submission for hidden answers, every_eval_ever for result collections.

    \b
    Examples:
      hybrid export runs/blink-gpt-4o-1a2b3c4d5e/mllm --to lmms_eval -o logs
      hybrid export runs/blink-gpt-4o-1a2b3c4d5e/mllm --to vlmevalkit -o gpt4o_BLINK.xlsx
      hybrid export runs/blink-gpt-4o-1a2b3c4d5e --to inspect -o logs
      hybrid export runs/blink-gpt-4o-1a2b3c4d5e --to conversations --only helped -o data
    """
    from hybrid.core.files import complete_or_absent
    from hybrid.exporting.base import ExportedRun, ExportOptions
    from hybrid.scoring.reports import HEAD_SEPARATOR

    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise UsageError(f"-o {out} already exists: name a new file or folder")
    exporter: Exporter = load(FORMATS, form)
    fields = {name: value for name, value in format_options.items() if value not in (None, ())}
    for name in fields:
        if name not in exporter.takes:
            raise UsageError(f"--{name.replace('_', '-')}: the format {form} does not have this option")
    exported = ExportedRun.at(run)
    with complete_or_absent(out):
        output = exporter.export(exported, out, ExportOptions(**fields))
    for line in output.notes:
        tell(f"note: {line}")
    if output.rows is not None:
        tell(f"{output.rows} conversations written, {sum(output.left_out.values())} left out")
    if exported.conclusion:
        head = HEAD_SEPARATOR.join(map(one_line, exported.head))
        tell(paint_head(head, "text") if sys.stderr.isatty() else head)
    for sentence in exported.conclusion:
        tell(sentence.text)
    if as_json:
        # Formats of conversations also have the number of rows written, and of rows left out by reason.
        counts = {} if output.rows is None else {"rows": output.rows, "left_out": dict(output.left_out)}
        click.echo(
            json.dumps(
                {"files": [str(path) for path in output.paths], **counts, "notes": list(output.notes)},
                ensure_ascii=False,
            )
        )
        return 0
    for file in output.paths:
        click.echo(file)
    return 0
