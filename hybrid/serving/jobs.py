"""The jobs of a tool worker process, and the decision when a job or the process must be ended.

if (end := judge(worker, options, passed_s, time.monotonic())) is not None: ...
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from hybrid.config import ServiceOptions
from hybrid.core.timing import FREE_LOAD_S, Stopwatch
from hybrid.core.types import Fault
from hybrid.serving.pipeline import IMPORT, LOAD
from hybrid.serving.protocol import JobStart, Request, Response, ToWorker

# Maximum seconds for a worker to start.
START_S = 120.0
# The error of a job that takes too long, by its stage.
LATE = {
    IMPORT: "did not finish its import within {:g} s",
    LOAD: "could not be loaded within {:g} s (--max-load-seconds sets the limit)",
}
# If a worker is silent for longer than its limit divided by this number, the time of its jobs is not judged.
DOUBTED = 3


@dataclass(eq=False)
class PendingRequest:
    """A request without a response so far."""

    request: Request
    watch: Stopwatch
    response: asyncio.Future[Response]
    sent: bool = False
    # Whether the request was running when a worker ended. It is then sent alone, and is the culprit if it ends another
    # worker.
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
    # Seconds during which no caller has waited for the job.
    alone_s: float = 0.0

    @property
    def prepares(self) -> bool:
        """Whether the job prepares the tool (import or load) and is not part of a call."""
        return self.start.stage in (IMPORT, LOAD)

    def begin(self) -> None:
        """Start the watches of the job's calls; the time of loading counts for no call."""
        if not self.prepares:
            rate, free_s = 1 / max(1, len(self.start.requests)), FREE_LOAD_S if self.start.first else 0.0
            for request in self.requests:
                request.watch.start(rate, free_s, self.start.at)

    def end(self, at: float | None = None) -> None:
        """Stop the watches of the job's calls."""
        if not self.prepares:
            for request in self.requests:
                request.watch.stop(at)


@dataclass(frozen=True)
class WorkerEnd:
    """How a worker was lost."""

    reason: str
    fault: Fault = Fault.TOOL_ERROR
    # The late jobs that were killed with the worker; None if any running job may have caused the end.
    jobs: tuple[Job, ...] | None = None
    # Whether a single running request must be the cause; False if the process may have been killed from outside.
    certain: bool = False

    def sentence(self, tool: str) -> str:
        """Describe the end in a sentence about the tool."""
        return f"{tool} {self.reason}" if self.jobs is not None else f"{tool} ended its worker process: {self.reason}"


class WorkerLink(Protocol):
    """A worker process (`WorkerProcess`), or the connection to a tool server."""

    def send(self, message: ToWorker) -> None:
        """Send a message."""

    def resident_bytes(self) -> int | None:
        """Return the worker's memory in bytes; None if unknown or not limited."""

    def kill(self) -> None:
        """End the worker at once."""

    def close(self) -> None:
        """End the worker and wait until it is gone."""


@dataclass
class Worker:
    """A worker process, with the state that `judge` needs."""

    process: WorkerLink
    up: bool = False
    silent_s: float = 0.0
    jobs: dict[int, Job] = field(default_factory=dict)


def judge(worker: Worker, options: ServiceOptions, passed_s: float, now: float) -> WorkerEnd | None:
    """Return why a worker must be killed; None if it may continue.

    Args:
        worker: a running process; its silent time and its jobs' time without a caller are updated.
        options: the time limits.
        passed_s: seconds since the last check during which its messages could be received.
        now: the current `time.monotonic`.
    """
    worker.silent_s += passed_s
    silence_s = options.silence_s if worker.up else max(START_S, options.silence_s)
    # Allow more time, because loading a library from a slow disk may block everything else.
    limits = {IMPORT: options.import_s, LOAD: options.load_s}
    jobs = [(job, limits.get(job.start.stage, options.timeout_s)) for job in worker.jobs.values()]
    silence_s = max(silence_s, *(most_s for job, most_s in jobs if job.prepares), 0.0)
    if worker.silent_s >= silence_s:
        return WorkerEnd(f"no sign of life for {silence_s:g} s", Fault.TIMEOUT, certain=True)
    used = worker.process.resident_bytes()
    if used is not None and used > options.process_bytes:
        return WorkerEnd(f"{used / 1e9:.3g} GB of memory, above the limit of {options.process_bytes / 1e9:.3g} GB")
    if worker.silent_s > options.silence_s / DOUBTED:
        # One job may be blocking the others, which are then not to blame for being late.
        return None
    for job, most_s in jobs:
        job.alone_s = (
            0.0 if job.prepares or any(request.awaited for request in job.requests) else job.alone_s + passed_s
        )
        if now - job.start.at >= most_s or job.alone_s >= options.grace_s:
            reason = LATE.get(job.start.stage, "did not answer within {:g} s").format(most_s)
            return WorkerEnd(reason, Fault.TIMEOUT, (job,), certain=True)
    return None
