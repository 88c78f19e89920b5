"""The workers of a run on Ray: started at once, used evenly, each replaced when it is lost.

crew = Crew(hire, size=2, most=16)
hand = await crew.take()
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

    from hybrid.engines.ray.worker import Worker

# Workers in a row that end before they can be asked.
MAX_STARTS = 3


@dataclass(eq=False)
class WorkerSlot:
    """A worker that can be asked, and how many questions it has in flight."""

    actor: ActorHandle[Worker]
    ready: Ready
    in_flight: int = 0


class WorkerPool:
    """The workers of a run: started at once, used evenly, each replaced when it is lost.

    Args:
        hire: starts one worker. What it raises is why it did not start.
        size: how many there are.
        most: questions that one has in flight at most.
    """

    def __init__(self, hire: Callable[[], Awaitable[WorkerSlot]], size: int, most: int) -> None:
        self.hands: list[WorkerSlot] = []
        self._hire = hire
        self._most = most
        self._failed = 0
        self._dead: ClusterDown | None = None
        self._changed = asyncio.Event()
        self._starting = {asyncio.create_task(self._start()) for _ in range(size)}

    async def take(self) -> WorkerSlot:
        """The worker with the fewest questions, as soon as one can take another. Raises `ClusterDown`."""
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

    def give_back(self, hand: WorkerSlot) -> None:
        """A question of the worker has ended."""
        hand.in_flight -= 1
        self._changed.set()

    def lose(self, hand: WorkerSlot) -> bool:
        """The worker is lost, and another takes its place; whether that was not known."""
        if hand not in self.hands:
            return False
        self.hands.remove(hand)
        self._starting.add(asyncio.create_task(self._start()))
        return True

    def close(self) -> None:
        """Start no more."""
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
                    self._dead = ClusterDown(f"no worker can be started: {first_line(error)}")
            else:
                self._failed = 0
                break
        self._changed.set()
