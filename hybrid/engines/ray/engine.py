"""The run's side of Ray: sends questions to workers, receives attempts, and retries the questions of lost workers.

    async with on_ray(run, replies, tell) as engine:
        attempt = await engine.ask(question, "mllm")

The run records a question when its attempt arrives, so a lost worker costs only its questions in flight. Replies that
models have given to those questions are stored here and are not requested again. A question whose workers are lost
`MAX_LOSSES` times ends with an `Outage` and stays open for the next run.
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
from hybrid.core.errors import Outage
from hybrid.core.types import Attempt, Question
from hybrid.engines.ray.cluster import (
    ClusterDown,
    Sizes,
    connected,
    environment_of,
    first_line,
    loads_weights,
    place_of_run,
    sizes,
)
from hybrid.engines.ray.crew import WorkerPool, WorkerSlot
from hybrid.engines.ray.images import SharedImages, keep, lacking, of_attempt
from hybrid.engines.ray.messages import (
    FromWorker,
    HandlerCall,
    ModelReply,
    NodeCode,
    QuestionFailure,
    QuestionRequest,
    Ready,
    ToolSetup,
    WorkerSetup,
)
from hybrid.engines.ray.question_handler import QuestionHandler
from hybrid.engines.ray.tools import MAX_RETRIES, ToolActor
from hybrid.engines.ray.worker import RayWorker
from hybrid.running.engine import Engine, Tell
from hybrid.running.replies import RunReplies
from hybrid.running.resolve import ResolvedRun
from hybrid.solving.captions import RunCaptions

if TYPE_CHECKING:
    from ray.actor import ActorHandle

# Number of lost workers after which a question is left open.
MAX_LOSSES = 3
# Seconds that an actor may take to be scheduled and to start.
START_S = 600.0
# Seconds that the other tool actors may take to start after the first one: part of the cluster may be in use.
OTHERS_S = 120.0
# Solver and question.
Key = tuple[str, str]


@asynccontextmanager
async def on_ray(run: ResolvedRun, replies: RunReplies, tell: Tell) -> AsyncIterator[Engine]:
    """Open the engine of a run on Ray (an `Opener`). A run without open questions needs no cluster.

    Raises:
        UsageError: there is no cluster.
    """
    if not any(run.open_questions(name) for name in run.solvers):
        yield RayEngine(run, replies, tell, Sizes(0, 0))
        return
    async with connected(run.config.address):
        has = ray.cluster_resources()  # type: ignore[no-untyped-call]
        size = sizes(
            cpus=int(has.get("CPU", 1)),
            gpus=int(has.get("GPU", 0)),
            concurrency=run.config.concurrency,
            learned=any(backend.startswith("learned:") for backend in run.tools.backends.values()),
            in_process=loads_weights(run.config.model),
            gpu_share=run.config.service.gpu_share,
        )
        engine = RayEngine(run, replies, tell, size)
        try:
            yield engine
        finally:
            engine.close()


class RayEngine:
    """Runs the questions of a run on workers of the connected cluster."""

    def __init__(self, run: ResolvedRun, replies: RunReplies, tell: Tell, size: Sizes) -> None:
        self._run = run
        self._replies = replies
        self._tell = tell
        self._size = size
        self._place = place_of_run(run) if size.workers else NodeCode("", Path())
        self._meter = run.resources.run_meter
        self.shelf = SharedImages(run.service.store)
        """Images that other nodes have requested."""
        self._numbers = itertools.count()
        self._said: dict[Key, list[ModelReply]] = {}
        for call, sha256, reply in replies.earlier():
            self._said.setdefault((call.solver, call.question), []).append(ModelReply(call, sha256, reply))
        self._crew: WorkerPool | None = None
        self._tools: asyncio.Task[tuple[ActorHandle[ToolActor], ...]] | None = None
        self._actors: list[ActorHandle[Any]] = []

    async def ask(self, question: Question, solver: str) -> Attempt:
        """Run one question on a worker; on another worker if that one is lost.

        Raises:
            Outage: the question's workers were lost `MAX_LOSSES` times.
            ClusterDown: no worker can be started.
            BaseException: what ended the question at the worker, of the same type.
        """
        for _ in range(MAX_LOSSES):
            hand = await self.crew.acquire()
            try:
                return await self._ask(hand, question, solver)
            except RayTaskError:
                raise
            except RayError as error:
                count = hand.in_flight
                if self.crew.lose(hand):
                    self._tell(
                        f"note: a worker on node {hand.ready.node} was lost ({type(error).__name__}); its questions "
                        f"in flight ({count}) are asked again by other workers"
                    )
                    # An unreachable actor may still be running.
                    with suppress(RayError):
                        ray.kill(hand.actor)
            finally:
                self.crew.release(hand)
        raise Outage(f"its worker was lost {MAX_LOSSES} times")

    @property
    def crew(self) -> WorkerPool:
        """Return the pool of workers, which is started on first use."""
        if self._crew is None:
            most = -(-self._run.config.concurrency // self._size.workers)
            self._crew = WorkerPool(self._hire, self._size.workers, most)
        return self._crew

    def close(self) -> None:
        """Kill all workers and their questions in flight."""
        if self._crew is not None:
            self._crew.close()
        if self._tools is not None:
            self._tools.cancel()
        for actor in self._actors:
            ray.kill(actor)

    async def _ask(self, hand: WorkerSlot, question: Question, solver: str) -> Attempt:
        run, key = self._run, (solver, question.id)
        control = run.resources.control
        logged = self._said.setdefault(key, [])
        visible_question = question if control.mode == "oracle" else question.without_target()
        partner = control.partners.get(question.id)
        request = QuestionRequest(next(self._numbers), visible_question, solver, partner, tuple(logged))
        captions, notices = run.resources.captions or RunCaptions(), run.service.notices
        handler = QuestionHandler(
            self._meter,
            captions,
            shelf=self.shelf,
            replies=self._replies,
            logged_replies=logged,
            notices=notices,
            start_tools=self._tools_when_started,
        )
        end: Attempt | QuestionFailure | None = None
        try:
            async for ref in hand.actor.ask.options(num_returns="streaming").remote(request):
                message: FromWorker = await ref
                if not isinstance(message, HandlerCall):
                    end = message
                    continue
                answer = await message.method(handler, *message.args)
                if message.number is not None:
                    hand.actor.answer.remote(request.number, message.number, answer)
        finally:
            await handler.close()
        if isinstance(end, QuestionFailure):
            raise end.error
        if end is None:
            raise Outage("its worker ended before it answered")
        # Fetch pictures that were made on other nodes, so that the run's store is complete.
        store = run.service.store
        if missing := lacking(store, of_attempt(end)):
            for sha256, data in (await hand.actor.images.remote(missing)).items():
                keep(store, sha256, data)
        self._said.pop(key, None)
        return end

    async def _tools_when_started(self) -> tuple[ActorHandle[ToolActor], ...]:
        if self._tools is None:
            self._tools = asyncio.create_task(self._start_tools())
        # Shield the start from cancellation, because other questions wait for it.
        return await asyncio.shield(self._tools)

    async def _hire(self) -> WorkerSlot:
        run = self._run
        # Models, tools and budget stay in this process.
        nothing = cast("Any", None)
        sent = replace(run.resources, model=None, captioner=None, captions=None, control=nothing, run_meter=nothing)
        sent = replace(sent, config=replace(run.config, out=None), tools_offered=())
        tool_names = tuple(tool.card.name for tool in run.resources.tools_offered)
        setup = WorkerSetup(run.benchmark, sent, tool_names, metered=self._meter.limits != RunLimits())
        most, gpus = 2 * run.config.concurrency + 8, self._size.worker_gpus
        # A worker mostly waits, so it reserves no CPU; the tools need the CPUs.
        kind: Any = ray.remote(RayWorker).options(
            num_cpus=0, num_gpus=gpus, scheduling_strategy="SPREAD", max_concurrency=most
        )
        actor = kind.remote(self._place, [ray.put(setup)])
        self._actors.append(actor)
        # Keys are sent in a call: Ray writes the variables of a `runtime_env` to its log files, and stores the
        # arguments that an actor is created with.
        ready = await self._ready(actor, {**environment_of(run.config.captioner), **environment_of(run.config.model)})
        return WorkerSlot(actor, ready)

    async def _ready(self, actor: ActorHandle[Any], *args: Any) -> Ready:
        try:
            ready: Ready = await asyncio.wait_for(actor.ready.remote(*args), START_S)
        except TimeoutError:
            raise ClusterDown(f"the cluster had no free resources for another actor within {START_S:g} s") from None
        if ready.refusal is not None:
            raise ClusterDown(ready.refusal)
        return ready

    async def _start_tools(self) -> tuple[ActorHandle[ToolActor], ...]:
        """Start the tool actors that fit into the cluster. Raises `ClusterDown` if none starts or one is refused."""
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
        finished, late = await asyncio.wait(starts, timeout=OTHERS_S)
        for task in late:
            task.cancel()
            ray.kill(starts[task])
        errors = [error for task in finished if (error := task.exception()) is not None]
        if errors:
            raise ClusterDown(f"the tools cannot be started: {first_line(errors[0])}")
        return tuple(starts[task] for task in finished)
