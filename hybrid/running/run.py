"""Asks every question, saves the answers, and continues where an earlier run stopped.

`resolve.prepare` resolves a run; `run_until_complete` asks its questions. A question is recorded when its dialogue is
finished; an outage or a crash leaves it open, and the same command resumes it. A model's replies to open questions are
saved too (`replies.py`), so that they need not be requested again.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from hybrid.config import LOCAL
from hybrid.core.error_text import in_one_line
from hybrid.core.errors import HybridError, Outage, ServerDown, UsageError, WeightsError
from hybrid.core.files import advice_on, writing
from hybrid.core.images import home
from hybrid.core.secrets import redact
from hybrid.core.types import Question
from hybrid.display import notes
from hybrid.display.terminal import how_many
from hybrid.log.attempts import Recorder, Unfinished
from hybrid.log.folder import LOG, attempts_of, server_logs_in
from hybrid.models.base import ChatModel, ModelRefused
from hybrid.models.batching.client import batches_of
from hybrid.models.open_requests import requests_out
from hybrid.models.remembered import remembering
from hybrid.plugins.registry import plugin
from hybrid.running.batching import expected_usd, in_batches, refuse_unbatched
from hybrid.running.before_asking import ask_before
from hybrid.running.engine import Engine, Opener, Progress, Tell, local_engine
from hybrid.running.estimate import estimate
from hybrid.running.process import allow_open_files
from hybrid.running.replies import REPLIES, RunReplies
from hybrid.running.reply_cache import FOLDER, ReplyCache, ReusingLog, describe_model
from hybrid.running.resolve import ResolvedRun
from hybrid.running.run_log import run_log
from hybrid.running.state import RunState, SolverProgress, close_folder, models_named, open_folder
from hybrid.solving.budgets import RunBudgetSpent
from hybrid.solving.captions import RunCaptions, captioner_sha256
from hybrid.solving.solver import Solver
from hybrid.tracing import GROUP, run_span

log = logging.getLogger(__name__)

# Number of open questions that are sorted at a time.
WINDOW = 512
# Called with solver, finished and total; a question is finished when it is on disk.
ProgressCallback = Callable[[str, int, int], None]
# Called with a solver and its usage so far, before `ProgressCallback` is called for the same question.
UsageCallback = Callable[[str, Progress], None]
Watched = tuple[ProgressCallback, UsageCallback]


@dataclass(frozen=True)
class UnfinishedQuestion:
    """A question that was not finished."""

    solver: str
    id: str
    error: str


@dataclass(frozen=True)
class RunEnd:
    """How a run ended: its unfinished questions and, if it stopped early, the reason."""

    failures: tuple[UnfinishedQuestion, ...] = ()
    # Number of questions finished by this command.
    answered: int = 0
    stopped: HybridError | None = None


async def ask_run(
    run: ResolvedRun,
    progress: ProgressCallback,
    opener: Opener = local_engine,
    watch: UsageCallback = lambda *_: None,
    tell: Tell = notes.tell,
) -> tuple[UnfinishedQuestion, ...]:
    """Ask the open questions, solver by solver. Return the questions that could not be finished.

    Raises:
        HybridError: the error that stopped the run early; finished questions are saved.
    """
    end = await run_until_complete(run, progress, tell, opener, watch)
    if end.stopped is not None:
        raise end.stopped
    return end.failures


async def run_until_complete(
    run: ResolvedRun,
    progress: ProgressCallback,
    tell: Tell,
    opener: Opener = local_engine,
    watch: UsageCallback = lambda *_: None,
) -> RunEnd:
    """Ask the open questions, solver by solver, and return how that ended.

    Args:
        run: the run to ask.
        progress: called for every finished question.
        tell: called with notes on the run's folder and on lost workers.
        opener: opens the engine that asks the questions; by default in this process.
        watch: called with each solver's usage and failures so far.

    Raises:
        UsageError: the folder holds another run or is not writable; the model is blind, or has no known frame.
        DataError: the folder's files are damaged and cannot be restored from the data.
    """
    try:
        with run.folder.locked(), ExitStack() as stack:
            refuse_unbatched(run)
            with writing(run.folder.path):
                state = open_folder(run, tell)
                # Logging starts only now, so that nothing is written to a rejected folder.
                stack.enter_context(_logged(run))
                replies = RunReplies(run.folder.path / REPLIES, state.finished)
            asking = run
            reusing: ReusingLog | None = None
            # Several runs of a command share the meter.
            reused_before = run.resources.run_meter.used.reused_calls
            try:
                asking, reusing = _saving_replies(run, replies)
                if run.config.model_settings.batch and run.config.run_limits.cost_usd is not None:
                    run.resources.run_meter.expected_usd = expected_usd((await estimate(run)).solvers)
                return await _ask_all(asking, state, replies, (progress, watch), tell, opener)
            finally:
                reused = run.resources.run_meter.used.reused_calls - reused_before
                close_folder(run, state, replies, tell, reused=reused)
                if reusing is not None:
                    _tell_reused(reusing, reused, tell)
                if batches := batches_of(asking.resources.model):
                    await batches.close()
    finally:
        run.service.close()
        for model in (run.resources.model, run.resources.captioner):
            if model is not None:
                await model.close()


def _saving_replies(run: ResolvedRun, replies: RunReplies) -> tuple[ResolvedRun, ReusingLog | None]:
    """Return the run with its model and captions wrapped, so that replies are saved and never requested twice."""
    resources, reusing = run.resources, None
    if resources.model is not None:
        reusing = _reusing_log(run, resources.model, replies)
        resources = replace(resources, model=remembering(in_batches(run), reusing or replies))
    if run.captioner is not None:
        captions = RunCaptions(captioner_sha256(run.captioner), replies.captions, replies.keep_caption)
        resources = replace(resources, captions=captions)
    return replace(run, resources=resources), reusing


def _reusing_log(run: ResolvedRun, model: ChatModel, replies: RunReplies) -> ReusingLog | None:
    """Return the reply log that also reuses replies of earlier runs; None without `--cache-replies`."""
    config = run.config
    if not config.cache_replies:
        return None
    described = describe_model(model, config.model_settings.server_args)
    return ReusingLog(replies, ReplyCache(home() / FOLDER, described))


def _tell_reused(log: ReusingLog, reused: int, tell: Tell) -> None:
    """Report how many replies came from earlier runs, and whether new replies could not be saved."""
    if reused:
        tell(f"note: {how_many(reused, 'model call')} answered by replies of earlier runs (--cache-replies)")
    if log.failed is not None:
        tell(f"note: replies are not stored for later runs: {home() / FOLDER}: {log.failed.strerror}")


@contextmanager
def _logged(run: ResolvedRun) -> Iterator[None]:
    """Log the events of the body in the run's folder, and trace them if `--trace` is given."""
    with ExitStack() as stack:
        with writing(run.folder.path):
            stack.enter_context(run_log(run.folder.path / LOG))
            stack.enter_context(server_logs_in(run.folder.path))
        log.info("begun: %s, %s", ", ".join(run.solvers), how_many(len(run.sound)))
        try:
            config = run.config
            traced: AbstractContextManager[None] = nullcontext()
            if config.tracing is not None and config.trace is not None:
                describe = run_span(config.benchmark, run.folder.path.name)
                traced = plugin(GROUP, config.tracing)(config.trace, describe, text=config.trace_text)
            with traced:
                yield
        except BaseException as error:
            log.info("ended by %s: %s", requests_out.stopped_by or type(error).__name__, error)
            raise
        log.info("ended")


async def _ask_all(
    run: ResolvedRun, state: RunState, replies: RunReplies, watched: Watched, tell: Tell, opener: Opener
) -> RunEnd:
    allow_open_files(run.config.concurrency, tell)
    stopped: HybridError | None = None
    if run.config.engine == LOCAL:
        for name, solver in run.solvers.items():
            if run.questions.without(state.solvers[name].finished):
                solver.warm()
    try:
        run = await ask_before(run, state, tell)
    except (Outage, ModelRefused) as error:
        stopped = error
    failures: list[UnfinishedQuestion] = []
    answered = 0
    async with opener(run, replies, tell) as engine:
        # Solvers that ask the model come first, so that a wrong key or model ends the run early.
        for name, solver in sorted(run.solvers.items(), key=lambda item: not item[1].needs_model):
            match stopped:
                case None | WeightsError():
                    pass
                # A server outage stops only the solvers that ask this server; anything else, such as a wrong key or a
                # full disk, stops all solvers.
                case Outage() if not solver.needs_model:
                    pass
                case _:
                    continue
            asking = _Asking(
                run,
                name,
                solver,
                engine=engine,
                progress=state.solvers[name],
                replies=replies,
                on_finished=watched[0],
                on_used=watched[1],
            )
            await asking.ask_all()
            failures += asking.failures
            answered += asking.answered
            stopped = stopped or asking.stopped
    return RunEnd(tuple(failures), answered, stopped)


@dataclass
class _Asking:
    """One solver while its questions are asked."""

    run: ResolvedRun
    name: str
    solver: Solver
    engine: Engine
    progress: SolverProgress
    replies: RunReplies
    on_finished: ProgressCallback
    on_used: UsageCallback
    answered: int = 0
    so_far: Progress = field(default_factory=Progress)
    failures: list[UnfinishedQuestion] = field(default_factory=list)
    # The reason why no further question is asked.
    stopped: HybridError | None = None

    async def ask_all(self) -> None:
        """Ask the open questions."""
        waiting = self.run.questions.in_turn(self.progress.finished)
        total = len(self.run.sound)
        finished_before = total - len(waiting)
        self.on_finished(self.name, finished_before, total)
        with writing(self.run.folder.path):
            recorder = Recorder(self.run.folder.path / attempts_of(self.name), self.progress.measure)

        batches = batches_of(self.run.resources.model) if self.solver.needs_model else None
        most = self.run.config.concurrency

        def news(message: str) -> None:
            log.info("%s: %s", self.name, message)
            self._tell(replace(self.so_far, waits=message))

        async def one(question: Question) -> None:
            async with batches.question() if batches else nullcontext():
                if not await self._is_finished(question, recorder):
                    return
            self.answered += 1
            self.on_finished(self.name, finished_before + self.answered, total)

        try:
            ordered = group_by_shape(waiting) if self.run.tools.learned(self.name) else waiting
            # All questions may wait for batches at the same time, but at most `most` of them run.
            with batches.asking(len(waiting), most, news) if batches else nullcontext():
                await bounded(ordered, one, min(len(waiting) if batches else most, len(waiting)))
        finally:
            await recorder.close()
            for fault, count in self.so_far.faults.items():
                self.run.service.notices.append(f"{self.name}, {count} of {how_many(self.answered)}: {fault}")

    async def _is_finished(self, question: Question, recorder: Recorder) -> bool:
        """Ask one question and record the result; return whether it is finished."""
        calls = self.solver.needs_model or self.solver.runs_own_tools
        if self.stopped or (calls and self.run.resources.run_meter.spent()):
            return False
        try:
            attempt = await self.engine.ask(question, self.name)
        # An uncaught error would end the task group, and with it all other questions.
        except (Exception, SystemExit, BaseExceptionGroup, asyncio.CancelledError) as error:
            # Re-raise only if this task is cancelled; if a library cancels its own work, only this question fails.
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0:
                raise
            await self._not_finished(question, error, recorder)
            return False
        try:
            await recorder.write(attempt)
        except OSError as error:
            self._cannot_be_written(error)
        except Exception as error:
            await self._not_finished(question, error, recorder)
        else:
            self.progress.finished.add(question.id)
            self.progress.answered_by.update(models_named(attempt))
            self._tell(self.so_far.with_attempt(attempt))
            return True
        return False

    async def _not_finished(self, question: Question, error: BaseException, recorder: Recorder) -> None:
        # Report a group with a single error as that error.
        cause = error
        while isinstance(cause, BaseExceptionGroup) and len(cause.exceptions) == 1:
            cause = cause.exceptions[0]
        if isinstance(cause, RunBudgetSpent):
            return
        if isinstance(cause, ModelRefused | ServerDown | WeightsError):
            # No call of this configuration can succeed, so stop asking.
            self.stopped = self.stopped or cause
            log.info("no further question of %s is asked: %s", self.name, _describe(cause))
            return
        if self.replies.failed is not None:
            self._cannot_be_written(self.replies.failed)
            return
        self.failures.append(UnfinishedQuestion(self.name, question.id, redact(_describe(cause))))
        self._tell(replace(self.so_far, failed=self.so_far.failed + 1))
        log.info("%s (%s) was not finished: %s", question.id, self.name, _describe(cause))
        try:
            await recorder.write(Unfinished(question.id, "".join(traceback.format_exception(error))))
        except OSError as full:
            self._cannot_be_written(full)

    def _tell(self, so_far: Progress) -> None:
        self.so_far = so_far
        self.on_used(self.name, so_far)

    def _cannot_be_written(self, error: OSError) -> None:
        failure = UsageError(f"{self.run.folder.path} cannot be written: {error.strerror or error}{advice_on(error)}")
        self.stopped = self.stopped or failure


def group_by_shape(questions: Sequence[Question], window: int = WINDOW) -> Iterator[Question]:
    """Yield the questions sorted so that equal image shapes are adjacent and fit one batch of a network.

    Only `window` questions are sorted at a time, to limit memory in a large run.
    """
    for start in range(0, len(questions), window):
        yield from sorted(
            questions[start : start + window],
            key=lambda question: [(image.width / image.height, image.width) for image in question.images],
        )


async def bounded(items: Iterable[Question], work: Callable[[Question], Awaitable[None]], concurrency: int) -> None:
    """Run `work` over the items with at most `concurrency` in flight; each worker takes the next item when free."""
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker())


def _describe(error: BaseException) -> str:
    return str(error) if isinstance(error, Outage) else in_one_line(error)
