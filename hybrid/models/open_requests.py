"""Counts this process's open requests to models: a run that ends waits for the replies, which are being paid for.

with requests_out.sending(): ...            # in a client of a server; first `await requests_out.admit()`
requests_out.stop("SIGTERM")                # no further request is sent
lost = await requests_out.drain(GRACE_S)    # the number of replies still missing
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

GRACE_S = 10.0  # Seconds for which a stopping run waits for the replies in flight.


class OpenRequests:
    """Counts open requests, and delays new ones while a run ends. Used in one event loop at a time."""

    def __init__(self) -> None:
        self.count = 0
        # Name of the signal that ends the run; empty while it continues.
        self.stopped_by = ""
        self._none_out = asyncio.Event()

    async def admit(self) -> None:
        """Return at once; after `stop`, wait until the caller is cancelled."""
        if self.stopped_by:
            await asyncio.get_running_loop().create_future()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Count a request while it is open."""
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1
            if self.count == 0 and self.stopped_by:
                self._none_out.set()

    def stop(self, reason: str) -> None:
        """Send no further request."""
        self.stopped_by = reason
        self._none_out = asyncio.Event()
        if self.count == 0:
            self._none_out.set()

    async def drain(self, seconds: float) -> int:
        """Wait for the open requests, for at most `seconds`; return the number of those still open."""
        try:
            await asyncio.wait_for(self._none_out.wait(), seconds)
        except TimeoutError:
            return self.count
        return 0

    def resume(self) -> None:
        """Send requests again."""
        self.stopped_by = ""


requests_out = OpenRequests()
