"""The path arguments of `hybrid score`, `hybrid compare` and `hybrid report`, and their scored solvers.

A path is a run (all of its solvers), one solver's folder in it, or predictions that another program saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from hybrid.benchmarks.base import Benchmark, ScoreOptions, UnansweredRule
from hybrid.config import Parse
from hybrid.core.errors import UsageError
from hybrid.display.notes import tell
from hybrid.log.folder import RunFolder, runs_near
from hybrid.log.manifest import MANIFEST
from hybrid.plugins.registry import load
from hybrid.scoring.compare import ComparisonOptions
from hybrid.scoring.label_changes import OtherLabels
from hybrid.scoring.predicted import Field, score_predictions
from hybrid.scoring.predictions.base import Origin
from hybrid.scoring.predictions.mounted import sets_of
from hybrid.scoring.recorded_plugins import find_plugins
from hybrid.scoring.runs import score_run, write_submission
from hybrid.scoring.score import Scored

# The released scripts of the five benchmarks count an unanswered question as wrong (docs/protocols.md).
DEFAULT_RULE: UnansweredRule = "wrong"


class TableArguments(TypedDict, total=False):
    """The options that `hybrid score` and `hybrid compare` share."""

    benchmark: str | None
    data: str | None
    field: Field | None
    protocol: Parse | None
    unanswered: UnansweredRule | None
    allow_failed: bool
    published: bool
    by: str | None


class ScoreArguments(TableArguments, total=False):
    """The options of `hybrid score`."""

    verdicts: str | Path | None
    out: str | Path | None


class CompareArguments(TableArguments, total=False):
    """The options of `hybrid compare`."""

    other_labels: OtherLabels | None
    baseline: str | None
    pairs: Sequence[str]
    margin: float
    only: Sequence[str]
    all: bool


def known_group(by: str | None, solvers: Sequence[Scored]) -> str | None:
    """Return the name of a group of questions. Raises `UsageError` if there are scores, but none has the group."""
    scores = [score for solver in solvers for score in solver.scores]
    groups = {name for score in scores for name in score.groups}
    if by is not None and scores and by not in groups:
        there_are = f"available: {', '.join(sorted(groups))}" if groups else "there are no groups: leave out --by"
        raise UsageError(f"--by {by}: these questions have no such group; {there_are}")
    return by


def margin_of(value: float | None) -> float:
    """Return the margin of non-inferiority, 0.05 by default. Raises `UsageError` unless 0 < margin < 1."""
    margin = ComparisonOptions().margin if value is None else value
    if not 0 < margin < 1:
        raise UsageError(f"--margin {margin}: a difference in accuracy, larger than 0 and smaller than 1")
    return margin


def refuse_unknown(options: Mapping[str, object], allowed: type) -> None:
    """Raise `TypeError` for a keyword that is not an option of these arguments."""
    if unknown := sorted(set(options) - set(allowed.__annotations__)):
        raise TypeError(f"unknown option {', '.join(unknown)}; available: {', '.join(allowed.__annotations__)}")


def by_model(paths: Sequence[str | Path], options: TableArguments) -> tuple[tuple[Path, ...], ...]:
    """Return the paths, grouping prediction files of one model; the first path of each group names the group.

    Prints a note if options for predictions are unused because all paths are runs. Raises `UsageError` if a path is
    given twice.
    """
    # A run that is given twice, directly or through one of its solvers, would be compared with itself.
    seen: dict[Path, Path] = {}
    for path in map(Path, paths):
        if (other := seen.setdefault(path.resolve(), path)) is not path:
            raise UsageError(f"{path} is given twice{'' if other == path else f' (as {other})'}: give each run once")
    for real, path in seen.items():
        if real.parent in seen and (real.parent / MANIFEST).is_file():
            raise UsageError(f"{path} is given twice, because {seen[real.parent]} is its run: give one of them")
    unused = [f"--{name}" for name in ("benchmark", "data", "field") if options.get(name) is not None]
    if unused and all(_run_of(Path(path)) is not None for path in paths):
        tell(
            f"note: {', '.join(unused)} not used: they apply to saved predictions only, because a run knows "
            "its questions"
        )
    benchmark = options.get("benchmark")
    if benchmark is None:
        return tuple((Path(path),) for path in paths)
    sets = sets_of([Path(path) for path in paths], load("hybrid.benchmarks", benchmark).card)
    for files in sets:
        if len(files) > 1:
            tell(f"one model, scored together: {', '.join(map(str, files))}")
    return sets


def _run_of(path: Path) -> Path | None:
    """Return the run at a path, or the run of the solver at a path; None for predictions and unknown paths."""
    if (path / MANIFEST).is_file():
        return path
    return path.parent if path.is_dir() and (path.parent / MANIFEST).is_file() else None


def compare_words(paths: Sequence[Path], options: TableArguments) -> tuple[str, ...]:
    """Return the paths of one model, and the options with which `hybrid compare` reads them as these options do."""
    names = ["protocol"] if _run_of(paths[0]) is not None else ["benchmark", "data", "field", "protocol"]
    given = ((f"--{name}", str(value)) for name in names if (value := options.get(name)) is not None)
    return (*map(str, paths), *(word for pair in given for word in pair))


def scored_at(
    path: Path, options: TableArguments, more: Sequence[Path] = (), verdicts: str | Path | None = None
) -> tuple[Scored, ...]:
    """Return the scored solvers of a path: a run, a solver's folder in it, or saved predictions.

    `more` lists further files of the predictions at `path` (`by_model`). For a run with hidden answers, writes the
    submission files and returns nothing.
    """
    source: Path | Literal["judge"] | None = None
    if verdicts is not None:
        source = "judge" if verdicts == "judge" else Path(verdicts)
    if (run := _run_of(path)) is not None:
        folder = RunFolder(run)
        find_plugins(folder)
        name, split = folder.manifest["identity"]["benchmark"], folder.manifest["identity"]["split"]
        if run == path and split in load("hybrid.benchmarks", name).card.hidden_splits:
            tell(f"the answers of the split {split!r} of {name} are hidden: nothing is scored")
            for solver in folder.solvers():
                tell(f"submission: {write_submission(folder, solver)}")
            return ()
        solver_names = () if run == path else (path.name,)
        return warn_unsaved(score_run(folder, options_for(options, folder), solver_names, source))
    if path.is_dir():
        RunFolder(path).refuse_orphans()
    name = options.get("benchmark")
    if name is None:
        if runs := runs_near(path):
            raise UsageError(f"{path} is not a run{runs}")
        raise UsageError(f"{path} is not a run; for saved predictions name their benchmark with --benchmark NAME")
    if verdicts is not None:
        raise UsageError(
            f"--verdicts: {path} is not a run; import it with -o RUN --field text, then `hybrid judge RUN`"
        )
    benchmark: Benchmark = load("hybrid.benchmarks", name)
    field, data = options.get("field"), options.get("data")
    scored = score_predictions(path, benchmark, field, options_for(options), data, more)
    tell_origin(scored.origin)
    return (scored,)


def warn_unsaved(scored: tuple[Scored, ...]) -> tuple[Scored, ...]:
    """Return the solvers of a run, after printing one note for each reason why their scores were not saved."""
    for line in dict.fromkeys(solver.not_kept for solver in scored if solver.not_kept):
        tell(f"note: {line}")
    return scored


def options_for(options: TableArguments, folder: RunFolder | None = None) -> ScoreOptions:
    """Return the options for scoring replies: the run's own protocol unless another is given."""
    default: Parse = "strict" if folder is None else protocol_of(folder)
    return ScoreOptions(options.get("protocol") or default, options.get("unanswered") or DEFAULT_RULE)


def protocol_of(folder: RunFolder) -> Parse:
    """Return the protocol by which a run was made, which is the default for reading its replies."""
    protocol: Parse = folder.manifest["identity"].get("protocol", "strict")
    return protocol


def tell_origin(origin: Origin | None) -> None:
    """Print the recognised format, how its rows were joined, and what is missing or extra."""
    for line in origin.lines() if origin is not None else ():
        tell(line)
