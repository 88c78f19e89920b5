"""The files of a run: manifest, questions, attempts, traces, scores.

RUN/manifest.json              the configuration, what was observed, what was run, how much of each file there is
RUN/questions.jsonl            the questions with their targets, so that scoring needs no data
RUN/log.txt                    begin and end of each command, retries, tool faults, warnings (`running/run_log.py`)
RUN/replies.jsonl              what models said to questions that are not finished (`running/replies.py`)
RUN/SOLVER/attempts.jsonl      one line a finished question, appended durably
RUN/SOLVER/damaged.jsonl       lines of attempts.jsonl that could not be read, moved there when the run went on
RUN/SOLVER/traces/ID.json      every model and tool call of it
RUN/SOLVER/errors.jsonl        questions that were not finished, and why
RUN/SOLVER/scores.jsonl        one score a line, sorted by id
RUN/SOLVER/scores.json         what these scores were made from, and what else is known of them (see below)

A run is whole or it is refused with what is missing: the manifest says how many lines there were, and their sha256.
A line of attempts.jsonl that cannot be read is named, and costs its own question only. Lines that are as the manifest
has them were checked when they were written: of these only ids are read, and the rest when it is asked for, so that the
memory a run takes hardly grows with its questions. The manifest also says by which limit and code the questions were
`taken` from the data: where that holds, the next command takes them from here.

Scores are read again only while they hold, else made anew and both files replaced. `scores.json` therefore says under
`basis` the sha256 of `questions.jsonl`, `attempts.jsonl`, `errors.jsonl`, the manifest's identity and what it says of
the attempts, the sha256 of the code and words of the scorer, the protocol and the rule of what no answer counts; as
`scores_sha256` that of `scores.jsonl` itself; and as `unanswered` the scores of questions without an answer under the
other rule, as `open`, `usage`, `wall_s`, `damage` and `reasons` what attempts alone tell. Like the manifest it has the
sha256 of its own content. Readings of a judge are no part of either file.

No secret is written (`hybrid.secrets`); the questions are data and stay as they are.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hybrid.codecs import codec, to_json
from hybrid.errors import DataError, UsageError
from hybrid.images import write_atomic
from hybrid.journal import Journal
from hybrid.manifest import FORMAT, MANIFEST, SEAL, Extent, Measure, first_error, read_manifest, seal_of, whole_lines
from hybrid.question_lines import AnyQuestion, Questions, question_line, read_questions
from hybrid.record_lines import Chosen, index_lines, known_id
from hybrid.secrets import redact_bytes
from hybrid.types import Attempt, Json, Score

QUESTIONS = "questions.jsonl"
ATTEMPTS = "attempts.jsonl"
DAMAGED = "damaged.jsonl"
SCORES = "scores.jsonl"
SCORES_BASIS = "scores.json"
ERRORS = "errors.jsonl"
LOCK = ".lock"
LOG = "log.txt"


def read_lines(path: Path, kind: Any) -> Iterator[Any]:
    """Every record of a file of JSON lines. A last line without its end, left by a crash, is passed over.

    Raises:
        DataError: another line is not such a record.
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
                raise DataError(not_a(kind, path, number, error)) from error


def not_a(kind: Any, path: Path, number: int, error: ValueError) -> str:
    """What is wrong with a line that is no such record, in one line."""
    return f"{path}, line {number}: not a {getattr(kind, '__name__', 'record')} ({first_error(error)})"


def write_redacted(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Replace a file as a whole, without secrets; `durable` for what could not be made again after a power cut."""
    write_atomic(path, redact_bytes(data), durable=durable)


def write_sealed(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Replace a file that holds a JSON object, without secrets, and with the sha256 of what is in it (`seal_of`)."""
    content = json.loads(redact_bytes(data))
    text = json.dumps({**content, SEAL: seal_of(content)}, indent=1, ensure_ascii=False)
    write_atomic(path, text.encode() + b"\n", durable=durable)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise `UsageError`, naming the folder, where what is done inside cannot be written."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


@dataclass(frozen=True)
class Recorded:
    """What one solver has finished, and a line for each thing that is wrong with the file that says so."""

    by_id: Mapping[str, Attempt]
    """The attempts, each read from disk when it is asked for. Raises `DataError` where that is not possible then."""
    measure: Measure
    """How much of the file there is, next to what the manifest says of it."""
    damage: tuple[str, ...] = ()
    unreadable: int = 0
    """How many lines are no attempts."""
    missing: int = 0
    """How many of the lines that were there when a command last ended in order are not."""

    @property
    def attempts(self) -> Sequence[Attempt]:
        """The attempts in the order in which they were finished."""
        return Chosen(self.by_id, tuple(self.by_id))

    @property
    def mendable(self) -> bool:
        """Whether answers are missing, which can be asked for again."""
        return bool(self.unreadable or self.missing)


def runs_near(path: Path) -> str:
    """What to name instead of a path that is no run: the run that it lies in, or those in it; else nothing."""
    if (path.parent / MANIFEST).is_file():
        return f"; the run is {path.parent}"
    inside = sorted(found.parent for found in path.glob(f"*/{MANIFEST}")) if path.is_dir() else []
    return f"; it holds runs: name them, such as {inside[0]} (`hybrid runs list {path}` shows all)" if inside else ""


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def existing(cls, path: Path) -> RunFolder:
        """A run that is there. Raises `UsageError` when the folder is none."""
        folder = cls(path)
        folder.refuse_unless_run()
        return folder

    def refuse_unless_run(self) -> None:
        """Raise `UsageError` where there is no run."""
        if (self.path / MANIFEST).is_file():
            return
        self.refuse_orphans()
        raise UsageError(f"{self.path} is not a run: it has no {MANIFEST}{runs_near(self.path)}")

    def refuse_orphans(self) -> None:
        """Raise `UsageError` where answers lie without the manifest that says whose they are."""
        orphans = sorted(path for path in self.path.glob(f"*/{ATTEMPTS}") if path.stat().st_size)
        if orphans:
            names = ", ".join(path.parent.name for path in orphans)
            raise UsageError(
                f"{self.path} holds answers of {names} and no {MANIFEST}, so nothing says which model and which "
                f"configuration gave them: put the manifest back, or move these answers away"
            )

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest, read anew. Raises `DataError` when it is not one of ours."""
        return read_manifest(self.path / MANIFEST)

    def write_manifest(self, content: Mapping[str, Json]) -> None:
        """Replace the manifest. Raises `OSError`; then the one that was there still is."""
        text = json.dumps({"format": FORMAT, **content}, ensure_ascii=False)
        write_sealed(self.path / MANIFEST, text.encode("utf-8", "replace"), durable=True)

    def extent(self, name: str) -> Extent | None:
        """How much of a file there was when a command last ended in order; None where the manifest does not say."""
        if not (self.path / MANIFEST).exists():
            return None
        known = self.manifest.get("files", {}).get(name)
        return None if known is None else Extent(**known)

    def measure(self, name: str, before: Extent | None) -> Measure:
        """How much of a file there is now, next to what there was before."""
        measure = Measure(before)
        for line in whole_lines(self.path / name):
            measure.add(line)
        return measure

    def questions(self) -> Questions:
        """The questions, in the order of the data.

        Raises:
            DataError: a line is no question, an id appears twice, or questions are missing.
        """
        found, wrong = self.readable_questions()
        if wrong:
            raise DataError(f"{wrong}; `hybrid run` with the options of this run writes them anew from its data")
        return found

    def readable_questions(self) -> tuple[Questions, str | None]:
        """The questions that can be read, and the first thing that is wrong with their file."""
        return read_questions(self.path / QUESTIONS, self.extent(QUESTIONS))

    def write_questions(self, questions: Iterable[AnyQuestion]) -> Extent:
        """Replace the questions; how much of them there is."""
        return self.write_question_lines(map(question_line, questions))

    def write_question_lines(self, lines: Iterable[bytes]) -> Extent:
        """The same of their lines."""
        measure = Measure(None)

        def passing() -> Iterator[bytes]:
            for line in lines:
                measure.add(line)
                yield line

        write_atomic(self.path / QUESTIONS, passing(), durable=True)
        return measure.extent

    def solvers(self) -> tuple[str, ...]:
        """The solvers that have attempts, in the order in which the manifest lists them."""
        manifest = self.manifest
        known = manifest.get("files", {})
        return tuple(
            name for name in manifest["solvers"] if (self.path / name / ATTEMPTS).exists() or attempts_of(name) in known
        )

    def attempts(self, solver: str) -> tuple[Attempt, ...]:
        """The finished questions of a solver; the first line of an id counts, and one that is no attempt does not."""
        return tuple(self.recorded(solver).attempts)

    def recorded(self, solver: str) -> Recorded:
        """The finished questions of a solver, and what is wrong with the file that holds them."""
        path = self.path / attempts_of(solver)
        index = index_lines(path, self.extent(attempts_of(solver)), known_id, _id_of_attempt)

        def read(line: bytes) -> Attempt:
            try:
                attempt: Attempt = codec(Attempt).validate_json(line)
            except ValueError as error:
                raise DataError(f"{path}: not a Attempt ({first_error(error)})") from error
            return attempt

        damage = [not_a(Attempt, path, number, error) for number, error in index.unreadable]
        unreadable, measure = len(damage), index.measure
        wrong = measure.wrong("lines")
        # A line that cannot be read is a change as well, and has been named.
        if wrong and not (unreadable and measure.changed):
            damage.append(f"{path} {wrong}")
        return Recorded(index.records(read), measure, tuple(damage), unreadable, measure.missing)

    def finished(self, solver: str) -> frozenset[str]:
        """The ids of a solver's finished questions."""
        return frozenset(self.recorded(solver).by_id)

    def failed(self, solver: str) -> frozenset[str]:
        """The questions that were asked and not finished."""
        return frozenset(self.failures(solver))

    def failures(self, solver: str) -> dict[str, str]:
        """By id why a question was not finished when last asked; a line that cannot be read says nothing."""
        found: dict[str, str] = {}
        for line in whole_lines(self.path / solver / ERRORS):
            try:
                told = json.loads(line)
                found[str(told["id"])] = str(told.get("error", ""))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
        return found

    def set_aside(self, solver: str) -> None:
        """Move the lines that are no attempts to a file next to them, so that what follows is whole again."""
        path = self.path / attempts_of(solver)
        sound: list[bytes] = []
        unsound: list[bytes] = []
        for line in whole_lines(path):
            (sound if _is_attempt(line) else unsound).append(line)
        journal = Journal(path.with_name(DAMAGED))
        journal.append(*(line.removesuffix(b"\n") for line in unsound))
        journal.close()
        write_redacted(path, b"".join(sound), durable=True)

    def journal(self, solver: str) -> Journal:
        """The solver's attempts, open for appending."""
        return Journal(self.path / attempts_of(solver))

    def write_trace(self, solver: str, attempt: Attempt) -> None:
        """Keep everything that happened in an attempt, for people to read."""
        _write_small(self.trace_path(solver, attempt.id), redact_bytes(to_json(Attempt, attempt, indent=1)))

    def trace_path(self, solver: str, question_id: str) -> Path:
        """Where the trace of a question lies; ids are made safe as file names."""
        safe = re.sub(r"[^A-Za-z0-9_.-]", "_", question_id)
        if safe != question_id or len(safe) > 100 or safe.startswith("."):
            digest = hashlib.sha256(question_id.encode("utf-8", "surrogatepass")).hexdigest()
            safe = f"{safe.strip('.')[:80]}-{digest[:12]}"
        return self.path / solver / "traces" / f"{safe}.json"

    def errors(self, solver: str) -> Journal:
        """The questions that the solver did not finish, open for appending (`error_line`)."""
        return Journal(self.path / solver / ERRORS)

    def write_scores(self, solver: str, scores: Iterable[Score]) -> Path:
        """Replace the solver's scores, sorted by id; where they lie."""
        path = self.path / solver / SCORES
        in_order = sorted(scores, key=lambda score: score.id)
        write_atomic(path, (redact_bytes(to_json(Score, score) + b"\n") for score in in_order))
        return path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run against other processes. Raises `UsageError` when one has it."""
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / LOCK).open("w")
        with lock as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{self.path} is being written by another process") from None
            yield

    def is_held(self) -> bool:
        """Whether a process holds the run, as `locked` does."""
        try:
            with (self.path / LOCK).open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False


def _write_small(path: Path, data: bytes) -> None:
    """Replace a file as a whole, as `write_atomic` does, in fewer steps: there is one for each question.

    Raises:
        OSError: it cannot be written; `path` is as it was and nothing else is left.
    """
    # One thread at a time writes one file.
    temporary = f"{path.parent}/.{threading.get_ident()}"
    try:
        file = _opened_anew(temporary, path.parent)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(file, left) :]
            os.rename(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        finally:
            os.close(file)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _opened_anew(name: str, folder: Path) -> int:
    """An empty file, open for writing; its folder is made where it is not there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        return os.open(name, flags, 0o644)
    except FileNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(name, flags, 0o644)


def attempts_of(solver: str) -> str:
    """Where a solver's attempts lie in a run; also what the manifest calls them."""
    return f"{solver}/{ATTEMPTS}"


def _is_attempt(line: bytes) -> bool:
    try:
        _id_of_attempt(line)
    except ValueError:
        return False
    return True


def _id_of_attempt(line: bytes) -> str:
    """The id of a line. Raises `ValueError` where it is no attempt."""
    attempt: Attempt = codec(Attempt).validate_json(line)
    return attempt.id


def error_line(question_id: str, error: str) -> bytes:
    """One line of `errors.jsonl`: why a question was not finished."""
    return json.dumps({"id": question_id, "error": error}).encode()


def attempt_line(attempt: Attempt) -> bytes:
    """An attempt as one short line: of the steps only the decisions; the trace has the rest."""
    exchanges = tuple(
        replace(
            exchange,
            reply=replace(exchange.reply, steps=tuple(step for step in exchange.reply.steps if step.kind == "rule")),
        )
        for exchange in attempt.exchanges
    )
    return to_json(Attempt, replace(attempt, exchanges=exchanges))


def difference(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> list[str]:
    """One line `key: before -> after` for every leaf that two configurations do not share."""
    lines = []
    for key in sorted({*before, *after}):
        old, new, name = before.get(key), after.get(key), f"{prefix}{key}"
        if isinstance(old, dict) and isinstance(new, dict):
            lines += difference(old, new, f"{name}.")
        elif old != new:
            lines.append(f"{name}: {json.dumps(old)} -> {json.dumps(new)}")
    return lines
