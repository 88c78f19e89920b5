"""An actor that works on many questions of a run at once, with its own model and the tools of the cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hybrid.config import RunLimits
from hybrid.core.errors import HybridError
from hybrid.core.images import ImageStore, home
from hybrid.core.repetitions import word_of
from hybrid.core.types import StoredImage, Usage
from hybrid.engines.ray.images import SharedImages, bytes_of, lacking, of_question, take
from hybrid.engines.ray.line import MessageChannel
from hybrid.engines.ray.messages import (
    FromWorker,
    ModelReply,
    NodeCode,
    QuestionFailure,
    QuestionRequest,
    Ready,
    WorkerSetup,
)
from hybrid.engines.ray.node import here, settle
from hybrid.engines.ray.question_handler import QuestionHandler
from hybrid.engines.ray.tools import LINE, ActorExecutor
from hybrid.models import remembering
from hybrid.models.base import CallKey
from hybrid.plugins.registry import load, load_solver
from hybrid.running.engine import attempt_question
from hybrid.running.resolve import open_models, oracle_of
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.solving.budgets import RunBudgetSpent, RunMeter
from hybrid.solving.controls import ToolCondition
from hybrid.solving.solver import Solver

if TYPE_CHECKING:
    from ray import ObjectRef


class RayWorker:
    """A Ray actor that runs questions; everything happens in its event loop."""

    def __init__(self, place: NodeCode, setup: Sequence[ObjectRef[WorkerSetup]]) -> None:
        self._place, self._refs = place, setup
        self._lines: dict[int, MessageChannel] = {}
        self._log = _Log()
        self._store = ImageStore(home() / "images")
        self._solvers: dict[str, Solver] = {}

    async def ready(self, environment: Mapping[str, str]) -> Ready:
        """Open the model with these environment variables; the result has a refusal if the actor must not be used."""
        os.environ.update(environment)
        refusal = settle(self._place)
        if refusal is None:
            try:
                self._open(await self._refs[0])
            except HybridError as error:
                refusal = f"on node {here()}: {error}"
        return Ready(os.getpid(), here(), refusal)

    def _open(self, setup: WorkerSetup) -> None:
        config = setup.resources.config
        cache = FindingCache(home() / "findings" if config.cache else None, self._store)
        executor = ActorExecutor(cache, SharedImages(self._store))
        self._setup = setup
        self._tools = CachedTools(self._store, cache, config.service, executor=executor)
        model, captioner = open_models(config, self._store)
        if model is not None:
            model = remembering(model, self._log)
        tools = tuple(load("tools", name) for name in setup.tools_offered)
        self._resources = replace(setup.resources, model=model, captioner=captioner, tools_offered=tools)

    async def ask(self, request: QuestionRequest) -> AsyncIterator[FromWorker]:
        """Run a question and yield its messages to the run; the last message ends the question."""
        line = self._lines[request.number] = MessageChannel()
        key = (request.solver, request.question.id)
        self._log.begin(key, line, request.replies)
        task = asyncio.create_task(self._to_the_end(request, line))
        try:
            async for message in line:
                yield message
        finally:
            task.cancel()
            self._log.end(key)
            del self._lines[request.number]

    async def answer(self, number: int, wish: int, value: Any) -> None:
        """Deliver the response to a request of a running question."""
        if (line := self._lines.get(number)) is not None:
            line.answer(wish, value)

    async def images(self, sha256s: Sequence[str]) -> dict[str, bytes]:
        """Read images of this node's store by hash."""
        return bytes_of(self._store, sha256s)

    async def _to_the_end(self, request: QuestionRequest, line: MessageChannel) -> None:
        LINE.set(line)
        try:
            question = request.question
            if missing := lacking(self._store, of_question(question)):
                await take(self._store, await line.request(QuestionHandler.images, missing))
            if request.solver not in self._solvers:
                # Import in a thread, because it takes seconds and other questions must continue.
                self._solvers[request.solver] = await asyncio.to_thread(load_solver, word_of(request.solver))
            # The objects below are made for this question only: it gets no targets of other questions, and uses the
            # run's budget and captions only over its `line`.
            mode = self._setup.resources.config.tool_output
            partners = {} if request.partner is None else {question.id: request.partner}
            oracle = oracle_of(self._setup.benchmark, lambda _: question) if mode == "oracle" else None
            control = ToolCondition(self._tools, mode, oracle, partners)
            meter = MeterOfRun(line, self._resources.config.run_limits) if self._setup.metered else RunMeter()
            resources = replace(self._resources, control=control, captions=_Captions(line), run_meter=meter)
            solver = self._solvers[request.solver]
            line.send(await attempt_question(self._setup.benchmark, resources, solver, question, request.solver))
        # The run decides how to treat an error; no error may end this process.
        except BaseException as error:
            line.send(QuestionFailure.of(error))
        finally:
            line.close()


class _Captions:
    """The run's cache of captions: each caption is made only once, by one question of one of the workers."""

    def __init__(self, line: MessageChannel) -> None:
        self._line = line

    async def take(self, image: StoredImage) -> str | None:
        """See `CaptionCache`."""
        return await self._line.request(QuestionHandler.take, image)

    async def keep(self, image: StoredImage, caption: str) -> str:
        """See `CaptionCache`."""
        return await self._line.request(QuestionHandler.keep, image, caption)

    async def give_up(self, image: StoredImage) -> None:
        """See `CaptionCache`."""
        self._line.tell(QuestionHandler.give_up, image)


class _Log:
    """The `ReplyLog` of a worker: the run's replies to its questions; new ones are sent to the run at once.

    A reply is being sent when `keep` returns, and saved a moment later; after a kill in between, the call is repeated.
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], MessageChannel] = {}
        self._known: dict[tuple[str, str], dict[tuple[int, int, str], bytes]] = {}

    def begin(self, key: tuple[str, str], line: MessageChannel, replies: Sequence[ModelReply]) -> None:
        """Register a running question, by solver and id, with the replies known so far."""
        self._known[key] = {(reply.call.ask, reply.call.call, reply.request_sha256): reply.reply for reply in replies}
        self._lines[key] = line

    def end(self, key: tuple[str, str]) -> None:
        """Remove a question that has ended."""
        del self._lines[key], self._known[key]

    def find_reply(self, call: CallKey, request_sha256: str) -> bytes | None:
        """Return the run's reply to this request of this call, or None."""
        cached = self._known.get((call.solver, call.question), {})
        return cached.get((call.ask, call.call, request_sha256))

    def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
        """Send a reply to the run."""
        if (line := self._lines.get((call.solver, call.question))) is not None:
            line.tell(QuestionHandler.reply, ModelReply(call, request_sha256, reply))


class MeterOfRun(RunMeter):
    """The run's budget, shared by all workers: the run permits each call, and receives its usage."""

    def __init__(self, line: MessageChannel, limits: RunLimits) -> None:
        super().__init__(limits)
        self._line = line

    async def begin(self) -> None:
        """Reserve a call in the run's budget. Raises `RunBudgetSpent` if no further call is allowed."""
        if (refusal := await self._line.request(QuestionHandler.begin_call)) is not None:
            raise RunBudgetSpent(refusal)

    def end(self, used: Usage) -> None:
        """Report the usage of a call to the run."""
        self._line.tell(QuestionHandler.end_call, used)
