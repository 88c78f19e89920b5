"""One solver's `attempts.jsonl`: a line for each question, appended when the question is over.

{"id":"q7","exchanges":[...],"seconds":2.5,"error":null,"started":0.0,"steps":[[...]]}     # finished
{"id":"q8","error":"Traceback ..."}                                                        # asked, not finished

The steps come last in a line, so that a reader that does not need them can skip them, which takes a quarter of the
time. The first finished line of an id counts; without one, the last unfinished line.

    recorder = Recorder(path, measure)
    await recorder.write(attempt)                          # on disk when it returns
    await recorder.write(Unfinished("q8", traceback))
    await recorder.close()

Records that arrive while the disk is busy are written together, with one sync. No event loop waits for the disk.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hybrid.core.types import Attempt, Exchange, Reply, Step
from hybrid.log.codec import codec, first_error, reading, to_json
from hybrid.log.journal import Journal
from hybrid.log.lines import ExtentHasher, FileExtent, LineFormat, LineIndex, Records, index_lines

# For each prompt, the steps of answering it.
Steps = tuple[tuple[Step, ...], ...]
# Marks the start of the steps: quotes in texts are escaped, and no earlier key has this name.
STEPS = b',"steps":'
_WITHOUT_STEPS = {"exchanges": {"__all__": {"reply": {"steps"}}}}


@dataclass(frozen=True)
class Unfinished:
    """A question that was asked but not finished, with the error."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    id: str
    error: str


def attempt_line(attempt: Attempt) -> bytes:
    """Encode a finished question as a line, without the line feed."""
    steps = tuple(exchange.reply.steps for exchange in attempt.exchanges)
    return to_json(Attempt, attempt, exclude=_WITHOUT_STEPS)[:-1] + STEPS + to_json(Steps, steps) + b"}"


def without_steps(line: bytes) -> Attempt:
    """Read the attempt of a line without its steps. Raises `ValueError` if it is not an attempt."""
    attempt: Attempt = codec(Attempt).validate_json(_split(line)[0])
    return attempt


def read_attempt(line: bytes) -> Attempt:
    """Read the attempt of a line with all steps. Raises `ValueError` if it is not an attempt."""
    head, tail = _split(line)
    attempt: Attempt = codec(Attempt).validate_json(head)
    steps: Steps = codec(Steps).validate_json(tail)
    exchanges = tuple(
        Exchange(
            exchange.prompt, Reply(exchange.reply.text, exchange.reply.outcome, exchange.reply.usage, exchange_steps)
        )
        for exchange, exchange_steps in zip(attempt.exchanges, steps, strict=True)
    )
    return Attempt(attempt.id, exchanges, attempt.seconds, attempt.error, attempt.started)


def _split(line: bytes) -> tuple[bytes, bytes]:
    """Split a line into the attempt without steps, and the steps. Raises `ValueError` if it has no steps."""
    head, separator, tail = line.rstrip(b"\n").partition(STEPS)
    if not separator or not tail.endswith(b"}"):
        raise ValueError("a line without steps")
    return head + b"}", tail[:-1]


def _read_line(line: bytes) -> Attempt | Unfinished:
    if STEPS in line:
        return read_attempt(line)
    unfinished: Unfinished = codec(Unfinished).validate_json(line)
    return unfinished


FORM = LineFormat(re.compile(rb'\{"id":("(?:[^"\\]|\\.)*"),"(exchanges|error)":'), _read_line, Unfinished)


@dataclass(frozen=True)
class Recorded:
    """The attempts of one solver on disk. A line is read on access, which raises `DataError` if it has changed."""

    path: Path
    index: LineIndex
    # Finished questions with all steps, in the order in which they finished.
    by_id: Mapping[str, Attempt]
    # The same attempts without their steps: reading these takes a quarter of the time.
    without_steps: Mapping[str, Attempt]
    # The error of each question that was not finished when last asked, by id.
    unfinished: Mapping[str, str]
    # One line per defect of the file.
    damage: tuple[str, ...]

    def is_current(self) -> bool:
        """Return whether the file is unchanged since it was read."""
        return not self.path.exists() if self.index.file is None else self.index.file.is_at(self.path)

    def line(self, identity: str) -> bytes:
        """Return the line of a finished question, or b"" if there is none."""
        return self.by_id.line(identity) if isinstance(self.by_id, Records) and identity in self.by_id else b""


def read_attempts(path: Path, previous: FileExtent | None) -> Recorded:
    """Read the attempts of a solver; `previous` is the extent of the file when the last command ended normally."""
    index = index_lines(path, previous, FORM)
    damage = [f"{path}, line {number}: not an Attempt ({first_error(error)})" for number, error in index.unreadable]
    wrong = index.describe_damage("lines")
    # An unreadable line also counts as a change, but is already reported.
    if wrong and (index.missing or not damage):
        damage.append(f"{path} {wrong}")
    complete = index.records(reading(read_attempt, path, "an Attempt"), errors=False)
    bare = index.records(reading(without_steps, path, "an Attempt"), errors=False)
    reasons = reading(lambda line: codec(Unfinished).validate_json(line).error, path, "a reason")
    return Recorded(
        path,
        index,
        by_id=complete,
        without_steps=bare,
        unfinished=index.records(reasons, errors=True),
        damage=tuple(damage),
    )


class Recorder:
    """Appends the attempts of one solver in a separate thread. It is used from one event loop.

    Args:
        path: the file `attempts.jsonl`.
        measure: hasher of the existing lines; appended lines are added to it.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path, measure: ExtentHasher | None = None) -> None:
        self._measure = measure or ExtentHasher()
        self._journal = Journal(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"record-{path.parent.name}")
        # Each record with the future that resolves when it is written.
        self._waiting: list[tuple[Attempt | Unfinished, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, record: Attempt | Unfinished) -> None:
        """Append a record; it is on disk on return. Raises `OSError`, or what its conversion to JSON raises."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((record, future))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        await future

    async def close(self) -> None:
        """Write the pending records, and close the file."""
        try:
            if self._writing is not None:
                await self._writing
        finally:
            self._thread.shutdown()
            self._journal.close()

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            entries, self._waiting = self._waiting, []
            ends = await loop.run_in_executor(self._thread, self._append, [record for record, _ in entries])
            for (_, future), error in zip(entries, ends, strict=True):
                # The future may be done, because its caller was cancelled.
                if not future.done():
                    future.set_result(None) if error is None else future.set_exception(error)
        self._writing = None

    def _append(self, records: Sequence[Attempt | Unfinished]) -> list[Exception | None]:
        """Append records together; returns the error of each record, None if it was written."""
        ends: list[Exception | None] = [None] * len(records)
        lines: dict[int, bytes] = {}
        for place, record in enumerate(records):
            try:
                lines[place] = attempt_line(record) if isinstance(record, Attempt) else to_json(Unfinished, record)
            # If a value is not JSON, only its own question is lost.
            except Exception as error:
                ends[place] = error
        try:
            if lines:
                self._measure.add(self._journal.append(*lines.values()), len(lines))
        except OSError as error:
            for place in lines:
                ends[place] = error
        return ends
