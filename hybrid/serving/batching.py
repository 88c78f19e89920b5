"""The queue of a tool that batches: what arrives together runs as one batch.

    lane = Lane(8, run)                              # run(items) gives one result, or error, an item
    async with lane.room:                            # so that only a few batches of items are in memory
        result = await lane.submit(prepare(item))    # for an item that is being made

A batch that is not full waits for the items that are being made. A full one is handed over while another runs, so that
the device finds it at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from hybrid.config import COMING_WAIT_S
from hybrid.errors import HybridError, Outage, ToolError

BATCH_WAIT_S = 0.004
"""How long a request waits for company: well under the time of any tool, longer than a burst of requests takes."""

T = TypeVar("T")
R = TypeVar("R")


class Lane(Generic[T, R]):
    """One queue, used from one event loop. An error that `run` raises is an `Outage` for each item of the batch.

    `workers` is how many batches can run at once.
    """

    def __init__(
        self,
        size: int,
        run: Callable[[Sequence[T]], Awaitable[Sequence[R | HybridError]]],
        wait_s: float = BATCH_WAIT_S,
        coming_s: float = COMING_WAIT_S,
        workers: int = 1,
    ) -> None:
        self._wait_s, self._coming_s = wait_s, coming_s
        # Besides the batches that run, one waits for a worker and one is being prepared or drawn.
        self.room = asyncio.Semaphore((workers + 2) * size)
        self._size = size
        self._workers = workers
        self._run = run
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._coming: set[object] = set()
        self._changed = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._pump: asyncio.Task[None] | None = None

    async def submit(self, coming: Awaitable[T]) -> R:
        """The result of an item that is being made. Raises what making it raises, and what `run` gave for it."""
        awaited = object()
        self._coming.add(awaited)
        try:
            item = await coming
        finally:
            self._coming.discard(awaited)
            self._changed.set()
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._drain())
        return await answer

    async def _drain(self) -> None:
        while self._waiting:
            await self._gather()
            # Only a full batch may wait behind one that runs: any other may still grow.
            while len(self._running) >= self._workers + (len(self._waiting) >= self._size):
                self._changed.clear()
                await self._changed.wait()
            batch, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
            task = asyncio.create_task(self._answer(batch))
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._changed.set()

    async def _gather(self) -> None:
        """Wait until a batch is full, or no item that is being made can fill it."""
        if len(self._waiting) < self._size:
            await asyncio.sleep(self._wait_s)
        try:
            async with asyncio.timeout(self._coming_s):
                while len(self._waiting) < self._size and self._coming:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            self._coming.clear()

    async def _answer(self, batch: Sequence[tuple[T, asyncio.Future[R]]]) -> None:
        results: Sequence[R | HybridError]
        try:
            results = await self._run([item for item, _ in batch])
        except HybridError as error:
            results = [error for _ in batch]
        except (Exception, asyncio.CancelledError) as error:
            # A thread pool that is closed cancels its work; its callers must hear of that.
            why = "it was stopped" if isinstance(error, asyncio.CancelledError) else error
            results = [Outage(f"the tool could not be run: {why}") for _ in batch]
        if len(results) != len(batch):
            results = [ToolError(f"the tool gave {len(results)} results for {len(batch)} requests") for _ in batch]
        for (_, answer), result in zip(batch, results, strict=True):
            if answer.done():
                continue
            if isinstance(result, HybridError):
                answer.set_exception(result)
            else:
                answer.set_result(result)
