"""Runs tools in threads of this process: loads their backends, and prepares, batches, computes and finishes calls.

    pipeline = ThreadExecutor(cache, options, timed)
    finding, answering = await pipeline.find(call, token)

A call is decoded and prepared in a worker thread, waits in its tool's lane for a batch, is computed, and is finished in
a worker thread. Learned backends compute in one thread per device; each device has its own copy and computes one batch
at a time. Weight-free backends compute in the worker threads, several at once; without batches, all stages of a call
are one job in one thread. `timed` is entered around every stretch of a tool's own code, with the tokens of the calls
that it runs for.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Executor as Threads
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from hybrid.config import CPU, ServiceOptions
from hybrid.core.errors import HybridError, NoBackend, Outage, ToolError, UsageError
from hybrid.core.images import JPEG, JPEG_SIDE_PX, PNG
from hybrid.core.timing import Stopwatch, running
from hybrid.core.types import Finding, ImageRef, Json
from hybrid.serving.batching import Lane
from hybrid.serving.cache import FindingCache
from hybrid.serving.executor import QueuedCall, need_args, needs_of
from hybrid.serving.image_memory import DecodedImages
from hybrid.serving.loader import BackendIdentity, LoadedBackend, Loader
from hybrid.serving.stages import OutOfMemory, checked, compute, tool_errors
from hybrid.serving.threads import DaemonThreads, device_thread, one_opencv_thread
from hybrid.tool import BackendName, Found, Picture, Request, Tool

if TYPE_CHECKING:
    from hybrid.tool import Args

R = TypeVar("R")
W = TypeVar("W")

# The stages that are not part of a call; a failure in one affects every call of the tool.
IMPORT, LOAD = "import", "load"
# Makes the context manager around a job, from the tool, the stage, the tokens of its calls, and whether this stage runs
# for the first time.
Timed: TypeAlias = Callable[[str, str, Sequence[W], bool], AbstractContextManager[None]]


@dataclass(frozen=True)
class PreparedCall(Generic[W]):
    """A decoded request, its prepared inputs, and the token of its call.

    Inputs of equal `form` can share a batch.
    """

    request: Request[Any]
    inputs: Any
    form: Hashable
    token: W


@dataclass(frozen=True)
class ComputedCall(Generic[W]):
    """The output for a prepared call, and the backend that made it, because the tool may move to the CPU meanwhile."""

    prepared: PreparedCall[W]
    output: Any
    ready: LoadedBackend


# The calls computed at once, and the result of each.
Batch: TypeAlias = Sequence[PreparedCall[W]]
Outputs: TypeAlias = list[ComputedCall[W] | HybridError]
Lanes: TypeAlias = dict[str, Lane[PreparedCall[W], ComputedCall[W]]]


class ThreadExecutor(Generic[W]):
    """Loads and runs tools in the threads of this process.

    Args:
        cache: the cache of outputs, and the images.
        options: the permitted code and weights.
        timed: entered around every job.
    """

    def __init__(self, cache: FindingCache, options: ServiceOptions, timed: Timed[W]) -> None:
        self.cache, self.store, self.options = cache, cache.store, options
        self.timeout_s = options.timeout_s
        self.loader = Loader(options)
        self.notices = self.loader.notices
        self._decoded = DecodedImages(cache.store)
        self._timed = timed
        # Tools and stages that have run in this process.
        self._ran: set[tuple[str, str]] = set()
        self._closed = False
        self._lanes: dict[asyncio.AbstractEventLoop, Lanes[W]] = {}
        # The thread of the first device. torch, which determines the device, is imported in this thread.
        self._first = DaemonThreads(1, "device", device_thread)
        self._devices: dict[str, DaemonThreads] = {}
        # Number of batches that a device runs or that wait for it.
        self._busy: Counter[str] = Counter()
        self._threads = DaemonThreads(options.threads, "tools", one_opencv_thread)

    async def load(self, tool: Tool, token: W) -> BackendIdentity:
        """See `Executor.load`."""
        return (await self._ready(tool, token)).answering

    async def need_args(
        self, tool: Tool, backend: BackendName, place: int, args: Args, findings: Found, token: W
    ) -> Mapping[str, Json] | None:
        """See `Executor.need_args`."""
        return await self._in_thread(self._threads, self._need_args, tool, backend, place, args, findings, token)

    async def find(self, call: QueuedCall, token: W) -> tuple[Finding, BackendIdentity]:
        """See `Executor.find`."""
        lane = await self._lane(call)
        # Limit how many calls of one tool wait in the threads ahead of the calls of other tools.
        async with lane.room:
            ready = await self._ready(call.tool, token)
            if call.request.answering.backend != "learned" and _batch_size(call) == 1:
                return await self._in_thread(self._threads, self._answer_alone, call, ready, token)
            prepared = self._in_thread(self._threads, self._prepare, call, ready, token)
            # Drop the reference, so that a waiting call does not keep an evicted backend alive.
            del ready
            computed = await lane.submit(prepared)
            return await self._in_thread(self._threads, self._finish, call, computed)

    def warm(self) -> None:
        """Do nothing: this process is running, and a backend is loaded when its tool is called."""

    def close(self) -> None:
        """Let the threads end; a caller whose work has not started gets an `Outage`."""
        self._closed = True
        for threads in (self._first, *self._devices.values(), self._threads):
            threads.shutdown(wait=False, cancel_futures=True)

    def _in_thread(self, pool: Threads, run: Callable[..., R], *args: Any) -> asyncio.Future[R]:
        if self._closed:
            raise Outage("the tool service is closed")
        try:
            return asyncio.get_running_loop().run_in_executor(pool, run, *args)
        except RuntimeError as error:
            raise Outage(f"no worker thread could be started: {error}") from error

    async def _ready(self, tool: Tool, token: W) -> LoadedBackend:
        if (ready := self.loader.get(tool.card.name)) is not None:
            return ready
        return await self._in_thread(self._first, self._load, tool, [token], None)

    def _load(self, tool: Tool, tokens: Sequence[W], device: str | None) -> LoadedBackend:
        """Load a tool's backend on a device, or on the first; runs in the thread of that device."""
        name = tool.card.name
        if (ready := self.loader.get(name, device)) is not None:
            return ready
        with self.loader.loading:
            if (ready := self.loader.get(name, device)) is not None:
                return ready
            with self._timed(name, LOAD, tokens, True), tool_errors():
                return self.loader.load(tool, device)

    def _need_args(
        self, tool: Tool, backend: BackendName, place: int, args: Args, findings: Found, token: W
    ) -> Mapping[str, Json] | None:
        with self._job(tool, "needs", [token]), tool_errors():
            return need_args(needs_of(tool, backend)[place], args, findings)

    async def _lane(self, call: QueuedCall) -> Lane[PreparedCall[W], ComputedCall[W]]:
        """Return the queue that batches the calls of a tool; there is one per event loop."""
        loop, tool = asyncio.get_running_loop(), call.tool
        learned = call.request.answering.backend == "learned"
        if learned and self.loader.get(tool.card.name) is None:
            # Determine the devices before loading anything; this imports torch in the thread of the first device.
            await self._in_thread(self._first, lambda: self.loader.devices)
        if loop not in self._lanes:
            self._lanes = {other: lanes for other, lanes in self._lanes.items() if not other.is_closed()}
            self._lanes[loop] = {}
        lanes = self._lanes[loop]
        if tool.card.name not in lanes:

            async def run(batch: Batch[W]) -> Outputs[W]:
                if learned:
                    return await self._on_a_device(tool, batch)
                return await self._in_thread(self._threads, self._compute, tool, batch, None)

            workers = len(self.loader.devices) if learned else self.options.threads
            coming_s, form = self.options.coming_s, attrgetter("form")
            lanes[tool.card.name] = Lane(_batch_size(call), run, coming_s=coming_s, workers=workers, form=form)
        return lanes[tool.card.name]

    def _prepare(self, call: QueuedCall, ready: LoadedBackend, token: W) -> PreparedCall[W]:
        with self._job(call.tool, "prepare", [token]):
            return self._decode_and_prepare(call, ready, token)

    def _decode_and_prepare(self, call: QueuedCall, ready: LoadedBackend, token: W) -> PreparedCall[W]:
        with on_disk("read"):
            pixels = tuple(self._decoded.pixels(ref.image) for ref in call.request.images)
        request = Request(pixels, call.args, call.request.needs, call.request.seed)
        with tool_errors():
            inputs = ready.backend.prepare(request)
            return PreparedCall(request, inputs, ready.backend.batch_key(inputs), token)

    def _answer_alone(self, call: QueuedCall, ready: LoadedBackend, token: W) -> tuple[Finding, BackendIdentity]:
        """Run all stages of an unbatched call in one job, as most such calls cost less than two changes of thread."""
        with self._job(call.tool, ready.device, [token]):
            if ready.card.name == "learned":
                raise ToolError("the weights of this tool were installed while it was called")
            prepared = self._decode_and_prepare(call, ready, token)
            (output,) = compute(ready.backend, [prepared.inputs])
            if isinstance(output, HybridError):
                raise output
            return self._finish_and_save(call, ComputedCall(prepared, output, ready))

    async def _on_a_device(self, tool: Tool, batch: Batch[W]) -> Outputs[W]:
        """Compute a batch on the least busy device; calls that do not fit its memory go to the next device."""
        device = min(self.loader.homes(tool.card.name), key=self._busy.__getitem__)
        self._busy[device] += 1
        try:
            first = device == self.loader.devices[0]
            if not first and device not in self._devices:
                self._devices[device] = DaemonThreads(1, f"device_{device}", device_thread)
            thread = self._first if first else self._devices[device]
            outputs = await self._in_thread(thread, self._compute, tool, batch, device)
        finally:
            self._busy[device] -= 1
        short = [place for place, output in enumerate(outputs) if isinstance(output, OutOfMemory)]
        if short and device != CPU:
            new_outputs = await self._on_a_device(tool, [batch[place] for place in short])
            for place, output in zip(short, new_outputs, strict=True):
                outputs[place] = output
        return outputs

    def _compute(self, tool: Tool, batch: Batch[W], device: str | None) -> Outputs[W]:
        """Compute a batch on a device; if even one call alone does not fit, the tool is moved off the device."""
        # Earlier work in this thread may have evicted or moved a learned backend.
        ready = self._load(tool, [call.token for call in batch], device)
        if device is not None and ready.device != device and ready.card.name == "learned":
            return [OutOfMemory(f"{tool.card.name} has moved from {device}") for _ in batch]
        outputs = self._compute_on(ready, tool, batch)
        while short := [place for place, output in enumerate(outputs) if isinstance(output, OutOfMemory)]:
            if ready.device == CPU or not self.loader.make_room(tool.card.name, ready.device):
                break
            for place, output in zip(short, self._compute_on(ready, tool, [batch[at] for at in short]), strict=True):
                outputs[place] = output
        if short and ready.device != CPU:
            self.loader.leave(tool.card.name, ready.device)
        else:
            self.loader.tell_halved(tool.card.name, ready.device)
        return outputs

    def _compute_on(self, ready: LoadedBackend, tool: Tool, batch: Batch[W]) -> Outputs[W]:
        place, form = (tool.card.name, ready.device), batch[0].form
        size = self.loader.most(*place, form) or len(batch)
        outputs: list[Any] = []
        with self._job(tool, ready.device, [call.token for call in batch]):
            for start in range(0, len(batch), size):
                part = [call.inputs for call in batch[start : start + size]]
                outputs += compute(ready.backend, part, partial(self.loader.halve, *place, form))
        pairs = zip(batch, outputs, strict=True)
        return [
            output if isinstance(output, HybridError) else ComputedCall(call, output, ready) for call, output in pairs
        ]

    def _finish(self, call: QueuedCall, computed: ComputedCall[W]) -> tuple[Finding, BackendIdentity]:
        with self._job(call.tool, "finish", [computed.prepared.token]):
            if computed.ready.card.name != call.request.answering.backend:
                raise ToolError("the weights of this tool were removed while it answered")
            return self._finish_and_save(call, computed)

    def _finish_and_save(self, call: QueuedCall, computed: ComputedCall[W]) -> tuple[Finding, BackendIdentity]:
        """Return the tool output, saved in the cache, with its pictures saved in the image store."""
        prepared, ready = computed.prepared, computed.ready
        with tool_errors():
            raw_evidence = ready.backend.finish(prepared.request, prepared.inputs, computed.output)
            evidence = checked(raw_evidence, len(call.request.images), overlays=call.request.overlays)
        with on_disk("written"):
            images = tuple(self._stored(picture, call) for picture in evidence.pictures)
            facts = (evidence.text, evidence.data, evidence.confidence, ready.card.name, ready.version, images)
            finding = Finding(*facts, evidence.places)
            if call.request.key and ready.answering == call.request.answering:
                self.cache.put(call.request.key, finding)
        return finding, ready.answering

    def _stored(self, picture: Picture, call: QueuedCall) -> ImageRef:
        lossy = call.request.pictures == "auto" and call.request.images[picture.of].image.media_type == JPEG
        media_type = JPEG if lossy and max(picture.pixels.shape) <= JPEG_SIDE_PX else PNG
        try:
            image = self.store.put_pixels(picture.pixels, media_type)
        except UsageError as error:
            raise NoBackend(f"{call.tool.card.name}: {error}") from error
        return ImageRef("", image, str(picture.of), picture.box, picture.scale)

    @contextmanager
    def _job(self, tool: Tool, stage: str, tokens: Sequence[W]) -> Iterator[None]:
        """Time a stage of a tool; its first run also loads libraries and fills tables."""
        step = (tool.card.name, stage)
        with self._timed(*step, tokens, step not in self._ran):
            yield
        self._ran.add(step)


def _batch_size(call: QueuedCall) -> int:
    """Return the largest number of calls that the requested backend computes at once."""
    card = call.tool.backend(call.request.answering.backend)
    return 1 if card is None else card.batch


def timed_by_watches(tool: str, stage: str, watches: Sequence[Stopwatch], first: bool) -> AbstractContextManager[None]:
    """Return the `Timed` of a pipeline whose tokens are stopwatches. The time of loading counts for no call."""
    return nullcontext() if stage in (IMPORT, LOAD) else running(watches, loads=first)


@contextmanager
def on_disk(action: str) -> Iterator[None]:
    """Turn a disk error into an `Outage`, because it is not the tool's fault; the question stays open."""
    try:
        yield
    except OSError as error:
        location = f"{error.filename}: " if error.filename else ""
        raise Outage(f"images and findings cannot be {action}: {location}{error.strerror or error}") from error
