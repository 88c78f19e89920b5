"""SIGINT and SIGTERM end a run in order: what is in flight is dropped, what is finished is kept.

    asyncio.run(until_signal(work))     # raises `Interrupted`, with the signal, after `work` has been cancelled

A second signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from hybrid.errors import HybridError

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(HybridError):
    """A signal ended the run; what is finished is kept."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(f"ended by {number.name}")
        self.number = number

    @property
    def exit_code(self) -> int:
        """As a shell has it: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.number


async def until_signal(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which a signal cancels. Only in the main thread.

    Raises:
        Interrupted: a signal came, and `work` has ended.
    """
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    caught: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        caught.append(number)
        for each in SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        task.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        return await work
    except asyncio.CancelledError:
        if not caught:
            raise
        raise Interrupted(caught[0]) from None
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])
