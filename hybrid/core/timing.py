"""Time accounting of questions: the running time of calls counts, and their waiting time in hybrid's queues does not.

    spent = CallTime(limit_s=3.0)               # one model or tool call, with the seconds left to its question
    watch = Stopwatch(time.monotonic)             # one piece of work; read in the event loop that created it
    with running([watch, other]): ...             # in the worker thread: a batch shares its running time
    await finished("depth", work, watch, spent, Timeouts(300.0, 3600.0))

    async with count_call(spent, time.monotonic) as limit: await model.chat(...)
    with waiting(): await turn()                  # inside a model: time spent waiting for a slot is not counted

A request in a batch of n is charged 1/n of the batch's running time, so that a time budget does not depend on the other
requests. Loading is not charged: this includes weights, and the first `FREE_LOAD_S` seconds of a tool's first run in a
process, which also loads libraries. A caller that joins running work is charged from then on.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from hybrid.core.errors import Outage, ToolError
from hybrid.core.types import Fault

# A clock that never goes back, in seconds, such as `time.monotonic`.
Clock = Callable[[], float]

R = TypeVar("R")

# Seconds of a tool's first run that count as loading: more than libraries take on a busy machine. Beyond that, the
# tool is slow or hangs, and the time is charged.
FREE_LOAD_S = 30.0

# Longest wait of a request in the queue, in seconds.
QUEUE_S = 3600.0


@dataclass
class CallTime:
    """The time account of one call."""

    # Seconds that the question has left when the call starts; None without a limit.
    limit_s: float | None = None
    # Seconds that the call has run so far.
    busy: float = 0.0
    # Whether the result came from a cache.
    cached: bool = False

    @property
    def rest(self) -> float | None:
        """Seconds that the call may still run; None without a limit."""
        return None if self.limit_s is None else self.limit_s - self.busy


@dataclass(frozen=True)
class Timeouts:
    """Longest running time of one piece of work (or its batch), and longest wait in the queue, in seconds."""

    running_s: float
    queue_s: float = QUEUE_S


@dataclass(frozen=True)
class ElapsedTime:
    """The reading of a watch: the seconds that the work has run (`ran`), and whether it runs now (`runs`).

    `share` is the number of seconds charged so far. `rate` is the charge per second (1/n in a batch of n), after the
    next `free` seconds.
    """

    ran: float
    share: float
    runs: bool
    rate: float
    free: float = 0.0


class Stopwatch:
    """Running time of one piece of work, over all its stages.

    The worker thread starts and stops it. It is created and awaited in one event loop.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._changed: asyncio.Future[None] = self._loop.create_future()
        self._lock = threading.Lock()
        self._ran = self._share = self._rate = self._free = 0.0
        self._since: float | None = None
        # Number of callers that wait for the work.
        self.waiting = 0

    def start(self, rate: float = 1.0, free_s: float = 0.0, at: float | None = None) -> None:
        """Start the watch now or at `at`; each second is charged `rate`, after `free_s` free seconds."""
        with self._lock:
            self._since, self._rate, self._free = self._clock() if at is None else at, rate, free_s
        self._tell()

    def stop(self, at: float | None = None) -> None:
        """Stop the watch now or at `at`: the work is waiting again or is finished."""
        with self._lock:
            passed = self._passed(at)
            self._ran, self._share, self._since = self._ran + passed, self._share + self._charged(passed), None
        self._tell()

    def show(self, elapsed: ElapsedTime) -> None:
        """Continue from the reading of a watch in another process."""
        with self._lock:
            self._ran, self._share, self._rate, self._free = elapsed.ran, elapsed.share, elapsed.rate, elapsed.free
            self._since = self._clock() if elapsed.runs else None
        self._tell()

    def read(self) -> ElapsedTime:
        """Return the current reading."""
        with self._lock:
            passed = self._passed()
            free = max(0.0, self._free - passed)
            share = self._share + self._charged(passed)
            return ElapsedTime(self._ran + passed, share, self._since is not None, self._rate, free)

    def _charged(self, passed: float) -> float:
        return max(0.0, passed - self._free) * self._rate

    def _passed(self, at: float | None = None) -> float:
        return 0.0 if self._since is None else (self._clock() if at is None else at) - self._since

    @property
    def changed(self) -> asyncio.Future[None]:
        """A future that resolves at the next start or stop."""
        return self._changed

    def _tell(self) -> None:
        with suppress(RuntimeError):
            if asyncio.get_running_loop() is self._loop:
                self._next()
                return
        # The loop may have ended before the work; then no caller waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._next)

    def _next(self) -> None:
        signal, self._changed = self._changed, self._loop.create_future()
        if not signal.done():
            signal.set_result(None)


@contextmanager
def running(watches: Sequence[Stopwatch], *, loads: bool = False) -> Iterator[None]:
    """Count the time of the `with` block as running time that these watches share.

    With `loads`, the first `FREE_LOAD_S` seconds are free.
    """
    for watch in watches:
        watch.start(1 / len(watches), FREE_LOAD_S if loads else 0.0)
    try:
        yield
    finally:
        for watch in watches:
            watch.stop()


async def finished(
    name: str,
    work: asyncio.Future[R],
    watch: Stopwatch,
    spent: CallTime,
    timeouts: Timeouts,
    clock: Clock = time.monotonic,
) -> R:
    """Wait for work that other callers may share: it continues if this caller is cancelled or gives up.

    Raises:
        ToolError: the work ran longer than the question has left, or than `timeouts` allow.
        Outage: the work was stopped before it ran, or waited too long in the queue.
        BaseException: any error that the work raises.
    """
    charged, waits_since, ran = watch.read().share, clock(), watch.read().ran
    limited = spent.limit_s is not None or timeouts.running_s < math.inf
    watch.waiting += 1
    try:
        while not work.done():
            now, moment = watch.read(), clock()
            # Parallel calls of one question add to the same account.
            spent.busy, charged = spent.busy + now.share - charged, now.share
            if now.runs or now.ran > ran:
                waits_since, ran = moment, now.ran
            if now.runs and limited:
                timeout = _until_late(name, now, spent, timeouts)
            elif (timeout := timeouts.queue_s - (moment - waits_since)) <= 0:
                raise Outage(f"{name} waited {timeouts.queue_s:g} s for its turn")
            # Without a limit, wait for the end only: waking at each start and stop would cost more time than many
            # requests take.
            either: set[asyncio.Future[Any]] = {work, watch.changed} if limited else {work}
            await asyncio.wait(either, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        watch.waiting -= 1
        spent.busy += watch.read().share - charged
    if work.cancelled():
        raise Outage(f"{name} was stopped before it ran")
    return work.result()


def _until_late(name: str, now: ElapsedTime, spent: CallTime, timeouts: Timeouts) -> float:
    """Return the seconds until the running work is too late for a caller. Raises `ToolError` if it is late already."""
    if now.ran >= timeouts.running_s:
        raise ToolError(f"{name} did not answer within {timeouts.running_s:g} s", Fault.TIMEOUT)
    if spent.rest is None:
        return timeouts.running_s - now.ran
    if spent.rest <= 0 and not now.free:
        raise ToolError(f"{name} did not answer within the question's time", Fault.TIMEOUT)
    return min(timeouts.running_s - now.ran, now.free + max(0.0, spent.rest) / now.rate)


class CountedCall:
    """Context manager that counts the time of a model call; time in `waiting` is not counted and extends the limit.

    If the limit is extended, the timer still fires at the old time and is then set again: this costs less than moving
    it at each extension.
    """

    def __init__(self, spent: CallTime, clock: Clock, queue_s: float) -> None:
        # Number of parts of the call that wait in a queue.
        self.waits = 0
        self._spent, self._clock, self._queue_s = spent, clock, queue_s
        self._timer: asyncio.TimerHandle | None = None
        self._late = False

    async def __aenter__(self) -> CountedCall:
        """Start counting."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine always runs in a task
        self._task, self._cancelling = task, task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._token = _COUNTED.set(self)
        self._since = self._clock()
        self._limit(self._spent.limit_s)
        return self

    def _limit(self, seconds: float | None) -> None:
        """Set the limit to `seconds` from now; None for no limit."""
        self._ends = None if seconds is None else self._loop.time() + seconds
        if self._ends is not None and (self._timer is None or self._ends < self._timer.when()):
            self._set_timer(self._ends)

    def _set_timer(self, ends: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(ends, self._goes_off)

    def _goes_off(self) -> None:
        self._timer = None
        if self._ends is None:
            return
        if self._loop.time() < self._ends:
            self._set_timer(self._ends)
            return
        self._late = True
        self._task.cancel()

    def expired(self) -> bool:
        """Return whether the limit was exceeded: the call then ends with `TimeoutError`, or `Outage` if it waited."""
        return self._late

    def wait(self, more: int, *, long: bool = False) -> None:
        """Change the number of waiting parts by `more`; a `long` wait has no limit."""
        # A call that exceeded its limit while waiting must still end with `Outage`, so `waits` must not change any
        # more.
        if self._late:
            return
        waited, self.waits = self.waits, self.waits + more
        if bool(waited) == bool(self.waits):
            return
        if self.waits:
            self._spent.busy += self._clock() - self._since
            self._limit(None if long else self._queue_s)
        else:
            self._since = self._clock()
            self._limit(self._spent.rest)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Stop counting. Raises the errors of `count_call`."""
        _COUNTED.reset(self._token)
        if self._timer is not None:
            self._timer.cancel()
        if not self.waits:
            self._spent.busy += self._clock() - self._since
        # A cancellation from elsewhere must stay in effect.
        if self._late and self._task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError):
            if self.waits:
                raise Outage(f"a model call waited {self._queue_s:g} s for its turn") from None
            raise TimeoutError from error


_COUNTED: ContextVar[CountedCall | None] = ContextVar("the model call that is being counted", default=None)


def count_call(spent: CallTime, clock: Clock, queue_s: float = QUEUE_S) -> CountedCall:
    """Count the wall time of the `with` block, without time spent in `waiting`.

    Raises:
        TimeoutError: the call ran longer than the question has left; `expired()` of the context is then True.
        Outage: the call waited too long in the queue.
    """
    return CountedCall(spent, clock, queue_s)


@contextmanager
def waiting(*, long: bool = False) -> Iterator[None]:
    """Do not count the `with` block as time of the model call: it waits in a queue or, if `long`, for a batch."""
    call = _COUNTED.get()
    if call is not None:
        call.wait(1, long=long)
    try:
        yield
    finally:
        if call is not None:
            call.wait(-1)
