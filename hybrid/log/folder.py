"""The folder of one run; `log/__init__.py` lists its files.

folder = RunFolder.existing(path)
folder.manifest["identity"], folder.questions(), folder.recorded("mllm").by_id["q7"]
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, Final

from hybrid.core.errors import DataError, UsageError
from hybrid.core.files import write_atomic, write_redacted, writing
from hybrid.core.secrets import redact_bytes
from hybrid.core.types import Attempt, Json, Score
from hybrid.log.attempts import Recorded, read_attempts
from hybrid.log.batches import BATCHES
from hybrid.log.codec import codec, first_error, to_json
from hybrid.log.journal import Journal
from hybrid.log.lines import ExtentHasher, FileExtent, whole_lines
from hybrid.log.manifest import FORMAT, MANIFEST, read_manifest, write_sealed
from hybrid.log.questions import AnyQuestion, RecordedQuestions, question_line, read_questions

QUESTIONS = "questions.jsonl"
ATTEMPTS = "attempts.jsonl"
DAMAGED = "damaged.jsonl"
SCORES = "scores.jsonl"
SCORES_BASIS = "scores.json"
LOCK = ".lock"
LOG = "log.txt"
SERVER_LOG = "server.log"
# The folder in which servers that the current run starts write their logs; None outside a run.
SERVER_LOGS: Final[ContextVar[Path | None]] = ContextVar("SERVER_LOGS", default=None)


@contextmanager
def server_logs_in(folder: Path) -> Iterator[None]:
    """Return a context manager: servers that start inside it write their logs into this folder."""
    token = SERVER_LOGS.set(folder)
    try:
        yield
    finally:
        SERVER_LOGS.reset(token)


def read_lines(path: Path, kind: Any) -> Iterator[Any]:
    """Yield every record of a JSON lines file. An incomplete last line, left by a crash, is skipped.

    Raises:
        DataError: a line other than an incomplete last one is not such a record.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield codec(kind).validate_json(line)
            except ValueError as error:
                what = getattr(kind, "__name__", "record")
                raise DataError(f"{path}, line {number}: not a {what} ({first_error(error)})") from error


def runs_near(path: Path) -> str:
    """Return a hint for a path that is not a run: the run around it, or the runs in it; empty if there is neither."""
    if (path.parent / MANIFEST).is_file():
        return f"; the run is {path.parent}"
    inside = sorted(manifest.parent for manifest in path.glob(f"*/{MANIFEST}")) if path.is_dir() else []
    if not inside:
        return ""
    return f"; it contains runs: give one of them, such as {inside[0]} (`hybrid runs list {path}` shows all)"


def refuse_foreign_beside(folder: Path, allowed: Collection[str] = ()) -> None:
    """Raise `UsageError` if a folder for several runs contains foreign files and no run.

    Args:
        folder: contains a folder for each run.
        allowed: names of other files that belong to the runs.
    """
    if not folder.is_dir() or any(folder.glob(f"*/{MANIFEST}")):
        return
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if foreign := [name for name in names if name not in allowed and not any((folder / name).glob(f"*/{ATTEMPTS}"))]:
        reason = f"it contains {foreign[0]}, which is not part of a run"
        raise UsageError(f"--out {folder}: {reason}: give a new or empty folder")


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._recorded: dict[str, Recorded] = {}

    @classmethod
    def existing(cls, path: Path) -> RunFolder:
        """Open an existing run. Raises `UsageError` if the folder is not a run."""
        folder = cls(path)
        folder.refuse_unless_run()
        return folder

    def refuse_unless_run(self) -> None:
        """Raise `UsageError` if the folder is not a run."""
        if (self.path / MANIFEST).is_file():
            return
        self.refuse_orphans()
        if not self.path.exists():
            raise UsageError(f"{self.path} is not a run: folder not found; `hybrid runs list` shows the runs")
        raise UsageError(f"{self.path} is not a run: it has no {MANIFEST}{runs_near(self.path)}")

    def refuse_impossible(self) -> None:
        """Raise `UsageError` if the path cannot be a folder: it is a file, below a file, or a link to itself."""
        if self.path.is_file():
            raise UsageError(f"--out {self.path}: this is a file; give a new or empty folder")
        with writing(self.path), suppress(FileNotFoundError):
            os.stat(f"{self.path}/")

    def refuse_foreign(self) -> None:
        """Raise `UsageError` if the folder has files that no run writes, so that a run is not mixed with them."""
        if not self.path.is_dir() or (self.path / MANIFEST).exists():
            return
        self.refuse_orphans()
        if foreign := self._foreign_names():
            more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
            hint = runs_near(self.path) or ": give a new or empty folder"
            raise UsageError(f"--out {self.path}: it contains {foreign[0]}{more}, which is not part of a run{hint}")

    def is_begun(self) -> bool:
        """Return whether the run has its manifest, which is written last."""
        return (self.path / MANIFEST).is_file()

    def can_begin(self) -> bool:
        """Return whether a run can start here: no foreign files, not below a file, no link to nothing or to itself."""
        nearest = next(path for path in (self.path, *self.path.absolute().parents) if os.path.lexists(path))
        return nearest.is_dir() and not self.holds_other_files()

    def holds_other_files(self) -> bool:
        """Return whether the folder contains anything that no run writes."""
        return self.path.exists() and (not self.path.is_dir() or bool(self._foreign_names()))

    def _foreign_names(self) -> list[str]:
        """Return the names of files and folders that no run writes, except hidden ones."""
        own_names = {MANIFEST, QUESTIONS, LOG, BATCHES, *(path.parent.name for path in self.path.glob(f"*/{ATTEMPTS}"))}
        names = sorted(path.name for path in self.path.iterdir() if not path.name.startswith("."))
        return [name for name in names if name not in own_names]

    def refuse_orphans(self) -> None:
        """Raise `UsageError` if there are answers but no manifest that says which model gave them."""
        orphans = sorted(path for path in self.path.glob(f"*/{ATTEMPTS}") if path.stat().st_size)
        if orphans:
            names = ", ".join(path.parent.name for path in orphans)
            raise UsageError(
                f"{self.path} contains answers of {names} but no {MANIFEST}, so it is unknown which model and "
                "configuration gave them: restore the manifest, or move these answers to another folder"
            )

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest, read again on each access. Raises `DataError` if it is not valid."""
        return read_manifest(self.path / MANIFEST)

    def write_manifest(self, content: Mapping[str, Json]) -> None:
        """Replace the manifest. If this raises `OSError`, the old one is still in place."""
        text = json.dumps({"format": FORMAT, **content}, ensure_ascii=False)
        write_sealed(self.path / MANIFEST, text.encode("utf-8", "replace"), durable=True)

    def extent(self, name: str) -> FileExtent | None:
        """Return the extent of a file at the last normal end of a command; None if it is not in the manifest."""
        if not (self.path / MANIFEST).exists():
            return None
        facts = self.manifest.get("files", {}).get(name)
        return None if facts is None else FileExtent(**facts)

    def measure(self, name: str) -> ExtentHasher:
        """Measure the current extent of a file of lines."""
        measure = ExtentHasher()
        for line in whole_lines(self.path / name):
            measure.add(line)
        return measure

    def questions(self) -> RecordedQuestions:
        """Read the questions, in the order of the data.

        Raises:
            DataError: a line is not a question, an id appears twice, or questions are missing.
        """
        readable, wrong = self.readable_questions()
        if wrong:
            raise DataError(f"{wrong}; `hybrid run` with the options of this run writes them again from its data")
        return readable

    def readable_questions(self) -> tuple[RecordedQuestions, str | None]:
        """Read the questions, and describe the first defect of their file (None if it is sound)."""
        return read_questions(self.path / QUESTIONS, self.extent(QUESTIONS))

    def write_questions(self, questions: Iterable[AnyQuestion]) -> FileExtent:
        """Replace the questions; returns their extent."""
        return self.write_question_lines(map(question_line, questions))

    def write_question_lines(self, lines: Iterable[bytes]) -> FileExtent:
        """Replace the questions with these lines; returns their extent."""
        measure = ExtentHasher()

        def passing() -> Iterator[bytes]:
            for line in lines:
                measure.add(line)
                yield line

        write_atomic(self.path / QUESTIONS, passing(), durable=True)
        return measure.extent

    def solvers(self) -> tuple[str, ...]:
        """Return the names of the solvers that have attempts, in the order of the manifest."""
        manifest = self.manifest
        files = manifest.get("files", {})
        return tuple(
            name for name in manifest["solvers"] if (self.path / name / ATTEMPTS).exists() or attempts_of(name) in files
        )

    def attempts(self, solver: str) -> tuple[Attempt, ...]:
        """Load all finished attempts of a solver, with their steps, into memory."""
        return tuple(self.recorded(solver).by_id.values())

    def recorded(self, solver: str) -> Recorded:
        """Return the attempts of a solver on disk; cached as long as the file does not change."""
        name = attempts_of(solver)
        path, extent = self.path / name, self.extent(name)
        cached = self._recorded.get(solver)
        if cached is None or cached.index.before != extent or not cached.is_current():
            cached = self._recorded[solver] = read_attempts(path, extent)
        return cached

    def finished(self, solver: str) -> frozenset[str]:
        """Return the ids of a solver's finished questions."""
        return frozenset(self.recorded(solver).by_id)

    def set_aside(self, solver: str) -> None:
        """Move the unreadable lines to `damaged.jsonl`, so that all remaining lines are valid."""
        path = self.path / attempts_of(solver)
        unreadable = {number for number, _ in self.recorded(solver).index.unreadable}
        lines = list(enumerate(whole_lines(path), 1))
        journal = Journal(path.with_name(DAMAGED))
        journal.append(*(line.removesuffix(b"\n") for number, line in lines if number in unreadable))
        journal.close()
        write_redacted(path, b"".join(line for number, line in lines if number not in unreadable), durable=True)

    def journal(self, solver: str) -> Journal:
        """Open the solver's attempts for appending."""
        return Journal(self.path / attempts_of(solver))

    def write_scores(self, solver: str, scores: Iterable[Score]) -> Path:
        """Replace the solver's scores, sorted by id; returns their path."""
        path = self.path / solver / SCORES
        in_order = sorted(scores, key=lambda score: score.id)
        write_atomic(path, (redact_bytes(to_json(Score, score) + b"\n") for score in in_order))
        return path

    def remove_unanswered(self) -> None:
        """Remove the run if it has no answer and no foreign files."""
        answered = any(path.stat().st_size for path in self.path.glob(f"*/{ATTEMPTS}"))
        if self.path.is_dir() and not answered and not self._foreign_names():
            shutil.rmtree(self.path, ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run against other processes. Raises `UsageError` if it is locked already."""
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / LOCK).open("w")
        with lock as file:
            while not _takes(file, fcntl.LOCK_EX):
                # Try again, because a process that only tests the lock (`is_held`) holds a shared lock for a moment.
                if not _takes(file, fcntl.LOCK_SH):
                    raise UsageError(f"{self.path} is being written by another process")
            yield

    def is_held(self) -> bool:
        """Return whether a process has locked the run."""
        try:
            with (self.path / LOCK).open("rb") as file:
                return not _takes(file, fcntl.LOCK_SH)
        except OSError:
            return False


def _takes(file: IO[Any], kind: int) -> bool:
    """Lock an open file, shared or exclusively, and return whether that was possible at once."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def attempts_of(solver: str) -> str:
    """Return the path of a solver's attempts within a run, which is also their key in the manifest."""
    return f"{solver}/{ATTEMPTS}"
