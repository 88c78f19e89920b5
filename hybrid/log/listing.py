"""List the runs in a folder, each as one frozen record: configuration, progress, state.

    for run in list_runs([Path("runs")]):
        run.path, run.model, run.answered, run.n, run.state

Nothing is written or repaired. To check whether a run is being written, its lock is taken for a moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hybrid.core.errors import HybridError, UsageError
from hybrid.log.batches import BATCHES, read_batches, waiting_calls
from hybrid.log.folder import ATTEMPTS, RunFolder
from hybrid.log.manifest import MANIFEST

State = Literal["finished", "open", "being written", "damaged"]
# Depth to which runs are searched below the given folder: the folder of an ablation or a matrix contains several runs.
DEPTH = 3


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """One run, as `hybrid runs list` shows it."""

    path: Path
    # Name of the benchmark; None if the manifest cannot be read.
    benchmark: str | None = None
    # `provider:model`; None for a run without a model, for imported predictions, or if the manifest cannot be read.
    model: str | None = None
    # Number of questions that each solver has finished, by name.
    solvers: Mapping[str, int]
    # Number of questions that every solver has finished.
    answered: int = 0
    # Number of questions that can be asked.
    n: int = 0
    # The control that tools returned instead of their outputs, such as `blank` or `shuffled`.
    control: str | None = None
    # Start of the last command in UTC; if the manifest has none, the modification time of the manifest.
    date: datetime
    state: State
    # One line per defect of its files.
    damage: tuple[str, ...] = ()
    # Number of requests in open batches of a provider, according to the run.
    in_batches: int = 0


def list_runs(places: Iterable[Path]) -> tuple[ListedRun, ...]:
    """List the runs in (or at) these folders, newest first. Raises `UsageError` if a folder is missing."""
    runs: dict[Path, ListedRun] = {}
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{place} is not a folder")
        runs |= {path.resolve(): _read_run(RunFolder(path)) for path in _runs_in(place, DEPTH)}
    return tuple(sorted(runs.values(), key=lambda run: (-run.date.timestamp(), str(run.path))))


def _runs_in(place: Path, depth: int) -> Iterator[Path]:
    """Yield the run folders in a folder (or the folder itself); does not search inside a run."""
    if (place / MANIFEST).is_file() or any(place.glob(f"*/{ATTEMPTS}")):
        yield place
    elif depth:
        for inner in sorted(place.iterdir()):
            if inner.is_dir() and not inner.is_symlink() and not inner.name.startswith("."):
                yield from _runs_in(inner, depth - 1)


def _read_run(folder: RunFolder) -> ListedRun:
    try:
        folder.refuse_unless_run()
        return _describe_run(folder, folder.manifest)
    except HybridError as error:
        path = folder.path / MANIFEST
        date = _modified_at(path if path.exists() else folder.path)
        return ListedRun(path=folder.path, solvers={}, date=date, state="damaged", damage=(str(error),))


def _describe_run(folder: RunFolder, manifest: Mapping[str, Any]) -> ListedRun:
    identity = manifest["identity"]
    questions, wrong = folder.readable_questions()
    recorded = {name: folder.recorded(name) for name in manifest["solvers"]}
    sound = {question for question in questions.by_id if question not in questions.broken_ids}
    finished = {name: sound & record.by_id.keys() for name, record in recorded.items()}
    answered = len(set.intersection(*finished.values())) if finished else 0
    damage = (*([wrong] if wrong else []), *(line for record in recorded.values() for line in record.damage))
    try:
        at = datetime.fromisoformat(manifest.get("commands", ())[-1]["at"])
    except (IndexError, ValueError):
        at = _modified_at(folder.path / MANIFEST)
    model = identity.get("model")
    control = identity.get("tool_output", "real")
    state: State = "damaged" if damage else "finished" if answered == len(sound) else "open"
    # The file of a run that is being written may be longer than the manifest says, and end in the middle of a line.
    state = "being written" if folder.is_held() else state
    return ListedRun(
        path=folder.path,
        benchmark=identity["benchmark"],
        model=model.get("model") if isinstance(model, Mapping) else None,
        solvers={name: len(ids) for name, ids in finished.items()},
        answered=answered,
        n=len(sound),
        control=None if control == "real" else control,
        date=at if at.tzinfo else at.replace(tzinfo=UTC),
        state=state,
        damage=damage,
        in_batches=waiting_calls(read_batches(folder.path / BATCHES).values())[1],
    )


def _modified_at(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)
