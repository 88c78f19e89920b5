"""Where tool models run: off the event loop, in batches, cached, each identical request computed once.

    service = ToolService(store, cache, ServiceOptions(backend="auto"))
    finding = await service.call(load("tools", "jigsaw"), args, refs)

Learned backends share one thread (one device runs one batch at a time); weight-free ones run in a few. Of a learned
backend in stages (`hybrid.tool.Stages`) only the network runs in the thread of the device: decoding, drawing and
encoding run in the others meanwhile. The tools that a tool needs are called first, from the event loop, so a worker
never waits for another worker. What runs is timed where it runs (`hybrid/timing.py`): a limit of seconds counts from
the start of running, and what never started is an `Outage` and no finding.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from hybrid.errors import HybridError, Outage, ToolError
from hybrid.images import ImageStore
from hybrid.registry import load
from hybrid.serving.batching import COMING_WAIT_S, Lane
from hybrid.serving.cache import FindingCache, key_of
from hybrid.serving.loader import CPU, Choice, Loader, Ready
from hybrid.serving.sources import code_of
from hybrid.serving.worker import OutOfMemory, Output, Prepared, Work, compute_batch, finish, prepare, run_batch
from hybrid.timing import QUEUE_S, CallTime, Clock, Patience, Watch, finished, running
from hybrid.tool import Args, BackendCard, Evidence, Need, Request, Stages, Tool
from hybrid.types import Fault, Finding, ImageRef, Json

T = TypeVar("T")
R = TypeVar("R")
F = TypeVar("F", bound=asyncio.Future[Any])

MOST_THREADS = 16


@dataclass(frozen=True)
class ServiceOptions:
    """Which code and weights may answer, where, and for how long."""

    backend: Literal["auto", "learned", "classical"] = "auto"
    weights: Mapping[str, str] = field(default_factory=dict)
    device: str = CPU
    timeout_s: float = 300.0
    """How long one request, or the batch that it is in, may run."""
    queue_s: float = QUEUE_S
    """How long a request may wait for its turn, or for weights to load."""
    coming_s: float = COMING_WAIT_S
    """How long a batch that is not full waits for requests that are being decoded."""
    threads: int = max(1, min(MOST_THREADS, os.cpu_count() or 1))
    """Decode, draw and encode for a learned tool, and run the weight-free ones: a GPU wants many of them."""
    memory_bytes: int | None = None
    unchecked: bool = False
    """Take learned weights without their known-answer images: only for weights that are random by design."""

    @property
    def patience(self) -> Patience:
        """What a call waits for."""
        return Patience(self.timeout_s, self.queue_s)

    @property
    def choice(self) -> Choice:
        """What the loader needs of it."""
        return Choice(self.backend, self.weights, self.device, self.memory_bytes, self.unchecked)


@dataclass(frozen=True)
class _Which:
    """Which backend answers; not the backend itself, which is to be freed when it is evicted."""

    card: BackendCard
    version: str
    device: str
    staged: bool
    code: str
    """The hash of the tool's code."""


@dataclass(frozen=True)
class _Call:
    """A request on its way: what decides the finding."""

    tool: Tool
    which: _Which
    images: tuple[ImageRef, ...]
    args: Args
    needs: Mapping[str, tuple[Finding, ...]]
    seed: int

    def key(self, device: str) -> str:
        """Of the finding in the cache, if it is found on this device."""
        return key_of(
            self.tool.card.name,
            self.which.code,
            *(self.which.card.name, self.which.version, device.split(":", maxsplit=1)[0]),
            *(self.args.model_dump(mode="json"), self.seed),
            [ref.image.sha256 for ref in self.images],
            [[name, found.backend, found.version] for name, findings in self.needs.items() for found in findings],
        )


@dataclass(frozen=True)
class _Answer(Generic[R]):
    """What a backend gave for a request, and which one it was: a move to the CPU comes in between."""

    ready: Ready
    value: R


@dataclass(frozen=True)
class _Timed(Generic[T]):
    """One request of a batch, in the form that its stage takes, and the watch that runs while the batch does."""

    work: T
    watch: Watch


@dataclass(frozen=True)
class _InFlight:
    """What is under way in one event loop."""

    loading: dict[str, asyncio.Future[Ready]] = field(default_factory=dict)
    running: dict[str, asyncio.Future[Finding]] = field(default_factory=dict)
    watches: dict[str, Watch] = field(default_factory=dict)
    """Of what is in `running`."""
    lanes: dict[str, Lane[_Timed[Work], _Answer[Evidence]]] = field(default_factory=dict)
    staged_lanes: dict[str, Lane[_Timed[Prepared], _Answer[Output]]] = field(default_factory=dict)


class ToolService:
    """Runs tools for everybody in this process."""

    def __init__(
        self, store: ImageStore, cache: FindingCache, options: ServiceOptions, clock: Clock = time.monotonic
    ) -> None:
        self.store = store
        self.cache = cache
        self.options = options
        self.computed = 0
        """Requests that a backend has answered, as opposed to the cache."""
        self.loader = Loader(options.choice)
        self._clock = clock
        self._warm: set[tuple[str, str]] = set()
        """Tools and stages that have run once in this process."""
        self._codes: dict[Tool, str] = {}
        self._closed = False
        self._loops: dict[asyncio.AbstractEventLoop, _InFlight] = {}
        self._device = ThreadPoolExecutor(1, thread_name_prefix="device")
        self._threads = ThreadPoolExecutor(options.threads, thread_name_prefix="tools")

    @property
    def notices(self) -> list[str]:
        """One line for each backend that could not be had or moved, as shown to the user."""
        return self.loader.notices

    async def call(
        self, tool: Tool, args: Args, images: Sequence[ImageRef], seed: int = 0, spent: CallTime | None = None
    ) -> Finding:
        """Find out. The pictures of the finding have no name yet; their `parent` is the input they show.

        Args:
            tool: which specialist.
            args: its typed arguments.
            images: what it looks at.
            seed: for tools that draw lots.
            spent: the time that the caller may take, and takes, running; the tools that this one needs are included.

        Raises:
            ToolError: the tool cannot answer this request, or runs for too long.
            Outage: the tool did not get to run: the service is closed, or the queue does not move.
            WeightsError: `backend="learned"` was asked for and its weights cannot be used.
        """
        spent = spent or CallTime()
        fewest, most = tool.card.images
        if not fewest <= len(images) <= most:
            wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            raise ToolError(f"{tool.card.name} takes {wanted} images, not {len(images)}", Fault.BAD_ARGUMENTS)
        which = await self._which(tool)
        needs = await self._needs((*tool.card.needs, *which.card.needs), args, images, seed, spent)
        call = _Call(tool, which, tuple(images), args, needs, seed)
        finding = await self._shared(call, call.key(which.device), spent)
        named = tuple(replace(ref, parent=images[int(ref.parent or 0)].name) for ref in finding.images)
        return replace(finding, images=named)

    async def _shared(self, call: _Call, key: str, spent: CallTime) -> Finding:
        """The finding of a key: identical requests wait for the same work."""
        flight = self._in_flight()
        known = flight.running.get(key)
        # What is done is forgotten a turn of the loop later.
        if known is None or known.done():
            watch = Watch(self._clock)
            flight.watches[key] = watch
            work = asyncio.create_task(self._find(call, key, watch))
            _note(flight.running, key, work)

            def forget(_: object) -> None:
                if flight.watches.get(key) is watch:
                    del flight.watches[key]

            work.add_done_callback(forget)
        name, patience = call.tool.card.name, self.options.patience
        return await finished(name, flight.running[key], flight.watches[key], spent, patience, self._clock)

    async def ready(self, tool: Tool) -> Ready:
        """The backend that answers for this tool, set up on first use and again after it was evicted."""
        name = tool.card.name
        if (ready := self.loader.get(name)) is not None:
            return ready
        loading = self._in_flight().loading
        if name not in loading:
            _note(loading, name, self._in_thread(self._device, self._load, tool))
        # Nothing is charged for it: whoever asks first would pay for everybody.
        return await finished(name, loading[name], Watch(self._clock), CallTime(), self.options.patience, self._clock)

    def close(self) -> None:
        """Let the worker threads end; who waits for one that has not begun gets an `Outage`."""
        self._closed = True
        self._device.shutdown(wait=False, cancel_futures=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _in_flight(self) -> _InFlight:
        """What is under way in the running event loop: nothing of another one can be waited for here."""
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            self._loops = {other: known for other, known in self._loops.items() if not other.is_closed()}
            self._loops[loop] = _InFlight()
        return self._loops[loop]

    def _in_thread(self, pool: ThreadPoolExecutor, run: Callable[..., R], *args: Any) -> asyncio.Future[R]:
        if self._closed:
            raise Outage("the tool service is closed")
        try:
            return asyncio.get_running_loop().run_in_executor(pool, run, *args)
        except RuntimeError as error:
            raise Outage(f"no worker thread could be started: {error}") from error

    async def _which(self, tool: Tool) -> _Which:
        ready = await self.ready(tool)
        if tool not in self._codes:
            # The name is another tool's, whose backend was loaded: only where tools are made by hand.
            self._codes[tool] = await asyncio.to_thread(code_of, tool)
        staged = isinstance(ready.backend, Stages)
        return _Which(ready.card, ready.version, ready.device, staged, self._codes[tool])

    def _load(self, tool: Tool) -> Ready:
        """In the thread of the device: the hash of the code reads files, which the event loop is not to wait for."""
        self._codes[tool] = code_of(tool)
        return self.loader.load(tool)

    async def _needs(
        self, needs: Sequence[Need], args: Args, images: Sequence[ImageRef], seed: int, spent: CallTime
    ) -> dict[str, tuple[Finding, ...]]:
        found: dict[str, tuple[Finding, ...]] = {}
        for need in needs:
            asked = need.args(args) if need.given is None else need.given(args, found)
            if asked is None:
                continue
            other: Tool = load("tools", need.tool)
            wanted = other.args.model_validate(asked)
            found[need.tool] = tuple(
                await asyncio.gather(*(self.call(other, wanted, (ref,), seed, spent) for ref in images))
            )
        return found

    async def _find(self, call: _Call, key: str, watch: Watch) -> Finding:
        if self.cache.folder is not None:
            cached = await asyncio.to_thread(_run_timed, watch, self.cache.get, key)
            if cached is not None:
                return cached

        def work() -> Request[Any]:
            pixels = tuple(self.store.pixels(ref.image) for ref in call.images)
            return Request(pixels, call.args, call.needs, call.seed)

        if call.which.staged:
            return await self._find_in_stages(call, work, watch)
        tool, card, timed = call.tool, call.which.card, _Timed(work, watch)
        if card.batch > 1:
            lanes = self._in_flight().lanes
            run = partial(self._in_pool, tool, card, run_batch)
            answer = await lanes.setdefault(tool.card.name, Lane(card.batch, run)).submit(timed)
        else:
            (found,) = await self._in_pool(tool, card, run_batch, [timed])
            if isinstance(found, HybridError):
                raise found
            answer = found
        self.computed += 1
        return await self._in_thread(self._threads, lambda: _run_timed(watch, self._keep, answer, call))

    async def _find_in_stages(self, call: _Call, work: Work, watch: Watch) -> Finding:
        """Prepare and finish in the worker threads; only the network runs in the thread of the device."""
        tool, card = call.tool, call.which.card
        lanes = self._in_flight().staged_lanes
        run = partial(self._in_pool, tool, card, compute_batch)
        lane = lanes.setdefault(tool.card.name, Lane(card.batch, run, coming_s=self.options.coming_s))

        def prepared(ready: Ready) -> _Timed[Prepared]:
            with self._timed(tool.card.name, "prepare", [watch]):
                return _Timed(prepare(ready, work), watch)

        async with lane.room:
            output = await lane.submit_coming(self._in_thread(self._threads, prepared, await self.ready(tool)))
            finding = await self._in_thread(self._threads, self._finish, output, call, watch)
        self.computed += 1
        return finding

    def _finish(self, output: _Answer[Output], call: _Call, watch: Watch) -> Finding:
        with self._timed(call.tool.card.name, "finish", [watch]):
            return self._keep(_Answer(output.ready, finish(output.ready, output.value)), call)

    async def _in_pool(
        self,
        tool: Tool,
        card: BackendCard,
        run: Callable[[Ready, Sequence[T]], list[R | HybridError]],
        items: Sequence[_Timed[T]],
    ) -> list[_Answer[R] | HybridError]:
        name = tool.card.name
        if card.name == "learned":
            # Found in the thread of the device: it may have been evicted, or moved to the CPU, by what runs before.
            return await self._in_thread(
                self._device, lambda: self._run_or_move(name, self.loader.load(tool), run, items)
            )
        return await self._in_thread(self._threads, self._run_or_move, name, await self.ready(tool), run, items)

    def _run_or_move(
        self,
        name: str,
        ready: Ready,
        run: Callable[[Ready, Sequence[T]], list[R | HybridError]],
        items: Sequence[_Timed[T]],
    ) -> list[_Answer[R] | HybridError]:
        """Run a batch; what a full GPU cannot take one by one either, the CPU does."""
        found = _answers(ready, self._run_timed(name, ready, run, items))
        short = [place for place, answer in enumerate(found) if isinstance(answer, OutOfMemory)]
        if short and ready.device != CPU:
            moved = self.loader.on_cpu(name, ready)
            again = _answers(moved, self._run_timed(name, moved, run, [items[place] for place in short]))
            for place, answer in zip(short, again, strict=True):
                found[place] = answer
        return found

    def _run_timed(
        self,
        name: str,
        ready: Ready,
        run: Callable[[Ready, Sequence[T]], list[R | HybridError]],
        items: Sequence[_Timed[T]],
    ) -> list[R | HybridError]:
        with self._timed(name, ready.device, [item.watch for item in items]):
            return run(ready, [item.work for item in items])

    @contextmanager
    def _timed(self, name: str, stage: str, watches: Sequence[Watch]) -> Iterator[None]:
        """Time a stage of a tool where it runs. Until it has run once it also loads libraries and fills tables."""
        with running(watches, loads=(name, stage) not in self._warm):
            yield
        self._warm.add((name, stage))

    def _keep(self, answer: _Answer[Evidence], call: _Call) -> Finding:
        ready, evidence = answer.ready, answer.value
        images = tuple(
            ImageRef("", self.store.put_pixels(picture.pixels), str(picture.of), picture.box, picture.scale)
            for picture in evidence.pictures
        )
        finding = Finding(evidence.text, evidence.data, evidence.confidence, ready.card.name, ready.version, images)
        self.cache.put(call.key(ready.device), finding)
        return finding


def _note(table: dict[str, F], key: str, work: F) -> None:
    """Keep some work in a table until it is done."""

    def forget(_: object) -> None:
        if table.get(key) is work:
            del table[key]
        # Whoever waited may have gone, and an error that nobody takes is reported.
        if not work.cancelled():
            work.exception()

    table[key] = work
    work.add_done_callback(forget)


def _run_timed(watch: Watch, run: Callable[..., R], *args: Any) -> R:
    """One request's own work, timed in the thread that does it."""
    with running([watch]):
        return run(*args)


def _answers(ready: Ready, found: Sequence[R | HybridError]) -> list[_Answer[R] | HybridError]:
    return [one if isinstance(one, HybridError) else _Answer(ready, one) for one in found]


def describe(finding: Finding) -> Mapping[str, Json]:
    """What a trace keeps of a finding besides its text."""
    return {
        "data": finding.data,
        "confidence": finding.confidence,
        "backend": finding.backend,
        "version": finding.version,
    }
