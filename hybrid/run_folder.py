"""The files of a run: manifest, questions, attempts, traces, scores.

RUN/manifest.json              the configuration, what was observed, what was run
RUN/questions.jsonl            the questions with their targets, so that scoring needs no data
RUN/SOLVER/attempts.jsonl      one line a finished question, appended durably
RUN/SOLVER/traces/ID.json      every model and tool call of it
RUN/SOLVER/errors.jsonl        questions that were not finished, and why
RUN/SOLVER/scores.jsonl        one score a line, sorted by id
RUN/SOLVER/scores.json         what these scores were made from, and what else is known of them (see below)

Scores are read again only while they hold, else made anew and both files replaced. `scores.json` therefore says under
`basis` the sha256 of `questions.jsonl`, `attempts.jsonl`, `errors.jsonl` and the manifest's identity, the sha256 of the
code and words of the scorer, the protocol and the rule of what no answer counts; as `scores_sha256` that of
`scores.jsonl` itself; and as `unanswered` the scores of questions without an answer under the other rule, as `open`,
`usage` and `wall_s` what attempts alone tell. Readings of a judge are no part of either file.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.errors import DataError, UsageError
from hybrid.images import write_atomic
from hybrid.types import Attempt, BrokenQuestion, Json, Question, Score

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FORMAT = 1
MANIFEST = "manifest.json"
QUESTIONS = "questions.jsonl"
ATTEMPTS = "attempts.jsonl"
SCORES = "scores.jsonl"
SCORES_BASIS = "scores.json"
ERRORS = "errors.jsonl"


@cache
def codec(kind: Any) -> TypeAdapter[Any]:
    """How a type becomes JSON and back, checked against its annotations."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def to_json(kind: Any, value: Any, indent: int | None = None) -> bytes:
    """A value as JSON. Half of a surrogate pair, which a model can write and UTF-8 cannot hold, becomes "?"."""
    from pydantic_core import PydanticSerializationError

    try:
        written: bytes = codec(kind).dump_json(value, indent=indent)
    except PydanticSerializationError:
        plain = codec(kind).dump_python(value, mode="json")
        return json.dumps(plain, ensure_ascii=False, indent=indent).encode("utf-8", "replace")
    return written


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
                raise DataError(
                    f"{path}, line {number}: not a {getattr(kind, '__name__', 'record')} ({error})"
                ) from error


def write_lines(path: Path, records: Iterable[Any], kind: Any) -> None:
    """Replace a file of JSON lines as a whole."""
    write_atomic(path, b"".join(to_json(kind, record) + b"\n" for record in records))


class Journal:
    """A file of JSON lines that only grows: each line is on disk before `append` returns."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        self._drop_partial_line(path)

    def append(self, line: bytes) -> None:
        """Write one line and wait for the disk."""
        self._file.write(line + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _drop_partial_line(self, path: Path) -> None:
        content = path.read_bytes()
        if content and not content.endswith(b"\n"):
            self._file.truncate(content.rfind(b"\n") + 1)


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def existing(cls, path: Path) -> RunFolder:
        """A run that is there. Raises `UsageError` when the folder is none."""
        if not (path / MANIFEST).is_file():
            raise UsageError(f"{path} is not a run: it has no {MANIFEST}")
        return cls(path)

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest, read anew. Raises `DataError` when it is not one of ours."""
        path = self.path / MANIFEST
        try:
            content = json.loads(path.read_bytes())
        except ValueError as error:
            raise DataError(f"{path} is not JSON ({error})") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise DataError(f"{path} is not a manifest of format {FORMAT}")
        return content

    def write_manifest(self, content: Mapping[str, Json]) -> None:
        """Replace the manifest."""
        text = json.dumps({"format": FORMAT, **content}, indent=1, ensure_ascii=False)
        write_atomic(self.path / MANIFEST, text.encode() + b"\n")

    def questions(self) -> tuple[Question | BrokenQuestion, ...]:
        """The questions, in the order of the data."""
        return tuple(read_lines(self.path / QUESTIONS, Question | BrokenQuestion))

    def write_questions(self, questions: Iterable[Question | BrokenQuestion]) -> None:
        """Replace the questions."""
        write_lines(self.path / QUESTIONS, questions, Question | BrokenQuestion)

    def solvers(self) -> tuple[str, ...]:
        """The solvers that have attempts, in the order in which the manifest lists them."""
        listed = [name for name in self.manifest.get("solvers", {}) if (self.path / name / ATTEMPTS).exists()]
        return tuple(listed)

    def attempts(self, solver: str) -> tuple[Attempt, ...]:
        """The finished questions of a solver; the first line of an id counts."""
        found: dict[str, Attempt] = {}
        for attempt in read_lines(self.path / solver / ATTEMPTS, Attempt):
            found.setdefault(attempt.id, attempt)
        return tuple(found.values())

    def journal(self, solver: str) -> Journal:
        """The solver's attempts, open for appending."""
        return Journal(self.path / solver / ATTEMPTS)

    def write_trace(self, solver: str, attempt: Attempt) -> None:
        """Keep everything that happened in an attempt, for people to read."""
        write_atomic(self.trace_path(solver, attempt.id), to_json(Attempt, attempt, indent=1))

    def trace_path(self, solver: str, question_id: str) -> Path:
        """Where the trace of a question lies; ids are made safe as file names."""
        safe = re.sub(r"[^A-Za-z0-9_.-]", "_", question_id)
        if safe != question_id or len(safe) > 100 or safe.startswith("."):
            digest = hashlib.sha256(question_id.encode("utf-8", "surrogatepass")).hexdigest()
            safe = f"{safe.strip('.')[:80]}-{digest[:12]}"
        return self.path / solver / "traces" / f"{safe}.json"

    def note_error(self, solver: str, question_id: str, error: str) -> None:
        """Keep why a question was not finished."""
        journal = Journal(self.path / solver / ERRORS)
        journal.append(json.dumps({"id": question_id, "error": error}).encode())
        journal.close()

    def write_scores(self, solver: str, scores: Iterable[Score]) -> Path:
        """Replace the solver's scores, sorted by id; where they lie."""
        path = self.path / solver / SCORES
        write_lines(path, sorted(scores, key=lambda score: score.id), Score)
        return path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run against other processes. Raises `UsageError` when one has it."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{self.path} is being written by another process") from None
            yield


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
