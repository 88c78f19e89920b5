"""`hybrid score`: verdicts and metrics of runs and of predictions that somebody else saved."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hybrid.cli._table_options import abstain_option, allow_failed_option, protocol_option, published_option
from hybrid.errors import UsageError

if TYPE_CHECKING:
    from hybrid.benchmarks.base import Abstain, Parse, ScoreOptions
    from hybrid.run_folder import RunFolder
    from hybrid.scoring.compare import Choice
    from hybrid.scoring.predictions.base import Origin
    from hybrid.scoring.score import Field, Scored
    from hybrid.types import Json


FAILED_SHOWN = 20


@click.command("score")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--benchmark", help="Whose predictions these are; a run knows it itself.")
@click.option("--data", help="The benchmark's data, for predictions without their questions.")
@click.option(
    "--field",
    type=click.Choice(["stored", "text"]),
    help="Of saved predictions: the answer stored with them, or our parse of the full text.  [default: stored, where "
    "they store one]",
)
@protocol_option
@abstain_option
@allow_failed_option
@published_option
@click.option(
    "--verdicts",
    metavar="FILE|judge",
    help="Also count what a judge read in unparsed replies: a file, or what `hybrid judge` left in the run.",
)
@click.option("--by", help="Report by this group in the place of tasks.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Import the predictions as a run into this folder.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(
    paths: tuple[Path, ...],
    benchmark: str | None,
    data: str | None,
    field: Field | None,
    protocol: Parse | None,
    abstain: Abstain | None,
    allow_failed: bool,
    published: bool,
    verdicts: str | None,
    by: str | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Score runs, or predictions that somebody else saved. No model is called.

    \b
    Examples:
      hybrid score runs/blink-1a2b3c4d5e
      hybrid score saved_outputs/GPT4o --benchmark blink --field text --json
      hybrid score GPT4o_BLINK.xlsx --benchmark blink --data DIR
      hybrid score GPT4o.jsonl mcq_GPT4o.jsonl --benchmark mvp_bench --data DIR
      hybrid score runs/blink-1a2b3c4d5e --verdicts judge
    """
    from hybrid.registry import load
    from hybrid.scoring.compare import Choice
    from hybrid.scoring.score import import_run

    sets = by_model(paths, benchmark)
    if out is not None:
        if len(sets) != 1 or benchmark is None:
            raise UsageError("-o imports one set of predictions: give one PATH and --benchmark")
        ((path, *more),) = sets
        folder = import_run(path, load("hybrid.benchmarks", benchmark), field, out, data, more)
        tell(origin_of(folder))
        sets = ((folder.path,),)
    if published and as_json:
        raise UsageError("--published prints tables: leave out --json")
    counting = Counting(protocol, abstain or default_rule(as_json=as_json))
    found = {path: gather(path, benchmark, data, field, counting, verdicts, more) for path, *more in sets}
    if as_json and len(found) > 1:
        click.echo(json.dumps({"paths": {str(path): report(scored, path, by) for path, scored in found.items()}}))
    else:
        choice = Choice(by, allow_failed=allow_failed)
        for path, scored in found.items():
            show(scored, path, choice, as_json=as_json, printed=published)
    failed = [line for scored in found.values() for line in failed_lines(scored)]
    name_failed(failed)
    return 3 if failed else 0


def by_model(paths: Sequence[Path], benchmark: str | None) -> tuple[tuple[Path, ...], ...]:
    """The paths, with the files of one model's predictions together; the first of each names it."""
    from hybrid.registry import load
    from hybrid.scoring.predictions.mounted import sets_of

    if benchmark is None:
        return tuple((path,) for path in paths)
    sets = sets_of(paths, load("hybrid.benchmarks", benchmark).card)
    for files in sets:
        if len(files) > 1:
            click.echo(f"one model, scored together: {', '.join(map(str, files))}", err=True)
    return sets


def default_rule(*, as_json: bool) -> Abstain:
    """What no answer counts where nothing was said: as the papers do in `metrics`, a guess in tables that compare."""
    return "wrong" if as_json else "chance"


@dataclass(frozen=True)
class Counting:
    """What was asked for: the parser, or None for that of each run, and what no answer counts."""

    protocol: Parse | None
    abstain: Abstain

    def options(self, folder: RunFolder | None = None) -> ScoreOptions:
        """For the replies of a run, or for saved predictions."""
        from hybrid.benchmarks.base import ScoreOptions

        own: Parse = "strict" if folder is None else folder.manifest["identity"].get("protocol", "strict")
        return ScoreOptions(self.protocol or own, self.abstain)


def gather(
    path: Path,
    benchmark: str | None,
    data: str | None,
    field: Field | None,
    counting: Counting,
    verdicts: str | None = None,
    more: Sequence[Path] = (),
) -> tuple[Scored, ...]:
    """The scored solvers behind a path: a run, a solver's folder in it, or saved predictions.

    `more` are further files of the predictions at `path` (`by_model`).

    For a run whose answers are hidden the submission files are written, and there is nothing to return. Of predictions
    the format and what did not fit are printed on stderr.
    """
    from hybrid.registry import load
    from hybrid.run_folder import MANIFEST, RunFolder
    from hybrid.scoring.score import score_predictions, score_run

    source: Path | Literal["judge"] | None = None
    if verdicts is not None:
        source = "judge" if verdicts == "judge" else Path(verdicts)
    if (path / MANIFEST).is_file():
        folder = RunFolder(path)
        return () if _submitted(folder) else score_run(folder, counting.options(folder), (), source)
    if (path.parent / MANIFEST).is_file() and path.is_dir():
        folder = RunFolder(path.parent)
        return score_run(folder, counting.options(folder), (path.name,), source)
    if benchmark is None:
        raise UsageError(f"{path} is not a run; for saved predictions say whose they are with --benchmark NAME")
    if verdicts is not None:
        raise UsageError(
            f"--verdicts: {path} is not a run; import it with -o RUN --field text, then `hybrid judge RUN`"
        )
    scored = score_predictions(path, load("hybrid.benchmarks", benchmark), field, counting.options(), data, more)
    tell(scored.origin)
    return (scored,)


def origin_of(folder: RunFolder) -> Origin | None:
    """Where the predictions of an imported run came from."""
    from hybrid.run_folder import codec
    from hybrid.scoring.predictions.base import Origin

    known = folder.manifest.get("predictions")
    origin: Origin | None = None if known is None else codec(Origin).validate_python(known)
    return origin


def tell(origin: Origin | None) -> None:
    """Print on stderr which format was recognised, how its rows were joined, and what is missing or extra."""
    for line in origin.lines() if origin is not None else ():
        click.echo(line, err=True)


def _submitted(folder: RunFolder) -> bool:
    """Whether the run's answers are hidden; then the submission of each solver is written."""
    from hybrid.registry import load
    from hybrid.scoring.score import write_submission

    identity = folder.manifest["identity"]
    name, split = identity["benchmark"], identity["split"]
    if split not in load("hybrid.benchmarks", name).card.hidden_splits:
        return False
    click.echo(f"the answers of {name} {split} are hidden: nothing is scored", err=True)
    for solver in folder.solvers():
        click.echo(f"submission: {write_submission(folder, solver)}", err=True)
    return True


def report(scored: Sequence[Scored], path: Path, by: str | None = None, *, in_run: bool = False) -> dict[str, Json]:
    """The numbers as JSON; without any solver where the answers are hidden."""
    if len(scored) == 1 and not in_run:
        return scored[0].as_json(by)
    return {"run": str(path), "solvers": {one.solver: one.as_json(by) for one in scored}}


def failed_lines(scored: Sequence[Scored]) -> list[str]:
    """A line for each question that nobody answered."""
    return [
        f"{score.id} ({one.solver}): {score.outcome.value}"
        for one in scored
        for score in one.scores
        if score.outcome.failed
    ]


def name_failed(lines: Sequence[str]) -> None:
    """Print the first failures on stderr, and how many more there are."""
    for line in lines[:FAILED_SHOWN]:
        click.echo(f"failed: {line}", err=True)
    if len(lines) > FAILED_SHOWN:
        click.echo(f"failed: and {len(lines) - FAILED_SHOWN} more", err=True)


def show(
    scored: Sequence[Scored],
    path: Path,
    choice: Choice,
    *,
    as_json: bool,
    in_run: bool = False,
    printed: bool = False,
) -> None:
    """Print the numbers as tables or as JSON; several solvers, or those of `hybrid run`, are under their names."""
    if as_json:
        click.echo(json.dumps(report(scored, path, choice.by, in_run=in_run)))
        return
    from hybrid.scoring.compare_tables import tables
    from hybrid.tables import as_text

    for table in tables(with_judged(scored), choice, brief=True, printed=printed):
        click.echo(as_text(table))


def with_judged(scored: Sequence[Scored]) -> tuple[Scored, ...]:
    """Every solver, and once more next to itself with a judge's verdicts where there are some."""
    found = []
    for one in scored:
        found.append(one)
        if one.judged:
            found.append(replace(one, solver=f"{one.solver} + judge", counted=one.judged, judged={}))
    return tuple(found)
