"""The interface between a run, which selects the questions and saves the attempts, and the engine that asks them.

    async with opener(run, replies, tell) as engine:
        attempt = await engine.ask(question, "mllm")      # called concurrently

An engine only asks; the run is the only writer. The engine gets as many concurrent questions as the run has in flight.
`local_engine` asks in this process; `hybrid/engines` has the other engines. The engine is not part of a run's identity:
a run started with one engine can be continued with another.

The `Progress` of a solver counts the tokens, cost and failures of this command; `hybrid score` reads the usage of a
full run from its attempts.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from hybrid import tracing
from hybrid.benchmarks.base import Benchmark
from hybrid.core.types import Attempt, Question, Usage
from hybrid.running.replies import RunReplies
from hybrid.running.resolve import ResolvedRun
from hybrid.solving.session import AskSetup, Session
from hybrid.solving.solver import Solver

# Wall-clock time at monotonic time 0, in seconds. Questions are timed by the monotonic clock, which is never adjusted.
WALL_AT_ZERO = time.time() - time.monotonic()

# Called with one line for the user about the run's folder or about workers.
Tell = Callable[[str], None]


class Engine(Protocol):
    """Asks the questions of a run."""

    async def ask(self, question: Question, solver: str) -> Attempt:
        """Ask one solver one question; `solver` is the solver's name in the run.

        Raises:
            Outage: the model or the tools could not be reached; the question stays open.
            HybridError, Exception: another error ended the question; its type does not depend on the engine.
        """
        ...


# Opens an engine for a run, which saves model replies in `RunReplies` and reports lost workers by `Tell`.
Opener = Callable[[ResolvedRun, RunReplies, Tell], AbstractAsyncContextManager[Engine]]


class _LocalEngine:
    """Asks in this process, with the run's own model and tools."""

    def __init__(self, run: ResolvedRun) -> None:
        self._run = run

    async def ask(self, question: Question, solver: str) -> Attempt:
        """Ask one question in this process."""
        run = self._run
        return await attempt_question(run.benchmark, run.resources, run.solvers[solver], question, solver)


@asynccontextmanager
async def local_engine(run: ResolvedRun, replies: RunReplies, tell: Tell) -> AsyncIterator[Engine]:
    """Open the engine of this process. It uses no `replies`, because the run's model saves its replies itself."""
    yield _LocalEngine(run)


async def attempt_question(
    benchmark: Benchmark, resources: AskSetup, solver: Solver, question: Question, name: str = ""
) -> Attempt:
    """Ask one solver one question, in the benchmark's dialogue; `name` is the solver's name in the run.

    Raises `Outage`, or the error that a defect causes; nothing is recorded then.
    """
    clock = resources.clock
    started = clock()
    visible_question = question.without_target()
    session = Session(visible_question, solver, resources, name)
    with tracing.span(lambda: tracing.question(name, question.id, question.task)) as end_span:
        exchanges = await benchmark.dialogue(visible_question, session.ask)
        seconds = round(clock() - started, 4)
        attempt = Attempt(question.id, exchanges, seconds, started=round(WALL_AT_ZERO + started, 3))
        end_span(lambda: tracing.attempted(attempt))
    return attempt


@dataclass(frozen=True)
class Progress:
    """The progress of one solver in one command."""

    # Usage of the finished questions.
    used: Usage = field(default_factory=Usage)
    # Number of questions without an answer, whether or not the next command asks them again.
    failed: int = 0
    # Number of retried model requests of the finished questions.
    retries: int = 0
    # Number of questions with each fault that has a remedy; a key is the text of the fault and of its remedy.
    faults: Mapping[str, int] = field(default_factory=dict)
    # Description of the batches that the solver waits for.
    waits: str = ""

    def with_attempt(self, attempt: Attempt) -> Progress:
        """Return the progress after one more finished question."""
        replies = [exchange.reply for exchange in attempt.exchanges]
        failed = any(reply.outcome.failed for reply in replies)
        steps = [step for reply in replies for step in reply.steps]
        retries = sum(count for step in steps if isinstance(count := step.data.get("retries"), int))
        new = {f"{step.text}; {step.data['remedy']}" for step in steps if "remedy" in step.data}
        faults = Counter(self.faults) + Counter(new) if new else self.faults
        used = sum((reply.usage for reply in replies), self.used)
        return Progress(used, self.failed + failed, self.retries + retries, faults, self.waits)
