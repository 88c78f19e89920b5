"""Tools in a process of their own: one that hangs, crashes, leaks or holds the interpreter costs its own request only.

    runner = IsolatedTools(store, cache, ServiceOptions(isolated=True))
    finding = await runner.call(load("tools", "jigsaw"), args, refs)

The worker process (`hybrid/serving/worker.py`) is started with the first call that the cache has no finding for, or
before it (`warm`). It is killed and started again when

    a job runs for too long, or goes on after everybody who waited for it has given up
    it gives no sign of life
    its memory passes a limit
    it ends by itself

and then what it was asked is asked again. Who is to blame gets a `ToolError`: the only request of a job that is late;
and of an end that several requests may have caused, the one that causes it again when these are asked one by one.
Requests that only waited are asked again as often as it takes. A tool whose import or loading ends the process twice,
or that is to blame `MOST_CALLS` times without an answer in between, is not run any more.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import hybrid.errors
from hybrid.config import ServiceOptions
from hybrid.errors import HybridError, Outage, ToolError, UsageError
from hybrid.images import ImageStore
from hybrid.loading import loads
from hybrid.registry import folders, loaded
from hybrid.serving.cache import FindingCache, key_of
from hybrid.serving.channel import (
    Alive,
    Answered,
    Asked,
    Began,
    Describe,
    Described,
    Ended,
    Failed,
    Loaded,
    Message,
    Noticed,
    Setup,
    Up,
)
from hybrid.serving.kept import KeptFindings
from hybrid.serving.service import IMPORT, LOAD
from hybrid.serving.threads import DaemonThreads
from hybrid.serving.worker_process import WorkerProcess
from hybrid.timing import CallTime
from hybrid.tool import Tool
from hybrid.types import Fault, Finding, ImageRef

if TYPE_CHECKING:
    from hybrid.tool import Args

log = logging.getLogger("hybrid.serving.service")

START_S = 120.0
"""How long a worker may take to begin."""
MOST_STARTS = 3
"""Workers in a row that end before they have begun."""
MOST_LOADS = 2
"""Ends of the process while one tool was imported or loaded."""
MOST_CALLS = 8
"""Calls of one tool that have cost a process, without an answer of it in between."""
LOOK_UP_S = 10.0
"""How long a look into the cache may take before the worker is asked: it is on a disk, and runs a little of the tools'
own code, about what they need."""
LATE = {
    IMPORT: "did not finish its import within {:g} s",
    LOAD: "could not be loaded within {:g} s (--max-load-seconds says how long that may take)",
}
"""What is said of a job that takes too long, by its stage."""
DOUBTED = 3
"""A worker silent for this part of the time that it may be is not judged by how long its jobs take."""
LOOKING = 2
"""Threads that look into the cache."""
SOON_S = 0.5
"""After the first model call has begun: a worker that starts at once takes a core from the first requests, which then
leave 0.4 s later on two cores."""
TOLD_S = 1.0
"""How long something is loaded before a person is told."""
TICK_S = 1.0
"""How often a worker is looked at, at least."""


@dataclass
class _Pending:
    """A call that has no answer yet."""

    asked: Asked | Describe
    key: str
    """The same for calls that ask the same."""
    spent: CallTime
    answer: asyncio.Future[Finding | Described]
    sent: bool = False
    suspect: bool = False
    """It ran when a worker ended: it is asked alone, and if that ends a worker too it is to blame."""


@dataclass
class _Job:
    """What a worker does."""

    began: Began
    keys: frozenset[str]
    """Of the calls that it was begun for."""
    alone_s: float = 0.0
    """How long nobody has waited for it."""

    @property
    def prepares(self) -> bool:
        """Whether it is no part of a request."""
        return self.began.stage in (IMPORT, LOAD)


@dataclass
class _Record:
    """What a tool has done to its workers since it last answered."""

    loads: int = 0
    calls: int = 0


@dataclass(frozen=True)
class _End:
    """How a worker was lost."""

    how: str
    fault: Fault = Fault.TOOL_ERROR
    jobs: tuple[_Job, ...] | None = None
    """The jobs that were killed with it for being late; None where each that ran may have caused the end."""
    certain: bool = False
    """Whether a single call that ran then has caused it: a process that just dies may have been killed by others."""

    def told(self, tool: str) -> str:
        """In a sentence about the tool."""
        return f"{tool} {self.how}" if self.jobs is not None else f"{tool} cost its worker process: {self.how}"


@dataclass
class _Worker:
    """A worker process and what is known of it."""

    process: WorkerProcess
    up: bool = False
    silent_s: float = 0.0
    jobs: dict[int, _Job] = field(default_factory=dict)
    computed: int = 0


class IsolatedTools:
    """Runs tools in a worker process, one for each event loop that asks."""

    def __init__(self, store: ImageStore, cache: FindingCache, options: ServiceOptions) -> None:
        self.store = store
        self.cache = cache
        self.options = options
        self.computed = 0
        """Requests that a backend has answered, as opposed to the cache."""
        self.notices: list[str] = []
        """One line for each backend that could not be had or moved, and each tool that was given up."""
        self._closed = False
        self._loops: dict[asyncio.AbstractEventLoop, _Supervisor] = {}
        self._threads = DaemonThreads(LOOKING, "kept")
        self._slow = False

    async def call(
        self, tool: Tool, args: Args, images: Sequence[ImageRef], seed: int = 0, spent: CallTime | None = None
    ) -> Finding:
        """Find out: as `ToolService.call`.

        Raises:
            ToolError: besides, the tool hangs, or ends its process.
            Outage: besides, no worker process can be started.
            UsageError: the tool is none of the files of `tools/`.
        """
        if self._closed:
            raise Outage("the tool service is closed")
        name = tool.card.name
        if not tool.code and loaded("tools", name) is not tool:
            raise UsageError(f"{name} is no file of tools/, which alone can run in a worker process")
        return await self._in_loop().find(tool, args, tuple(images), seed, spent or CallTime())

    async def describe(self, name: str) -> Described:
        """Import a tool in the worker process, and there alone.

        Raises:
            ToolError: its import hangs, or ends its process.
            UsageError: as `hybrid.registry.load`.
            Outage: no worker process can be started.
        """
        return await self._in_loop().describe(name)

    def warm(self) -> None:
        """Start the worker of this event loop soon, unless that was done: it takes longer than many a model call."""
        if not self._closed:
            self._in_loop().warm()

    async def kept(
        self, kept: KeptFindings, tool: Tool, args: Args, images: tuple[ImageRef, ...], seed: int
    ) -> Finding | None:
        """The finding of a call, if the cache has it."""
        if self.cache.folder is None or self._slow:
            return None
        looking = asyncio.get_running_loop().run_in_executor(self._threads, kept.find, tool, args, images, seed)
        try:
            return await asyncio.wait_for(looking, LOOK_UP_S)
        except TimeoutError:
            # Each of the others would wait as long.
            self._slow = True
            return None

    def close(self) -> None:
        """Kill the workers; whoever waits gets an `Outage`."""
        self._closed = True
        for supervisor in self._loops.values():
            supervisor.close()
        self._loops.clear()
        self._threads.shutdown(wait=False)

    def notice(self, line: str) -> None:
        """Keep a line for the user, once."""
        if line not in self.notices:
            self.notices.append(line)

    def _in_loop(self) -> _Supervisor:
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            for other in [other for other in self._loops if other.is_closed()]:
                self._loops.pop(other).close()
            self._loops[loop] = _Supervisor(self)
        return self._loops[loop]


class _Supervisor:
    """The calls of one event loop and the worker that answers them."""

    def __init__(self, runner: IsolatedTools) -> None:
        self._runner = runner
        self._options = runner.options
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._pending: dict[int, _Pending] = {}
        self._worker: _Worker | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._looked = 0.0
        self._kept = KeptFindings(runner.cache, runner.options)
        self._warmed = False
        self._starts = 0
        self._dead: str | None = None
        self._records: dict[str, _Record] = {}
        self._refused: dict[str, str] = {}
        of = runner.options
        times = (of.timeout_s, of.silence_s, of.grace_s, of.import_s, of.load_s)
        self._tick_s = min(TICK_S, *(seconds / 4 for seconds in times))

    async def find(self, tool: Tool, args: Args, images: tuple[ImageRef, ...], seed: int, spent: CallTime) -> Finding:
        """The finding of one call: of the cache, else of the worker."""
        name = tool.card.name
        self._refuse_or_go_on(name)
        if (kept := await self._runner.kept(self._kept, tool, args, images, seed)) is not None:
            spent.cached = True
            return kept
        self._refuse_or_go_on(name)
        written = args.model_dump(mode="json")
        asked = Asked(next(self._numbers), name, written, images, seed, None)
        key = key_of(name, written, seed, [ref.image.sha256 for ref in images])
        return cast(Finding, await self._answer(_Pending(asked, key, spent, self._loop.create_future())))

    async def describe(self, name: str) -> Described:
        """The description of a tool."""
        self._refuse_or_go_on(name)
        asked = Describe(next(self._numbers), name)
        pending = _Pending(asked, key_of(name), CallTime(), self._loop.create_future())
        return cast(Described, await self._answer(pending))

    async def _answer(self, pending: _Pending) -> Finding | Described:
        self._pending[pending.asked.call] = pending
        try:
            self._go_on()
            return await pending.answer
        finally:
            self._pending.pop(pending.asked.call, None)
            self._go_on()

    def warm(self) -> None:
        """Start a worker soon, the first time that this is said."""
        if not self._warmed:
            self._loop.call_later(SOON_S, self._start_early)
        self._warmed = True

    def _start_early(self) -> None:
        if self._worker is None and self._dead is None:
            self._start()

    def _refuse_or_go_on(self, tool: str) -> None:
        if self._dead is not None:
            raise Outage(self._dead)
        if tool in self._refused:
            raise ToolError(self._refused[tool])

    def close(self) -> None:
        """Kill the worker; whoever waits gets an `Outage`."""
        self._dead = "the tool service is closed"
        loads(self, ())
        if self._worker is not None:
            self._worker.process.close()
            self._worker = None
        if self._loop.is_closed():
            return
        if self._timer is not None:
            self._timer.cancel()
        self._fail_all(self._dead)

    # What is asked of the worker

    def _go_on(self) -> None:
        """Ask the worker what it has not been asked; those that ran when another ended one by one, and first."""
        if self._dead is not None or not self._pending:
            return
        if self._worker is None:
            self._start()
            return
        if not self._worker.up:
            return
        suspects = [one for one in self._pending.values() if one.suspect]
        if suspects:
            if not any(one.sent for one in self._pending.values()):
                self._send(self._worker, suspects[0])
            return
        for one in self._pending.values():
            if not one.sent:
                self._send(self._worker, one)

    def _send(self, worker: _Worker, one: _Pending) -> None:
        one.sent = True
        asked = one.asked
        worker.process.send(replace(asked, left=one.spent.rest) if isinstance(asked, Asked) else asked)

    def _start(self) -> None:
        runner = self._runner
        setup = Setup(
            modules=tuple(sys.path),
            tools=folders("tools"),
            images=runner.store.root.absolute(),
            findings=None if runner.cache.folder is None else runner.cache.folder.absolute(),
            options=self._options,
            refused=self._refused,
        )
        try:
            process = WorkerProcess(setup, self._hear, lambda how: self._lose(_End(how)))
        except OSError as error:
            self._give_up(f"no worker process for the tools can be started: {error}")
            return
        self._worker = _Worker(process)
        self._looked = time.monotonic()
        if self._timer is None:
            self._timer = self._loop.call_later(self._tick_s, self._look)

    def _give_up(self, why: str) -> None:
        self._dead = why
        loads(self, ())
        self._fail_all(why)

    def _fail_all(self, why: str) -> None:
        for one in list(self._pending.values()):
            self._settle(one, Outage(why))

    def _settle(self, one: _Pending, found: Finding | Described | HybridError, busy: float = 0.0) -> None:
        """Answer a call, which is then none any more."""
        self._pending.pop(one.asked.call, None)
        one.spent.busy += busy
        if one.answer.done():
            return
        if isinstance(found, HybridError):
            one.answer.set_exception(found)
        else:
            one.answer.set_result(found)

    # What the worker says

    def _hear(self, message: Message) -> None:
        worker = self._worker
        if worker is None:
            return
        worker.silent_s = 0.0
        match message:
            case Began():
                keys = frozenset(self._pending[call].key for call in message.calls if call in self._pending)
                worker.jobs[message.job] = _Job(message, keys)
            case Ended():
                worker.jobs.pop(message.job, None)
            case Answered():
                self._answered(worker, message)
            case Described():
                if (one := self._pending.get(message.call)) is not None:
                    self._settle(one, message)
            case Failed():
                self._failed(message)
            case Loaded():
                self._kept.answering[message.tool] = message.answering
            case Noticed():
                self._runner.notice(message.line)
            case Up():
                worker.up, self._starts = True, 0
                self._go_on()
            case Alive() | Setup() | Asked() | Describe():
                pass

    def _answered(self, worker: _Worker, message: Answered) -> None:
        self._runner.computed += message.computed - worker.computed
        worker.computed = message.computed
        if (one := self._pending.get(message.call)) is not None:
            self._records.pop(one.asked.tool, None)
            one.spent.cached = message.cached
            self._settle(one, message.finding, message.busy)

    def _failed(self, message: Failed) -> None:
        if (one := self._pending.get(message.call)) is not None:
            self._settle(one, _error(message), message.busy)

    # What is wrong with the worker

    def _look(self) -> None:
        """Look at the worker, and again a little later."""
        self._timer = None
        now = time.monotonic()
        # If this loop was kept busy, it has not listened either.
        passed, self._looked = min(now - self._looked, 2 * self._tick_s), now
        if self._worker is not None and (end := self._judge(self._worker, passed, now)) is not None:
            self._lose(end)
        loads(self, self._loading(time.monotonic()))
        if self._dead is None:
            self._timer = self._loop.call_later(self._tick_s, self._look)

    def _loading(self, now: float) -> tuple[str, ...]:
        """What has been loaded for long enough to be told of."""
        if self._worker is None:
            return ()
        if not self._worker.up:
            return ("the process of the tools",)
        jobs = self._worker.jobs.values()
        return tuple(sorted({job.began.tool for job in jobs if job.prepares and now - job.began.at >= TOLD_S}))

    def _judge(self, worker: _Worker, passed: float, now: float) -> _End | None:
        """Why a worker has to be killed, if it has to."""
        options = self._options
        worker.silent_s += passed
        timeouts = options.silence_s if worker.up else max(START_S, options.silence_s)
        # A library on a slow disk stops all others.
        timeouts = max(timeouts, *(self._most(job) for job in worker.jobs.values() if job.prepares), 0.0)
        if worker.silent_s >= timeouts:
            return _End(f"no sign of life for {timeouts:g} s", Fault.TIMEOUT, certain=True)
        used = worker.process.resident_bytes()
        if used is not None and used > options.process_bytes:
            return _End(f"{used / 1e9:.3g} GB of memory, where {options.process_bytes / 1e9:.3g} GB is the most")
        if worker.silent_s > options.silence_s / DOUBTED:
            # One of the jobs may be stopping all others, which are then late through no fault of theirs.
            return None
        for job in worker.jobs.values():
            most = self._most(job)
            if now - job.began.at >= most or self._for_nobody(job, passed) >= options.grace_s:
                told = LATE.get(job.began.stage, "did not answer within {:g} s").format(most)
                return _End(told, Fault.TIMEOUT, (job,), certain=True)
        return None

    def _most(self, job: _Job) -> float:
        """Seconds that a job may take."""
        options = self._options
        return {IMPORT: options.import_s, LOAD: options.load_s}.get(job.began.stage, options.timeout_s)

    def _for_nobody(self, job: _Job, passed: float) -> float:
        """Seconds that a job has gone on without anybody who waits for it."""
        awaited = job.prepares or any(one.sent and one.key in job.keys for one in self._pending.values())
        job.alone_s = 0.0 if awaited else job.alone_s + passed
        return job.alone_s

    def _lose(self, end: _End) -> None:
        """Kill the worker, if it lives, and find out which of the calls that ran is to blame."""
        worker = self._worker
        if worker is None:
            return
        jobs = tuple(worker.jobs.values()) if end.jobs is None else end.jobs
        asked = [one for one in self._pending.values() if one.sent]
        self._stop()
        if not worker.up:
            self._starts += 1
            if self._starts >= MOST_STARTS:
                self._give_up(f"the worker process of the tools does not start: {end.how}")
            self._go_on()
            return
        # Of several jobs each may have ended it, and a load that did will do it again.
        if len(jobs) == 1:
            self._count_load(jobs[0], end)
        calls = self._of(jobs)
        if not calls and end.jobs is None:
            calls = asked
        sure = end.certain and len(calls) == 1
        for one in calls:
            if sure or one.suspect:
                self._blame(one, jobs, end)
            one.suspect = True
        if not calls and end.jobs is not None:
            self._count_call(end.jobs[0].began.tool, end)
        self._go_on()

    def _of(self, jobs: Iterable[_Job]) -> list[_Pending]:
        """The calls that some jobs run for and that still wait."""
        numbers = dict.fromkeys(call for job in jobs for call in job.began.calls)
        return [self._pending[call] for call in numbers if call in self._pending]

    def _stop(self) -> None:
        """Kill the worker; nothing has been asked of the next one, which may find other weights."""
        self._kept.answering.clear()
        if self._worker is not None:
            self._worker.process.kill()
            self._worker = None
        for one in self._pending.values():
            one.sent = False

    def _blame(self, guilty: _Pending, jobs: Iterable[_Job], end: _End) -> None:
        """Answer a call with an error, and every other that asks the same."""
        its = [job for job in jobs if guilty.key in job.keys]
        tool = its[0].began.tool if its else guilty.asked.tool
        self._count_call(tool, end)
        now = time.monotonic()
        guilty.spent.busy += sum((now - job.began.at) * job.began.rate for job in its)
        for one in list(self._pending.values()):
            if one.key == guilty.key:
                self._settle(one, ToolError(end.told(tool), end.fault))

    def _count_load(self, job: _Job, end: _End) -> None:
        # Who asks for a description keeps the error.
        asked = [self._pending[call].asked for call in job.began.calls if call in self._pending]
        if job.prepares and not any(isinstance(one, Describe) for one in asked):
            name = job.began.tool
            record = self._records.setdefault(name, _Record())
            # What takes too long to load takes so the next time; a process may have been killed by others.
            record.loads += MOST_LOADS if end.jobs is not None else 1
            if record.loads >= MOST_LOADS:
                self._refuse(name, end.told(name))

    def _count_call(self, tool: str, end: _End) -> None:
        record = self._records.setdefault(tool, _Record())
        record.calls += 1
        if record.calls >= MOST_CALLS:
            self._refuse(tool, f"{end.told(tool)}, after {record.calls - 1} calls in a row that also cost one")

    def _refuse(self, tool: str, why: str) -> None:
        """Not run a tool any more; the next worker is told so too."""
        if tool not in self._refused:
            self._refused[tool] = f"{why}; the tool is not run any more"
            self._runner.notice(self._refused[tool])
            log.warning(self._refused[tool])


def _error(message: Failed) -> HybridError:
    """The error that a worker says. Only classes of ours are made of it, and only from a message."""
    known = getattr(hybrid.errors, message.error, None) if message.error else None
    if known is None and not message.error:
        return Outage(f"the worker process of the tools failed: {message.message}")
    if not (isinstance(known, type) and issubclass(known, HybridError)):
        return ToolError(message.message, message.fault)
    if not issubclass(known, ToolError):
        return known(message.message)
    error = known(message.message, message.fault)
    error.trace = message.trace
    return error
