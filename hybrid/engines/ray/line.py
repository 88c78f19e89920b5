"""Messages of a question under way to the run, and the answers of the run: one line a question, in the worker.

line.tell(Desk.notice, "...")                 # in any thread
refs = await line.want(Desk.images, sha256s)  # in the worker's event loop
async for message in line: ...                # what is to be sent, until `close`
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from hybrid.engines.ray.desk import QuestionHandler
from hybrid.engines.ray.messages import FromWorker, HandlerCall

P = ParamSpec("P")
R = TypeVar("R")


class MessageChannel:
    """Messages to the run in order, and its answers. Made and used in one event loop; `tell` works in any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._out: asyncio.Queue[FromWorker | None] = asyncio.Queue()
        self._numbers = itertools.count()
        self._wishes: dict[int, asyncio.Future[Any]] = {}

    def send(self, message: FromWorker | None) -> None:
        """Send a message; None is the last."""
        self._loop.call_soon_threadsafe(self._out.put_nowait, message)

    def tell(
        self, method: Callable[Concatenate[QuestionHandler, P], Awaitable[None]], *args: P.args, **_: P.kwargs
    ) -> None:
        """Have the run call a method of its desk."""
        self.send(HandlerCall(None, method, args))

    async def want(
        self, method: Callable[Concatenate[QuestionHandler, P], Awaitable[R]], *args: P.args, **_: P.kwargs
    ) -> R:
        """As `tell`; what the method gave."""
        number = next(self._numbers)
        wish: asyncio.Future[R] = self._loop.create_future()
        self._wishes[number] = wish
        self.send(HandlerCall(number, method, args))
        return await wish

    def answer(self, number: int, value: Any) -> None:
        """Fulfil a wish. One whose question has given up is passed over."""
        wish = self._wishes.pop(number, None)
        if wish is not None and not wish.done():
            wish.set_result(value)

    def close(self) -> None:
        """Send no more; what is still wanted is not answered any more."""
        for wish in self._wishes.values():
            wish.cancel()
        self.send(None)

    async def __aiter__(self) -> AsyncIterator[FromWorker]:
        while (message := await self._out.get()) is not None:
            yield message
