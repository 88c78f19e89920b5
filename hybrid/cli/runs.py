"""`hybrid runs`: list the runs of a folder, and cancel their batches."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._options import tables_option
from hybrid.display.terminal import TEXT, Shape

# Number of runs to list unless all are requested.
NEWEST = 20


@click.group("runs")
def command() -> None:
    """List runs, and end what they have waiting at a provider."""


@command.command("list")
@click.argument("folders", nargs=-1, type=types.ANY_PATH, metavar="[DIR]...")
@click.option("--all", "show_all", is_flag=True, help="Print every run instead of the newest 20.")
@tables_option
@shared.as_json
def list_(folders: tuple[Path, ...], show_all: bool, tables: Shape, as_json: bool) -> int:
    """Print the newest runs in these folders; those in runs/ where none is given.

    ANSWERED counts the questions that every solver of the run has finished. STATE is finished, open (the command that
    made it goes on with it), being written, or damaged, and how many requests wait in batches of the provider; what is
    damaged is said on stderr.

    \b
    Examples:
      hybrid runs list
      hybrid runs list runs other/runs --json
    """
    from hybrid.display.tables import NONE, RENDERERS, Column, Table, share
    from hybrid.log.listing import list_runs

    # Before the first run the folder does not exist.
    runs = list_runs(folders or [place for place in (Path("runs"),) if place.exists()])
    for run in runs:
        for line in run.damage:
            click.echo(f"note: {line}", err=True)
    if as_json:
        plain = [{"path": str(run.path), "date": run.date.isoformat(), "damage": [*run.damage]} for run in runs]
        click.echo(json.dumps({"runs": [asdict(run) | more for run, more in zip(runs, plain, strict=True)]}))
        return 0
    if not runs:
        click.echo("no runs here: `hybrid run` makes one in runs/", err=True)
        return 0
    rows = (
        (
            run.path.resolve().name if run.path == Path() else str(run.path),
            run.benchmark or NONE,
            run.model or NONE,
            ", ".join(run.solvers) or NONE,
            share(run.answered, run.n),
            run.control or NONE,
            f"{run.date.astimezone():%Y-%m-%d %H:%M}",
            run.state + (f", {run.in_batches:,} in batches" if run.in_batches else ""),
        )
        for run in (runs if show_all else runs[:NEWEST])
    )
    headings = ("name", "benchmark", "model", "solvers", "answered", "control", "date", "state")
    columns = tuple(Column(name, "right" if name == "answered" else "left") for name in headings)
    click.echo(RENDERERS[TEXT[tables]](Table("", columns, tuple(rows))), nl=False)
    if len(runs) > NEWEST and not show_all:
        click.echo(f"and {len(runs) - NEWEST} more: --all")
    return 0


@command.command("cancel")
@click.argument("run", type=types.ANY_PATH)
def cancel(run: Path) -> int:
    """End the batches that RUN has waiting at the provider.

    Replies that are done are kept there and fetched when the run goes on with --batch; what is not done is not paid.

    \b
    Examples:
      hybrid runs cancel runs/blink-gpt-4o-1a2b3c4d5e
    """
    import asyncio

    from hybrid.running.batching import cancel_batches

    for line in asyncio.run(cancel_batches(run)):
        click.echo(line)
    return 0
