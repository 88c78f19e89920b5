"""`hybrid runs`: list the runs of a folder, show one, and cancel its batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._options import tables_option
from hybrid.display.terminal import TEXT, Shape

# Number of runs to list unless all are requested.
NEWEST = 20


@click.group("runs")
def command() -> None:
    """List runs, show one, and cancel its batches at a provider."""


@command.command("list")
@click.argument("folders", nargs=-1, type=types.ANY_PATH, metavar="[DIR]...")
@click.option("--benchmark", metavar="NAME", help="Only runs of this benchmark.")
@click.option("--model", metavar="TEXT", help="Only runs whose model contains this text.")
@click.option("--solver", metavar="NAME", help="Only this solver.")
@click.option(
    "--state", type=click.Choice(["finished", "open", "being written", "damaged"]), help="Only runs in this state."
)
@click.option(
    "--sort",
    type=click.Choice(["date", "name", "score", "cost", "n"]),
    default="date",
    show_default=True,
    help="The order: newest, by name, highest score, highest cost, or most questions first.",
)
@click.option("--all", "show_all", is_flag=True, help="Print every run instead of the newest 20.")
@tables_option
@shared.as_json
def list_(
    folders: tuple[Path, ...], sort: Any, show_all: bool, tables: Shape, as_json: bool, **chosen: str | None
) -> int:
    """Print the newest runs in these folders, with a row for each solver; without a folder, those in runs/.

    SCORE is the benchmark's headline metric. STATE is finished, open (to continue, rerun the command that made it),
    being written, or damaged; it also shows how many requests wait in batches of the provider. stderr describes the
    damage.

    \b
    Examples:
      hybrid runs list
      hybrid runs list --benchmark blink --model gpt-4o --sort score
      hybrid runs list runs other/runs --json
    """
    from hybrid.scoring.run_list import RunFilter, list_scored

    # Before the first run the folder does not exist.
    places = folders or [place for place in (Path("runs"),) if place.exists()]
    filters = RunFilter(**{name: value or "" for name, value in chosen.items()})
    runs = list_scored(places, filters, sort, None if show_all or as_json else NEWEST)
    for run in runs.runs:
        for line in run.damage:
            click.echo(f"note: {line}", err=True)
    if as_json:
        click.echo(json.dumps(runs.as_json()))
        return 0
    if not runs.runs:
        chosen_words = " ".join(f"--{name} {value}" for name, value in chosen.items() if value)
        hint = f"no run here has {chosen_words}" if chosen_words else "no runs here; `hybrid run` makes one in runs/"
        click.echo(hint, err=True)
        return 0
    click.echo(runs.render(TEXT[tables]), nl=False)
    if runs.left_out:
        click.echo(f"and {runs.left_out} more: --all")
    return 0


@command.command("show")
@click.argument("run", type=types.FOLDER, shell_complete=types.runs)
@click.option(
    "--only",
    multiple=True,
    metavar="ID",
    help="Print the steps to the answers of this question. May be given several times.",
)
@tables_option
@shared.as_json
def show(run: Path, only: tuple[str, ...], tables: Shape, as_json: bool) -> int:
    """Print what RUN asked, of which model with which tools, and each solver's score, cost and time.

    With --only, print every step to the answers of these questions instead.

    \b
    Examples:
      hybrid runs show runs/blink-gpt-4o-1a2b3c4d5e
      hybrid runs show runs/blink-gpt-4o-1a2b3c4d5e --only val_Jigsaw_7
    """
    from hybrid.core.errors import UsageError, did_you_mean
    from hybrid.interface.answers import answers_of
    from hybrid.log.folder import RunFolder
    from hybrid.scoring.run_list import show_run

    if not only:
        details = show_run(run)
        for line in details.run.damage:
            click.echo(f"note: {line}", err=True)
        click.echo(json.dumps(details.as_json()) if as_json else details.render(TEXT[tables]), nl=as_json)
        return 0
    folder = RunFolder.existing(run)
    ids = folder.questions().by_id
    for name in only:
        if name not in ids:
            raise UsageError(f"--only {name}: {run} has no such question{did_you_mean(name, list(ids))}")
    answers = answers_of(folder, only)
    click.echo(json.dumps(answers.as_json(), ensure_ascii=False) if as_json else str(answers))
    return 0


@command.command("cancel")
@click.argument("run", type=types.ANY_PATH)
def cancel(run: Path) -> int:
    """Cancel the batches of RUN that wait at the provider.

    Finished replies are kept there and fetched when the run resumes with --batch; unfinished ones cost nothing.

    \b
    Examples:
      hybrid runs cancel runs/blink-gpt-4o-1a2b3c4d5e
    """
    import asyncio

    from hybrid.running.batching import cancel_batches

    for line in asyncio.run(cancel_batches(run)):
        click.echo(line)
    return 0
