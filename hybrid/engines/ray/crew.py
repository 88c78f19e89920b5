"""The pool of workers of a run on Ray: starts them together, spreads questions evenly, replaces lost ones.

pool = WorkerPool(hire, size=2, most=16)
slot = await pool.acquire()
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.engines.ray.cluster import ClusterDown, first_line
from hybrid.engines.ray.messages import Ready

if TYPE_CHECKING:
    from ray.actor import ActorHandle

    from hybrid.engines.ray.worker import RayWorker

# Number of workers in a row that may fail to start.
MAX_STARTS = 3


@dataclass(eq=False)
class WorkerSlot:
    """A ready worker and the number of its questions in flight."""

    actor: ActorHandle[RayWorker]
    ready: Ready
    in_flight: int = 0


class WorkerPool:
    """Starts the workers of a run together, spreads questions evenly, and replaces a worker that is lost.

    Args:
        hire: starts one worker, or raises the reason why it cannot.
        size: number of workers.
        most: maximum number of questions in flight per worker.
    """

    def __init__(self, hire: Callable[[], Awaitable[WorkerSlot]], size: int, most: int) -> None:
        self.hands: list[WorkerSlot] = []
        self._hire = hire
        self._most = most
        self._failed = 0
        self._dead: ClusterDown | None = None
        self._changed = asyncio.Event()
        self._starting = {asyncio.create_task(self._start()) for _ in range(size)}

    async def acquire(self) -> WorkerSlot:
        """Return the worker with the fewest questions in flight; waits for a free one. Raises `ClusterDown`."""
        while True:
            if self._dead is not None:
                raise self._dead
            free = [hand for hand in self.hands if hand.in_flight < self._most]
            if free:
                target = min(free, key=lambda hand: hand.in_flight)
                target.in_flight += 1
                return target
            self._changed.clear()
            await self._changed.wait()

    def release(self, hand: WorkerSlot) -> None:
        """Record that a question of this worker has ended."""
        hand.in_flight -= 1
        self._changed.set()

    def lose(self, hand: WorkerSlot) -> bool:
        """Replace a lost worker; returns whether the loss is new."""
        if hand not in self.hands:
            return False
        self.hands.remove(hand)
        self._starting.add(asyncio.create_task(self._start()))
        return True

    def close(self) -> None:
        """Cancel workers that are still starting."""
        for task in self._starting:
            task.cancel()

    async def _start(self) -> None:
        while self._dead is None:
            try:
                self.hands.append(await self._hire())
            except ClusterDown as error:
                self._dead = error
            except Exception as error:
                self._failed += 1
                if self._failed >= MAX_STARTS:
                    self._dead = ClusterDown(f"no worker could be started: {first_line(error)}")
            else:
                self._failed = 0
                break
        self._changed.set()
