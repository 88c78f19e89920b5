"""Specialists for all workers: an actor that runs them, and the `Executor` that a worker's tool service calls it with.

The actor itself runs no tool. As in a run on one machine, tools run in a separate process (`ProcessExecutor`), so the
same rules decide which request caused a hang or a crash, and no tool can end the actor. An actor is only lost with its
node: Ray restarts it elsewhere and resends its requests.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING

from ray.exceptions import RayError, RayTaskError

from hybrid.config import ServiceOptions
from hybrid.config.memory import memory_to_use
from hybrid.core.errors import Outage, ServerDown
from hybrid.core.images import ImageStore, home
from hybrid.core.timing import ElapsedTime, Stopwatch
from hybrid.engines.ray.images import SharedImages, bytes_of, keep, lacking, take
from hybrid.engines.ray.line import MessageChannel
from hybrid.engines.ray.messages import ImagesLacking, Ready, TimedResponse, ToolAnswer, ToolSetup
from hybrid.engines.ray.node import here, settle
from hybrid.engines.ray.question_handler import QuestionHandler
from hybrid.plugins.registry import load
from hybrid.plugins.weights import backends_in_use
from hybrid.serving.cache import FindingCache
from hybrid.serving.executor import MessageExecutor, error_of, failure_of
from hybrid.serving.pipeline import on_disk
from hybrid.serving.protocol import CallFailure, Request, Response, ToolRequest, ToolResponse
from hybrid.serving.supervisor import ProcessExecutor
from hybrid.tool import Tool

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle

# Maximum number of times that a request is resent because its actor was lost.
MAX_RETRIES = 3
# Interval in seconds at which a worker asks how long a pending request has run.
LOOK_S = 1.0
NOTHING = ElapsedTime(0.0, 0.0, runs=False, rate=0.0)
LINE: ContextVar[MessageChannel] = ContextVar("channel of the question that is being asked")


class ToolActor:
    """A Ray actor that runs tools on one device; it can be restarted at any time from its setup."""

    def __init__(self, setup: ToolSetup) -> None:
        self._refusal = settle(setup.place) or other_tools(setup, here())
        self._store = ImageStore(home() / "images")
        # Outputs are cached by the worker that asks.
        self._executor = ProcessExecutor(FindingCache(None, self._store), options_of(setup))
        self._watches: dict[str, Stopwatch] = {}

    async def ready(self) -> Ready:
        """Return the actor's process and node, with a refusal if it must not be used."""
        return Ready(os.getpid(), here(), self._refusal)

    async def ask(self, request: Request, token: str, refs: Mapping[str, ObjectRef[bytes]]) -> ToolAnswer:
        """Run a request; `refs` provides the images that the store may lack."""
        if self._refusal is not None:
            return TimedResponse(failure_of(request.number, ServerDown(self._refusal)), NOTHING)
        watch = self._watches[token] = Stopwatch(time.monotonic)
        watch.waiting = 1
        outcome: Response | CallFailure
        try:
            await take(self._store, refs)
            images = request.images if isinstance(request, ToolRequest) else ()
            if missing := lacking(self._store, (ref.image.sha256 for ref in images)):
                return ImagesLacking(missing)
            outcome = await self._executor.ask(request, watch)
        except Exception as error:
            outcome = failure_of(request.number, error)
        finally:
            del self._watches[token]
        return TimedResponse(outcome, watch.read())

    async def look(self, token: str, awaited: bool) -> ElapsedTime | None:
        """Return how long a request has run, or None if it has ended. `awaited`: whether a caller still waits."""
        watch = self._watches.get(token)
        if watch is None:
            return None
        watch.waiting = int(awaited)
        return watch.read()

    async def images(self, sha256s: Sequence[str]) -> dict[str, bytes]:
        """Read pictures that the tools of this actor made."""
        return bytes_of(self._store, sha256s)


def options_of(setup: ToolSetup) -> ServiceOptions:
    """Return the options of an actor: its share of the node's memory, and its GPU as device 0."""
    share = memory_to_use() * 4 // 5 // setup.neighbours
    return replace(setup.options, device=setup.options.device.partition(":")[0], process_bytes=share)


def other_tools(setup: ToolSetup, node: str) -> str | None:
    """Return why a node must not run tools (its weights select another backend than the run's), or None."""
    loaded_tools: list[Tool] = [load("tools", name) for name in setup.backends]
    answering = backends_in_use(loaded_tools, setup.options.backend, setup.options.weights)
    for name, backend in setup.backends.items():
        if answering[name] != backend:
            return (
                f"on node {node}, the backend of {name} is {answering[name]!r}, but {backend!r} in this run: "
                "put the same weights on every node, or choose with --backend and --weights"
            )
    return None


class ActorExecutor(MessageExecutor):
    """Runs tools in the tool actors of the cluster. All requests about one image go to one actor.

    Args:
        cache: tool outputs and images of the worker's node.
        shelf: images that the worker has put into the object store.
    """

    def __init__(self, cache: FindingCache, shelf: SharedImages) -> None:
        super().__init__()
        self._cache, self._store, self._shelf = cache, cache.store, shelf

    async def ask(self, request: Request, watch: Stopwatch) -> Response:
        """See `MessageExecutor.ask`.

        Raises:
            Outage: also if the actor was lost more than `MAX_RETRIES` times.
        """
        line = LINE.get()
        actors = await line.request(QuestionHandler.tools)
        first = request.images[0].image.sha256 if isinstance(request, ToolRequest) and request.images else "0"
        actor: ActorHandle[ToolActor] = actors[int(first[:8], 16) % len(actors)]
        try:
            answer = await self._answer(actor, request, watch, {})
            if isinstance(answer, ImagesLacking):
                # Pass the run's images, which are shared by all workers, and images that were made later.
                refs = await line.request(QuestionHandler.images, answer.sha256s)
                refs |= self._shelf.refs(digest for digest in answer.sha256s if digest not in refs)
                answer = await self._answer(actor, request, watch, refs)
            if isinstance(answer, ImagesLacking):
                raise Outage(f"{request.tool}: no store has the image {answer.sha256s[0][:12]}")
            watch.show(answer.elapsed)
            for notice in answer.outcome.notices:
                line.tell(QuestionHandler.notice, notice)
            if isinstance(answer.outcome, CallFailure):
                raise error_of(answer.outcome)
            if isinstance(answer.outcome, ToolResponse):
                # Fetch the output's pictures if the actor has another store.
                if missing := lacking(self._store, (ref.image.sha256 for ref in answer.outcome.finding.images)):
                    for sha256, data in (await actor.images.remote(missing)).items():
                        keep(self._store, sha256, data)
                if isinstance(request, ToolRequest) and request.answering == answer.outcome.answering:
                    with on_disk("written"):
                        await asyncio.to_thread(self._cache.put, request.key, answer.outcome.finding)
        except RayTaskError:
            raise
        except RayError as error:
            raise Outage(f"{request.tool}: the actor that runs the tools was lost: {type(error).__name__}") from error
        return answer.outcome

    def warm(self) -> None:
        """Do nothing: the actors of the cluster start before the first question."""

    def close(self) -> None:
        """Do nothing: the executor holds no resources."""

    async def _answer(
        self, actor: ActorHandle[ToolActor], request: Request, watch: Stopwatch, refs: Mapping[str, ObjectRef[bytes]]
    ) -> ToolAnswer:
        """Wait for the actor's answer; meanwhile, copy the running time that the actor reports to `watch`."""
        token = uuid.uuid4().hex
        answer: asyncio.Future[ToolAnswer] = asyncio.ensure_future(actor.ask.remote(request, token, refs))
        while not answer.done():
            await asyncio.wait({answer}, timeout=LOOK_S)
            if not answer.done() and (elapsed := await actor.look.remote(token, watch.waiting > 0)) is not None:
                watch.show(elapsed)
        return answer.result()
