"""`hybrid judge`: let a model judge replies that the parser cannot read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._help import Grouped
from hybrid.cli._options import logging_options_of, path_option, tables_option
from hybrid.core.errors import UsageError
from hybrid.display.terminal import TEXT, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hybrid.config import ModelSettings
    from hybrid.scoring.judge import Judged


@click.command("judge", cls=Grouped, rare=("path",))
@shared.run
@click.option("--model", required=True, help="provider:model, hf:DIR_OR_ID or replay:DIR.")
@click.option(
    "--solver",
    "solvers",
    cls=types.Listed,
    multiple=True,
    metavar="A,B",
    help="Judge only the replies of these solvers.  [default: all solvers of the run]",
)
@click.option(
    "--base-url", type=types.ADDRESS, help="Address of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1."
)
@click.option(
    "--model-arg",
    "model_args",
    multiple=True,
    metavar="K=V",
    help="Any other option of the judge; may be given several times.",
)
@click.option("--max-tokens", type=types.NUMBER, help="Maximum length of the judge's reply, in tokens.")
@click.option(
    "--protocol",
    type=click.Choice(["official", "strict"]),
    help="The parser whose unread replies are judged.  [default: as the run was made]",
)
@click.option(
    "--concurrency", type=types.NUMBER, default=16, show_default=True, help="Number of replies judged at the same time."
)
@tables_option
@shared.as_json
@path_option
@logging_options_of
def command(
    run: Path,
    model: str,
    solvers: tuple[str, ...],
    base_url: str | None,
    model_args: tuple[str, ...],
    max_tokens: int | None,
    protocol: Literal["official", "strict"] | None,
    concurrency: int,
    tables: Shape,
    as_json: bool,
) -> int:
    """Ask a model, at temperature 0, which of the offered answers each unparsed reply of RUN gives, if any.

    Twenty replies that the parser can read are mixed in: a judge that agrees with the parser on fewer than 0.9 of them
    is refused.

    The verdicts are appended to RUN/SOLVER/verdicts.jsonl and the same command resumes where it stopped. They change no
    score: `hybrid score RUN --verdicts judge` shows the numbers with and without them.

    \b
    Example:
      hybrid judge runs/blink-gpt-4o-1a2b3c4d5e --model openai:gpt-4o-mini
    """
    import asyncio

    from hybrid.benchmarks.base import ScoreOptions
    from hybrid.core.images import ImageStore, home
    from hybrid.log.folder import RunFolder
    from hybrid.models import open_model
    from hybrid.scoring.judge import judge_run
    from hybrid.scoring.paths import DEFAULT_RULE, protocol_of

    folder = RunFolder.existing(run)
    for name in solvers:
        if name not in folder.solvers():
            raise UsageError(f"--solver {name}: {run} only has answers of: {', '.join(folder.solvers())}")
    judge = open_model(model, settings_of(model, base_url, model_args, max_tokens), ImageStore(home() / "images"))
    options = ScoreOptions(protocol or protocol_of(folder), DEFAULT_RULE)

    async def judged() -> Sequence[Judged]:
        try:
            return await judge_run(folder, judge, solvers, options, concurrency)
        finally:
            await judge.close()

    verdicts = asyncio.run(judged())
    show(verdicts, run, tables, as_json=as_json)
    return 3 if any(verdict.failed or verdict.refused for verdict in verdicts) else 0


def settings_of(model: str, base_url: str | None, model_args: tuple[str, ...], max_tokens: int | None) -> ModelSettings:
    """Return the settings of the judge. Raises `UsageError` for a temperature other than 0."""
    from hybrid.cli._sources import base_url_of_environment
    from hybrid.config import parse_model_args

    args = parse_model_args(model_args)
    if args.temperature != 0:
        raise UsageError("a judge is asked at temperature 0: leave out --model-arg temperature")
    # Without an address the request would go to the public provider, with the user's key for it.
    return replace(args, base_url=base_url or base_url_of_environment(model), max_tokens=max_tokens)


def show(verdicts: Sequence[Judged], run: Path, tables: Shape, *, as_json: bool) -> None:
    """Print the counts, and the failures on stderr."""
    from hybrid.cli._output import print_failures
    from hybrid.display.tables import RENDERERS, Column, Table

    print_failures([f"{line} ({verdict.solver})" for verdict in verdicts for line in verdict.failed])
    if as_json:
        solvers = {
            verdict.solver: {name: n for name, n in vars(verdict).items() if name != "solver"} for verdict in verdicts
        }
        click.echo(json.dumps({"run": str(run), "solvers": solvers}))
        return
    headings = ("unparsed", "asked now", "decided", "none", "unreadable", "failed", "as the parser")
    columns = (Column("solver", "left"), *map(Column, headings), Column("answers", "left"))
    rows = []
    for verdict in verdicts:
        counts = (
            verdict.unparsed,
            verdict.asked,
            verdict.decided,
            verdict.none,
            verdict.unreadable,
            len(verdict.failed),
        )
        answers = ", ".join(f"{letter} {n}" for letter, n in verdict.letters.items())
        rows.append((verdict.solver, *map(str, counts), f"{verdict.alike}/{verdict.mixed}", answers))
    refused = [verdict.solver for verdict in verdicts if verdict.refused]
    notes = (f"`hybrid score {run} --verdicts judge` shows the numbers with these verdicts and without.",)
    if refused:
        listed = ", ".join(refused)
        notes = (f"Its verdicts on {listed} are not used: it agrees with the parser on too few readable replies.",)
    table = Table("Verdicts on unparsed replies", columns, tuple(rows), notes)
    click.echo(RENDERERS[TEXT[tables]](table), nl=False)
