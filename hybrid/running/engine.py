"""The seam between a run, which chooses the questions and keeps the attempts, and the engine that asks them.

    async with opener(run, replies, tell) as engine:
        attempt = await engine.ask(question, "mllm")      # many at once

An engine only asks: the run is the only writer. It may be asked for as many questions at once as the run
has in flight. `local_engine` asks in this process; `hybrid/engines` holds the others. The engine is no part of a run's
identity: a run begun with one can be continued with another.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from hybrid import tracing
from hybrid.benchmarks.base import Benchmark
from hybrid.core.types import Attempt, Question
from hybrid.running.replies import RunReplies
from hybrid.running.resolve import ResolvedRun
from hybrid.solving.session import AskSetup, Session
from hybrid.solving.solver import Solver

# The wall clock when the monotonic one stood at 0, in seconds: a wall clock that jumps moves no question.
WALL_AT_ZERO = time.time() - time.monotonic()

# Called with one line for the user: about the run's folder, or about workers.
Tell = Callable[[str], None]


class Engine(Protocol):
    """Asks questions."""

    async def ask(self, question: Question, solver: str) -> Attempt:
        """One question by one solver, under its name in the run.

        Raises:
            Outage: the model or the tools could not be reached; the question stays open.
            HybridError, Exception: another error ended the question; its type does not depend on the engine.
        """
        ...


# Makes an engine for a run: what models say is kept in the replies, and the user is told of what is lost.
Opener = Callable[[ResolvedRun, RunReplies, Tell], AbstractAsyncContextManager[Engine]]


class _LocalEngine:
    """Asks in this process, with the run's own model and tools."""

    def __init__(self, run: ResolvedRun) -> None:
        self._run = run

    async def ask(self, question: Question, solver: str) -> Attempt:
        """One question, asked here."""
        run = self._run
        return await attempt_question(run.benchmark, run.resources, run.solvers[solver], question, solver)


@asynccontextmanager
async def local_engine(run: ResolvedRun, replies: RunReplies, tell: Tell) -> AsyncIterator[Engine]:
    """The engine of this process; its model keeps its replies already."""
    yield _LocalEngine(run)


async def attempt_question(
    benchmark: Benchmark, resources: AskSetup, solver: Solver, question: Question, name: str = ""
) -> Attempt:
    """One question in the benchmark's dialogue by one solver, under its name in the run.

    Raises `Outage`, or whatever a defect raises: then nothing is recorded.
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
