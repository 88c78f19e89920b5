"""The run's side of Ray: questions go to workers, what they say comes back, what a lost one had in flight goes again.

    async with on_ray(run, replies, tell) as engine:
        attempt = await engine.ask(question, "mllm")

A question is recorded by the run when its attempt is here, so a worker that is lost costs what it had in flight; what
models had said to that by then is here as well and is not said again. A question whose worker is lost `MAX_LOSSES`
times is an `Outage`, open for the next run.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import ray
from ray.exceptions import RayError, RayTaskError

from hybrid.config import RunLimits
from hybrid.engines.ray.cluster import ClusterDown, Sizes, connected, environment_of, loads_weights, place_of_run, sizes
from hybrid.engines.ray.crew import Crew, Hand, first_line
from hybrid.engines.ray.images import Shelf, keep, lacking, of_attempt
from hybrid.engines.ray.messages import (
    CaptionAbandoned,
    CaptionOffer,
    CaptionQuery,
    FromWorker,
    ImagesQuery,
    ModelCallEnd,
    ModelCallQuery,
    ModelReply,
    Notice,
    Place,
    Query,
    QuestionFailure,
    QuestionRequest,
    QuestionResponse,
    Ready,
    ToolActorsQuery,
    ToolSetup,
    WorkerQuery,
    WorkerSetup,
)
from hybrid.engines.ray.tools import MAX_RETRIES, ToolActor
from hybrid.engines.ray.worker import Worker
from hybrid.errors import Outage
from hybrid.running.engine import Engine, Tell
from hybrid.running.replies import RunReplies
from hybrid.running.resolve import ResolvedRun
from hybrid.solving.budgets import RunBudgetSpent, RunMeter
from hybrid.solving.captions import CaptionCache, RunCaptions
from hybrid.types import Attempt, Question, StoredImage, Usage

if TYPE_CHECKING:
    from ray.actor import ActorHandle

# Workers that a question may lose before it is left open.
MAX_LOSSES = 3
# How long an actor may take to find a place and to start.
START_S = 600.0
# How much longer the other tool actors may take than the first: a cluster may be partly taken.
OTHERS_S = 120.0
# Solver and question.
Key = tuple[str, str]


@asynccontextmanager
async def on_ray(run: ResolvedRun, replies: RunReplies, tell: Tell) -> AsyncIterator[Engine]:
    """The engine of a run on Ray: an `Opener`. A run with nothing open needs no cluster.

    Raises:
        UsageError: there is no cluster.
    """
    if not any(run.open_questions(name) for name in run.solvers):
        yield RayEngine(run, replies, tell, Sizes(0, 0))
        return
    async with connected(run.config.address):
        has = ray.cluster_resources()  # type: ignore[no-untyped-call]
        engine = RayEngine(
            run,
            replies,
            tell,
            sizes(
                cpus=int(has.get("CPU", 1)),
                gpus=int(has.get("GPU", 0)),
                concurrency=run.config.concurrency,
                learned=any(backend.startswith("learned:") for backend in run.tools.backends.values()),
                in_process=loads_weights(run.config.model),
                gpu_share=run.config.service.gpu_share,
            ),
        )
        try:
            yield engine
        finally:
            engine.close()


class RayEngine:
    """Asks the questions of a run by workers of the cluster that this process is connected to."""

    def __init__(self, run: ResolvedRun, replies: RunReplies, tell: Tell, size: Sizes) -> None:
        self._run = run
        self._replies = replies
        self._tell = tell
        self._size = size
        self._place = place_of_run(run) if size.workers else Place("", Path())
        self._meter = run.resources.run_meter
        self.shelf = Shelf(run.service.store)
        """The images that workers elsewhere have wanted."""
        self._numbers = itertools.count()
        self._said: dict[Key, list[ModelReply]] = {}
        for call, sha256, reply in replies.earlier():
            self._said.setdefault((call.solver, call.question), []).append(ModelReply(call, sha256, reply))
        self._crew: Crew | None = None
        self._tools: asyncio.Task[tuple[ActorHandle[ToolActor], ...]] | None = None
        self._actors: list[ActorHandle[Any]] = []

    async def ask(self, question: Question, solver: str) -> Attempt:
        """One question, asked by some worker; by another where that is lost.

        Raises:
            Outage: its workers were lost `MAX_LOSSES` times.
            ClusterDown: no worker can be had.
            BaseException: what ended the question at the worker, of the same type.
        """
        for _ in range(MAX_LOSSES):
            hand = await self.crew.take()
            try:
                return await self._ask(hand, question, solver)
            except RayTaskError:
                raise
            except RayError as error:
                count = hand.in_flight
                if self.crew.lose(hand):
                    self._tell(
                        f"note: a worker on node {hand.ready.node} was lost ({type(error).__name__}); what it had in "
                        f"flight ({count}) is asked again by others"
                    )
                    # One that cannot be reached may still be there.
                    with suppress(RayError):
                        ray.kill(hand.actor)
            finally:
                self.crew.give_back(hand)
        raise Outage(f"its worker was lost {MAX_LOSSES} times")

    @property
    def crew(self) -> Crew:
        """The workers, which start when the first is wanted."""
        if self._crew is None:
            most = -(-self._run.config.concurrency // self._size.workers)
            self._crew = Crew(self._hire, self._size.workers, most)
        return self._crew

    def close(self) -> None:
        """End all workers, and what they have in flight."""
        if self._crew is not None:
            self._crew.close()
        if self._tools is not None:
            self._tools.cancel()
        for actor in self._actors:
            ray.kill(actor)

    async def _ask(self, hand: Hand, question: Question, solver: str) -> Attempt:
        run, key = self._run, (solver, question.id)
        control = run.resources.control
        asked = QuestionRequest(
            next(self._numbers),
            question if control.mode == "oracle" else question.asked(),
            solver,
            control.partners.get(question.id),
            tuple(self._said.get(key, ())),
        )
        calls, captions = _Calls(self._meter), _Captions(run.resources.captions or RunCaptions())
        end: QuestionResponse | QuestionFailure | None = None
        try:
            async for ref in hand.actor.ask.options(num_returns="streaming").remote(asked):
                message: FromWorker = await ref
                match message:
                    case QuestionResponse() | QuestionFailure():
                        end = message
                    case WorkerQuery(number=number, what=what):
                        hand.actor.answer.remote(asked.number, number, await self._answer(what, calls, captions))
                    case CaptionAbandoned(image=image):
                        await captions.leave(image)
                    case ModelCallEnd(used=used):
                        calls.end(used)
                    case _:
                        self._hear(key, message)
        finally:
            calls.close()
            await captions.close()
        if isinstance(end, QuestionFailure):
            raise end.error
        if end is None:
            raise Outage("its worker ended without an answer")
        # Take the pictures that were made elsewhere, so that the run's own store is complete.
        store = self._run.service.store
        if wanted := lacking(store, of_attempt(end.attempt)):
            for sha256, data in (await hand.actor.images.remote(wanted)).items():
                keep(store, sha256, data)
        self._said.pop(key, None)
        return end.attempt

    def _hear(self, key: Key, message: ModelReply | Notice) -> None:
        if isinstance(message, ModelReply):
            self._said.setdefault(key, []).append(message)
            # A full disk is met again, and told, where answers are written.
            with suppress(OSError):
                self._replies.keep(message.call, message.request_sha256, message.reply)
        elif message.line not in self._run.service.notices:
            self._run.service.notices.append(message.line)

    async def _answer(self, what: Query, calls: _Calls, captions: _Captions) -> Any:
        match what:
            case ImagesQuery(sha256s=sha256s):
                return self.shelf.refs(sha256s)
            case ModelCallQuery():
                return calls.begin()
            case CaptionQuery(image=image):
                return await captions.take(image)
            case CaptionOffer(image=image, caption=caption):
                return await captions.keep(image, caption)
            case ToolActorsQuery():
                if self._tools is None:
                    self._tools = asyncio.create_task(self._start_tools())
                return await asyncio.shield(self._tools)

    async def _hire(self) -> Hand:
        run = self._run
        setup = WorkerSetup(
            benchmark=run.benchmark,
            resources=replace(
                run.resources,
                config=replace(run.config, out=None),
                model=None,
                captioner=None,
                captions=None,
                control=cast("Any", None),
                tools_offered=(),
                run_meter=cast("Any", None),
            ),
            tools_offered=tuple(tool.card.name for tool in run.resources.tools_offered),
            metered=self._meter.limits != RunLimits(),
        )
        # A worker waits more than it works; what computes is the tools.
        kind: Any = ray.remote(Worker).options(
            num_cpus=0,
            num_gpus=self._size.worker_gpus,
            scheduling_strategy="SPREAD",
            max_concurrency=2 * run.config.concurrency + 8,
        )
        actor = kind.remote(self._place, [ray.put(setup)])
        self._actors.append(actor)
        # Keys go to the process itself: Ray writes the variables of a `runtime_env` to its log files, and keeps what an
        # actor is made with.
        ready = await self._ready(actor, {**environment_of(run.config.captioner), **environment_of(run.config.model)})
        return Hand(actor, ready)

    async def _ready(self, actor: ActorHandle[Any], *args: Any) -> Ready:
        try:
            ready: Ready = await asyncio.wait_for(_awaited(actor.ready.remote(*args)), START_S)
        except TimeoutError:
            raise ClusterDown(f"no place in the cluster for another actor within {START_S:g} s") from None
        if ready.refusal is not None:
            raise ClusterDown(ready.refusal)
        return ready

    async def _start_tools(self) -> tuple[ActorHandle[ToolActor], ...]:
        """The tool actors that find a place. Raises `ClusterDown` for none, or for one that must not be asked."""
        run, size = self._run, self._size
        options = replace(run.config.service, threads=size.tool_threads)
        nodes = sum(node["Alive"] for node in ray.nodes())  # type: ignore[no-untyped-call]
        backends = run.tools.backends
        setup = ToolSetup(self._place, options, backends, -(-size.tools // nodes))
        kind: Any = ray.remote(ToolActor).options(
            num_cpus=1, num_gpus=size.tool_gpus, max_restarts=-1, max_task_retries=MAX_RETRIES, max_concurrency=1000
        )
        actors = [kind.remote(setup) for _ in range(size.tools)]
        self._actors += actors
        starts = {asyncio.create_task(self._ready(actor)): actor for actor in actors}
        await asyncio.wait(starts, return_when=asyncio.FIRST_COMPLETED)
        done, late = await asyncio.wait(starts, timeout=OTHERS_S)
        for task in late:
            task.cancel()
            ray.kill(starts[task])
        errors = [error for task in done if (error := task.exception()) is not None]
        if errors:
            raise ClusterDown(f"the tools cannot be started: {first_line(errors[0])}")
        return tuple(starts[task] for task in done)


class _Captions:
    """The captions that one question wants: what it was to make and did not is left to the next one."""

    def __init__(self, cache: CaptionCache) -> None:
        self._cache = cache
        self._making: set[StoredImage] = set()

    async def take(self, image: StoredImage) -> str | None:
        """See `CaptionCache`."""
        caption = await self._cache.take(image)
        if caption is None:
            self._making.add(image)
        return caption

    async def keep(self, image: StoredImage, caption: str) -> str:
        """See `CaptionCache`."""
        kept = await self._cache.keep(image, caption)
        self._making.discard(image)
        return kept

    async def leave(self, image: StoredImage) -> None:
        """See `CaptionCache`."""
        if image in self._making:
            self._making.discard(image)
            await self._cache.give_up(image)

    async def close(self) -> None:
        """The question has ended, or its worker is lost."""
        for image in tuple(self._making):
            await self.leave(image)


class _Calls:
    """The model calls of one question that the run's budget has allowed and that have not ended."""

    def __init__(self, meter: RunMeter) -> None:
        self._meter = meter
        self._open = 0

    def begin(self) -> str | None:
        """Allow a call; else why not. One that is not allowed ends as well."""
        self._open += 1
        try:
            self._meter.begin()
        except RunBudgetSpent as error:
            self._meter.pending += 1
            return str(error)
        return None

    def end(self, used: Usage) -> None:
        """A call has ended."""
        self._open -= 1
        self._meter.end(used)

    def close(self) -> None:
        """Count calls whose end was never reported as made: the provider may charge for it."""
        while self._open:
            self.end(Usage(model_calls=1))


async def _awaited(ref: Any) -> Any:
    return await ref
