"""The worker's side of one question: messages to the run and the responses to them, one channel per question.

line.tell(QuestionHandler.notice, "...")                    # from any thread
refs = await line.request(QuestionHandler.images, sha256s)  # in the worker's event loop
async for message in line: ...                              # messages to send, until `close`
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from hybrid.engines.ray.messages import FromWorker, HandlerCall
from hybrid.engines.ray.question_handler import QuestionHandler

P = ParamSpec("P")
R = TypeVar("R")


class MessageChannel:
    """Ordered messages to the run, and its responses. Used in one event loop; `tell` works from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._out: asyncio.Queue[FromWorker | None] = asyncio.Queue()
        self._numbers = itertools.count()
        self._wishes: dict[int, asyncio.Future[Any]] = {}

    def send(self, message: FromWorker | None) -> None:
        """Queue a message; None closes the channel."""
        self._loop.call_soon_threadsafe(self._out.put_nowait, message)

    def tell(
        self, method: Callable[Concatenate[QuestionHandler, P], Awaitable[None]], *args: P.args, **_: P.kwargs
    ) -> None:
        """Have the run call a method of its `QuestionHandler`; returns at once."""
        self.send(HandlerCall(None, method, args))

    async def request(
        self, method: Callable[Concatenate[QuestionHandler, P], Awaitable[R]], *args: P.args, **_: P.kwargs
    ) -> R:
        """Send a message like `tell` and return the method's result."""
        number = next(self._numbers)
        wish: asyncio.Future[R] = self._loop.create_future()
        self._wishes[number] = wish
        self.send(HandlerCall(number, method, args))
        return await wish

    def answer(self, number: int, value: Any) -> None:
        """Resolve a pending request; ignore a request whose question has given up."""
        wish = self._wishes.pop(number, None)
        if wish is not None and not wish.done():
            wish.set_result(value)

    def close(self) -> None:
        """Stop sending, and cancel the requests that have no response yet."""
        for wish in self._wishes.values():
            wish.cancel()
        self.send(None)

    async def __aiter__(self) -> AsyncIterator[FromWorker]:
        while (message := await self._out.get()) is not None:
            yield message
