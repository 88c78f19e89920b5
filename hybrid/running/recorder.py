"""What becomes of the questions of one solver, written in a thread of its own.

    recorder = Recorder(folder, "mllm")
    await recorder.finished(attempt)       # trace and line are on disk when it returns
    await recorder.failed("q7", error)
    await recorder.close()

What comes in while the disk is busy is written together and waits for the disk once. No event loop waits for a disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hybrid.journal import Journal
from hybrid.manifest import Measure
from hybrid.run_folder import RunFolder, attempt_line, error_line
from hybrid.types import Attempt


@dataclass(frozen=True)
class _Failure:
    """A question that was not finished, and why."""

    id: str
    error: str


@dataclass(frozen=True, eq=False)
class _Entry:
    """Something that is to be written, and who waits for it."""

    what: Attempt | _Failure
    written: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def end(self, error: Exception | None) -> None:
        """Tell whoever waits, if anybody still does."""
        if self.written.done():
            return
        if error is None:
            self.written.set_result(None)
        else:
            self.written.set_exception(error)


class Recorder:
    """The attempts, traces and errors of one solver, open for appending. Used from one event loop.

    Args:
        folder: of the run.
        solver: its name there.
        measure: of the attempts that are there; what is appended is added to it.

    Raises:
        OSError: the attempts cannot be opened.
    """

    def __init__(self, folder: RunFolder, solver: str, measure: Measure | None = None) -> None:
        self._folder = folder
        self._measure = measure or Measure(None)
        self._solver = solver
        self._attempts = folder.journal(solver)
        self._errors: Journal | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"record-{solver}")
        self._waiting: list[_Entry] = []
        self._writing: asyncio.Task[None] | None = None

    async def finished(self, attempt: Attempt) -> None:
        """Keep a finished question. Raises `OSError` when it cannot be written, or whatever its form does."""
        await self._write(attempt)

    async def failed(self, question_id: str, error: str) -> None:
        """Keep why a question was not finished. Raises `OSError` when it cannot be written."""
        await self._write(_Failure(question_id, error))

    async def close(self) -> None:
        """Write what still waits, and close the files."""
        try:
            if self._writing is not None:
                await self._writing
        finally:
            self._thread.shutdown()
            self._attempts.close()
            if self._errors is not None:
                self._errors.close()

    async def _write(self, what: Attempt | _Failure) -> None:
        entry = _Entry(what)
        self._waiting.append(entry)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        await entry.written

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            entries, self._waiting = self._waiting, []
            ends = await loop.run_in_executor(self._thread, self._put, [entry.what for entry in entries])
            for entry, end in zip(entries, ends, strict=True):
                entry.end(end)
        self._writing = None

    def _put(self, group: Sequence[Attempt | _Failure]) -> list[Exception | None]:
        """Write a group in the thread; for each of it the error by which it was not written."""
        ends: list[Exception | None] = [None] * len(group)
        attempts: dict[int, bytes] = {}
        failures: dict[int, bytes] = {}
        for place, what in enumerate(group):
            try:
                if isinstance(what, Attempt):
                    self._folder.write_trace(self._solver, what)
                    attempts[place] = attempt_line(what)
                else:
                    failures[place] = error_line(what.id, what.error)
            except Exception as error:
                ends[place] = error
        self._append(lambda: self._attempts, attempts, ends, self._measure)
        self._append(self._open_errors, failures, ends, Measure(None))
        return ends

    @staticmethod
    def _append(
        journal: Callable[[], Journal], lines: Mapping[int, bytes], ends: list[Exception | None], measure: Measure
    ) -> None:
        """Write the lines of a group, by their places in it, and measure them; an error is the end of each of them."""
        try:
            if lines:
                measure.add(journal().append(*lines.values()), len(lines))
        except OSError as error:
            for place in lines:
                ends[place] = error

    def _open_errors(self) -> Journal:
        if self._errors is None:
            self._errors = self._folder.errors(self._solver)
        return self._errors
