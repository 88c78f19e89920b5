"""The jobs of a worker process of the tools, and when one of them, or the process itself, has to be ended.

if (end := judge(worker, options, passed_s, time.monotonic())) is not None: ...
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hybrid.config import ServiceOptions
from hybrid.core.timing import FREE_LOAD_S, Stopwatch
from hybrid.core.types import Fault
from hybrid.serving.pipeline import IMPORT, LOAD
from hybrid.serving.protocol import JobStart, Request, Response
from hybrid.serving.worker_process import WorkerProcess

# How long a worker may take to begin.
START_S = 120.0
# The error of a job that takes too long, by its stage.
LATE = {
    IMPORT: "did not finish its import within {:g} s",
    LOAD: "could not be loaded within {:g} s (--max-load-seconds says how long that may take)",
}
# A worker silent for this part of the time that it may be is not judged by how long its jobs take.
DOUBTED = 3


@dataclass(eq=False)
class PendingRequest:
    """A request that has no response yet."""

    request: Request
    watch: Stopwatch
    response: asyncio.Future[Response]
    sent: bool = False
    # It ran when a worker ended: it is sent alone, and if that ends a worker too it is the culprit.
    suspect: bool = False

    @property
    def awaited(self) -> bool:
        """Whether a caller still waits for the response."""
        return self.watch.waiting > 0 and not self.response.done()


@dataclass(eq=False)
class Job:
    """A stretch of a tool's code that runs in a worker."""

    start: JobStart
    requests: tuple[PendingRequest, ...]
    # How long no caller has waited for it.
    alone_s: float = 0.0

    @property
    def prepares(self) -> bool:
        """Whether it is no part of a call."""
        return self.start.stage in (IMPORT, LOAD)

    def begin(self) -> None:
        """Let the watches of its calls run; loading is charged to no call."""
        if not self.prepares:
            rate, free_s = 1 / max(1, len(self.start.requests)), FREE_LOAD_S if self.start.first else 0.0
            for request in self.requests:
                request.watch.start(rate, free_s, self.start.at)

    def end(self, at: float | None = None) -> None:
        """Stop the watches of its calls."""
        if not self.prepares:
            for request in self.requests:
                request.watch.stop(at)


@dataclass(frozen=True)
class WorkerEnd:
    """How a worker was lost."""

    how: str
    fault: Fault = Fault.TOOL_ERROR
    # The jobs that were killed with it for being late; None where each that ran may have caused the end.
    jobs: tuple[Job, ...] | None = None
    # Whether a single request that ran then has caused it: a process that just dies may have been killed by others.
    certain: bool = False

    def sentence(self, tool: str) -> str:
        """The end in a sentence about the tool."""
        return f"{tool} {self.how}" if self.jobs is not None else f"{tool} cost its worker process: {self.how}"


@dataclass
class Worker:
    """A worker process and what is known of it."""

    process: WorkerProcess
    up: bool = False
    silent_s: float = 0.0
    jobs: dict[int, Job] = field(default_factory=dict)


def judge(worker: Worker, options: ServiceOptions, passed_s: float, now: float) -> WorkerEnd | None:
    """Why a worker has to be killed; None where it may go on.

    Args:
        worker: a process that runs; how long it was silent, and its jobs had no caller, is added up.
        options: how long anything may take.
        passed_s: seconds since the last look in which its messages could be heard.
        now: as `time.monotonic` says.
    """
    worker.silent_s += passed_s
    silence_s = options.silence_s if worker.up else max(START_S, options.silence_s)
    # A library on a slow disk stops all others.
    limits = {IMPORT: options.import_s, LOAD: options.load_s}
    jobs = [(job, limits.get(job.start.stage, options.timeout_s)) for job in worker.jobs.values()]
    silence_s = max(silence_s, *(most_s for job, most_s in jobs if job.prepares), 0.0)
    if worker.silent_s >= silence_s:
        return WorkerEnd(f"no sign of life for {silence_s:g} s", Fault.TIMEOUT, certain=True)
    used = worker.process.resident_bytes()
    if used is not None and used > options.process_bytes:
        return WorkerEnd(f"{used / 1e9:.3g} GB of memory, where {options.process_bytes / 1e9:.3g} GB is the most")
    if worker.silent_s > options.silence_s / DOUBTED:
        # One of the jobs may be stopping all others, which are then late through no fault of theirs.
        return None
    for job, most_s in jobs:
        job.alone_s = (
            0.0 if job.prepares or any(request.awaited for request in job.requests) else job.alone_s + passed_s
        )
        if now - job.start.at >= most_s or job.alone_s >= options.grace_s:
            reason = LATE.get(job.start.stage, "did not answer within {:g} s").format(most_s)
            return WorkerEnd(reason, Fault.TIMEOUT, (job,), certain=True)
    return None
