"""The worker process of a run's tools: a `ToolService` that is asked over a socket and can be killed.

    python -P -m hybrid.serving.worker FD

FD is one end of a socket pair (`hybrid/serving/channel.py`). The process ends with the other side; an interrupt from
the terminal is the other side's to answer. What a tool prints goes to stderr.
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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from hybrid.errors import HybridError, ToolError, UsageError
from hybrid.images import ImageStore
from hybrid.registry import load, look_in
from hybrid.serving.cache import FindingCache
from hybrid.serving.channel import (
    Alive,
    Answered,
    Asked,
    Began,
    Describe,
    Described,
    Ended,
    Failed,
    Loaded,
    Noticed,
    Setup,
    ThreadChannel,
    Up,
)
from hybrid.serving.described import description_of
from hybrid.serving.loader import Answering
from hybrid.serving.service import IMPORT, ToolService
from hybrid.serving.sources import code_of
from hybrid.serving.stages import tool_errors
from hybrid.timing import CallTime
from hybrid.tool import Tool
from hybrid.types import Fault, Finding

SIGNS = 8
"""Signs of life within the time that a worker may be silent."""
LIKELY_VICTIM = 500
"""Added to the score by which Linux chooses a process to kill when memory ends: this one before the run."""
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until the other side is gone."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    sock.set_inheritable(False)
    _become_a_worker()
    threading.Thread(target=_end_with, args=(sock,), name="end", daemon=True).start()
    channel = ThreadChannel(sock)
    setup = channel.first()
    if not isinstance(setup, Setup):
        raise SystemExit("the first message is no setup")
    sys.path[:] = setup.modules
    look_in("tools", setup.tools)
    _load_libraries()
    asyncio.run(_serve(sock, channel, setup))


def _become_a_worker() -> None:
    """What a process should be that may crash, hang or be killed at any time."""
    import resource

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable(all_threads=False)
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if sys.platform == "linux":
        import ctypes

        # The end of the socket is heard by a thread, which a tool that holds the interpreter does not let run.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(str(LIKELY_VICTIM))


def _load_libraries() -> None:
    """What every request needs: else the first one would seem to take as long as that."""
    import cv2
    from PIL import Image

    cv2.setNumThreads(1)
    Image.preinit()


def _end_with(sock: socket.socket) -> None:
    """End when the other side is gone: whatever still runs, nobody will hear of it."""
    poll = select.poll()
    poll.register(sock, 0)
    poll.poll()
    os._exit(0)


class _Reports:
    """Says of every job that it begins and ends, from the thread that does it: a tool may stop all others."""

    def __init__(self, channel: ThreadChannel) -> None:
        self._channel = channel
        self._numbers = itertools.count(1)

    @contextmanager
    def job(self, tool: str, stage: str, calls: Iterable[int], rate: float) -> Iterator[None]:
        """Around a job: see `hybrid.serving.service.ReportJob`."""
        number = next(self._numbers)
        self._channel.send(Began(number, tool, stage, tuple(calls), rate, time.monotonic()))
        try:
            yield
        finally:
            self._channel.send(Ended(number))


async def _serve(sock: socket.socket, channel: ThreadChannel, setup: Setup) -> None:
    store = ImageStore(setup.images)
    reports = _Reports(channel)
    # How long anything may run is for the other side to say, which can end it.
    options = replace(setup.options, timeout_s=float("inf"))
    cache = FindingCache(setup.findings, store)
    service = ToolService(store, cache, options, report_job=reports.job, refused=setup.refused)
    desk = _Desk(channel, service, reports)

    def listen() -> None:
        try:
            for message in channel.waiting():
                if isinstance(message, Asked | Describe):
                    desk.take(message)
        except EOFError:
            os._exit(0)

    asyncio.get_running_loop().add_reader(sock, listen)
    channel.send(Up())
    while True:
        await asyncio.sleep(setup.options.silence_s / SIGNS)
        channel.send(Alive())


class _Desk:
    """Answers calls, each in a task of its own."""

    def __init__(self, channel: ThreadChannel, service: ToolService, reports: _Reports) -> None:
        self._channel, self._service, self._reports = channel, service, reports
        self._tools: dict[str, Tool] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._noticed = 0
        self._loaded: dict[str, Answering] = {}

    def take(self, asked: Asked | Describe) -> None:
        """Begin to answer a call."""
        task = asyncio.create_task(self._answer(asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, asked: Asked | Describe) -> None:
        spent = CallTime(asked.left if isinstance(asked, Asked) else None, number=asked.call)
        try:
            if isinstance(asked, Describe):
                self._channel.send(await asyncio.to_thread(self._described, asked))
                return
            finding = await self._find(asked, spent)
            self._say_news()
            self._channel.send(Answered(asked.call, finding, spent.busy, self._service.computed, spent.cached))
        except Exception as error:
            self._say_news()
            self._channel.send(_failed(asked.call, error, spent.busy))

    async def _find(self, asked: Asked, spent: CallTime) -> Finding:
        if asked.tool not in self._tools:
            # Its import is code of its own, which may take long or never end.
            self._tools[asked.tool] = await asyncio.to_thread(self._import, asked)
        tool = self._tools[asked.tool]
        with tool_errors():
            args = tool.parse(asked.args)
        return await self._service.call(tool, args, asked.images, asked.seed, spent)

    def _import(self, asked: Asked) -> Tool:
        with self._imports(asked):
            try:
                return cast(Tool, load("tools", asked.tool))
            except UsageError as error:
                # What its own modules raise is the tool's error, and none of the run.
                raise (error.__cause__ or error) from None

    def _described(self, asked: Describe) -> Described:
        with self._imports(asked):
            tool: Tool = load("tools", asked.tool)
            return description_of(asked.call, tool, code_of(tool))

    @contextmanager
    def _imports(self, asked: Asked | Describe) -> Iterator[None]:
        with self._reports.job(asked.tool, IMPORT, (asked.call,), 0.0), tool_errors():
            yield

    def _say_news(self) -> None:
        """What is to be known before the answer: notices for the user, and which backends answer."""
        new = self._service.notices[self._noticed :]
        self._noticed += len(new)
        for line in new:
            self._channel.send(Noticed(line))
        for tool, answering in self._service.loader.answering.items():
            if self._loaded.get(tool) != answering:
                self._loaded[tool] = answering
                self._channel.send(Loaded(tool, answering))


def _failed(call: int, error: Exception, busy: float) -> Failed:
    fault = error.fault if isinstance(error, ToolError) else Fault.TOOL_ERROR
    known = isinstance(error, HybridError)
    words = str(error) if known else f"{type(error).__name__}: {error}"
    trace = getattr(error, "trace", "").encode("utf-8", "replace").decode()
    told = words.encode("utf-8", "replace").decode()
    return Failed(call, type(error).__name__ if known else "", told, fault, busy, trace)


if __name__ == "__main__":
    main()
