"""The part of a question's time that counts: the running time of its calls, not their waiting in queues of our own.

    spent = CallTime(left=3.0)                    # one model or tool call, and the seconds that its question has left
    watch = Stopwatch(time.monotonic)                 # one piece of work; read in the event loop it was made in
    with running([watch, other]): ...             # in the worker thread: what runs as one batch shares its time
    await finished("depth", work, watch, spent, Timeouts(300.0, 3600.0))

    async with counted(spent, time.monotonic) as limit: await model.chat(...)
    with waiting(): await turn()                  # inside a model: until it is this call's turn, nothing is counted

A request in a batch of n is charged one n-th of the batch's running time, so that a budget of seconds does not depend
on the company that a request was in. Loading is charged to no question: weights, and of the first run of a tool in a
process, which also loads libraries and fills tables, the first `FREE_LOAD_S` seconds. Who joins work that already runs
is charged from then on.
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

from hybrid.config import QUEUE_S
from hybrid.errors import Outage, ToolError
from hybrid.types import Fault

# Seconds that only grow, such as `time.monotonic`.
Clock = Callable[[], float]

R = TypeVar("R")

# How long the first run of a tool is loading: above what libraries take on a busy machine. What goes on for longer is a
# tool that is slow, or hangs, and its question pays.
FREE_LOAD_S = 30.0


@dataclass
class CallTime:
    """The time of one call of a question."""

    # Seconds that the question has left when the call starts; None without a limit.
    left: float | None = None
    # Seconds that the call has run so far.
    busy: float = 0.0
    # Whether what it gave was kept from an earlier call.
    cached: bool = False

    @property
    def rest(self) -> float | None:
        """Seconds that the call may still run; None without a limit."""
        return None if self.left is None else self.left - self.busy


@dataclass(frozen=True)
class Timeouts:
    """How long one piece of work may run, batch and all, and how long it may wait for its turn, in seconds."""

    running_s: float
    queue_s: float = QUEUE_S


@dataclass(frozen=True)
class ElapsedTime:
    """The reading of a watch: seconds that the work ran and are charged, whether it runs now, and at which charge.

    `rate` is what is charged for a second, one n-th for one of n, after the next `free` seconds.
    """

    ran: float
    share: float
    runs: bool
    rate: float
    free: float = 0.0


class Stopwatch:
    """How long one piece of work has run, all of its stages together.

    Started and stopped by the thread that does the work; made and waited for in one event loop.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._changed: asyncio.Future[None] = self._loop.create_future()
        self._lock = threading.Lock()
        self._ran = self._share = self._rate = self._free = 0.0
        self._since: float | None = None
        # How many callers wait for the work.
        self.waiting = 0

    def start(self, rate: float = 1.0, free_s: float = 0.0, at: float | None = None) -> None:
        """The work runs from now on, or from `at`; a second of it is charged as so much, the first ones as nothing."""
        with self._lock:
            self._since, self._rate, self._free = self._clock() if at is None else at, rate, free_s
        self._tell()

    def stop(self, at: float | None = None) -> None:
        """The work waits again, or is done, since `at` or now."""
        with self._lock:
            passed = self._passed(at)
            self._ran, self._share, self._since = self._ran + passed, self._share + self._charged(passed), None
        self._tell()

    def show(self, elapsed: ElapsedTime) -> None:
        """Go on from what a watch in another process shows."""
        with self._lock:
            self._ran, self._share, self._rate, self._free = elapsed.ran, elapsed.share, elapsed.rate, elapsed.free
            self._since = self._clock() if elapsed.runs else None
        self._tell()

    def read(self) -> ElapsedTime:
        """The reading of the watch now."""
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
        """Done at the next start or stop."""
        return self._changed

    def _tell(self) -> None:
        with suppress(RuntimeError):
            if asyncio.get_running_loop() is self._loop:
                self._next()
                return
        # The loop may have ended before the work did: then no caller waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._next)

    def _next(self) -> None:
        signal, self._changed = self._changed, self._loop.create_future()
        if not signal.done():
            signal.set_result(None)


@contextmanager
def running(watches: Sequence[Stopwatch], *, loads: bool = False) -> Iterator[None]:
    """Count the time inside as running time of all of these together; the first seconds are free where one `loads`."""
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
    """The result of work that other callers may wait for: it goes on when this caller is cancelled or gives up.

    Raises:
        ToolError: it runs longer than the question has left, or than any work may; or what the work raises.
        Outage: it was stopped before it ran, or waited too long for its turn.
    """
    charged, waits_since, ran = watch.read().share, clock(), watch.read().ran
    limited = spent.left is not None or timeouts.running_s < math.inf
    watch.waiting += 1
    try:
        while not work.done():
            now, moment = watch.read(), clock()
            # Calls of one question that run side by side add to the same time.
            spent.busy, charged = spent.busy + now.share - charged, now.share
            if now.runs or now.ran > ran:
                waits_since, ran = moment, now.ran
            if now.runs and limited:
                timeout = _until_late(name, now, spent, timeouts)
            elif (timeout := timeouts.queue_s - (moment - waits_since)) <= 0:
                raise Outage(f"{name} waited {timeouts.queue_s:g} s for its turn")
            # To be woken at each start and stop costs more than many a request.
            either: set[asyncio.Future[Any]] = {work, watch.changed} if limited else {work}
            await asyncio.wait(either, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        watch.waiting -= 1
        spent.busy += watch.read().share - charged
    if work.cancelled():
        raise Outage(f"{name} was stopped before it ran")
    return work.result()


def _until_late(name: str, now: ElapsedTime, spent: CallTime, timeouts: Timeouts) -> float:
    """Seconds until the running work is too late for a caller. Raises `ToolError` when it is."""
    if now.ran >= timeouts.running_s:
        raise ToolError(f"{name} did not answer within {timeouts.running_s:g} s", Fault.TIMEOUT)
    if spent.rest is None:
        return timeouts.running_s - now.ran
    if spent.rest <= 0 and not now.free:
        raise ToolError(f"{name} did not answer within the question's time", Fault.TIMEOUT)
    return min(timeouts.running_s - now.ran, now.free + max(0.0, spent.rest) / now.rate)


class CountedCall:
    """A model call that is being counted, as a context: what it spends in `waiting` is not, and moves its limit.

    It has one timer, which looks at the limit when it goes off: to move a timer costs more than to let it go off.
    """

    def __init__(self, spent: CallTime, clock: Clock, queue_s: float) -> None:
        # How many parts of the call wait for their turn.
        self.waits = 0
        self._spent, self._clock, self._queue_s = spent, clock, queue_s
        self._timer: asyncio.TimerHandle | None = None
        self._late = False

    async def __aenter__(self) -> CountedCall:
        """Begin to count."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        self._task, self._cancelling = task, task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._token = _COUNTED.set(self)
        self._since = self._clock()
        self._limit(self._spent.left)
        return self

    def _limit(self, seconds: float | None) -> None:
        """The call is late in so many seconds from now, or never."""
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
        """Whether the call was late: it ends by `TimeoutError`, or by `Outage` where it waited."""
        return self._late

    def wait(self, more: int, *, long: bool = False) -> None:
        """So many parts more wait, or fewer where it is negative; what is `long` has no limit."""
        # A call that waited too long ends as waiting.
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
        """End counting. Raises what `counted` raises."""
        _COUNTED.reset(self._token)
        if self._timer is not None:
            self._timer.cancel()
        if not self.waits:
            self._spent.busy += self._clock() - self._since
        # Another cancellation of the task stays in force.
        if self._late and self._task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError):
            if self.waits:
                raise Outage(f"a model call waited {self._queue_s:g} s for its turn") from None
            raise TimeoutError from error


_COUNTED: ContextVar[CountedCall | None] = ContextVar("model call that is being counted", default=None)


def count_call(spent: CallTime, clock: Clock, queue_s: float = QUEUE_S) -> CountedCall:
    """Count the wall time of what happens inside, without what it spends in `waiting`.

    Raises:
        TimeoutError: the call ran longer than the question has left; what is given out has then `expired`.
        Outage: it waited too long for its turn.
    """
    return CountedCall(spent, clock, queue_s)


@contextmanager
def waiting(*, long: bool = False) -> Iterator[None]:
    """Leave the time inside out of the model call around it: a wait for our own queue, or a `long` one, for a batch."""
    call = _COUNTED.get()
    if call is not None:
        call.wait(1, long=long)
    try:
        yield
    finally:
        if call is not None:
            call.wait(-1)
