"""The tool server from a run's side: an `Executor` that uses it for matching tools, and another executor for the rest.

    executor = SharedTools(ProcessExecutor(cache, options), cache, options)

A run looks for the server when a tool with weights is first loaded. If the server is lost, its requests run again in
the other executor, so that its end costs the time to reload tools, but no answer. If a run cannot use the server, the
user gets the reason once.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from hybrid.config import ServiceOptions
from hybrid.core.errors import Outage, WeightsError
from hybrid.core.images import home
from hybrid.core.timing import Stopwatch
from hybrid.core.types import Finding, Json
from hybrid.plugins.registry import loaded
from hybrid.serving.cache import FindingCache
from hybrid.serving.channel import LoopChannel
from hybrid.serving.executor import Executor, QueuedCall
from hybrid.serving.loader import BackendIdentity
from hybrid.serving.protocol import Message, ServerFacts, Setup, ToWorker
from hybrid.serving.supervisor import ProcessExecutor
from hybrid.serving.tool_server.address import ServerUnusable, connect, socket_path
from hybrid.serving.tool_server.facts import mismatch, weights_facts
from hybrid.tool import BackendName, Found, Tool

if TYPE_CHECKING:
    from hybrid.tool import Args

R = TypeVar("R")
log = logging.getLogger("hybrid.serving.service")


class ServerGone(Outage):
    """The tool server will not answer a request, which must run elsewhere."""


class ServerConnection:
    """A connection to the tool server, in place of a worker process."""

    def __init__(
        self, sock: socket.socket, setup: Setup, on_message: Callable[[Message], None], on_end: Callable[[str], None]
    ) -> None:
        self._channel = LoopChannel(sock, on_message, lambda: on_end("it has ended"))
        self._channel.send(setup)

    def send(self, message: ToWorker) -> None:
        """Send a message."""
        self._channel.send(message)

    def resident_bytes(self) -> int | None:
        """Return None: the server limits its memory itself."""
        return None

    def kill(self) -> None:
        """Close the connection; work in the server continues."""
        self._channel.close()

    close = kill


class AttachedExecutor(ProcessExecutor):
    """Runs tools in the tool server, over one connection per event loop. A lost server is not replaced."""

    restarts = False
    outage_class = ServerGone

    def __init__(self, cache: FindingCache, options: ServiceOptions, sock: socket.socket, facts: ServerFacts) -> None:
        super().__init__(cache, options)
        self.facts = facts
        self._first: socket.socket | None = sock

    def start(
        self, setup: Setup, on_message: Callable[[Message], None], on_end: Callable[[str], None]
    ) -> ServerConnection:
        """Use the first connection, or open another one. Raises `OSError` if a different server answers."""
        sock, self._first = self._first, None
        if sock is None:
            try:
                connection = connect()
            except ServerUnusable as error:
                raise OSError(str(error)) from error
            if connection is None:
                raise OSError("it has ended")
            sock, facts = connection
            if (facts.process, facts.started) != (self.facts.process, self.facts.started):
                sock.close()
                raise OSError("it has ended, and another one is running")
        return ServerConnection(sock, setup, on_message, on_end)

    async def load(self, tool: Tool, watch: Stopwatch) -> BackendIdentity:
        """See `Executor.load`. Raises `ServerGone` if the tool has moved to another device."""
        return self._checked(tool, await super().load(tool, watch))

    async def find(self, call: QueuedCall, watch: Stopwatch) -> tuple[Finding, BackendIdentity]:
        """See `Executor.find`. Raises `ServerGone` if the tool has moved to another device."""
        finding, answering = await super().find(call, watch)
        return finding, self._checked(call.tool, answering)

    def _checked(self, tool: Tool, answering: BackendIdentity) -> BackendIdentity:
        if answering != self.facts.tools[tool.card.name].answering:
            raise ServerGone(f"it has moved {tool.card.name} to {answering.device}")
        return answering

    def close(self) -> None:
        """Close all connections."""
        super().close()
        if self._first is not None:
            self._first.close()


class SharedTools:
    """An `Executor` that runs tools in the tool server, if one is up and matches, and else in `local`."""

    def __init__(self, local: Executor, cache: FindingCache, options: ServiceOptions) -> None:
        self._local, self._cache, self._options = local, cache, options
        self.timeout_s, self.notices = local.timeout_s, local.notices
        self._lock = threading.Lock()
        self._server: AttachedExecutor | None = None
        self._unusable = False
        # The executor of each tool that was called; None if the tool runs in `local`.
        self._by_tool: dict[str, AttachedExecutor | None] = {}
        self._answered: set[str] = set()
        self._told: set[str] = set()
        # The event loop in which `local` was warmed up; None before.
        self._warm_loop: asyncio.AbstractEventLoop | None = None

    @property
    def served(self) -> frozenset[str]:
        """The tools for which the server has answered."""
        return frozenset(self._answered)

    async def load(self, tool: Tool, watch: Stopwatch) -> BackendIdentity:
        """See `Executor.load`."""
        return await self._run(tool, lambda executor: executor.load(tool, watch))

    async def need_args(
        self, tool: Tool, backend: BackendName, place: int, args: Args, findings: Found, watch: Stopwatch
    ) -> Mapping[str, Json] | None:
        """See `Executor.need_args`."""
        return await self._run(tool, lambda executor: executor.need_args(tool, backend, place, args, findings, watch))

    async def find(self, call: QueuedCall, watch: Stopwatch) -> tuple[Finding, BackendIdentity]:
        """See `Executor.find`."""
        return await self._run(call.tool, lambda executor: executor.find(call, watch))

    def warm(self) -> None:
        """Start what takes long to start, unless there may be a server."""
        loop = asyncio.get_running_loop()
        # This method is called before each model request, so it looks for the socket only until `local` was started.
        if self._warm_loop is not loop and not socket_path().exists():
            self._local.warm()
            self._warm_loop = loop

    def close(self) -> None:
        """See `Executor.close`."""
        self._local.close()
        with self._lock:
            if self._server is not None:
                self._server.close()

    async def _run(self, tool: Tool, ask: Callable[[Executor], Awaitable[R]]) -> R:
        """Run a request in the server; if the server is lost or not used, run it in `local`."""
        name = tool.card.name
        if name not in self._by_tool:
            # Use a thread, because hashing code and waiting for the server's first line take a while.
            self._by_tool[name] = await asyncio.to_thread(self._server_for, tool)
        if (server := self._by_tool[name]) is not None:
            try:
                result = await ask(server)
            except ServerGone as error:
                self._by_tool[name] = None
                self._tell(f"was lost ({error}); its requests run again without it")
            else:
                self._answered.add(name)
                return result
        return await ask(self._local)

    def _server_for(self, tool: Tool) -> AttachedExecutor | None:
        """Return the server if a tool may run there; if not, but a server runs and the tool has weights, tell why."""
        name = tool.card.name
        is_file = bool(tool.code) or loaded("tools", name) is tool
        # The server shares the images and outputs of its own cache folder.
        stores = self._cache.store.root == home() / "images" and self._cache.folder in (None, home() / "findings")
        if not is_file or not stores or self._options.backend == "classical":
            return None
        try:
            if weights_facts(tool, self._options) is None:
                return None
        except (WeightsError, OSError):
            # The other executor reports this error.
            return None
        with self._lock:
            if self._server is None and not self._unusable:
                self._server = self._connected(name)
        if self._server is None:
            return None
        if reason := mismatch(self._server.facts, tool, self._options):
            self._tell(f"is not used for {name}, because it {reason}", reason)
            return None
        log.info("%s: runs in the tool server (process %d)", name, self._server.facts.process)
        return self._server

    def _connected(self, name: str) -> AttachedExecutor | None:
        try:
            connection = connect()
        except ServerUnusable as error:
            # Do not try again, because another try would wait as long.
            self._unusable = True
            self._tell(f"is not used for {name}: {error}")
            return None
        return None if connection is None else AttachedExecutor(self._cache, self._options, *connection)

    def _tell(self, line: str, reason: str = "") -> None:
        """Tell the user each reason once, for the first tool that it concerns."""
        if (reason or line) in self._told:
            return
        self._told.add(reason or line)
        self.notices.append(f"the tool server {line}")
        log.warning("the tool server %s", line)
