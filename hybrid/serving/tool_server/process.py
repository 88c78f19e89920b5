"""The tool server itself: one worker process with loaded networks, and the connections of the runs that share it.

    asyncio.run(ToolServer(tools, options).serve(listener))

The worker is the same as in a run (`worker.py`). This process passes the requests of all connections on to the worker,
under numbers of its own, and passes the worker's messages back. Each run watches the time of its requests as it does
with its own worker. A worker that crashes, hangs or takes too much memory ends the server; the runs then load what they
need themselves. This process loads no library, so it answers at any time.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hybrid.config import ServiceOptions
from hybrid.core.errors import HybridError, WeightsError
from hybrid.core.images import home
from hybrid.display.notes import tell
from hybrid.plugins.discovery import looked_in
from hybrid.serving.channel import LoopChannel
from hybrid.serving.executor import error_of
from hybrid.serving.jobs import Job, Worker, judge
from hybrid.serving.pipeline import LOAD
from hybrid.serving.protocol import (
    CallFailure,
    Heartbeat,
    JobEnd,
    JobStart,
    LoadRequest,
    LoadResponse,
    Message,
    NeedRequest,
    NeedResponse,
    Response,
    ServedTool,
    ServerFacts,
    Setup,
    ToolRequest,
    ToolResponse,
    WorkerReady,
)
from hybrid.serving.sources import code_of
from hybrid.serving.tool_server.address import is_same_user, log_path
from hybrid.serving.tool_server.facts import environment, versions, weights_facts
from hybrid.serving.worker_process import WorkerProcess
from hybrid.tool import Tool

# Interval in seconds of the checks of the worker.
TICK_S = 1.0
# Seconds that a job continues after its callers have left. The number is practically unlimited, because others may wait
# for the same tool, but finite, because a message to a worker cannot contain infinity.
NO_GRACE_S = 1e9

# The requests that a run may send; a server does not import plug-ins for a run and runs no rules.
Forwarded = LoadRequest | NeedRequest | ToolRequest


class _Client:
    """A connection of a run. `setup` is None until the run uses the server."""

    def __init__(self, sock: socket.socket, server: ToolServer) -> None:
        self.channel = LoopChannel(sock, lambda message: server.take(self, message), lambda: server.leave(self))
        self.setup: Setup | None = None


@dataclass(frozen=True)
class _Pending:
    """A request in the worker, from a client or from the server itself."""

    request: Forwarded
    client: _Client | None = None
    answer: asyncio.Future[Response | CallFailure] | None = None


@dataclass
class ToolServer:
    """A tool server, from start to end.

    Args:
        tools: what to load, in this order.
        options: the weights, the device and the precision.
        idle_s: seconds without a connection after which the server ends; None for never.
    """

    tools: Sequence[Tool]
    options: ServiceOptions
    idle_s: float | None = None
    _loaded: dict[str, ServedTool] = field(default_factory=dict)
    _failed: dict[str, str] = field(default_factory=dict)
    _clients: set[_Client] = field(default_factory=set)
    _pending: dict[int, _Pending] = field(default_factory=dict)
    _numbers: int = 0
    _device_bytes: int = 0
    _auto: str = ""

    async def serve(self, listener: socket.socket) -> str | None:
        """Load the tools and serve until a signal; return why the server ended, None for a signal."""
        self._started, self._used = time.time(), time.monotonic()
        loop = self._loop = asyncio.get_running_loop()
        self._end: asyncio.Future[str | None] = loop.create_future()
        self._ready = asyncio.Event()
        versions()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._finish, None)
        store, findings = (home() / "images").absolute(), (home() / "findings").absolute()
        setup = Setup(tuple(sys.path), looked_in(), store, findings, self.options)
        end_message = "its worker process has ended: {}".format
        self._worker = Worker(WorkerProcess(setup, self._hear, lambda reason: self._finish(end_message(reason))))
        loop.add_reader(listener, self._accept, listener)
        tasks = [asyncio.create_task(work) for work in (self._watch(), self._load_all())]
        try:
            return await self._end
        finally:
            loop.remove_reader(listener)
            for task in tasks:
                task.cancel()
            for client in tuple(self._clients):
                client.channel.close()
            self._worker.process.close()

    def _finish(self, reason: str | None) -> None:
        if not self._end.done():
            self._end.set_result(reason)

    # Loading

    async def _load_all(self) -> None:
        await self._ready.wait()
        for tool in self.tools:
            name = tool.card.name
            tell(f"loading {name}")
            try:
                self._loaded[name] = await self._load(tool)
            except (HybridError, OSError) as error:
                self._failed[name] = str(error)
                tell(f"{name}: {error}")
        if not self._loaded:
            self._finish("no tool could be loaded")

    async def _load(self, tool: Tool) -> ServedTool:
        """Load a tool in the worker. Raises `HybridError` or `OSError`."""
        # Hash before loading, so that a change during loading counts as a change.
        code, weights = await asyncio.to_thread(lambda: (code_of(tool), weights_facts(tool, self.options)))
        if weights is None:
            raise WeightsError("it loads no network")
        answer: asyncio.Future[Response | CallFailure] = self._loop.create_future()
        self._send(_Pending(LoadRequest(0, tool.card.name), answer=answer))
        response = await answer
        if isinstance(response, CallFailure):
            raise error_of(response)
        if not isinstance(response, LoadResponse) or response.answering.backend != "learned":
            raise WeightsError("its weights were not used")
        self._auto = response.auto or self._auto
        place, files, size = weights
        return ServedTool(code, place, files, response.answering, size, loads=1)

    # Clients

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            sock, _ = listener.accept()
            if not is_same_user(sock):
                sock.close()
                tell("refused a connection of another user")
                return
            client = _Client(sock, self)
            self._clients.add(client)
            client.channel.send(self.facts())

    def leave(self, client: _Client) -> None:
        """Forget a client that has disconnected."""
        self._clients.discard(client)
        self._pending = {number: entry for number, entry in self._pending.items() if entry.client is not client}
        self._used = time.monotonic()

    def take(self, client: _Client, message: Message) -> None:
        """Handle a message of a client; disconnect a client that sends an unexpected message."""
        self._used = time.monotonic()
        if isinstance(message, Setup) and client.setup is None:
            client.setup = message
            client.channel.send(WorkerReady())
        elif isinstance(message, Forwarded) and client.setup is not None and message.tool in self._loaded:
            if isinstance(message, ToolRequest) and client.setup.findings is None:
                message = replace(message, key="")
            self._send(_Pending(message, client))
        else:
            client.channel.close()
            self.leave(client)

    def _send(self, pending: _Pending) -> None:
        self._numbers += 1
        self._pending[self._numbers] = pending
        self._worker.process.send(replace(pending.request, number=self._numbers))

    def facts(self) -> ServerFacts:
        """Describe the server as it is now."""
        options = self.options
        waiting = (tool.card.name for tool in self.tools)
        return ServerFacts(
            os.getpid(),
            self._started,
            versions=versions(),
            environment=environment(),
            device=options.device,
            auto=self._auto,
            dtype=options.dtype,
            compiled=options.compiled,
            unchecked=options.unchecked,
            log=log_path(),
            bytes=self._worker.process.resident_bytes() or 0,
            device_bytes=self._device_bytes,
            clients=sum(client.setup is not None for client in self._clients),
            tools=dict(self._loaded),
            loading=tuple(name for name in waiting if name not in self._loaded and name not in self._failed),
            failed=dict(self._failed),
        )

    # The worker

    def _hear(self, message: Message) -> None:
        """Handle a message of the worker: pass it on to the clients that it concerns."""
        worker = self._worker
        worker.silent_s = 0.0
        match message:
            case WorkerReady():
                worker.up = True
                self._ready.set()
            case Heartbeat():
                self._device_bytes = message.device_bytes
                self._broadcast(message)
            case JobStart():
                worker.jobs[message.job] = Job(message, ())
                self._announce(message)
            case JobEnd():
                worker.jobs.pop(message.job, None)
                self._broadcast(message)
            case ToolResponse() | LoadResponse() | NeedResponse() | CallFailure():
                for line in message.notices:
                    tell(line)
                self._answer(message)

    def _broadcast(self, message: Heartbeat | JobEnd) -> None:
        for client in self._clients:
            if client.setup is not None:
                client.channel.send(message)

    def _announce(self, start: JobStart) -> None:
        """Tell each client about a job that runs requests of this client, under the client's own numbers."""
        if start.stage == LOAD and start.tool in self._loaded:
            self._count(start.tool, loads=1)
        by_client: dict[_Client, list[int]] = {}
        for number in start.requests:
            if (entry := self._pending.get(number)) is not None and entry.client is not None:
                by_client.setdefault(entry.client, []).append(entry.request.number)
        for client, numbers in by_client.items():
            client.channel.send(replace(start, requests=tuple(numbers)))

    def _answer(self, response: ToolResponse | LoadResponse | NeedResponse | CallFailure) -> None:
        if (entry := self._pending.pop(response.number, None)) is None:
            return
        if entry.answer is not None and not entry.answer.done():
            entry.answer.set_result(response)
        if entry.client is not None:
            is_hit = isinstance(response, LoadResponse)
            self._count(entry.request.tool, hits=is_hit, requests=isinstance(entry.request, ToolRequest))
            entry.client.channel.send(replace(response, number=entry.request.number))

    def _count(self, tool: str, *, loads: int = 0, hits: int = 0, requests: int = 0) -> None:
        of = self._loaded[tool]
        self._loaded[tool] = replace(of, loads=of.loads + loads, hits=of.hits + hits, requests=of.requests + requests)

    async def _watch(self) -> None:
        """End the server if its worker must be ended, or nobody uses it."""
        options, looked = replace(self.options, grace_s=NO_GRACE_S), time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            passed_s, looked = min(now - looked, 2 * TICK_S), now
            if (end := judge(self._worker, options, passed_s, now)) is not None:
                tools = ", ".join(sorted({job.start.tool for job in end.jobs or ()}))
                self._finish(f"{tools} {end.reason}".strip())
            if self._clients or len(self._loaded) + len(self._failed) < len(self.tools):
                self._used = now
            elif self.idle_s is not None and now - self._used >= self.idle_s:
                self._finish(None)
                tell(f"ends: no connection for {self.idle_s / 60:g} minutes")
