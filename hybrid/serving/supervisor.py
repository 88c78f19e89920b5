"""Supervises a tool worker process: a tool that hangs, crashes, leaks or blocks all threads affects only itself.

    executor = ProcessExecutor(cache, ServiceOptions())
    response = await executor.ask(LoadRequest(1, "depth"), watch)

Each event loop has one worker process (`worker.py`), which starts with the first request or earlier (`warm`). It is
killed and restarted when

    a job runs too long, or continues although all of its callers have given up
    it gives no sign of life
    its memory exceeds a limit
    it ends by itself

Its pending requests are then sent again. The culprit gets a `ToolError`. If a late job has a single request, the
culprit is that request. If several requests may have caused the end, they are sent one by one, and the culprit is the
one that ends the process again. Requests that only waited are sent again as often as necessary. A tool whose import or
loading ends the process twice, or that costs `MAX_CALLS` processes without a response in between, is no longer run.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from hybrid.config import ServiceOptions
from hybrid.core.errors import HybridError, Outage, ToolError
from hybrid.core.timing import Stopwatch
from hybrid.display.notes import loads
from hybrid.plugins.discovery import looked_in
from hybrid.serving.cache import FindingCache
from hybrid.serving.executor import MessageExecutor, error_of
from hybrid.serving.jobs import Job, PendingRequest, Worker, WorkerEnd, WorkerLink, judge
from hybrid.serving.protocol import (
    CallFailure,
    DescribeRequest,
    ImportResponse,
    JobEnd,
    JobStart,
    LoadResponse,
    Message,
    NeedResponse,
    Request,
    Response,
    RuleRequest,
    RuleResponse,
    Setup,
    ToolResponse,
    WorkerReady,
)
from hybrid.serving.worker_process import WorkerProcess

log = logging.getLogger("hybrid.serving.service")

# Maximum number of consecutive workers that end before they are ready.
MAX_STARTS = 3
# Maximum number of times that the process may end while one tool is imported or loaded.
MAX_LOADS = 2
# Maximum number of requests of one tool that end a process, without a response in between.
MAX_CALLS = 8
# Seconds to wait before a worker is started early: an immediate start would take a core from the first requests to the
# model, which on two cores would be sent 0.4 s later.
SOON_S = 0.5
# Seconds of loading after which the user gets a notice.
TOLD_S = 1.0
# Maximum seconds between two checks of a worker.
TICK_S = 1.0


class ProcessExecutor(MessageExecutor):
    """Runs tools in a worker process, one per event loop."""

    # Whether a lost process is replaced, and the error of requests that no process will answer.
    restarts = True
    outage_class: type[Outage] = Outage

    def __init__(self, cache: FindingCache, options: ServiceOptions) -> None:
        super().__init__()
        self.cache, self.options = cache, options
        self._closed = False
        self._loops: dict[asyncio.AbstractEventLoop, _Supervisor] = {}

    async def ask(self, request: Request, watch: Stopwatch) -> Response:
        """See `MessageExecutor.ask`."""
        if self._closed:
            raise Outage("the tool service is closed")
        return await self._in_loop().ask(request, watch)

    def start(self, setup: Setup, on_message: Callable[[Message], None], on_end: Callable[[str], None]) -> WorkerLink:
        """Start a process. Raises `OSError` if that is not possible."""
        return WorkerProcess(setup, on_message, on_end)

    async def describe(self, package: str, name: str) -> ImportResponse:
        """Import a tool, or another plug-in, only in the worker process.

        Raises:
            ToolError: the import hangs, or ends its process.
            UsageError: as `hybrid.plugins.registry.load`.
            Outage: no worker process can be started.
        """
        return cast(ImportResponse, await self._ask_and_wait(DescribeRequest(0, name, package)))

    async def next_step(self, request: RuleRequest) -> RuleResponse:
        """Return a rule's next step for a prompt. Raises `ToolError` if the rule raises, hangs or ends its process."""
        return cast(RuleResponse, await self._ask_and_wait(request))

    async def _ask_and_wait(self, request: Request) -> Response:
        """Send a request that is not a call, wait for the response, and return it."""
        watch = Stopwatch(time.monotonic)
        watch.waiting = 1
        return await self.ask(request, watch)

    def warm(self) -> None:
        """Start this event loop's worker soon, unless it was started: starting takes longer than many model calls."""
        if not self._closed:
            self._in_loop().warm()

    def close(self) -> None:
        """Kill the workers; a caller that still waits gets an `Outage`."""
        self._closed = True
        for supervisor in self._loops.values():
            supervisor.close()
        self._loops.clear()

    def notice(self, line: str) -> None:
        """Add a notice for the user, once."""
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
    """The requests of one event loop and the worker that answers them."""

    def __init__(self, executor: ProcessExecutor) -> None:
        self._executor = executor
        self._options = executor.options
        self._loop = asyncio.get_running_loop()
        self._pending: dict[int, PendingRequest] = {}
        self._worker: Worker | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._looked = 0.0
        self._warmed = False
        self._numbers = self._starts = 0
        self._dead: str | None = None
        # For each tool, the number of processes lost since its last response: while loading, and while answering.
        self._loads, self._calls = Counter[str](), Counter[str]()
        self._refused: dict[str, str] = {}
        of = executor.options
        times = (of.timeout_s, of.silence_s, of.grace_s, of.import_s, of.load_s)
        self._tick_s = min(TICK_S, *(seconds / 4 for seconds in times))

    async def ask(self, request: Request, watch: Stopwatch) -> Response:
        """Return the worker's response to one request."""
        if self._dead is not None:
            raise self._executor.outage_class(self._dead)
        if request.tool in self._refused:
            raise ToolError(self._refused[request.tool])
        self._numbers += 1
        pending = PendingRequest(replace(request, number=self._numbers), watch, self._loop.create_future())
        self._pending[self._numbers] = pending
        try:
            self._dispatch_pending()
            return await pending.response
        finally:
            self._pending.pop(pending.request.number, None)
            self._dispatch_pending()

    def warm(self) -> None:
        """Start a worker soon, on the first call."""
        if not self._warmed:
            self._loop.call_later(SOON_S, self._start_early)
        self._warmed = True

    def _start_early(self) -> None:
        if self._worker is None and self._dead is None:
            self._start()

    def close(self) -> None:
        """Kill the worker; a caller that still waits gets an `Outage`."""
        self._give_up("the tool service is closed")
        if self._worker is not None:
            self._worker.process.close()
            self._worker = None
        if self._timer is not None:
            self._timer.cancel()

    # Requests to the worker

    def _dispatch_pending(self) -> None:
        """Send pending requests; those that were running when a worker ended go first, one by one."""
        if self._dead is not None or not self._pending:
            return
        if self._worker is None:
            self._start()
            return
        if not self._worker.up:
            return
        suspects = [pending for pending in self._pending.values() if pending.suspect]
        if suspects:
            waiting = [] if any(pending.sent for pending in self._pending.values()) else suspects[:1]
        else:
            waiting = [pending for pending in self._pending.values() if not pending.sent]
        for pending in waiting:
            pending.sent = True
            self._worker.process.send(pending.request)

    def _start(self) -> None:
        cache = self._executor.cache
        findings = None if cache.folder is None else cache.folder.absolute()
        setup = Setup(tuple(sys.path), looked_in(), cache.store.root.absolute(), findings, self._options)
        try:
            process = self._executor.start(setup, self._hear, lambda reason: self._lose(WorkerEnd(reason)))
        except OSError as error:
            self._give_up(f"no worker process for the tools can be started: {error}")
            return
        self._worker = Worker(process)
        self._looked = time.monotonic()
        if self._timer is None:
            self._timer = self._loop.call_later(self._tick_s, self._look)

    def _give_up(self, reason: str) -> None:
        self._dead = reason
        loads(self, ())
        # Nobody waits in a closed event loop.
        for pending in [] if self._loop.is_closed() else list(self._pending.values()):
            self._settle(pending, self._executor.outage_class(reason))

    def _settle(self, pending: PendingRequest, outcome: Response | HybridError) -> None:
        """Finish a request, which is then no longer pending."""
        self._pending.pop(pending.request.number, None)
        if pending.response.done():
            return
        if isinstance(outcome, HybridError):
            pending.response.set_exception(outcome)
        else:
            pending.response.set_result(outcome)

    # Messages of the worker

    def _hear(self, message: Message) -> None:
        worker = self._worker
        if worker is None:
            return
        worker.silent_s = 0.0
        match message:
            case JobStart():
                requests = (self._pending.get(number) for number in message.requests)
                job = worker.jobs[message.job] = Job(
                    message, tuple(pending for pending in requests if pending is not None)
                )
                job.begin()
            case JobEnd():
                if (finished_job := worker.jobs.pop(message.job, None)) is not None:
                    finished_job.end(message.at)
            case WorkerReady():
                worker.up, self._starts = True, 0
                self._dispatch_pending()
            case CallFailure() | ToolResponse() | LoadResponse() | NeedResponse() | RuleResponse() | ImportResponse():
                for line in message.notices:
                    self._executor.notice(line)
                if (pending := self._pending.get(message.number)) is not None:
                    if isinstance(message, CallFailure):
                        self._settle(pending, error_of(message))
                    else:
                        self._loads.pop(pending.request.tool, None)
                        self._calls.pop(pending.request.tool, None)
                        self._settle(pending, message)

    # Faults of the worker

    def _look(self) -> None:
        """Check the worker, then schedule the next check."""
        self._timer = None
        now = time.monotonic()
        # If this event loop was busy, it could not receive messages, so at most two ticks count as silence.
        passed, self._looked = min(now - self._looked, 2 * self._tick_s), now
        if self._worker is not None and (end := judge(self._worker, self._options, passed, now)) is not None:
            self._lose(end)
        # Tell the user about loading that takes long.
        busy: list[str] = []
        if (worker := self._worker) is not None:
            now = time.monotonic()
            long = {job.start.tool for job in worker.jobs.values() if job.prepares and now - job.start.at >= TOLD_S}
            busy = sorted(long) if worker.up else ["the process of the tools"]
        loads(self, tuple(busy))
        if self._dead is None:
            self._timer = self._loop.call_later(self._tick_s, self._look)

    def _lose(self, end: WorkerEnd) -> None:
        """Kill the worker, if alive, and determine which of the running requests is the culprit."""
        worker = self._worker
        if worker is None:
            return
        jobs = tuple(worker.jobs.values()) if end.jobs is None else end.jobs
        sent = [pending for pending in self._pending.values() if pending.sent]
        self._drop(worker)
        if not self._executor.restarts:
            self._give_up(end.reason)
            return
        if not worker.up:
            self._starts += 1
            if self._starts >= MAX_STARTS:
                self._give_up(f"the worker process of the tools does not start: {end.reason}")
            self._dispatch_pending()
            return
        for pending in [pending for pending in self._pending.values() if not pending.awaited]:
            self._settle(pending, Outage("its callers have given up"))
        ran = [
            pending for pending in dict.fromkeys(pending for job in jobs for pending in job.requests) if pending.awaited
        ]
        if not ran and end.jobs is None:
            ran = [pending for pending in sent if pending.awaited]
        is_certain = end.certain and len(ran) == 1
        for pending in ran:
            if is_certain or pending.suspect:
                self._settle(pending, ToolError(end.sentence(pending.request.tool), end.fault))
                self._count_call(pending.request.tool, end)
            pending.suspect = True
        if not ran and end.jobs is not None:
            self._count_call(end.jobs[0].start.tool, end)
        # Blame a load only if it was the only job: of several jobs, any may have ended the process. A load that did so
        # ends the next process, too.
        if len(jobs) == 1:
            self._count_load(jobs[0], end)
        self._dispatch_pending()

    def _drop(self, worker: Worker) -> None:
        """Kill the worker, and mark every request as not sent."""
        for job in worker.jobs.values():
            job.end()
        worker.process.kill()
        self._worker = None
        for pending in self._pending.values():
            pending.sent = False

    def _count_load(self, job: Job, end: WorkerEnd) -> None:
        # Do not count a process that ended while it described a plug-in: the caller of `describe` remembers that error
        # itself.
        if job.prepares and not any(isinstance(pending.request, DescribeRequest) for pending in job.requests):
            name = job.start.tool
            # A load that took too long would take too long again, so one such load is enough. A process that ended may
            # have been killed from outside.
            self._loads[name] += MAX_LOADS if end.jobs is not None else 1
            if self._loads[name] >= MAX_LOADS:
                self._refuse(name, end.sentence(name))

    def _count_call(self, tool: str, end: WorkerEnd) -> None:
        self._calls[tool] += 1
        if (calls := self._calls[tool]) >= MAX_CALLS:
            self._refuse(tool, f"{end.sentence(tool)}, after {calls - 1} consecutive calls that also crashed it")

    def _refuse(self, tool: str, reason: str) -> None:
        """Stop running a tool."""
        if tool in self._refused:
            return
        self._refused[tool] = f"{reason}; the tool is no longer run"
        self._executor.notice(self._refused[tool])
        log.warning(self._refused[tool])
        for pending in [pending for pending in self._pending.values() if pending.request.tool == tool]:
            self._settle(pending, ToolError(self._refused[tool]))
