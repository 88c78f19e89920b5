"""`hybrid export`: a run as the files of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hybrid.cli._logging_options import told_options
from hybrid.cli._option_types import OneOf
from hybrid.cli._path import path_option
from hybrid.display.notes import tell
from hybrid.errors import UsageError
from hybrid.registry import load, names

if TYPE_CHECKING:
    from hybrid.exporting.base import Images

FORMATS = "hybrid.exporting"
FORMAT = OneOf("format", FORMATS)


@click.command("export")
@click.argument("run", metavar="RUN[/SOLVER]", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--to", "form", required=True, type=FORMAT, metavar=f"[{'|'.join(names(FORMATS))}]", help="What is written."
)
@click.option(
    "-o", "--out", required=True, type=click.Path(path_type=Path), help="A file or folder that is not there yet."
)
@click.option(
    "--images",
    type=click.Choice(["attached", "none"]),
    default="attached",
    show_default=True,
    help="Whether pictures go into an inspect log; the other formats hold none.",
)
@path_option
@told_options
def command(run: Path, form: str, out: Path, images: Images) -> int:
    """Write a run as other tools read it, and say on stderr what it came to.

    No model is called, and the run stays as it is.

    lmms_eval and vlmevalkit keep one reply a question and are read back by `hybrid score`; inspect and parquet keep
    every ask; submission is for splits with hidden answers.

    \b
    Examples:
      hybrid export runs/blink-gpt-4o-1a2b3c4d5e/mllm --to lmms_eval -o logs
      hybrid export runs/blink-gpt-4o-1a2b3c4d5e/mllm --to vlmevalkit -o gpt4o_BLINK.xlsx
      hybrid export runs/blink-gpt-4o-1a2b3c4d5e --to inspect -o logs
      hybrid export runs/blink-gpt-4o-1a2b3c4d5e --to parquet -o blink.parquet
    """
    from hybrid.exporting.base import ExportedRun, ExportOptions

    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise UsageError(f"-o {out} is there already: name a file or folder that is not")
    exported = ExportedRun.at(run)
    written = load(FORMATS, form).export(exported, out, ExportOptions(images))
    for line in written.notes:
        tell(f"note: {line}")
    for sentence in exported.conclusion:
        tell(sentence.text)
    for file in written.paths:
        click.echo(file)
    return 0
