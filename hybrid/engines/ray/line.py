"""Messages of a question under way to the run, and the answers of the run: one line a question, in the worker.

line.tell(ModelReply(...))                # in any thread
refs = await line.want(ImagesQuery(...))  # in the worker's event loop
async for message in line: ...           # what is to be sent, until `close`
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

from hybrid.engines.ray.messages import FromWorker, Query, WorkerQuery


class Line:
    """Messages to the run in order, and its answers. Made and used in one event loop; `tell` works in any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._out: asyncio.Queue[FromWorker | None] = asyncio.Queue()
        self._numbers = itertools.count()
        self._wishes: dict[int, asyncio.Future[Any]] = {}

    def tell(self, message: FromWorker) -> None:
        """Send a message."""
        self._loop.call_soon_threadsafe(self._out.put_nowait, message)

    async def want(self, what: Query) -> Any:
        """The answer of the run; its form stands with the wish."""
        number = next(self._numbers)
        self._wishes[number] = self._loop.create_future()
        self.tell(WorkerQuery(number, what))
        return await self._wishes[number]

    def answer(self, number: int, value: Any) -> None:
        """Fulfil a wish. One whose question has given up is passed over."""
        wish = self._wishes.pop(number, None)
        if wish is not None and not wish.done():
            wish.set_result(value)

    def close(self) -> None:
        """Send no more; what is still wanted is not answered any more."""
        for wish in self._wishes.values():
            wish.cancel()
        self._loop.call_soon_threadsafe(self._out.put_nowait, None)

    async def __aiter__(self) -> AsyncIterator[FromWorker]:
        while (message := await self._out.get()) is not None:
            yield message
