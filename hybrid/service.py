"""Where tool models run: off the event loop, in batches, cached, each identical request computed once.

    service = ToolService(store, cache, ServiceOptions(backend="auto"))
    finding = await service.call(load("tools", "jigsaw"), args, refs)

Learned backends share one thread (one device runs one batch at a time); weight-free ones run in a few. Of a learned
backend in stages (`hybrid/stages.py`) only the network runs in the thread of the device: decoding, drawing and encoding
run in the others meanwhile. The tools that a tool needs are called first, from the event loop, so a worker never waits
for another worker.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeVar

from hybrid.cache import FindingCache, key_of
from hybrid.errors import HybridError, ToolError, is_out_of_memory
from hybrid.images import ImageStore
from hybrid.lanes import Lane
from hybrid.loading import CPU, Choice, Loader, Ready
from hybrid.registry import load
from hybrid.stages import Stages
from hybrid.tool import Args, Evidence, Need, Request, Tool
from hybrid.types import Fault, Finding, ImageRef, Json

log = logging.getLogger("hybrid.service")

T = TypeVar("T")
R = TypeVar("R")

MOST_THREADS = 16


@dataclass(frozen=True)
class ServiceOptions:
    """Which code and weights may answer, where, and for how long."""

    backend: Literal["auto", "learned", "classical"] = "auto"
    weights: Mapping[str, str] = field(default_factory=dict)
    device: str = CPU
    timeout_s: float = 300.0
    threads: int = max(1, min(MOST_THREADS, os.cpu_count() or 1))
    """Decode, draw and encode for a learned tool, and run the weight-free ones: a GPU wants many of them."""
    memory_bytes: int | None = None
    unchecked: bool = False
    """Take learned weights without their known-answer images: only for weights that are random by design."""

    @property
    def choice(self) -> Choice:
        """What the loader needs of it."""
        return Choice(self.backend, self.weights, self.device, self.memory_bytes, self.unchecked)


Work = Callable[[], Request[Any]]
"""Decodes the images of a request: called in the worker thread."""


@dataclass(frozen=True)
class _Call:
    """A request on its way: what decides the finding, and its key."""

    images: tuple[ImageRef, ...]
    args: Args
    needs: Mapping[str, tuple[Finding, ...]]
    seed: int
    key: str


@dataclass(frozen=True)
class _Prepared:
    """A decoded request and what the network takes of it."""

    request: Request[Any]
    inputs: Any


@dataclass(frozen=True)
class _Output:
    """What the network gave for a prepared request, and whose network it was."""

    prepared: _Prepared
    ready: Ready
    values: Any


class OutOfMemory(ToolError):
    """A device has no memory left for this request."""


class ToolService:
    """Runs tools for everybody in this process."""

    def __init__(self, store: ImageStore, cache: FindingCache, options: ServiceOptions) -> None:
        self.store = store
        self.cache = cache
        self.options = options
        self.computed = 0
        """Requests that a backend has answered, as opposed to the cache."""
        self.loader = Loader(options.choice)
        self._loading: dict[str, asyncio.Future[Ready]] = {}
        self._lanes: dict[str, Lane[Work, Evidence]] = {}
        self._staged_lanes: dict[str, Lane[_Prepared, _Output]] = {}
        self._running: dict[str, asyncio.Task[Finding]] = {}
        self._device = ThreadPoolExecutor(1, thread_name_prefix="device")
        self._threads = ThreadPoolExecutor(options.threads, thread_name_prefix="tools")

    @property
    def notices(self) -> list[str]:
        """One line for each backend that could not be had or moved, as shown to the user."""
        return self.loader.notices

    async def call(self, tool: Tool, args: Args, images: Sequence[ImageRef], seed: int = 0) -> Finding:
        """Find out. The pictures of the finding have no name yet; their `parent` is the input they show.

        Raises:
            ToolError: the tool cannot answer this request, or not in time.
            WeightsError: `backend="learned"` was asked for and its weights cannot be used.
        """
        fewest, most = tool.card.images
        if not fewest <= len(images) <= most:
            wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            raise ToolError(f"{tool.card.name} takes {wanted} images, not {len(images)}", Fault.BAD_ARGUMENTS)
        ready = await self.ready(tool)
        needs = await self._needs((*tool.card.needs, *ready.card.needs), args, images, seed)
        key = key_of(
            tool.card.name,
            *(ready.card.name, ready.version, ready.device.split(":")[0]),
            *(args.model_dump(mode="json"), seed),
            [ref.image.sha256 for ref in images],
            [[name, found.backend, found.version] for name, findings in needs.items() for found in findings],
        )
        if key not in self._running:
            call = _Call(tuple(images), args, needs, seed, key)
            self._running[key] = asyncio.create_task(self._find(tool, ready, call))
            self._running[key].add_done_callback(lambda _: self._running.pop(key, None))
        try:
            finding = await asyncio.wait_for(asyncio.shield(self._running[key]), self.options.timeout_s)
        except TimeoutError:
            limit = f"{self.options.timeout_s:g} s"
            raise ToolError(f"{tool.card.name} did not answer within {limit}", Fault.TIMEOUT) from None
        named = tuple(replace(ref, parent=images[int(ref.parent or 0)].name) for ref in finding.images)
        return replace(finding, images=named)

    async def ready(self, tool: Tool) -> Ready:
        """The backend that answers for this tool, set up on first use and again after it was evicted."""
        name = tool.card.name
        if (ready := self.loader.get(name)) is not None:
            return ready
        if name not in self._loading:
            loop = asyncio.get_running_loop()
            self._loading[name] = asyncio.ensure_future(loop.run_in_executor(self._device, self.loader.load, tool))
            self._loading[name].add_done_callback(lambda _: self._loading.pop(name, None))
        return await asyncio.shield(self._loading[name])

    def close(self) -> None:
        """Let the worker threads end."""
        self._device.shutdown(wait=False, cancel_futures=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _needs(
        self, needs: Sequence[Need], args: Args, images: Sequence[ImageRef], seed: int
    ) -> dict[str, tuple[Finding, ...]]:
        found: dict[str, tuple[Finding, ...]] = {}
        for need in needs:
            asked = need.args(args) if need.given is None else need.given(args, found)
            if asked is None:
                continue
            other: Tool = load("tools", need.tool)
            wanted = other.args.model_validate(asked)
            found[need.tool] = tuple(await asyncio.gather(*(self.call(other, wanted, (ref,), seed) for ref in images)))
        return found

    async def _find(self, tool: Tool, ready: Ready, call: _Call) -> Finding:
        if (cached := await asyncio.to_thread(self.cache.get, call.key)) is not None:
            return cached

        def work() -> Request[Any]:
            pixels = tuple(self.store.pixels(ref.image) for ref in call.images)
            return Request(pixels, call.args, call.needs, call.seed)

        if isinstance(ready.backend, Stages):
            return await self._find_in_stages(tool, ready, work, call.key)
        name = tool.card.name
        if ready.card.batch > 1:
            # The lane outlives an evicted backend, so it asks for the backend anew for every batch.
            lane = self._lanes.setdefault(name, Lane(ready.card.batch, partial(self._run_lane, tool)))
            evidence = await lane.submit(work)
        else:
            (found,) = await self._run_batch(name, ready, [work])
            if isinstance(found, HybridError):
                raise found
            evidence = found
        self.computed += 1
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._keep, evidence, ready, call.key)

    async def _find_in_stages(self, tool: Tool, ready: Ready, work: Work, key: str) -> Finding:
        """Prepare and finish in the worker threads; only the network runs in the thread of the device."""
        name, loop = tool.card.name, asyncio.get_running_loop()
        lane = self._staged_lanes.setdefault(name, Lane(ready.card.batch, partial(self._compute_lane, tool)))
        async with lane.room:
            output = await lane.submit_coming(loop.run_in_executor(self._threads, _prepare, ready, work))
            self.computed += 1
            return await loop.run_in_executor(self._threads, self._finish, output, key)

    def _finish(self, output: _Output, key: str) -> Finding:
        return self._keep(_finished(output), output.ready, key)

    async def _run_lane(self, tool: Tool, requests: Sequence[Work]) -> list[Evidence | HybridError]:
        return await self._run_batch(tool.card.name, await self.ready(tool), requests)

    async def _compute_lane(self, tool: Tool, batch: Sequence[_Prepared]) -> list[_Output | HybridError]:
        ready = await self.ready(tool)
        found = await self._in_pool(tool.card.name, ready, compute_batch, [one.inputs for one in batch])
        return [
            values if isinstance(values, HybridError) else _Output(one, ready, values)
            for one, values in zip(batch, found, strict=True)
        ]

    async def _run_batch(self, name: str, ready: Ready, requests: Sequence[Work]) -> list[Evidence | HybridError]:
        return await self._in_pool(name, self.loader.get(name) or ready, run_batch, requests)

    async def _in_pool(
        self, name: str, ready: Ready, run: Callable[[Ready, Sequence[T]], list[R | HybridError]], items: Sequence[T]
    ) -> list[R | HybridError]:
        pool = self._device if ready.card.name == "learned" else self._threads
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(pool, lambda: self._run_or_move(name, ready, run, items))

    def _run_or_move(
        self, name: str, ready: Ready, run: Callable[[Ready, Sequence[T]], list[R | HybridError]], items: Sequence[T]
    ) -> list[R | HybridError]:
        """Run a batch; what a full GPU cannot take one by one either, the CPU does."""
        found = run(ready, items)
        short = [place for place, answer in enumerate(found) if isinstance(answer, OutOfMemory)]
        if short and ready.device != CPU:
            moved = self.loader.on_cpu(name, ready)
            again = run(moved, [items[place] for place in short])
            for place, answer in zip(short, again, strict=True):
                found[place] = answer
        return found

    def _keep(self, evidence: Evidence, ready: Ready, key: str) -> Finding:
        images = tuple(
            ImageRef("", self.store.put_pixels(picture.pixels), str(picture.of), picture.box, picture.scale)
            for picture in evidence.pictures
        )
        finding = Finding(evidence.text, evidence.data, evidence.confidence, ready.card.name, ready.version, images)
        self.cache.put(key, finding)
        return finding


def run_batch(ready: Ready, requests: Sequence[Work]) -> list[Evidence | HybridError]:
    """Decode and run; one request that fails costs nobody else."""
    _one_thread()
    decoded: list[Request[Any] | HybridError] = [_attempt(request) for request in requests]
    good = [request for request in decoded if isinstance(request, Request)]
    rest = iter(_together_or_alone(partial(_run, ready), good))
    return [next(rest) if isinstance(request, Request) else request for request in decoded]


def compute_batch(ready: Ready, inputs: Sequence[Any]) -> list[Any]:
    """What the network gives for each prepared request, or the error that it fails with."""
    _one_thread()
    return _together_or_alone(_stages(ready).compute, inputs)


def _together_or_alone(run: Callable[[Sequence[T]], Sequence[R]], items: Sequence[T]) -> list[R | HybridError]:
    """One batch; when it fails, each item runs alone, so that one bad request costs nobody else."""
    if not items:
        return []
    try:
        return _as_many(run(items), items)
    except Exception as error:
        if len(items) > 1:
            return [_together_or_alone(run, [item])[0] for item in items]
        return [_as_tool_error(error)]


def _as_many(found: Sequence[R], items: Sequence[Any]) -> list[R | HybridError]:
    if len(found) != len(items):
        raise ToolError(f"the tool gave {len(found)} findings for {len(items)} requests")
    return list(found)


def _run(ready: Ready, requests: Sequence[Request[Any]]) -> list[Evidence]:
    return [_checked(evidence) for evidence in ready.backend.run(requests)]


def _checked(evidence: Evidence) -> Evidence:
    """Evidence that has what everybody relies on. Raises `ToolError`."""
    if not 0.0 <= evidence.confidence <= 1.0:
        raise ToolError(f"the tool gave a confidence of {evidence.confidence}, which is outside 0..1")
    return evidence


def _prepare(ready: Ready, work: Work) -> _Prepared:
    _one_thread()
    try:
        request = work()
        return _Prepared(request, _stages(ready).prepare(request))
    except Exception as error:
        raise _as_tool_error(error) from error


def _finished(output: _Output) -> Evidence:
    _one_thread()
    try:
        found = _stages(output.ready).finish(output.prepared.request, output.prepared.inputs, output.values)
    except Exception as error:
        raise _as_tool_error(error) from error
    return _checked(found)


def _stages(ready: Ready) -> Stages[Any, Any, Any]:
    if not isinstance(ready.backend, Stages):
        raise ToolError("the weights of this tool were taken away while it answered")
    return ready.backend


def _one_thread() -> None:
    """OpenCV's own threads would compete with ours and change rounding with the number of cores."""
    import cv2

    cv2.setNumThreads(1)


def _attempt(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return _as_tool_error(error)


def _as_tool_error(error: Exception) -> HybridError:
    if isinstance(error, HybridError):
        return error
    if is_out_of_memory(error):
        return OutOfMemory(f"the memory of the device does not suffice: {str(error)[:200]}")
    log.debug("a tool failed", exc_info=error)
    return ToolError(f"the tool failed: {type(error).__name__}: {str(error)[:300]}")


def describe(finding: Finding) -> Mapping[str, Json]:
    """What a trace keeps of a finding besides its text."""
    return {
        "data": finding.data,
        "confidence": finding.confidence,
        "backend": finding.backend,
        "version": finding.version,
    }
