"""The queue of a batching tool: waiting items of one form run as one batch.

    lane = Lane(8, run, form=shape_of)               # run(items) returns one result or error per item
    async with lane.room:                            # limits the items in memory to a few batches
        result = await lane.submit(prepare(item))    # `prepare` may still be running

The form with the most waiting items runs first. A batch that is not full waits for items in preparation. A full batch
is submitted while another batch runs, so that the device never waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from hybrid.config import COMING_WAIT_S
from hybrid.core.errors import HybridError, Outage, ToolError

# Seconds that a request waits for others: far below the running time of any tool, but longer than a burst of requests.
BATCH_WAIT_S = 0.004
# Minimum capacity, in items, of a lane with several forms, because few items rarely share a form.
MIXED_ROOM = 64
# Number of later batches that may overtake an item.
MAX_OVERTAKEN = 24

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class _Waiting(Generic[T, R]):
    """A waiting item.

    `place` is its arrival number, and `gone` the number of batches that were started before it came.
    """

    item: T
    answer: asyncio.Future[R]
    place: int
    gone: int


class Lane(Generic[T, R]):
    """A queue used from one event loop. If `run` raises, every item of the batch gets an `Outage`.

    `workers` is the number of batches that can run at once; only items of equal `form` share a batch.
    """

    def __init__(
        self,
        size: int,
        run: Callable[[Sequence[T]], Awaitable[Sequence[R | HybridError]]],
        wait_s: float = BATCH_WAIT_S,
        coming_s: float = COMING_WAIT_S,
        workers: int = 1,
        form: Callable[[T], Hashable] = lambda item: None,
    ) -> None:
        self._wait_s, self._coming_s = wait_s, coming_s
        # Besides the running batches, one batch waits for a worker, and the items of another are prepared or finished.
        room = (workers + 2) * size
        self.room = asyncio.Semaphore(room)
        self._room_for_forms = max(0, MIXED_ROOM - room) if size > 1 else 0
        self._form = form
        self._size = size
        self._workers = workers
        self._run = run
        self._waiting: dict[Hashable, list[_Waiting[T, R]]] = {}
        self._came = self._gone = 0
        self._coming: set[object] = set()
        self._changed = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._pump: asyncio.Task[None] | None = None

    async def submit(self, coming: Awaitable[T]) -> R:
        """Return the result of an item in preparation. Raises the error of its preparation or of `run`."""
        awaited = object()
        self._coming.add(awaited)
        try:
            item = await coming
        finally:
            self._coming.discard(awaited)
            self._changed.set()
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._came += 1
        group = self._waiting.setdefault(self._form(item), [])
        group.append(_Waiting(item, answer, self._came, self._gone))
        if len(self._waiting) > 1:
            # When several forms wait for the first time, admit enough items to fill batches of each form.
            for _ in range(self._room_for_forms):
                self.room.release()
            self._room_for_forms = 0
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._drain())
        return await answer

    @property
    def _full(self) -> bool:
        return any(len(group) >= self._size for group in self._waiting.values())

    async def _drain(self) -> None:
        while self._waiting:
            # Wait until a batch is full, or no item in preparation can fill it.
            if not self._full:
                await asyncio.sleep(self._wait_s)
            try:
                async with asyncio.timeout(self._coming_s):
                    while not self._full and self._coming:
                        self._changed.clear()
                        await self._changed.wait()
            except TimeoutError:
                self._coming.clear()
            # Only a full batch may wait behind a running one; any other may still grow.
            while len(self._running) >= self._workers + self._full:
                self._changed.clear()
                await self._changed.wait()
            # Start the form with the most items; on a tie, the one with the earliest item. If the earliest item of all
            # was overtaken too often, start its form.
            first = min(self._waiting, key=lambda form: self._waiting[form][0].place)
            if self._gone - self._waiting[first][0].gone < MAX_OVERTAKEN:
                first = max(
                    self._waiting,
                    key=lambda form: (min(len(self._waiting[form]), self._size), -self._waiting[form][0].place),
                )
            group = self._waiting.pop(first)
            if len(group) > self._size:
                self._waiting[first] = group[self._size :]
            self._gone += 1
            task = asyncio.create_task(self._answer(group[: self._size]))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            task.add_done_callback(lambda _: self._changed.set())

    async def _answer(self, batch: Sequence[_Waiting[T, R]]) -> None:
        results: Sequence[R | HybridError]
        try:
            results = await self._run([entry.item for entry in batch])
        except HybridError as error:
            results = [error for _ in batch]
        except (Exception, asyncio.CancelledError) as error:
            # Closing a thread pool cancels its work, so tell the callers.
            reason = "it was stopped" if isinstance(error, asyncio.CancelledError) else error
            results = [Outage(f"the tool could not be run: {reason}") for _ in batch]
        if len(results) != len(batch):
            results = [ToolError(f"the tool returned {len(results)} results for {len(batch)} requests") for _ in batch]
        for entry, result in zip(batch, results, strict=True):
            if entry.answer.done():
                continue
            if isinstance(result, HybridError):
                entry.answer.set_exception(result)
            else:
                entry.answer.set_result(result)
