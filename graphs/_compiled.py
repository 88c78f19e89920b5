"""A graph compiled once in a thread, because importing LangGraph takes seconds in which a model can answer.

    graph = Compiled(build)
    graph.begin()                               # as soon as it is likely to be needed
    await (await graph.get()).ainvoke(state)    # on use; does not wait if it is ready

A process that never calls `begin` or `get` does not import LangGraph.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from graphs._deferred import DEFERRED, defer

G = TypeVar("G")


class Compiled(Generic[G]):
    """The result of `build`, computed once per process and shared by all callers and event loops."""

    def __init__(self, build: Callable[[], G]) -> None:
        self._build = build
        self._made: Future[G] | None = None
        self._lock = threading.Lock()

    def begin(self) -> Future[G]:
        """Start the build unless it was started; return a future that is done when the build ends.

        The build continues if a waiting caller gives up.
        """
        with self._lock:
            if self._made is None:
                self._made = Future()
                # Mark the future as running, so that a cancelled waiter cannot cancel it for the other waiters.
                self._made.set_running_or_notify_cancel()
                threading.Thread(target=self._make, args=(self._made,), name="graph").start()
            return self._made

    def _make(self, future: Future[G]) -> None:
        try:
            defer(*DEFERRED)
            future.set_result(self._build())
        # Every waiting caller gets the error.
        except BaseException as error:
            future.set_exception(error)

    async def get(self) -> G:
        """Return the built graph. Raises the error of the build."""
        future = self.begin()
        return future.result() if future.done() else await asyncio.wrap_future(future)
