"""`hybrid score`: verdicts and metrics of runs and of predictions that somebody else saved."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hybrid.errors import UsageError

if TYPE_CHECKING:
    from hybrid.benchmarks.base import Parse, ScoreOptions
    from hybrid.records import RunFolder
    from hybrid.score import Field, Scored
    from hybrid.types import Json


@click.command("score")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--benchmark", help="Whose predictions these are; a run knows it itself.")
@click.option("--data", help="The benchmark's data, for predictions without their questions.")
@click.option(
    "--field",
    type=click.Choice(["stored", "text"]),
    default="stored",
    show_default=True,
    help="Of saved predictions: the answer stored with them, or our parse of the full text.",
)
@click.option("--protocol", type=click.Choice(["official", "strict"]), default="strict", show_default=True)
@click.option("--abstain", type=click.Choice(["chance", "wrong"]), default="chance", show_default=True)
@click.option("--by", help="Report by this group in the place of tasks.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Import the predictions as a run into this folder.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(
    paths: tuple[Path, ...],
    benchmark: str | None,
    data: str | None,
    field: Field,
    protocol: Parse,
    abstain: Literal["chance", "wrong"],
    by: str | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Score runs, or predictions that somebody else saved. No model is called.

    \b
    Examples:
      hybrid score runs/blink-1a2b3c4d5e
      hybrid score saved_outputs/GPT4o --benchmark blink --field text --json
    """
    from hybrid.benchmarks.base import ScoreOptions
    from hybrid.compare import regrouped
    from hybrid.registry import load
    from hybrid.score import import_run

    if out is not None:
        if len(paths) != 1 or benchmark is None:
            raise UsageError("-o imports one set of predictions: give one PATH and --benchmark")
        folder = import_run(paths[0], load("hybrid.benchmarks", benchmark), field, out, data)
        paths = (folder.path,)
    options = ScoreOptions(protocol, abstain)
    failed = False
    for path in paths:
        scored = tuple(regrouped(one, by) for one in gather(path, benchmark, data, field, options))
        if scored:
            show(scored, path, as_json=as_json)
        failed = failed or any(score.outcome.failed for one in scored for score in one.scores)
    return 3 if failed else 0


def gather(
    path: Path, benchmark: str | None, data: str | None, field: Field, options: ScoreOptions
) -> tuple[Scored, ...]:
    """The scored solvers behind a path: a run, a solver's folder in it, or saved predictions.

    For a run whose answers are hidden the submission files are written, and there is nothing to return.
    """
    from hybrid.records import MANIFEST, RunFolder
    from hybrid.registry import load
    from hybrid.score import score_predictions, score_run

    if (path / MANIFEST).is_file():
        folder = RunFolder(path)
        return () if _submitted(folder) else score_run(folder, options)
    if (path.parent / MANIFEST).is_file() and path.is_dir():
        return score_run(RunFolder(path.parent), options, (path.name,))
    if benchmark is None:
        raise UsageError(f"{path} is not a run; for saved predictions say whose they are with --benchmark NAME")
    return (score_predictions(path, load("hybrid.benchmarks", benchmark), field, options, data),)


def _submitted(folder: RunFolder) -> bool:
    """Whether the run's answers are hidden; then the submission of each solver is written."""
    from hybrid.registry import load
    from hybrid.score import write_submission

    identity = folder.manifest["identity"]
    name, split = identity["benchmark"], identity["split"]
    if split not in load("hybrid.benchmarks", name).card.hidden_splits:
        return False
    click.echo(f"the answers of {name} {split} are hidden: nothing is scored", err=True)
    for solver in folder.solvers():
        click.echo(f"submission: {write_submission(folder, solver)}", err=True)
    return True


def show(scored: Sequence[Scored], path: Path, *, as_json: bool, in_run: bool = False) -> None:
    """Print the numbers as tables or as JSON; several solvers, or those of `hybrid run`, stand under their names."""
    if as_json:
        by_name: dict[str, Json] = {one.solver: one.as_json() for one in scored}
        alone = len(scored) == 1 and not in_run
        click.echo(json.dumps(scored[0].as_json() if alone else {"run": str(path), "solvers": by_name}))
        return
    from hybrid.compare import tables
    from hybrid.report.tables import as_text

    for table in tables(scored, brief=True):
        click.echo(as_text(table))
