"""Tools of other MCP servers in a run: `hybrid run --mcp NAME=URL|COMMAND`.

    offered = foreign_tools(("shapes=python shapes_server.py",), {}, names("tools"))     # each server is asked once
    runner = McpTools(service, offered)
    finding = await runner.call(offered.tools["shapes_outline"].tool, args, refs)

A server is connected to again with the first call of one of its tools, in a thread with an event loop of its own, and
the connection stays. A process that is started gets the few variables that the package `mcp` hands on (`HOME`, `PATH`
and the like), and none with a key in it.

A call that takes too long, or whose server ends, costs that call (`ToolError`) and is not made again: nothing tells how
far it got. The connection ends, with what else is under way on it, and the next call gets a new one. A server that
cannot be reached in `PAUSES_S`, or offers a tool in another form than before the run, ends the run (`ServerDown`): what
is finished is kept. Findings are not kept in the cache: nothing tells whether a server would answer the same again.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import anyio
import httpx
import mcp.types as protocol
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from hybrid.errors import Outage, ServerDown, ToolError, UsageError
from hybrid.integrations.mcp.foreign import (
    BACKEND,
    OPTION,
    ForeignServer,
    ForeignTool,
    ForeignTools,
    ServerAddress,
    foreign_server,
    read_address,
)
from hybrid.integrations.mcp.results import MOST_TEXT, finding_of
from hybrid.integrations.mcp.schemas import IMAGE_OPTION, clean, one_line
from hybrid.interface.findings import wait_for
from hybrid.models.credentials import keep_address, keep_words
from hybrid.models.images import ImageEncoder, ImageRules
from hybrid.secrets import redact
from hybrid.serving.service import ToolRunner
from hybrid.timing import CallTime
from hybrid.tool import Tool
from hybrid.types import Fault, Finding, ImageRef
from hybrid.version import __version__

if TYPE_CHECKING:
    from hybrid.tool import Args

START_S, HTTP_S, CLOSE_S = 120.0, 30.0, 10.0
"""Seconds that a server has to list its tools, to take a request over HTTP, and to end."""
PAUSES_S = (0.0, 1.0, 5.0)
"""Seconds before each attempt to connect to a server; after the last of them it counts as gone."""
MOST_AT_ONCE = 8
"""Calls of one server that are under way at once; waiting for a turn is not charged."""
MOST_TOOLS = 64
SAID = 400
"""Characters of the last line of a server's stderr that stand in an error."""
ENDED = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
"""Errors of the package's own streams after the connection has ended."""


class NotReached(Exception):
    """No connection could be made: why, in one line, with the last line that a started process wrote on stderr."""


@dataclass(frozen=True)
class Greeting:
    """A session with a server, what the server says of itself, and its tools."""

    session: ClientSession
    said: protocol.InitializeResult
    tools: tuple[protocol.Tool, ...]


class Connection:
    """A session held open by a task of its own: the package wants it closed in the task that opened it.

    `greeting` is the future of the session; it has `NotReached` where none could be opened.
    """

    def __init__(self, address: ServerAddress) -> None:
        self.greeting: asyncio.Future[Greeting] = asyncio.get_running_loop().create_future()
        self.over = asyncio.Event()
        self.task = asyncio.create_task(self._hold(address))

    @property
    def usable(self) -> bool:
        """Whether another call can be made with it."""
        return not self.over.is_set() and not self.task.done()

    async def _hold(self, address: ServerAddress) -> None:
        with tempfile.TemporaryFile() as stderr:
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(START_S):
                        self.greeting.set_result(await _greeted(address, stderr, stack))
                    await self.over.wait()
            except Exception as error:
                if not self.greeting.done():
                    self.greeting.set_exception(NotReached(_reason(error) + _last_line(stderr)))
                    # An error that is not taken is reported, and the call that waited may have gone.
                    self.greeting.exception()


async def _greeted(address: ServerAddress, stderr: IO[bytes], stack: AsyncExitStack) -> Greeting:
    """A session of which `stack` closes what is open."""
    if address.url:
        client = await stack.enter_async_context(httpx.AsyncClient(timeout=httpx.Timeout(HTTP_S, read=None)))
        read, write, _ = await stack.enter_async_context(streamable_http_client(address.url, http_client=client))
    else:
        command = StdioServerParameters(command=address.command[0], args=list(address.command[1:]))
        read, write = await stack.enter_async_context(stdio_client(command, stderr))  # type: ignore[arg-type]
    us = protocol.Implementation(name="hybrid", version=__version__)
    session = await stack.enter_async_context(ClientSession(read, write, client_info=us))
    said, tools, cursor = await session.initialize(), list[protocol.Tool](), None
    while len(tools) < MOST_TOOLS:
        page = await session.list_tools(params=protocol.PaginatedRequestParams(cursor=cursor))
        tools += page.tools
        cursor = page.nextCursor
        if not cursor or not page.tools:
            break
    return Greeting(session, said, tuple(tools[:MOST_TOOLS]))


def _reason(error: BaseException) -> str:
    """An error in one line, of a group its first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"no answer within {START_S:g} s"
    if isinstance(error, ENDED):
        return "the server ended the connection"
    return one_line(redact(f"{type(error).__name__} {error}"))


def _last_line(stderr: IO[bytes]) -> str:
    """The last line that a process wrote on stderr, as the end of a sentence."""
    stderr.seek(max(0, stderr.seek(0, 2) - 4 * SAID))
    lines = redact(stderr.read().decode("utf-8", "replace")).strip().splitlines()
    return f"; it said: {one_line(lines[-1], SAID)}" if lines else ""


def foreign_tools(written: Sequence[str], image_arguments: Mapping[str, str], taken: Sequence[str]) -> ForeignTools:
    """The servers that were named and their tools. Each server is started or reached, asked, and left again.

    Args:
        written: the values of `--mcp`.
        image_arguments: those of `--mcp-image`, by the name of the tool.
        taken: the names of our own tools.

    Raises:
        UsageError: a server cannot be reached or has no tools, two have one name, or `--mcp-image` names no tool.
    """
    addresses = [read_address(one) for one in written]
    for address in addresses:
        keep_words(address.command)
        keep_address(address.url)
    offered = ForeignTools()
    for address in addresses:
        greeting = _greeting_of(address)
        server = foreign_server(address, greeting.said, greeting.tools, image_arguments, [*taken, *offered.tools])
        if server.prefix in [one.prefix for one in offered.servers]:
            raise UsageError(f"{OPTION} {address}: there is a server {server.prefix} already: name it NAME={address}")
        offered = ForeignTools((*offered.servers, server))
    known = [*offered.tools, *offered.left_out]
    for name in image_arguments:
        if name not in known:
            there = ", ".join(known) or "none"
            raise UsageError(f"{IMAGE_OPTION} {name}: there is no such foreign tool; there are: {there}")
    return offered


def _greeting_of(address: ServerAddress) -> Greeting:
    """The greeting of a server; its session is over. Raises `UsageError`."""

    async def ask() -> Greeting:
        connection = Connection(address)
        try:
            return await asyncio.shield(connection.greeting)
        finally:
            connection.over.set()
            await connection.task

    try:
        greeting = wait_for(ask())
    except NotReached as error:
        raise UsageError(f"{OPTION} {address}: no MCP server can be asked there: {error}") from error
    if not greeting.tools:
        raise UsageError(f"{OPTION} {address}: the server has no tools")
    return greeting


class ServerCalls:
    """The calls of one server of a run, in the event loop of the servers: one connection for all of them."""

    def __init__(self, server: ForeignServer, pauses_s: Sequence[float]) -> None:
        self._server, self._pauses_s = server, pauses_s
        self._turns, self._connecting = asyncio.Semaphore(MOST_AT_ONCE), asyncio.Lock()
        self._connection: Connection | None = None
        self._closing = False
        self._gone: ServerDown | None = None

    async def call(
        self, foreign: ForeignTool, arguments: dict[str, Any], most_s: float, spent: CallTime
    ) -> protocol.CallToolResult:
        """The result of a call, which may take `most_s` seconds, and no more than its question has left.

        Raises `ToolError`, `Outage` and `ServerDown`.
        """
        async with self._turns:
            connection = await self._connected()
            greeting = connection.greeting.result()
            if foreign.listed not in greeting.tools:
                raise self._down(f"it offers {foreign.listed.name!r:.60} in another form than when the run began")
            left_s = most_s if spent.rest is None else max(0.0, min(most_s, spent.rest))
            params = protocol.CallToolRequestParams(name=foreign.listed.name, arguments=arguments)
            request = protocol.ClientRequest(protocol.CallToolRequest(params=params))
            # Not by `call_tool`: it checks results by a schema of the server's, patterns and all.
            asked = asyncio.create_task(greeting.session.send_request(request, protocol.CallToolResult))
            started = time.monotonic()
            try:
                await asyncio.wait({asked, connection.task}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            finally:
                spent.busy += time.monotonic() - started
                answered = asked.done() or not asked.cancel()
            if answered and (result := _answer(asked, foreign)) is not None:
                return result
            if self._closing:
                raise Outage("the tool service is closed")
            if answered or connection.task.done():
                connection.over.set()
                raise ToolError(f"{foreign.name}: the server ended the connection during the call")
            if left_s < most_s:
                # A question that has no time left says nothing about the server.
                raise ToolError(f"{foreign.name} did not answer within the question's time", Fault.TIMEOUT)
            connection.over.set()
            raise ToolError(f"{foreign.name} did not answer within {most_s:g} s", Fault.TIMEOUT)

    async def _connected(self) -> Connection:
        """A connection that calls can be made with. Raises `ServerDown`."""
        async with self._connecting:
            if self._gone is not None:
                raise self._gone
            why = ""
            for pause in self._pauses_s:
                if self._connection is None or not self._connection.usable:
                    await asyncio.sleep(pause)
                    self._connection = Connection(self._server.address)
                try:
                    # A call that waits may be cancelled, and the connection is for all.
                    await asyncio.shield(self._connection.greeting)
                except NotReached as error:
                    why = str(error)
                    self._connection.over.set()
                else:
                    return self._connection
            raise self._down(f"it cannot be reached: {why}")

    def _down(self, why: str) -> ServerDown:
        self._gone = ServerDown(f"the MCP server {self._server.prefix} ({self._server.address}): {why}")
        return self._gone

    async def close(self) -> None:
        """End the connection in order, in `CLOSE_S` seconds."""
        self._closing = True
        if self._connection is not None:
            self._connection.over.set()
            await asyncio.wait({self._connection.task}, timeout=CLOSE_S)


FAULTS = {protocol.INVALID_PARAMS: Fault.BAD_ARGUMENTS, protocol.METHOD_NOT_FOUND: Fault.UNKNOWN_TOOL}
"""By the code of a server's error what was wrong with the call."""


def _answer(asked: asyncio.Task[protocol.CallToolResult], foreign: ForeignTool) -> protocol.CallToolResult | None:
    """The result of a call that has ended; None where its connection has. Raises `ToolError`."""
    try:
        return asked.result()
    except McpError as error:
        if error.error.code == protocol.CONNECTION_CLOSED:
            return None
        said = clean(redact(error.error.message), MOST_TEXT) or f"error {error.error.code}"
        raise ToolError(f"{foreign.name}: {said}", FAULTS.get(error.error.code, Fault.TOOL_ERROR)) from error
    except (OSError, httpx.HTTPError, *ENDED):
        return None
    except ValueError as error:
        said = one_line(str(error))
        raise ToolError(f"{foreign.name}: the server's answer is no result of a call: {said}") from error


class McpTools:
    """Runs our own tools as another runner does, and those of foreign servers by asking these."""

    def __init__(self, inner: ToolRunner, tools_offered: ForeignTools, pauses_s: Sequence[float] = PAUSES_S) -> None:
        """Nothing is connected yet.

        Args:
            inner: runs our own; a foreign call may take `timeout_s` of its options as well.
            tools_offered: the foreign tools.
            pauses_s: before each attempt to reach a server, in seconds.
        """
        self.store, self.cache, self.options = inner.store, inner.cache, inner.options
        self.tools_offered = tools_offered
        self._inner, self._pauses_s = inner, pauses_s
        self._encoder = ImageEncoder(inner.store, ImageRules())
        self._servers: dict[str, ServerCalls] = {}
        # The event loop of the servers is in a thread: a run is closed without waiting in its own.
        self._portal: BlockingPortal | None = None
        self._open, self._closed, self._asked = ExitStack(), False, 0

    @property
    def computed(self) -> int:
        """Requests that a backend or a server has answered."""
        return self._inner.computed + self._asked

    @property
    def notices(self) -> list[str]:
        """The notices of our own tools."""
        return self._inner.notices

    async def call(
        self, tool: Tool, args: Args, images: Sequence[ImageRef], seed: int = 0, spent: CallTime | None = None
    ) -> Finding:
        """The finding of a call, as `ToolService.call`. Raises `ServerDown` besides where a foreign server is gone."""
        foreign = self.tools_offered.tools.get(tool.card.name)
        if foreign is None or foreign.tool is not tool:
            return await self._inner.call(tool, args, images, seed, spent)
        if self._closed:
            raise Outage("the tool service is closed")
        fewest, most = tool.card.images
        if not fewest <= len(images) <= most:
            wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            raise ToolError(f"{foreign.name} takes {wanted} images, not {len(images)}", Fault.BAD_ARGUMENTS)
        sent = await asyncio.to_thread(self._sent, images)
        arguments = {**args.model_dump(mode="json", exclude_none=True), **foreign.arguments(sent)}
        self._portal = self._portal or self._open.enter_context(start_blocking_portal())
        asked = self._portal.start_task_soon(self._call, foreign, arguments, spent or CallTime())
        result = await asyncio.wrap_future(asked)
        version = self.tools_offered.backends[foreign.name].removeprefix(f"{BACKEND}:")
        finding = await asyncio.to_thread(finding_of, foreign, version, result, images, self.store)
        self._asked += 1
        return finding

    async def _call(self, foreign: ForeignTool, arguments: dict[str, Any], spent: CallTime) -> protocol.CallToolResult:
        """The result of a call. Runs in the loop of the servers."""
        if foreign.prefix not in self._servers:
            server = next(one for one in self.tools_offered.servers if one.prefix == foreign.prefix)
            self._servers[foreign.prefix] = ServerCalls(server, self._pauses_s)
        return await self._servers[foreign.prefix].call(foreign, arguments, self.options.timeout_s, spent)

    def _sent(self, images: Sequence[ImageRef]) -> list[tuple[str, str]]:
        """Each image as base64 of a PNG or a JPEG, and its media type."""
        encoded = [self._encoder.encoded(ref.image) for ref in images]
        return [(data.decode("ascii"), image.media_type) for image, data in encoded]

    def warm(self) -> None:
        """Warm the other runner."""
        self._inner.warm()

    def close(self) -> None:
        """Close both: processes that were started end."""
        self._closed = True
        self._inner.close()
        if self._portal is not None:
            for server in self._servers.values():
                self._portal.call(server.close)
            self._open.close()
            self._portal = None
