"""Tool outputs: cached ones, or new ones from an executor, with each identical request computed once.

    service = CachedTools(store, cache, ServiceOptions("auto"))
    finding = await service.call(load("tools", "jigsaw"), args, refs)

Only this module reads the cache, calls needed tools first, and joins identical requests. An executor
(`hybrid/serving/executor.py`) gets complete requests: threads of this process (`pipeline.py`), or a worker process that
survives tools that hang, crash or leak (`supervisor.py`).

`ForeignTools` are the tools of other programs in a run, with the service that calls them; plug-ins of the entry-point
group `hybrid.foreign_tools` provide them.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from hybrid.config import CPU, ServiceOptions
from hybrid.core.errors import HybridError, Outage, ToolError
from hybrid.core.images import ImageStore
from hybrid.core.timing import CallTime, Clock, Stopwatch, Timeouts, finished
from hybrid.core.types import Fault, Finding, ImageRef, Json
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
from hybrid.serving.tool_server.attached import SharedTools
from hybrid.tool import BackendName, Found, Tool

if TYPE_CHECKING:
    from hybrid.tool import Args


R = TypeVar("R")

# Maximum seconds of a cache lookup; on a slower disk the cache is no longer read.
LOOK_UP_S = 10.0
# Number of threads for cache lookups.
LOOKING = 2


@dataclass(frozen=True)
class SharedWork(Generic[R]):
    """Work that several callers may wait for, and its running time."""

    result: asyncio.Future[R]
    watch: Stopwatch


def _used_seed(tool: Tool, needs: Collection[str], seed: int) -> int | None:
    """Return the seed if the output of a tool, or of one that it needs, depends on it."""
    parts = (tool, *(loaded("tools", need) for need in needs))
    return seed if any(part.card.uses_seed for part in parts) else None


def _request_of(
    tool: Tool, answering: BackendIdentity, args: Args, images: Sequence[ImageRef], needs: Found
) -> ToolRequest:
    """Return a request without its seed and its key."""
    return ToolRequest(
        0,
        tool.card.name,
        answering,
        args=args.model_dump(mode="json"),
        images=tuple(images),
        needs=needs,
        seed=0,
        key="",
    )


def _key_of(tool: Tool, request: ToolRequest) -> str:
    """Return the key of the output with overlays, from everything that affects it."""
    by, needs = request.answering, request.needs
    computed_by = (by.backend, by.version, by.device, by.precision)
    made_with = (_used_seed(tool, needs, request.seed), request.pictures)
    looked_at = [ref.image.sha256 for ref in request.images]
    rests_on = [[need, part.backend, part.version] for need, parts in needs.items() for part in parts]
    return key_of(request.tool, code_of(tool), *computed_by, request.args, *made_with, looked_at, rests_on)


class CachedTools:
    """Provides tool outputs, using an executor.

    Args:
        store: the images.
        cache: the cached outputs.
        options: the permitted code and weights, devices and time limits.
        clock: measures running time.
        executor: runs the tools; by default a worker process if `options.isolated`, else threads of this process.
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
        # Number of requests answered by a backend instead of the cache.
        self.computed = 0
        self.executor = executor or (
            ProcessExecutor(cache, options) if options.isolated else ThreadExecutor(cache, options, timed_by_watches)
        )
        # Tools that a tool server has loaded run there, unless the caller has chosen an executor.
        self._runner: Executor = executor or SharedTools(self.executor, cache, options)
        self._timeouts = Timeouts(self.executor.timeout_s, options.queue_s)
        self._clock = clock
        # The active backend by tool name, as far as known.
        self._answering: dict[str, BackendIdentity] = {}
        self._closed = self._slow = False
        self._numbers = itertools.count()
        # By event loop, the work in progress: backends by the tool's name, outputs by their key.
        self._loops: dict[asyncio.AbstractEventLoop, dict[str, SharedWork[Any]]] = {}
        self._threads = DaemonThreads(LOOKING, "cache")

    @property
    def notices(self) -> list[str]:
        """One line for the user per backend that was unavailable or moved, and per tool that was given up."""
        return self.executor.notices

    @property
    def served(self) -> frozenset[str]:
        """The tools for which a tool server has answered."""
        return self._runner.served if isinstance(self._runner, SharedTools) else frozenset()

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
        """Return the output of a call. Its pictures have no names yet; their `parent` is the input that they show.

        Args:
            tool: the tool.
            args: its typed arguments.
            images: its images.
            seed: for tools with randomness.
            spent: limit and record of the caller's running time, including needed tools.
            overlays: whether to draw overlays; derived images are always made.

        Raises:
            ToolError: the tool cannot answer this request, runs too long, or ends its process.
            Outage: the tool was not run: the service is closed, or the queue does not move.
            WeightsError: `backend="learned"` was requested and its weights are unusable.
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
        request = _request_of(tool, answering, args, images, needs)
        request = replace(request, seed=seed, overlays=overlays, pictures=self.options.pictures)
        key = _key_of(tool, request)
        finding = await self._cached(key, overlays)
        key = key if overlays else without_overlays(key)
        # Do not await before `_shared`: work that cached its output after this lookup may leave the table at any await.
        if finding is not None:
            spent.cached = True
        else:
            make = partial(self._compute, QueuedCall(tool, args, replace(request, key=key)))
            finding = await self._shared(key, name, make, spent)
        refs = tuple(replace(ref, parent=images[int(ref.parent or 0)].name) for ref in finding.images)
        return replace(finding, images=refs)

    def warm(self) -> None:
        """Start whatever takes long to start and costs nothing while idle, because a call is likely."""
        if not self._closed:
            self._runner.warm()

    def close(self) -> None:
        """Stop answering calls; a caller that still waits gets an `Outage`."""
        self._closed = True
        self._runner.close()
        self._threads.shutdown(wait=False)

    async def _answering_for(self, tool: Tool) -> BackendIdentity:
        """Return the active backend of a tool. Only the process that loads learned weights knows their version."""
        name, classical = tool.card.name, tool.backend("classical")
        if (backend := self._answering.get(name)) is not None:
            return backend
        # The hash of the code reads files, so it runs in a thread.
        await self._in_thread(tool_errors()(code_of), tool)
        if classical is not None and (self.options.backend == "classical" or tool.backend("learned") is None):
            return self._answering.setdefault(name, BackendIdentity("classical", classical.version, CPU))
        # The time of loading counts for no call, because the first caller would pay for all other callers.
        make = partial(self._runner.load, tool)
        return self._answering.setdefault(name, await self._shared(f"load {name}", name, make, CallTime()))

    async def _needs(
        self, tool: Tool, backend: BackendName, args: Args, images: Sequence[ImageRef], seed: int, spent: CallTime
    ) -> Found:
        """Return the outputs of each needed tool, one per image."""
        findings: dict[str, tuple[Finding, ...]] = {}
        for place, need in enumerate(needs_of(tool, backend)):
            if tool.code:
                make = partial(self._runner.need_args, tool, backend, place, args, dict(findings))
                # The number makes the key unique, because this work is not shared between callers.
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
            # `asyncio.wait_for` would return one turn of the event loop later.
            async with asyncio.timeout(LOOK_UP_S):
                return await self._in_thread(self._find_cached, key, overlays)
        except TimeoutError:
            # Give up the cache, because each further lookup would wait as long.
            if not self._slow:
                silent = f"the tool cache did not answer within {LOOK_UP_S:g} s"
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
            finding, answering = await self._runner.find(call, watch)
        except HybridError:
            # Forget the tool's backend, because the weights may have changed.
            self._answering.pop(name, None)
            raise
        self._answering[name] = answering
        self.computed += 1
        return finding

    async def _shared(
        self, key: str, name: str, make: Callable[[Stopwatch], Coroutine[Any, Any, R]], spent: CallTime
    ) -> R:
        """Return the result of the work for a key, starting it if necessary. Raises as `hybrid.core.timing.finished`.

        The work continues if this caller is cancelled or gives up.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            # Futures of another event loop cannot be awaited here.
            self._loops = {other: state for other, state in self._loops.items() if not other.is_closed()}
            self._loops[loop] = {}
        table = self._loops[loop]
        work: SharedWork[R] | None = table.get(key)
        # Finished work is removed one turn of the event loop later.
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
    """Remove finished work from a table."""
    if key in table and table[key].result is result:
        del table[key]
    # Retrieve the error, because asyncio reports it otherwise and no caller may be left.
    if not result.cancelled():
        result.exception()


# Entry-point group of functions that return the `ForeignTools` of the servers named by an option.
GROUP: Final = "hybrid.foreign_tools"


@dataclass(frozen=True)
class ForeignServer:
    """An external server: its name in the run, its address without secrets, and the title and version it reports."""

    name: str
    address: str
    title: str
    version: str

    @property
    def about(self) -> str:
        """Title and version, in the form used in the manifest and in tool outputs."""
        return f"{self.title} {self.version}".strip()


@dataclass(frozen=True)
class ForeignTool:
    """A tool of an external server. `code` is the hex sha256 of its description, because its code is not available."""

    server: ForeignServer
    tool: Tool
    backend: str
    code: str


@dataclass(frozen=True)
class ForeignTools:
    """The foreign servers of a run, their tools by name, and the reasons why tools are not offered, by name."""

    servers: tuple[ForeignServer, ...] = ()
    tools: Mapping[str, ForeignTool] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    # Creates the service that runs these tools and the built-in ones.
    runner: Callable[[ImageStore, FindingCache, ServiceOptions], CachedTools] = CachedTools

    def as_json(self, used: Collection[str]) -> list[Json]:
        """Return the servers of the tools in `used` as in the manifest, with the hash of each of these tools."""
        rows: list[Json] = []
        for server in self.servers:
            tools = {name: tool.code for name, tool in self.tools.items() if name in used and tool.server is server}
            facts = {"prefix": server.name, "name": server.title, "version": server.version, "address": server.address}
            rows += [{**facts, "tools": tools}] if tools else []
        return rows
