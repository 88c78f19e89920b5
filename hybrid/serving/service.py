"""Findings of tools: kept ones from the cache, new ones from an executor, each identical request computed once.

    service = CachedTools(store, cache, ServiceOptions("auto"))
    finding = await service.call(load("tools", "jigsaw"), args, refs)

This is the only place that looks into the cache, asks needed tools first, and joins identical requests. What it asks of
an executor (`hybrid/serving/executor.py`) is complete: threads of this process (`pipeline.py`), or a worker process
that survives tools that hang, crash or leak (`supervisor.py`).
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hybrid.config import CPU, ServiceOptions
from hybrid.core.errors import HybridError, Outage, ToolError
from hybrid.core.images import ImageStore
from hybrid.core.timing import CallTime, Clock, Stopwatch, Timeouts, finished
from hybrid.core.types import Fault, Finding, ImageRef
from hybrid.plugins.registry import load, loaded
from hybrid.serving.cache import FindingCache, key_of, without_overlays
from hybrid.serving.executor import Executor, QueuedCall, need_args, needs_of
from hybrid.serving.loader import BackendIdentity
from hybrid.serving.pipeline import ThreadExecutor, timed_by_watches
from hybrid.serving.protocol import ToolRequest
from hybrid.serving.sources import code_of
from hybrid.serving.stages import tool_errors
from hybrid.serving.supervisor import ProcessExecutor
from hybrid.serving.threads import DaemonThreads
from hybrid.tool import BackendName, Found, Tool

if TYPE_CHECKING:
    from hybrid.tool import Args

R = TypeVar("R")

# How long a look into the cache may take: on a disk that is slower it is not used any more.
LOOK_UP_S = 10.0
# Threads that look into the cache.
LOOKING = 2


@dataclass(frozen=True)
class SharedWork(Generic[R]):
    """Some work that several callers may wait for, and how long it has run."""

    result: asyncio.Future[R]
    watch: Stopwatch


class CachedTools:
    """Gives findings of tools, which an executor runs.

    Args:
        store: the images.
        cache: the findings that are kept.
        options: which code and weights may answer, where, and for how long.
        clock: times what runs.
        executor: runs the tools; by default a worker process where `options.isolated`, else threads of this process.
    """

    def __init__(
        self,
        store: ImageStore,
        cache: FindingCache,
        options: ServiceOptions,
        clock: Clock = time.monotonic,
        executor: Executor | None = None,
    ) -> None:
        self.store = store
        self.cache = cache
        self.options = options
        # Requests that a backend has answered, as opposed to the cache.
        self.computed = 0
        self.executor = executor or (
            ProcessExecutor(cache, options) if options.isolated else ThreadExecutor(cache, options, timed_by_watches)
        )
        self._timeouts = Timeouts(self.executor.timeout_s, options.queue_s)
        self._clock = clock
        # By the name of the tool the backend that answers for it, as far as that is known.
        self._answering: dict[str, BackendIdentity] = {}
        self._closed = self._slow = False
        self._numbers = itertools.count()
        # By event loop the work under way: backends by the tool's name, findings by their key.
        self._loops: dict[asyncio.AbstractEventLoop, dict[str, SharedWork[Any]]] = {}
        self._threads = DaemonThreads(LOOKING, "cache")

    @property
    def notices(self) -> list[str]:
        """One line for each backend that could not be had or moved, and each tool given up, as shown to the user."""
        return self.executor.notices

    async def call(
        self,
        tool: Tool,
        args: Args,
        images: Sequence[ImageRef],
        seed: int = 0,
        spent: CallTime | None = None,
        *,
        overlays: bool = True,
    ) -> Finding:
        """The finding of a call. Its pictures have no name yet; their `parent` is the input that they show.

        Args:
            tool: which specialist.
            args: its typed arguments.
            images: what it looks at.
            seed: for tools that draw lots.
            spent: the time that the caller may take, and takes, running; needed tools are included.
            overlays: whether they are looked at; else none is drawn. Derived images are always made.

        Raises:
            ToolError: the tool cannot answer this request, runs for too long, or ends its process.
            Outage: the tool did not get to run: the service is closed, or the queue does not move.
            WeightsError: `backend="learned"` was asked for and its weights cannot be used.
        """
        spent = spent or CallTime()
        if self._closed:
            raise Outage("the tool service is closed")
        name, (fewest, most) = tool.card.name, tool.card.images
        if not fewest <= len(images) <= most:
            expected = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            raise ToolError(f"{name} takes {expected} images, not {len(images)}", Fault.BAD_ARGUMENTS)
        answering = await self._answering_for(tool)
        needs = await self._needs(tool, answering.backend, args, images, seed, spent)
        json_args = args.model_dump(mode="json")
        computed_by = (answering.backend, answering.version, answering.device, answering.precision)
        looked_at = [ref.image.sha256 for ref in images]
        rests_on = [[need, part.backend, part.version] for need, parts in needs.items() for part in parts]
        uses_seed = tool.card.uses_seed or any(loaded("tools", need).card.uses_seed for need in needs)
        key = key_of(
            name, code_of(tool), *computed_by, json_args, uses_seed and seed, self.options.pictures, looked_at, rests_on
        )
        finding = await self._cached(key, overlays)
        key = key if overlays else without_overlays(key)
        request = ToolRequest(0, name, answering, json_args, tuple(images), needs, seed, key, overlays)
        # A look that finds nothing ends here before work that has kept its finding since then leaves the table.
        if finding is not None:
            spent.cached = True
        else:
            make = partial(self._compute, QueuedCall(tool, args, request))
            finding = await self._shared(key, name, make, spent)
        refs = tuple(replace(ref, parent=images[int(ref.parent or 0)].name) for ref in finding.images)
        return replace(finding, images=refs)

    def warm(self) -> None:
        """Start now what takes long to start and costs nothing to have: a call is likely to come."""
        if not self._closed:
            self.executor.warm()

    def close(self) -> None:
        """Answer no more calls; a caller that still waits gets an `Outage`."""
        self._closed = True
        self.executor.close()
        self._threads.shutdown(wait=False)

    async def _answering_for(self, tool: Tool) -> BackendIdentity:
        """The backend that answers for a tool. Of learned weights only the process that has loaded them can say."""
        name, classical = tool.card.name, tool.backend("classical")
        if (backend := self._answering.get(name)) is not None:
            return backend
        # The hash of the code reads files, which the event loop is not to wait for.
        await self._in_thread(tool_errors()(code_of), tool)
        if classical is not None and (self.options.backend == "classical" or tool.backend("learned") is None):
            return self._answering.setdefault(name, BackendIdentity("classical", classical.version, CPU))
        # It is charged to no call: the first to ask would pay for all others.
        make = partial(self.executor.load, tool)
        return self._answering.setdefault(name, await self._shared(f"load {name}", name, make, CallTime()))

    async def _needs(
        self, tool: Tool, backend: BackendName, args: Args, images: Sequence[ImageRef], seed: int, spent: CallTime
    ) -> Found:
        """For each tool that is needed its findings, one for each image."""
        findings: dict[str, tuple[Finding, ...]] = {}
        for place, need in enumerate(needs_of(tool, backend)):
            if tool.code:
                make = partial(self.executor.need_args, tool, backend, place, args, dict(findings))
                # No two callers wait for one of these.
                need_arguments = await self._shared(f"need {next(self._numbers)}", tool.card.name, make, spent)
            else:
                with tool_errors():
                    need_arguments = need_args(need, args, findings)
            if need_arguments is None:
                continue
            in_process = not self.options.isolated
            imported = partial(tool_errors()(load), "tools", need.tool, in_process=in_process)
            other: Tool = loaded("tools", need.tool) or await self._in_thread(imported)
            parsed_args = other.parse(need_arguments)
            calls = (self.call(other, parsed_args, (ref,), seed, spent, overlays=False) for ref in images)
            findings[need.tool] = tuple(await asyncio.gather(*calls))
        return findings

    async def _cached(self, key: str, overlays: bool) -> Finding | None:
        if self.cache.folder is None or self._slow:
            return None
        try:
            # No `wait_for`, which comes back a turn of the event loop later.
            async with asyncio.timeout(LOOK_UP_S):
                return await self._in_thread(self._find_cached, key, overlays)
        except TimeoutError:
            # Each of the others would wait as long.
            if not self._slow:
                silent = f"the cache of findings did not answer within {LOOK_UP_S:g} s"
                self.notices.append(f"{silent} and is not read again")
            self._slow = True
            return None

    def _find_cached(self, key: str, overlays: bool) -> Finding | None:
        if not overlays and (plain := self.cache.get(without_overlays(key))) is not None:
            return plain
        cached = self.cache.get(key)
        if overlays or cached is None:
            return cached
        return replace(cached, images=tuple(ref for ref in cached.images if ref.box is not None))

    async def _compute(self, call: QueuedCall, watch: Stopwatch) -> Finding:
        name = call.tool.card.name
        try:
            finding, answering = await self.executor.find(call, watch)
        except HybridError:
            # Its weights may be others now.
            self._answering.pop(name, None)
            raise
        self._answering[name] = answering
        self.computed += 1
        return finding

    async def _shared(
        self, key: str, name: str, make: Callable[[Stopwatch], Coroutine[Any, Any, R]], spent: CallTime
    ) -> R:
        """Return the result of the work of a key; start it unless it runs. Raises as `hybrid.core.timing.finished`.

        The work goes on when this caller is cancelled or gives up.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            # Futures of another event loop cannot be awaited here.
            self._loops = {other: state for other, state in self._loops.items() if not other.is_closed()}
            self._loops[loop] = {}
        table = self._loops[loop]
        work: SharedWork[R] | None = table.get(key)
        # Work that is done is forgotten a turn of the loop later.
        if work is None or work.result.done():
            watch = Stopwatch(self._clock)
            work = table[key] = SharedWork(asyncio.create_task(make(watch)), watch)
            work.result.add_done_callback(partial(_forget, table, key))
        return await finished(name, work.result, work.watch, spent, self._timeouts, self._clock)

    def _in_thread(self, run: Callable[..., R], *args: Any) -> asyncio.Future[R]:
        try:
            return asyncio.get_running_loop().run_in_executor(self._threads, run, *args)
        except RuntimeError as error:
            raise Outage(f"the tool service is closed, or no thread can be started: {error}") from error


def _forget(table: dict[str, SharedWork[R]], key: str, result: asyncio.Future[R]) -> None:
    """Take work that is done out of a table."""
    if key in table and table[key].result is result:
        del table[key]
    # The callers may have gone, and an error that is never retrieved is reported.
    if not result.cancelled():
        result.exception()
