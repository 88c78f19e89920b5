"""Tools of other MCP servers in a run: `hybrid run --mcp NAME=URL|COMMAND`. It needs the extra `mcp`.

    menu = foreign_menu(("shapes=python shapes_server.py",), {}, names("tools"))     # each server is asked once
    runner = McpTools(service, menu)
    finding = await runner.call(menu.tools["shapes_outline"].tool, args, refs)

A server is connected to again with the first call of one of its tools, in a thread with an event loop of its own, and
the connection stays. A process that is started gets the few variables that MCP's own client hands on (`HOME`, `PATH`
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
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import anyio
import httpx
import mcp.types as protocol
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from hybrid.errors import Outage, ServerDown, ToolError, UsageError
from hybrid.images import ImageStore
from hybrid.integrations.foreign import (
    BACKEND,
    LONGEST_PREFIX,
    OPTION,
    ForeignServer,
    ForeignTool,
    ForeignTools,
    Listed,
    SentImage,
    ServerAddress,
    ServerFacts,
    clean,
    foreign_server,
    one_line,
    read_address,
    word,
)
from hybrid.integrations.mcp_results import MOST_TEXT, finding_of
from hybrid.interface.findings import wait_for
from hybrid.models.credentials import keep_address, keep_words
from hybrid.models.images import ImageEncoder, ImageRules
from hybrid.secrets import redact
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ServiceOptions, ToolRunner
from hybrid.timing import CallTime
from hybrid.tool import Tool
from hybrid.types import Fault, Finding, ImageRef
from hybrid.version import __version__

if TYPE_CHECKING:
    from hybrid.tool import Args

START_S = 120.0
"""How long a server may take to be there and to tell of its tools."""
HTTP_S = 30.0
"""How long it may take to take a request over HTTP; for its answer it has the time of the call."""
PAUSES_S = (0.0, 1.0, 5.0)
"""Seconds before each attempt to connect to a server; after the last of them it counts as gone."""
MOST_AT_ONCE = 8
"""Calls of one server that are under way at once; who waits for a turn is not charged for it."""
MOST_TOOLS = 64
MOST_PAGES = 20
CLOSE_S = 10.0
"""How long the end of the program waits for servers to end."""
SAID = 400
"""Characters of what a server said on stderr that stand in an error."""

ENDED = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
"""How the client's own streams say that they have ended."""


@dataclass(frozen=True)
class Opened:
    """A server that is connected to, and what it said."""

    session: ClientSession
    name: str
    version: str
    protocol: str
    tools: tuple[Listed, ...]


class NotReached(Exception):
    """No connection could be made: why, in one line, with what a process that was started said last."""


@asynccontextmanager
async def opened(address: ServerAddress) -> AsyncIterator[Opened]:
    """A connection, from when the server has told of its tools.

    Raises:
        NotReached: whatever goes wrong before, or a group of errors that holds it.
    """
    ready = False
    with tempfile.TemporaryFile() as errors:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(START_S):
                    found = await _greeted(address, errors, stack)
                ready = True
                yield found
        except Exception as error:
            if ready:
                raise
            raise NotReached(_why(error) + _last_words(errors)) from error


async def _greeted(address: ServerAddress, errors: IO[bytes], stack: AsyncExitStack) -> Opened:
    if address.url:
        limits = httpx.Timeout(HTTP_S, read=None)
        client = await stack.enter_async_context(httpx.AsyncClient(timeout=limits))
        read, write, _ = await stack.enter_async_context(streamable_http_client(address.url, http_client=client))
    else:
        program, *words = address.command
        server = StdioServerParameters(command=program, args=words)
        read, write = await stack.enter_async_context(stdio_client(server, errors))  # type: ignore[arg-type]
    us = protocol.Implementation(name="hybrid", version=__version__)
    session = await stack.enter_async_context(ClientSession(read, write, client_info=us))
    said = await session.initialize()
    told = said.serverInfo
    facts = (one_line(told.name, 80), one_line(told.version, 40), one_line(str(said.protocolVersion), 40))
    return Opened(session, *facts, tuple([one async for one in _listed(session)]))


async def _listed(session: ClientSession) -> AsyncIterator[Listed]:
    cursor: str | None = None
    count = 0
    for _ in range(MOST_PAGES):
        page = await session.list_tools(params=protocol.PaginatedRequestParams(cursor=cursor))
        for tool in page.tools:
            count += 1
            if count > MOST_TOOLS:
                return
            yield Listed(tool.name, tool.description or "", tool.inputSchema)
        cursor = page.nextCursor
        if not cursor:
            return


def _why(error: BaseException) -> str:
    """An error in one line: of a group that which says most."""
    while isinstance(error, BaseExceptionGroup):
        told = error.subgroup(NotReached)
        error = (told or error).exceptions[0]
    if isinstance(error, NotReached):
        return str(error)
    if isinstance(error, TimeoutError):
        return f"no answer within {START_S:g} s"
    if isinstance(error, ENDED):
        return "the server ended the connection"
    said = one_line(redact(str(error)))
    known = isinstance(error, OSError | McpError | httpx.HTTPError) and said
    return said if known else f"{type(error).__name__} {said}".strip()


def _last_words(errors: IO[bytes]) -> str:
    """What a process has said last on stderr, as the end of a sentence."""
    size = errors.seek(0, 2)
    errors.seek(max(0, size - 4 * SAID))
    lines = redact(errors.read().decode("utf-8", "replace")).strip().splitlines()
    return f"; it said: {one_line(lines[-1], SAID)}" if lines else ""


def foreign_tools(written: Sequence[str], told: Mapping[str, str], taken: Sequence[str]) -> ForeignTools:
    """The servers that were named and their tools. Each server is started or reached, asked, and left again.

    Args:
        written: the values of `--mcp`.
        told: those of `--mcp-image`, by the name of the tool.
        taken: the names of our own tools.

    Raises:
        UsageError: a server cannot be reached or has no tools, two have one name, or `--mcp-image` names no tool.
    """
    addresses = [read_address(one) for one in written]
    for address in addresses:
        keep_words(address.command)
        keep_address(address.url)
    servers: list[ForeignServer] = []
    names = list(taken)
    for address in addresses:
        facts, listed = _asked(address)
        if any(server.facts.prefix == facts.prefix for server in servers):
            raise UsageError(
                f"{OPTION} {address.told}: there is a server {facts.prefix} already: name it NAME={address.told}"
            )
        servers.append(foreign_server(address, facts, listed, told, names))
        names += [tool.name for tool in servers[-1].tools]
    tools_offered = ForeignTools(tuple(servers))
    for name in told:
        if name not in tools_offered.tools and name not in tools_offered.left_out:
            known = ", ".join([*tools_offered.tools, *tools_offered.left_out]) or "none"
            raise UsageError(f"--mcp-image {name}: there is no such foreign tool; there are: {known}")
    return tools_offered


def _asked(address: ServerAddress) -> tuple[ServerFacts, tuple[Listed, ...]]:
    """What a server says of itself and its tools. Raises `UsageError`."""

    async def ask() -> Opened:
        async with opened(address) as found:
            return found

    try:
        found = wait_for(ask())
    except (NotReached, ExceptionGroup) as error:
        raise UsageError(f"{OPTION} {address.told}: no MCP server can be asked there: {_why(error)}") from error
    if not found.tools:
        raise UsageError(f"{OPTION} {address.told}: the server has no tools")
    prefix = address.name or word(found.name, LONGEST_PREFIX)
    if not prefix or not prefix[0].isalpha():
        raise UsageError(f"{OPTION} {address.told}: the server gives no name that is a word: write NAME={address.told}")
    return ServerFacts(prefix, found.name, found.version, found.protocol, address.told), found.tools


class _Connection:
    """A session in a task of its own: a connection is closed in the task in which it was opened."""

    def __init__(self, address: ServerAddress) -> None:
        self.opened: asyncio.Future[Opened] = asyncio.get_running_loop().create_future()
        self.over = asyncio.Event()
        self.task = asyncio.create_task(self._held(address))

    @property
    def usable(self) -> bool:
        """Whether another call can be made with it."""
        return not self.over.is_set() and not self.task.done()

    async def _held(self, address: ServerAddress) -> None:
        """Keep it open until it is over. Ends without an error: the future has it."""
        try:
            async with opened(address) as one:
                if not self.opened.done():
                    self.opened.set_result(one)
                await self.over.wait()
        except Exception as error:
            if not self.opened.done():
                self.opened.set_exception(NotReached(_why(error)))
                # An error that is not taken is reported, and the call that waited may have gone.
                self.opened.exception()


class _Server:
    """A server of a run, in the event loop of the servers: one connection for all calls."""

    def __init__(self, server: ForeignServer, pauses_s: Sequence[float]) -> None:
        self._server = server
        self._pauses_s = pauses_s
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)
        self._connecting = asyncio.Lock()
        self._connection: _Connection | None = None
        self._closing = False
        self.gone: str | None = None
        """Why it is not asked any more."""

    async def call(
        self, foreign: ForeignTool, arguments: dict[str, Any], most_s: float, spent: CallTime
    ) -> protocol.CallToolResult:
        """The result of a call, which may take `most_s`, and no more than its question has left.

        Raises `ToolError`, `Outage` and `ServerDown`.
        """
        async with self._turns:
            connection = await self._connected()
            one = connection.opened.result()
            if not any(listed.code == foreign.listed for listed in one.tools):
                raise self._down(f"it offers {foreign.called!r:.60} in another form than when the run began")
            left_s = most_s if spent.rest is None else max(0.0, min(most_s, spent.rest))
            params = protocol.CallToolRequestParams(name=foreign.called, arguments=arguments)
            request = protocol.ClientRequest(protocol.CallToolRequest(params=params))
            # Not by `call_tool`: it checks results by a schema of the server's, patterns and all.
            asked = asyncio.create_task(one.session.send_request(request, protocol.CallToolResult))
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

    async def _connected(self) -> _Connection:
        """A connection that calls can be made with. Raises `ServerDown`."""
        async with self._connecting:
            if self.gone is not None:
                raise ServerDown(self.gone)
            why = ""
            for pause in self._pauses_s:
                if self._connection is None or not self._connection.usable:
                    await asyncio.sleep(pause)
                    self._connection = _Connection(self._server.address)
                try:
                    # A call that waits may be cancelled, and the connection is for all.
                    await asyncio.shield(self._connection.opened)
                except NotReached as error:
                    why = str(error)
                    self._connection.over.set()
                else:
                    return self._connection
            raise self._down(f"it cannot be reached: {why}")

    def _down(self, why: str) -> ServerDown:
        self.gone = f"the MCP server {self._server.facts.prefix} ({self._server.facts.address}): {why}"
        return ServerDown(self.gone)

    async def close(self) -> None:
        """End the connection in order, in `CLOSE_S` seconds."""
        self._closing = True
        if self._connection is not None:
            self._connection.over.set()
            await asyncio.wait({self._connection.task}, timeout=CLOSE_S)


def _answer(asked: asyncio.Task[protocol.CallToolResult], foreign: ForeignTool) -> protocol.CallToolResult | None:
    """The result of a call that has ended; None where its connection has. Raises `ToolError`."""
    try:
        return asked.result()
    except McpError as error:
        if error.error.code == protocol.CONNECTION_CLOSED:
            return None
        raise _refused(foreign, error) from error
    except (OSError, httpx.HTTPError, *ENDED):
        return None
    except ValueError as error:
        said = one_line(str(error))
        raise ToolError(f"{foreign.name}: the server's answer is no result of a call: {said}") from error


def _refused(foreign: ForeignTool, error: McpError) -> ToolError:
    """The error by which a server answers a call that it does not make."""
    faults = {protocol.INVALID_PARAMS: Fault.BAD_ARGUMENTS, protocol.METHOD_NOT_FOUND: Fault.UNKNOWN_TOOL}
    said = clean(redact(error.error.message), MOST_TEXT) or f"error {error.error.code}"
    return ToolError(f"{foreign.name}: {said}", faults.get(error.error.code, Fault.TOOL_ERROR))


@dataclass
class McpTools:
    """Runs our own tools as another runner does, and those of foreign servers by asking these.

    Args:
        inner: runs our own.
        menu: the foreign tools.
        pauses_s: before each attempt to reach a server, in seconds.
    """

    inner: ToolRunner
    tools_offered: ForeignTools
    pauses_s: Sequence[float] = PAUSES_S
    _asked: int = 0
    _servers: dict[str, _Server] = field(default_factory=dict)
    _portal: BlockingPortal | None = None
    """The event loop of the servers, in a thread: a run is closed without waiting in its own."""
    _open: ExitStack = field(default_factory=ExitStack)
    _closed: bool = False

    def __post_init__(self) -> None:
        self._foreign = self.tools_offered.tools
        self._encoder = ImageEncoder(self.inner.store, ImageRules())

    @property
    def store(self) -> ImageStore:
        """The images."""
        return self.inner.store

    @property
    def cache(self) -> FindingCache:
        """Of our own tools."""
        return self.inner.cache

    @property
    def options(self) -> ServiceOptions:
        """Of our own tools; a foreign call runs for `timeout_s` at most as well."""
        return self.inner.options

    @property
    def computed(self) -> int:
        """Requests that a backend or a server has answered."""
        return self.inner.computed + self._asked

    @property
    def notices(self) -> list[str]:
        """Those of our own tools."""
        return self.inner.notices

    async def call(
        self, tool: Tool, args: Args, images: Sequence[ImageRef], seed: int = 0, spent: CallTime | None = None
    ) -> Finding:
        """Find out: as `ToolService.call`.

        Raises:
            ServerDown: besides, a foreign server is gone.
        """
        foreign = self._foreign.get(tool.card.name)
        if foreign is None or foreign.tool is not tool:
            return await self.inner.call(tool, args, images, seed, spent)
        if self._closed:
            raise Outage("the tool service is closed")
        spent = spent or CallTime()
        fewest, most = tool.card.images
        if not fewest <= len(images) <= most:
            wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            raise ToolError(f"{foreign.name} takes {wanted} images, not {len(images)}", Fault.BAD_ARGUMENTS)
        sent = await asyncio.to_thread(self._sent, images)
        arguments = {**args.model_dump(mode="json", exclude_none=True), **foreign.arguments(sent)}
        self._portal = self._portal or self._open.enter_context(start_blocking_portal())
        result = await asyncio.wrap_future(self._portal.start_task_soon(self._call, foreign, arguments, spent))
        found = await asyncio.to_thread(finding_of, foreign, self._backend(foreign), result, images, self.store)
        self._asked += 1
        return found

    async def _call(self, foreign: ForeignTool, arguments: dict[str, Any], spent: CallTime) -> protocol.CallToolResult:
        """In the loop of the servers."""
        if foreign.prefix not in self._servers:
            server = next(one for one in self.tools_offered.servers if one.facts.prefix == foreign.prefix)
            self._servers[foreign.prefix] = _Server(server, self.pauses_s)
        return await self._servers[foreign.prefix].call(foreign, arguments, self.options.timeout_s, spent)

    def _backend(self, foreign: ForeignTool) -> str:
        return self.tools_offered.backends[foreign.name].removeprefix(f"{BACKEND}:")

    def _sent(self, images: Sequence[ImageRef]) -> list[SentImage]:
        return [SentImage.of(*self._encoder.encoded(ref.image)) for ref in images]

    def warm(self) -> None:
        """As the other runner."""
        self.inner.warm()

    def close(self) -> None:
        """Close both: processes that were started end."""
        self._closed = True
        self.inner.close()
        if self._portal is not None:
            for server in self._servers.values():
                self._portal.call(server.close)
            self._open.close()
            self._portal = None
