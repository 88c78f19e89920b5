"""The requests to models that this process has out: whoever ends a run waits for their replies, which are being paid.

with requests_out.sending(): ...            # in a client of a server; first `await requests_out.admit()`
requests_out.stop("SIGTERM")                # no further request goes out
lost = await requests_out.drain(GRACE_S)    # how many replies had not come by then
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

GRACE_S = 10.0  # Seconds for which a run that is told to stop waits for the replies in flight.


class OpenRequests:
    """Counts requests that are out, and holds back new ones while a run ends. Used in one event loop at a time."""

    def __init__(self) -> None:
        self.count = 0
        # Name of the signal that ends the run; empty while it goes on.
        self.stopped_by = ""
        self._none_out = asyncio.Event()

    async def admit(self) -> None:
        """Return at once; once the run is told to stop, wait until the caller is cancelled."""
        if self.stopped_by:
            await asyncio.get_running_loop().create_future()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Count one request while it is out."""
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
        """Wait for the requests that are out, for `seconds` at most; the number of those that still are."""
        try:
            await asyncio.wait_for(self._none_out.wait(), seconds)
        except TimeoutError:
            return self.count
        return 0

    def resume(self) -> None:
        """Let requests go out again."""
        self.stopped_by = ""


requests_out = OpenRequests()
