"""A graph that is compiled once, in a thread of its own: importing LangGraph takes seconds in which a model can speak.

    graph = Compiled(build)
    graph.begin()                               # as soon as it is likely to be needed
    await (await graph.get()).ainvoke(state)    # where it is needed; at once when it is there

A process that never begins does not import LangGraph.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

G = TypeVar("G")


class Compiled(Generic[G]):
    """What `build` makes, once for the process, whoever asks for it in whichever event loop."""

    def __init__(self, build: Callable[[], G]) -> None:
        self._build = build
        self._made: Future[G] | None = None
        self._lock = threading.Lock()

    def begin(self) -> Future[G]:
        """Start to build, where nobody has; done when it is built. It goes on when whoever waits gives up."""
        with self._lock:
            if self._made is None:
                self._made = Future()
                # Running from the start: a waiter that is cancelled cannot cancel it for the others.
                self._made.set_running_or_notify_cancel()
                threading.Thread(target=self._make, args=(self._made,), name="graph").start()
            return self._made

    def _make(self, made: Future[G]) -> None:
        try:
            made.set_result(self._build())
        # Whoever waits for it gets what went wrong.
        except BaseException as error:
            made.set_exception(error)

    async def get(self) -> G:
        """What is built. Raises what building raised."""
        made = self.begin()
        return made.result() if made.done() else await asyncio.wrap_future(made)
