"""Adapts the number of concurrent requests: a 429 halves it, replies let it grow slowly, as in TCP.

while in_flight.is_full: await in_flight.wait_for_slot()
in_flight.out += 1                           # decrement it, then call `let_out`, when the request has ended
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque

from hybrid.display.notes import tell

log = logging.getLogger(__name__)

GROWTH = 0.25  # A reply raises the limit by this amount divided by the limit.


class InFlight:
    """The requests in flight to one server, and those that wait for a slot."""

    def __init__(self, name: str) -> None:
        self.out = 0
        self.cuts = 0  # Number of times that the limit was halved.
        self._name = name
        self._most = math.inf
        self._since_cut = 0
        self._said = False
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def is_full(self) -> bool:
        """Whether no more requests may be sent now."""
        return self.out >= self._most

    async def wait_for_slot(self) -> None:
        """Wait for a free slot."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        try:
            await place
        except BaseException:
            # Pass the slot on to another request.
            self.let_out()
            raise

    def let_out(self, *, all_of_them: bool = False) -> None:
        """Resume waiting requests, as many as there are free slots."""
        room = math.inf if all_of_them else self._most - self.out
        while self._queue and room >= 1:
            place = self._queue.popleft()
            if not place.done():
                place.set_result(None)
                room -= 1

    def slower(self, cuts: int) -> None:
        """Halve the limit after a 429, unless it was halved since the request was sent.

        `cuts` is the value of `self.cuts` at that time.
        """
        if cuts == self.cuts and self._most > 1:
            self.cuts, self._since_cut = self.cuts + 1, 0
            self._most = max(1.0, min(self._most, self.out) // 2)
            log.info("%s: too many requests at a time (429); limit from now on: %d", self._name, self._most)

    def faster(self) -> None:
        """Record a reply, which raises the limit."""
        if self._most == math.inf:
            return
        self._since_cut += 1
        if not self._said and self._since_cut > 2 * self._most:
            self._said = True
            most = f"{self._most:.0f}"
            tell(
                f"note: {self._name} accepts about {most} requests at a time (429 above that): use --concurrency {most}"
            )
        self._most += GROWTH / self._most
