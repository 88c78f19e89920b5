"""The worker process of a run's tools: a `ThreadExecutor` for requests from a socket. It can be killed at any time.

    python -P -m hybrid.serving.worker FD

FD is one end of a socket pair (`hybrid/serving/channel.py`). The process ends when the other end of its channel closes.
The process at that end also handles terminal interrupts. Anything that a tool prints goes to stderr.
"""

from __future__ import annotations

import asyncio
import faulthandler
import itertools
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.plugins.discovery import TOOLS, look_in
from hybrid.plugins.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.serving.channel import ThreadChannel
from hybrid.serving.described import description_of
from hybrid.serving.executor import QueuedCall, failure_of
from hybrid.serving.loader import auto_devices
from hybrid.serving.pipeline import IMPORT, ThreadExecutor
from hybrid.serving.protocol import (
    DescribeRequest,
    Heartbeat,
    ImportResponse,
    JobEnd,
    JobStart,
    LoadRequest,
    LoadResponse,
    NeedRequest,
    NeedResponse,
    Request,
    Response,
    RuleRequest,
    Setup,
    ToolRequest,
    ToolResponse,
    WorkerReady,
)
from hybrid.serving.rules import next_step
from hybrid.serving.sources import code_of
from hybrid.serving.stages import DeviceLost, tool_errors
from hybrid.serving.threads import keep_freed_memory, one_opencv_thread
from hybrid.serving.worker_process import end_with_parent
from hybrid.tool import Tool

# Exit code after a failed kernel: this process can no longer use the device, but the next process can.
DEVICE_LOST = 70
# Exit code if a tool closed file descriptors of the worker.
DESCRIPTORS_LOST = 71
# Number of heartbeats within the permitted silent time.
SIGNS = 8
# Added to the score by which Linux selects a process to kill when memory is exhausted, so that this process dies first.
LIKELY_VICTIM = 500


def main() -> None:
    """Serve until the other side is gone."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    sock.set_inheritable(False)
    # Prepare a process that may crash, hang or be killed at any time.
    import resource

    # A terminal signals all processes of a run; the run decides when its workers end.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    faulthandler.enable(all_threads=False)
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    keep_freed_memory()
    # Needed because a tool that holds the interpreter lock blocks the thread that watches the socket.
    end_with_parent()
    # Only Linux has this file.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(LIKELY_VICTIM))
    threading.Thread(target=_end_with, args=(sock,), name="end", daemon=True).start()
    channel = ThreadChannel(sock)
    setup = channel.first()
    if not isinstance(setup, Setup):
        raise SystemExit("the first message is not a setup")
    sys.path[:] = setup.modules
    for package, folders in setup.folders.items():
        look_in(package, folders)
    load_libraries()
    try:
        asyncio.run(_serve(sock, channel, setup))
    except OSError as error:
        # The tool closed the selector's descriptor. Exit at once, because an orderly end would wait for threads of
        # tools.
        _end_without_descriptors(str(error))


def load_libraries() -> None:
    """Import what every request needs, so that the time of these imports is not counted for the first request."""
    from PIL import Image

    one_opencv_thread()
    Image.preinit()


def _end_with(sock: socket.socket) -> None:
    """End the process when the other side is gone, even if work is still running."""
    poll = select.poll()
    poll.register(sock, 0)
    poll.poll()
    os._exit(0)


def _end_without_descriptors(tool: str) -> NoReturn:
    # The closed descriptors may include stderr.
    with suppress(OSError):
        sys.stderr.write(f"{tool}: descriptors of the worker process were closed\n")
    os._exit(DESCRIPTORS_LOST)


class JobReports:
    """Reports the start and end of each job, from the job's own thread, because a tool may block all other threads."""

    def __init__(self, channel: ThreadChannel, sock: socket.socket) -> None:
        self._channel, self._descriptor = channel, sock.fileno()
        self._file = _file_at(self._descriptor)
        self._numbers = itertools.count(1)

    @contextmanager
    def timed(self, tool: str, stage: str, requests: Sequence[int], first: bool) -> Iterator[None]:
        """Return the `Timed` of a pipeline whose tokens are request numbers."""
        job = next(self._numbers)
        self._channel.send(JobStart(job, tool, stage=stage, requests=tuple(requests), first=first, at=time.monotonic()))
        try:
            yield
        except DeviceLost as error:
            # Exit while the job is running, so that the run knows which calls it contained.
            sys.stderr.write(f"{tool}: {error}\n")
            os._exit(DEVICE_LOST)
        finally:
            # Without its socket, the process could not report and would count as hanging.
            if _file_at(self._descriptor) != self._file:
                _end_without_descriptors(tool)
            self._channel.send(JobEnd(job, time.monotonic()))


def _file_at(descriptor: int) -> tuple[int, int] | None:
    """Return device and inode of an open file; None for a closed descriptor."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


async def _serve(sock: socket.socket, channel: ThreadChannel, setup: Setup) -> None:
    reports = JobReports(channel, sock)
    cache = FindingCache(setup.findings, ImageStore(setup.images))
    handler = RequestHandler(channel, ThreadExecutor(cache, setup.options, reports.timed), reports)

    def listen() -> None:
        try:
            for message in channel.waiting():
                if not isinstance(message, Setup):
                    handler.start_answer(cast("Request", message))
        except EOFError:
            os._exit(0)

    asyncio.get_running_loop().add_reader(sock, listen)
    channel.send(WorkerReady())
    while True:
        await asyncio.sleep(setup.options.silence_s / SIGNS)
        channel.send(Heartbeat(_device_bytes()))


def _device_bytes() -> int:
    """Return the GPU memory that torch holds, in bytes; 0 while another thread imports torch."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        return sum(map(cuda.memory_reserved, range(cuda.device_count()))) if cuda.is_initialized() else 0
    except AttributeError:
        return 0


class RequestHandler:
    """Answers requests, each in a separate task."""

    def __init__(self, channel: ThreadChannel, pipeline: ThreadExecutor[int], reports: JobReports) -> None:
        self._channel, self._pipeline, self._reports = channel, pipeline, reports
        self._tools: dict[str, Tool] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._noticed = 0

    def start_answer(self, request: Request) -> None:
        """Start answering a request."""
        task = asyncio.create_task(self._answer(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: Request) -> None:
        try:
            response = replace(await self._response(request), notices=self._new_notices())
        except Exception as error:
            self._channel.send(failure_of(request.number, error, self._new_notices()))
        else:
            self._channel.send(response)

    async def _response(self, request: Request) -> Response:
        number, pipeline = request.number, self._pipeline
        if isinstance(request, DescribeRequest):
            return await asyncio.to_thread(self._described, request)
        if request.tool not in self._tools:
            # Import in a thread, because this runs the plug-in's own code, which may take long or never end.
            self._tools[request.tool] = await asyncio.to_thread(self._import, request)
        tool = self._tools[request.tool]
        match request:
            case LoadRequest():
                answering = await pipeline.load(tool, number)
                # Another thread may be importing torch, so use torch only once a network is loaded.
                has_torch = answering.backend == "learned" and "torch" in sys.modules
                return LoadResponse(number, answering, auto=",".join(auto_devices()) if has_torch else "")
            case NeedRequest(backend=backend, place=place, findings=findings):
                with tool_errors():
                    args = tool.parse(request.args)
                return NeedResponse(number, await pipeline.need_args(tool, backend, place, args, findings, number))
            case RuleRequest():
                return await asyncio.to_thread(self._ruled, tool, request)
            case ToolRequest():
                with tool_errors():
                    args = tool.parse(request.args)
                return ToolResponse(number, *await pipeline.find(QueuedCall(tool, args, request), number))

    def _import(self, request: Request) -> Tool:
        with self._reports.timed(request.tool, IMPORT, (request.number,), True), tool_errors():
            try:
                return cast(Tool, load("tools", request.tool))
            except UsageError as error:
                # An import error inside the tool's own modules is a fault of the tool, not of the run.
                raise (error.__cause__ or error) from None

    def _described(self, request: DescribeRequest) -> Response:
        with self._reports.timed(request.tool, IMPORT, (request.number,), True), tool_errors():
            plugin: Any = load(request.package, request.tool)
            if request.package != TOOLS:
                return ImportResponse(request.number)
            return description_of(request.number, plugin, code_of(plugin))

    def _ruled(self, tool: Tool, request: RuleRequest) -> Response:
        with self._reports.timed(request.tool, "rule", (request.number,), False), tool_errors():
            return next_step(tool.rules[request.route], request)

    def _new_notices(self) -> tuple[str, ...]:
        new = tuple(self._pipeline.notices[self._noticed :])
        self._noticed += len(new)
        return new


if __name__ == "__main__":
    main()
