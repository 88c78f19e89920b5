"""What the process of a run needs from the system: signals that end it in an orderly way, and enough open files.

    asyncio.run(until_signal(work))     # raises `Interrupted`, with the signal, after `work` has been cancelled

On SIGINT, SIGTERM or SIGHUP no further request is sent. Pending replies are already paid for, so they have `GRACE_S`
seconds to arrive; then `work` is cancelled, and finished questions are saved. A second signal only prints a note, a
third ends the process at once.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from hybrid.core.errors import HybridError
from hybrid.display.notes import tell
from hybrid.models.open_requests import GRACE_S, requests_out

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

log = logging.getLogger(__name__)


class Interrupted(HybridError):
    """A signal ended the run; finished questions are saved.

    Args:
        number: the signal.
        lost_replies: number of requests without a reply at the end of the grace period.
    """

    def __init__(self, number: signal.Signals, lost_replies: int = 0) -> None:
        replies = "reply" if lost_replies == 1 else "replies"
        more = (
            f"; {lost_replies} {replies} in flight did not arrive within {GRACE_S:g} s and will be asked again"
            if lost_replies
            else ""
        )
        super().__init__(f"ended by {number.name}{more}")
        self.number, self.lost = number, lost_replies

    @property
    def exit_code(self) -> int:
        """Exit code as in a shell: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP."""
        return 128 + self.number


async def until_signal(work: Coroutine[Any, Any, T], grace_s: float = GRACE_S) -> T:
    """Run `work` in the main thread and return its result. A signal cancels it once the replies in flight have arrived.

    Raises:
        Interrupted: a signal came, and `work` has ended.
    """
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine always runs in a task
    loop = asyncio.get_running_loop()
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    # `nohup` starts a program with SIGHUP ignored: such a program should continue when its terminal is closed.
    if handlers[signal.SIGHUP] is signal.SIG_IGN:
        del handlers[signal.SIGHUP]
    caught: list[signal.Signals] = []
    lost_counts: list[int] = []
    draining: list[asyncio.Task[None]] = []

    async def drain() -> None:
        lost_counts.append(await requests_out.drain(grace_s))
        log.info("%s: %d replies in flight are lost", caught[0].name, lost_counts[0])
        task.cancel()

    def stop(number: signal.Signals) -> None:
        caught.append(number)
        if len(caught) == 1:
            requests_out.stop(number.name)
            log.info("%s: no further request is sent, %d are in flight", number.name, requests_out.count)
            _tell_waiting(number, grace_s)
            draining.append(loop.create_task(drain()))
            return
        _tell_waiting(number, grace_s, "; one more signal ends the run at once and loses them")
        for other in handlers:
            loop.remove_signal_handler(other)
            signal.signal(other, signal.SIG_DFL)

    for number in handlers:
        loop.add_signal_handler(number, stop, number)
    try:
        return await work
    except asyncio.CancelledError:
        if not caught:
            raise
        raise Interrupted(caught[0], sum(lost_counts)) from None
    finally:
        requests_out.resume()
        for waiting in draining:
            waiting.cancel()
        for number, handler in handlers.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _tell_waiting(number: signal.Signals, grace_s: float, more: str = "") -> None:
    """Print what the run waits for, if anything."""
    if requests_out.count:
        replies = "1 reply" if requests_out.count == 1 else f"{requests_out.count} replies"
        tell(f"{number.name}: waiting up to {grace_s:g} s for {replies} in flight, already paid for{more}")


FILES_PER_REQUEST = 2  # Open files per request: a connection and a picture that is being read.
OTHER_FILES = 256  # Other open files: the run's own, tool workers, libraries.


def allow_open_files(concurrency: int, tell: Callable[[str], None]) -> None:
    """Raise the soft limit of open files as far as `concurrency` requests need and the hard limit allows.

    Shells often start with 1,024 or 256. `tell` gets a warning with the remedy if the hard limit is too low.
    """
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return
    needed = concurrency * FILES_PER_REQUEST + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    # macOS may reject a value although it does not exceed the reported hard limit.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    if soft < needed:
        most = max(1, (soft - OTHER_FILES) // FILES_PER_REQUEST)
        tell(
            f"warning: --concurrency {concurrency:,} may need {needed:,} open files, and this system allows {soft:,}: "
            f"raise the limit (ulimit -n), or use --concurrency {most}"
        )
