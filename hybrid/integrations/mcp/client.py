"""Foreign MCP servers in a run: `hybrid run --mcp NAME=URL|COMMAND`.

    offered = foreign_tools(["shapes=python shapes_server.py"], {"shapes_outline": "image"}, names("tools"))
    finding = await McpTools(offered, store, cache, options).call(offered.tools["shapes_outline"].tool, args, refs)

A server is connected to with the first call of one of its tools. A call that takes too long, or whose server ends, is a
`ToolError` and is not repeated; it ends the connection, and the next call makes one attempt at a new one. Findings are
not cached: a server may answer differently the next time.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import mcp.types as protocol
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from hybrid.errors import DataError, Outage, ToolError, UsageError
from hybrid.images import ImageStore
from hybrid.integrations.mcp import foreign
from hybrid.integrations.mcp.foreign import ForeignServer, ForeignTool, ForeignTools, clean, one_line
from hybrid.integrations.pictures import read_image
from hybrid.interface.findings import wait_for
from hybrid.models.credentials import keep_address, keep_words
from hybrid.models.images import ImageEncoder, ImageRules
from hybrid.secrets import redact
from hybrid.serving.service import ToolService
from hybrid.timing import CallTime
from hybrid.tool import Args, Tool
from hybrid.types import Fault, Finding, ImageRef

START_S, HTTP_S = 120.0, 30.0
"""Seconds that a server has to start and list its tools, and to take a request over HTTP."""
MOST_TOOLS, MOST_TEXT, MOST_DATA, MOST_IMAGES = 64, 4000, 100_000, 8
"""Tools of a server; characters of text and of structured content as JSON, and images, of a result."""
FAULTS = {protocol.INVALID_PARAMS: Fault.BAD_ARGUMENTS, protocol.METHOD_NOT_FOUND: Fault.UNKNOWN_TOOL}


@asynccontextmanager
async def connected(server: ForeignServer) -> AsyncIterator[tuple[ClientSession, protocol.InitializeResult]]:
    """A session with a server and its greeting. Raises `ToolError` where it cannot be had or has broken."""
    with tempfile.TemporaryFile() as stderr:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(START_S):
                    if server.is_url:
                        http = httpx.AsyncClient(timeout=httpx.Timeout(HTTP_S, read=None))
                        transport = streamable_http_client(
                            server.words[0], http_client=await stack.enter_async_context(http)
                        )
                        read, write, _ = await stack.enter_async_context(transport)
                    else:
                        command = StdioServerParameters(command=server.words[0], args=list(server.words[1:]))
                        pipes = stdio_client(command, stderr)  # type: ignore[arg-type]
                        read, write = await stack.enter_async_context(pipes)
                    session = await stack.enter_async_context(ClientSession(read, write))
                    greeting = await session.initialize()
                yield session, greeting
        except Exception as error:
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            stderr.seek(max(0, stderr.seek(0, 2) - 2000))
            last = stderr.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            reason = "; it said: ".join([f"{type(error).__name__} {error}".strip(), *last])
            raise ToolError(f"the MCP server {server} cannot be used: {one_line(redact(reason))}") from error


def foreign_tools(written: Sequence[str], image_arguments: Mapping[str, str], taken: Sequence[str]) -> ForeignTools:
    """The tools that the servers list now. Each server is started or reached, asked, and left again.

    Args:
        written: the values of `--mcp`.
        image_arguments: those of `--mcp-image`, by the name of the tool.
        taken: the names of our own tools.

    Raises:
        UsageError: a server cannot be reached, two have one name, or `--mcp-image` names no tool.
    """
    servers: dict[str, ForeignServer] = {}
    tools: dict[str, ForeignTool] = {}
    left_out: dict[str, str] = {}
    for address in map(foreign.read_server, written):
        keep_words(address.words)
        if address.is_url:
            keep_address(address.words[0])
        if address.name in servers:
            raise UsageError(f"--mcp {address}: there is a server {address.name} already")
        try:
            server, listed = wait_for(_listed(address))
        except ToolError as error:
            raise UsageError(f"--mcp: {error}") from error
        servers[server.name] = server
        for one in listed[:MOST_TOOLS]:
            name = foreign.foreign_name(server.name, one.name)
            try:
                added = foreign.foreign_tool(server, one, image_arguments.get(name, ""))
            except UsageError as error:
                left_out[name] = f"{name}: {error}"
            else:
                if name in taken or tools.setdefault(name, added) is not added:
                    left_out[name] = f"{name}: there is a tool of that name already"
    if unknown := image_arguments.keys() - tools.keys() - left_out.keys():
        there = ", ".join(tools) or "none"
        raise UsageError(f"--mcp-image {min(unknown)}: there is no such foreign tool; there are: {there}")
    return ForeignTools(tuple(servers.values()), tools, left_out)


async def _listed(server: ForeignServer) -> tuple[ForeignServer, list[protocol.Tool]]:
    async with connected(server) as (session, greeting), asyncio.timeout(START_S):
        about = (greeting.serverInfo.name, greeting.serverInfo.version, str(greeting.protocolVersion))
        title, version, form = (one_line(text)[:80] for text in about)
        listed = await session.list_tools()
        return replace(server, title=title, version=version, protocol=form), listed.tools


class Connection:
    """A session that a task of its own keeps open: the package wants it closed in the task that opened it."""

    def __init__(self, server: ForeignServer) -> None:
        self.session: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._hold(server))

    async def _hold(self, server: ForeignServer) -> None:
        broken = ToolError("the connection is closed")
        try:
            async with connected(server) as (session, _):
                self.session.set_result(session)
                await asyncio.Event().wait()
        except ToolError as error:
            broken = error
        finally:
            if not self.session.done():
                self.session.set_exception(broken)


class McpTools(ToolService):
    """Runs our own tools as `ToolService` does, and those of foreign servers by asking these."""

    def __init__(self, offered: ForeignTools, *args: Any, **options: Any) -> None:
        """Nothing is connected yet; the further arguments are those of `ToolService`."""
        super().__init__(*args, **options)
        self.offered = offered
        self._encoder = ImageEncoder(self.store, ImageRules())
        self._connections: dict[str, Connection] = {}

    async def call(
        self, tool: Tool, args: Args, images: Sequence[ImageRef], seed: int = 0, spent: CallTime | None = None
    ) -> Finding:
        """The finding of a call: see `ToolService.call`."""
        name, (fewest, most) = tool.card.name, tool.card.images
        asked = self.offered.tools.get(name)
        if asked is None or asked.tool is not tool:
            return await super().call(tool, args, images, seed, spent)
        if self._closed:
            raise Outage("the tool service is closed")
        if not fewest <= len(images) <= most:
            raise ToolError(f"{name} takes {fewest} to {most} images, not {len(images)}", Fault.BAD_ARGUMENTS)
        encoded = [await asyncio.to_thread(self._encoder.encoded, ref.image) for ref in images]
        sent = asked.arguments([(data.decode("ascii"), image.media_type) for image, data in encoded])
        params = {"name": asked.called, "arguments": args.model_dump(mode="json", exclude_none=True) | sent}
        result = await self._answer(asked, params, spent or CallTime())
        finding = await asyncio.to_thread(finding_of, name, asked.server.about, result, images, self.store)
        self.computed += 1
        return finding

    async def _answer(self, asked: ForeignTool, params: dict[str, Any], spent: CallTime) -> protocol.CallToolResult:
        """The result of a call. Raises `ToolError`, or `Outage` where this is closed."""
        name, server = asked.tool.card.name, asked.server
        connection = self._connections.get(server.name)
        if connection is None or connection.task.done() or connection.task.cancelling():
            connection = self._connections[server.name] = Connection(server)
        # A call may be cancelled while it waits, and the connection is for all.
        session = await asyncio.shield(connection.session)
        request = protocol.CallToolRequest(params=protocol.CallToolRequestParams(**params))
        # Not by `call_tool`: it matches results against patterns that the server wrote.
        call = session.send_request(protocol.ClientRequest(request), protocol.CallToolResult)
        most_s, rest, started = self.options.timeout_s, spent.rest, time.monotonic()
        left_s = most_s if rest is None else max(0.0, min(most_s, rest))
        answer = asyncio.create_task(call)
        try:
            await asyncio.wait({answer, connection.task}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
        except McpError as error:
            if error.error.code == protocol.CONNECTION_CLOSED:
                connection.task.cancel()
            fault = FAULTS.get(error.error.code, Fault.TOOL_ERROR)
            raise ToolError(f"{name}: {clean(redact(error.error.message), MOST_TEXT)}", fault) from error
        except ValueError as error:
            raise ToolError(f"{name}: the answer is no result of a call: {one_line(str(error))}") from error
        finally:
            spent.busy += time.monotonic() - started
            answer.cancel()
        if self._closed:
            raise Outage("the tool service is closed")
        if connection.task.done():
            raise ToolError(f"{name}: the connection has broken")
        if left_s == most_s:
            # A question without time left says nothing about the server, and its connection stays.
            connection.task.cancel()
        raise ToolError(f"{name} did not answer within {left_s:g} s", Fault.TIMEOUT)

    def close(self) -> None:
        """Close our own tools and the connections: the processes of servers end while the event loop goes on."""
        super().close()
        for connection in self._connections.values():
            connection.task.cancel()


def finding_of(
    name: str, version: str, result: protocol.CallToolResult, images: Sequence[ImageRef], store: ImageStore
) -> Finding:
    """The finding of the tool `name` on `images`.

    Images of the result are in the store and belong to the first image; a call without one gives none.
    `confidence` is that of the structured content where it is a number in 0..1, else 0.0.

    Raises:
        ToolError: the server says that the call has failed, or the result is empty, too large or cannot be read.
    """
    text = "\n".join(part.text for part in result.content if isinstance(part, protocol.TextContent))
    text = clean(redact(text), MOST_TEXT)
    if result.isError:
        raise ToolError(f"{name}: {text or 'the call failed, and the server does not say why'}")
    shown = [part.data for part in result.content if isinstance(part, protocol.ImageContent)]
    try:
        written = json.dumps(result.structuredContent or {}, allow_nan=False)
        if len(written) > MOST_DATA or len(shown) > MOST_IMAGES:
            raise ValueError(f"it has {len(shown)} images and {len(written):,} characters of data")  # noqa: TRY301
        stored = [store.put(read_image({"data": data}, None), "an image") for data in shown if images]
    except (DataError, ValueError) as error:
        raise ToolError(f"{name}: the result cannot be used: {one_line(str(error))}") from error
    except OSError as error:
        raise Outage(f"images cannot be written: {error.strerror or error}") from error
    data = json.loads(redact(written))
    text = text or (clean(json.dumps(data, ensure_ascii=False), MOST_TEXT) if data else "")
    if not (text or stored):
        raise ToolError(f"{name}: the result has no text, image or structured content")
    value = data.get("confidence")
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0
    refs = tuple(ImageRef("", image, images[0].name) for image in stored)
    return Finding(text, data, float(value) if known else 0.0, foreign.BACKEND, version, refs)
