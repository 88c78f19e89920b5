"""The runs in a folder, each as one frozen record: configuration, progress, state.

    for run in list_runs([Path("runs")]):
        run.path, run.model, run.answered, run.n, run.state

Nothing is written or mended. Whether a run is being written is asked of its lock, which is held for that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hybrid.errors import HybridError, UsageError
from hybrid.log.batches import BATCHES, read_batches, waiting_calls
from hybrid.log.folder import ATTEMPTS, RunFolder
from hybrid.log.manifest import MANIFEST

State = Literal["finished", "open", "being written", "damaged"]
# So many folders below the one that is given a run is looked for: an ablation or a matrix holds several.
DEPTH = 3


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """One run, as `hybrid runs list` shows it."""

    path: Path
    # None, as all that follows down to `date`, where the manifest cannot be read.
    benchmark: str | None = None
    # `provider:model`; None too for a run without a model and for imported predictions.
    model: str | None = None
    # By name how many questions a solver has finished.
    solvers: Mapping[str, int]
    # How many questions every solver has finished.
    answered: int = 0
    # How many questions can be asked.
    n: int = 0
    # The control that tools returned instead of their findings: `blank`, `shuffled` or `oracle`.
    control: str | None = None
    # When the last command took it up; of a run that does not say, when its manifest was last written. In UTC.
    date: datetime
    state: State
    # A line for each thing that is wrong with its files.
    damage: tuple[str, ...] = ()
    # How many requests wait in batches of a provider, as far as the run knows.
    in_batches: int = 0


def list_runs(places: Iterable[Path]) -> tuple[ListedRun, ...]:
    """The runs in these folders or that they are, the newest first. Raises `UsageError` for what is no folder."""
    runs: dict[Path, ListedRun] = {}
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{place} is no folder")
        runs |= {path.resolve(): _read_run(RunFolder(path)) for path in _runs_in(place, DEPTH)}
    return tuple(sorted(runs.values(), key=lambda run: (-run.date.timestamp(), str(run.path))))


def _runs_in(place: Path, depth: int) -> Iterator[Path]:
    """The folders of runs in a folder or that it is; nothing is looked for inside of a run."""
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
    # A run that is being written may be ahead of its manifest in the middle of a line.
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
