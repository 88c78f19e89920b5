"""Where tool models run: off the event loop, in batches, cached, each identical request computed once.

    service = ToolService(store, cache, ServiceOptions(backend="auto"))
    finding = await service.call(load("tools", "jigsaw"), args, refs)

Every request takes one path, in stages (`hybrid/serving/stages.py`): decode and prepare in a worker thread, wait in the
lane of its tool for a batch, compute, finish in a worker thread. Learned backends compute in one thread (one device
runs one batch at a time), weight-free ones in the worker threads, several at once. The tools that a tool needs are
called first, from the event loop, so a worker never waits for another worker. What runs is timed where it runs
(`hybrid/timing.py`): a limit of seconds counts from the start of running, and what never started is an `Outage` and no
finding.

`ToolService` is this process's own; what asks for findings knows the `ToolRunner` that it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from hybrid.config import CPU, Pictures, ServiceOptions
from hybrid.errors import HybridError, Outage, ToolError
from hybrid.images import JPEG, JPEG_SIDE_PX, PNG, ImageStore
from hybrid.registry import load
from hybrid.serving.batching import Lane
from hybrid.serving.cache import FindingCache, key_of
from hybrid.serving.decoded import DecodedImages
from hybrid.serving.loader import Loader, Ready
from hybrid.serving.sources import code_of
from hybrid.serving.stages import OutOfMemory, PreparedRequest, checked, compute, tool_errors
from hybrid.serving.threads import DaemonThreads
from hybrid.timing import CallTime, Clock, Stopwatch, Timeouts, finished, running
from hybrid.tool import BackendCard, Found, Need, Picture, Request, Tool
from hybrid.types import Fault, Finding, ImageRef, Json

if TYPE_CHECKING:
    from hybrid.tool import Args

R = TypeVar("R")

IMPORT, LOAD = "import", "load"
"""The stages of a job that are no part of a request: what fails in one fails for every request of the tool."""
ReportJob = Callable[[str, str, Sequence[int], float], AbstractContextManager[None]]
"""Around one stretch of a tool's own code, in its own thread: the tool, the stage, the numbers of the calls that it
runs for, and what a second of it is charged to each of them."""


@dataclass(frozen=True)
class Call:
    """What decides a finding: the request, and the backend that answers it.

    That is named and not held: it is to be freed when it is evicted.
    """

    tool: Tool
    code: str
    """The hash of the tool's code."""
    card: BackendCard
    version: str
    """Of the backend, as findings say it."""
    images: tuple[ImageRef, ...]
    args: Args
    needs: Mapping[str, tuple[Finding, ...]]
    seed: int
    pictures: Pictures

    def key(self, device: str) -> str:
        """Of the finding in the cache, if it is found on this device."""
        return key_of(
            self.tool.card.name,
            self.code,
            *(self.card.name, self.version, device.split(":", maxsplit=1)[0]),
            *(self.args.model_dump(mode="json"), self.seed, self.pictures),
            [ref.image.sha256 for ref in self.images],
            [[name, found.backend, found.version] for name, findings in self.needs.items() for found in findings],
        )


def asked_of(need: Need, args: Args, found: Found) -> Mapping[str, Json] | None:
    """The arguments for a tool that is needed; None where it is not. Runs code of the tool that needs it."""
    return need.args(args) if need.given is None else need.given(args, found)


def named(finding: Finding, images: Sequence[ImageRef]) -> Finding:
    """A finding whose pictures have the names of the inputs that they show, and not their numbers."""
    shown = tuple(replace(ref, parent=images[int(ref.parent or 0)].name) for ref in finding.images)
    return replace(finding, images=shown)


@dataclass(frozen=True)
class ComputedRequest:
    """What a backend computed for a prepared request, and which one it was: a move to the CPU comes in between."""

    prepared: PreparedRequest
    output: Any
    ready: Ready


@dataclass(frozen=True)
class SharedWork(Generic[R]):
    """Some work that several callers may wait for, and how long it has run."""

    result: asyncio.Future[R]
    watch: Stopwatch


@dataclass(frozen=True)
class LoopWork:
    """What is under way in one event loop: backends and lanes by the tool's name, findings by their key."""

    loading: dict[str, SharedWork[Ready]] = field(default_factory=dict)
    findings: dict[str, SharedWork[Finding]] = field(default_factory=dict)
    lanes: dict[str, Lane[PreparedRequest, ComputedRequest]] = field(default_factory=dict)


class ToolRunner(Protocol):
    """Where findings come from, in this process or in another."""

    @property
    def store(self) -> ImageStore:
        """The images."""
        ...

    @property
    def cache(self) -> FindingCache:
        """Findings that are there, and where new ones are kept."""
        ...

    @property
    def options(self) -> ServiceOptions:
        """Which code and weights may answer, and for how long."""
        ...

    @property
    def computed(self) -> int:
        """Requests that a backend has answered, as opposed to the cache."""
        ...

    @property
    def notices(self) -> list[str]:
        """One line for each backend that could not be had or moved, and each tool given up, as shown to the user."""
        ...

    async def call(
        self, tool: Tool, args: Args, images: Sequence[ImageRef], seed: int = 0, spent: CallTime | None = None
    ) -> Finding:
        """Find out: as `ToolService.call`."""
        ...

    def warm(self) -> None:
        """A call is likely to come: what takes long to start, and costs nothing to have, is started now."""
        ...

    def close(self) -> None:
        """Answer nobody any more; who still waits gets an `Outage`."""
        ...


class ToolService:
    """Runs tools for everybody in this process.

    Args:
        store: the images.
        cache: findings that are there, and where new ones are kept.
        options: which code and weights may answer, and for how long.
        clock: what runs is timed with it.
        report_job: enters a context around every job.
        refused: tools that are not to run, by name, with the reason.
    """

    def __init__(
        self,
        store: ImageStore,
        cache: FindingCache,
        options: ServiceOptions,
        clock: Clock = time.monotonic,
        report_job: ReportJob | None = None,
        refused: Mapping[str, str] | None = None,
    ) -> None:
        self.store = store
        self.cache = cache
        self.options = options
        self.computed = 0
        """Requests that a backend has answered, as opposed to the cache."""
        self.loader = Loader(options)
        self._decoded = DecodedImages(store)
        self._timeouts = Timeouts(options.timeout_s, options.queue_s)
        self._clock = clock
        self._report_job = report_job or (lambda *_: nullcontext())
        self._refused = dict(refused or {})
        self._warm: set[tuple[str, str]] = set()
        """Tools and stages that have run once in this process."""
        self._closed = False
        self._loops: dict[asyncio.AbstractEventLoop, LoopWork] = {}
        self._device = DaemonThreads(1, "device", _one_thread)
        self._threads = DaemonThreads(options.threads, "tools", _one_thread)

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
        ready = await self.ready(tool, spent.number)
        card, version, device = ready.card, ready.version, ready.device
        # What is evicted while this call waits is not to be kept by it.
        del ready
        needs = await self._needs((*tool.card.needs, *card.needs), args, images, seed, spent)
        call = Call(tool, code_of(tool), card, version, tuple(images), args, needs, seed, self.options.pictures)
        key = call.key(device)

        def find(watch: Stopwatch) -> asyncio.Future[Finding]:
            return asyncio.create_task(self._find(call, key, watch, spent.number))

        finding = await self._shared(self._in_loop().findings, key, tool.card.name, find, spent)
        return named(finding, images)

    async def ready(self, tool: Tool, number: int | None = None) -> Ready:
        """The backend that answers for this tool, set up on first use and again after it was evicted.

        `number` is that of the call that waits for it (`CallTime.number`).
        """
        name = tool.card.name
        if name in self._refused:
            raise ToolError(self._refused[name])
        if (ready := self.loader.get(name)) is not None:
            return ready

        def load_backend(watch: Stopwatch) -> asyncio.Future[Ready]:
            return self._in_thread(self._device, self._load, tool, watch)

        # Nothing is charged for it, and no watch runs: whoever asks first would pay for everybody.
        return await self._shared(self._in_loop().loading, name, name, load_backend, CallTime(number=number))

    def warm(self) -> None:
        """Nothing: this process is started, and what a tool loads is loaded for the tool that is called."""

    def close(self) -> None:
        """Let the worker threads end; who waits for one that has not begun gets an `Outage`."""
        self._closed = True
        self._device.shutdown(wait=False, cancel_futures=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _shared(
        self,
        table: dict[str, SharedWork[R]],
        key: str,
        name: str,
        start: Callable[[Stopwatch], asyncio.Future[R]],
        spent: CallTime,
    ) -> R:
        """What the work of a key gives, which is started unless it is under way: identical requests wait for the same.

        Raises what the work raises, and as `hybrid.timing.finished`.
        """
        work = table.get(key)
        # What is done is forgotten a turn of the loop later.
        if work is None or work.result.done():
            watch = Stopwatch(self._clock)
            _join(watch, spent)
            work = table[key] = SharedWork(start(watch), watch)
            work.result.add_done_callback(partial(_forget, table, key))
        _join(work.watch, spent)
        return await finished(name, work.result, work.watch, spent, self._timeouts, self._clock)

    def _in_loop(self) -> LoopWork:
        """What is under way in the running event loop: nothing of another one can be waited for here."""
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            self._loops = {other: known for other, known in self._loops.items() if not other.is_closed()}
            self._loops[loop] = LoopWork()
        return self._loops[loop]

    def _in_thread(self, pool: Executor, run: Callable[..., R], *args: Any) -> asyncio.Future[R]:
        if self._closed:
            raise Outage("the tool service is closed")
        try:
            return asyncio.get_running_loop().run_in_executor(pool, run, *args)
        except RuntimeError as error:
            raise Outage(f"no worker thread could be started: {error}") from error

    def _load(self, tool: Tool, *watches: Stopwatch) -> Ready:
        """In the thread of the device: the hash of the code reads files, which the event loop is not to wait for."""
        if (ready := self.loader.get(tool.card.name)) is not None:
            return ready
        with self._report_job(tool.card.name, LOAD, _callers(watches), 0.0), tool_errors():
            code_of(tool)
            return self.loader.load(tool)

    async def _needs(
        self, needs: Sequence[Need], args: Args, images: Sequence[ImageRef], seed: int, spent: CallTime
    ) -> dict[str, tuple[Finding, ...]]:
        found: dict[str, tuple[Finding, ...]] = {}
        for need in needs:
            with tool_errors():
                asked = asked_of(need, args, found)
                if asked is None:
                    continue
                other: Tool = load("tools", need.tool, here=True)
                wanted = other.parse(asked)
            found[need.tool] = tuple(
                await asyncio.gather(*(self.call(other, wanted, (ref,), seed, spent) for ref in images))
            )
        return found

    async def _find(self, call: Call, key: str, watch: Stopwatch, number: int | None) -> Finding:
        if self.cache.folder is not None:
            cached = await asyncio.to_thread(self._cached, key, watch)
            if cached is not None:
                watch.cached = True
                return cached
        lane = self._lane(call)
        async with lane.room:
            computed = await lane.submit(
                self._in_thread(self._threads, self._prepare, call, await self.ready(call.tool, number), watch)
            )
            finding = await self._in_thread(self._threads, self._finish, call, computed)
        self.computed += 1
        return finding

    def _cached(self, key: str, watch: Stopwatch) -> Finding | None:
        with running([watch]):
            return self.cache.get(key)

    def _lane(self, call: Call) -> Lane[PreparedRequest, ComputedRequest]:
        """Where the requests of a tool become batches."""
        tool, lanes = call.tool, self._in_loop().lanes
        if tool.card.name not in lanes:
            pool, workers = (self._device, 1) if call.card.name == "learned" else (self._threads, self.options.threads)

            async def run(batch: Sequence[PreparedRequest]) -> list[ComputedRequest | HybridError]:
                return await self._in_thread(pool, self._compute, tool, batch)

            lanes[tool.card.name] = Lane(call.card.batch, run, coming_s=self.options.coming_s, workers=workers)
        return lanes[tool.card.name]

    def _prepare(self, call: Call, ready: Ready, watch: Stopwatch) -> PreparedRequest:
        with self._timed(call.tool, "prepare", [watch]):
            with _on_disk("read"):
                pixels = tuple(self._decoded.pixels(ref.image) for ref in call.images)
            request = Request(pixels, call.args, call.needs, call.seed)
            with tool_errors():
                return PreparedRequest(request, ready.backend.prepare(request), watch)

    def _compute(self, tool: Tool, batch: Sequence[PreparedRequest]) -> list[ComputedRequest | HybridError]:
        """Compute a batch; what a full GPU cannot take one by one either, the CPU does."""
        # A learned backend may have been evicted, or moved to the CPU, by what this thread ran before.
        ready = self._load(tool, *(one.watch for one in batch))
        found = self._compute_on(ready, tool, batch)
        short = [place for place, one in enumerate(found) if isinstance(one, OutOfMemory)]
        if short and ready.device != CPU:
            moved = self.loader.on_cpu(tool.card.name, ready)
            for place, one in zip(short, self._compute_on(moved, tool, [batch[at] for at in short]), strict=True):
                found[place] = one
        return found

    def _compute_on(
        self, ready: Ready, tool: Tool, batch: Sequence[PreparedRequest]
    ) -> list[ComputedRequest | HybridError]:
        with self._timed(tool, ready.device, [one.watch for one in batch]):
            outputs = compute(ready.backend, [one.inputs for one in batch])
        return [
            output if isinstance(output, HybridError) else ComputedRequest(one, output, ready)
            for one, output in zip(batch, outputs, strict=True)
        ]

    def _finish(self, call: Call, computed: ComputedRequest) -> Finding:
        """The finding, kept in the cache, its pictures in the image store."""
        prepared, ready = computed.prepared, computed.ready
        with self._timed(call.tool, "finish", [prepared.watch]):
            if ready.card.name != call.card.name:
                raise ToolError("the weights of this tool were taken away while it answered")
            with tool_errors():
                given = ready.backend.finish(prepared.request, prepared.inputs, computed.output)
                evidence = checked(given, len(call.images))
            with _on_disk("written"):
                images = tuple(self._stored(picture, call) for picture in evidence.pictures)
                found = (evidence.text, evidence.data, evidence.confidence, ready.card.name, ready.version, images)
                finding = Finding(*found)
                self.cache.put(call.key(ready.device), finding)
            return finding

    def _stored(self, picture: Picture, call: Call) -> ImageRef:
        lossy = call.pictures == "auto" and call.images[picture.of].image.media_type == JPEG
        media_type = JPEG if lossy and max(picture.pixels.shape) <= JPEG_SIDE_PX else PNG
        image = self.store.put_pixels(picture.pixels, media_type)
        return ImageRef("", image, str(picture.of), picture.box, picture.scale)

    @contextmanager
    def _timed(self, tool: Tool, stage: str, watches: Sequence[Stopwatch]) -> Iterator[None]:
        """Time a stage of a tool where it runs. Until it has run once it also loads libraries and fills tables."""
        name, step = tool.card.name, (tool.card.name, stage)
        loads = step not in self._warm
        with (
            self._report_job(name, stage, _callers(watches), 0.0 if loads else 1 / len(watches)),
            running(watches, loads=loads),
        ):
            yield
        self._warm.add(step)


def _join(watch: Stopwatch, spent: CallTime) -> None:
    """A call waits for the work of the watch."""
    if spent.number is not None:
        watch.callers.add(spent.number)


def _callers(watches: Sequence[Stopwatch]) -> tuple[int, ...]:
    """The calls that wait for some work, read in a thread while others may join."""
    return tuple(number for watch in watches for number in tuple(watch.callers))


@contextmanager
def _on_disk(done: str) -> Iterator[None]:
    """A disk that fails is nobody's fault and an `Outage`: the question stays open for the next run."""
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise Outage(f"images and findings cannot be {done}: {where}{error.strerror or error}") from error


def _forget(table: dict[str, SharedWork[R]], key: str, result: asyncio.Future[R]) -> None:
    """Take work that is done out of a table."""
    if key in table and table[key].result is result:
        del table[key]
    # Whoever waited may have gone, and an error that nobody takes is reported.
    if not result.cancelled():
        result.exception()


def _one_thread() -> None:
    """OpenCV's own threads would compete with ours and change rounding with the number of cores."""
    import cv2

    cv2.setNumThreads(1)
