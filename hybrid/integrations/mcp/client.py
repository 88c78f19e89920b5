"""External MCP servers in a run: `hybrid run --mcp NAME=URL|COMMAND`. Registered in `hybrid.foreign_tools`.

A server is connected on the first call of one of its tools. A call that takes too long ends in a `ToolError` and closes
the connection. Calls whose connection breaks are repeated one by one; a call that breaks `MAX_BREAKS` connections while
it is repeated fails. If a server is unreachable for `AWAY_S`, its calls end in an `Outage`. Outputs are not cached,
because a server may answer differently.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import mcp.types as protocol
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from hybrid.core.errors import DataError, Outage, ToolError, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.secrets import redact
from hybrid.core.timing import CallTime, Stopwatch, finished, running
from hybrid.core.types import Fault, Finding, ImageRef, Json
from hybrid.integrations.mcp import foreign
from hybrid.integrations.mcp.bounded import HOOKS, MAX_MESSAGE_BYTES
from hybrid.integrations.mcp.foreign import McpTool, ServerAddress, clean, one_line
from hybrid.integrations.pictures import read_image
from hybrid.interface.findings import wait_for
from hybrid.models.chat_completions.wire import is_loopback
from hybrid.models.credentials import keep_address, keep_words
from hybrid.models.images import ImageEncoder, ImageRules
from hybrid.serving.service import CachedTools, ForeignServer, ForeignTools
from hybrid.tool import Args, Tool

# The package logs a traceback for every invalid line of a server; errors that end a call are reported by hybrid.
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
# The program that passes on the output of a server over stdio, message by message.
RELAY = str(Path(__file__).with_name("relay.py"))
# Seconds that calls wait for an unreachable server; afterwards each call tries once, until the server is back.
AWAY_S = 60.0
# Maximum number of connections that a call may break while no other call is running.
MAX_BREAKS = 2
# Seconds for a server to start and list its tools.
START_S = 120.0
# Limits: tools per server; per result, characters of text, characters of structured content as JSON, and images.
MAX_TOOLS, MAX_TEXT, MAX_DATA, MAX_IMAGES = 64, 4000, 100_000, 8


class BrokenConnection(ToolError):
    """A server cannot be reached, or its connection broke; `sent` tells whether the call had already been sent."""

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


@asynccontextmanager
async def connected(server: ServerAddress) -> AsyncIterator[tuple[ClientSession, protocol.InitializeResult]]:
    """Yield a session and the server's `initialize` result. Raises `BrokenConnection` if connecting fails or breaks."""
    with tempfile.TemporaryFile() as stderr:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(START_S):
                    read, write, *_ = await stack.enter_async_context(await _transport(server, stack, stderr))
                    session = await stack.enter_async_context(ClientSession(read, write))
                    greeting = await session.initialize()
                yield session, greeting
        except Exception as error:
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            stderr.seek(max(0, stderr.seek(0, 2) - 2000))
            last = stderr.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            reason = "; it said: ".join([f"{type(error).__name__} {error}".strip(), *last])
            raise BrokenConnection(f"the MCP server {server} cannot be used: {one_line(redact(reason))}") from error


async def _transport(server: ServerAddress, stack: AsyncExitStack, stderr: IO[bytes]) -> Any:
    """Return the context manager of the server's streams: an HTTP client that the stack closes, or a process."""
    first, *others = server.words
    if not server.is_url:
        words = ["-E", RELAY, str(MAX_MESSAGE_BYTES), first, *others]
        process = StdioServerParameters(command=sys.executable, args=words)
        return stdio_client(process, stderr)  # type: ignore[arg-type]
    import httpx

    # Proxy settings must not apply to a server on this machine.
    asking = httpx.AsyncClient(
        trust_env=not is_loopback(first), timeout=httpx.Timeout(30.0, read=300.0), event_hooks=HOOKS
    )
    return streamable_http_client(first, http_client=await stack.enter_async_context(asking))


def foreign_tools(
    servers_given: Sequence[str], image_arguments: Mapping[str, str], used_names: Sequence[str]
) -> ForeignTools:
    """Return the tools of the servers; each server is contacted or started, asked for its tools, and disconnected.

    Args:
        servers_given: the values of `--mcp`.
        image_arguments: the values of `--mcp-image`, by tool name.
        used_names: the names of the built-in tools.

    Raises:
        UsageError: an unreachable server, two servers with one name, or an unknown tool in `--mcp-image`.
    """
    servers: dict[str, ForeignServer] = {}
    tools: dict[str, McpTool] = {}
    left_out: dict[str, str] = {}
    for address in map(foreign.read_server, servers_given):
        keep_words(address.words)
        if address.is_url:
            keep_address(address.words[0])
        if address.name in servers:
            raise UsageError(f"--mcp {address}: a server named {address.name} already exists")
        try:
            server, remote_tools = wait_for(_list_tools(address))
        except ToolError as error:
            raise UsageError(f"--mcp: {error}") from error
        servers[server.name] = server
        for remote_tool in remote_tools[:MAX_TOOLS]:
            name = foreign.foreign_name(server.name, remote_tool.name)
            try:
                added = foreign.foreign_tool(address, server, remote_tool, image_arguments.get(name, ""))
            except UsageError as error:
                left_out[name] = f"{name}: {error}"
            else:
                if name in used_names or tools.setdefault(name, added) is not added:
                    left_out[name] = f"{name}: a tool with that name already exists"
    if unknown := image_arguments.keys() - tools.keys() - left_out.keys():
        available = ", ".join(tools) or "none"
        raise UsageError(f"--mcp-image {min(unknown)}: unknown foreign tool; available: {available}")
    return ForeignTools(tuple(servers.values()), tools, left_out, partial(McpTools, tools))


async def _list_tools(address: ServerAddress) -> tuple[ForeignServer, list[protocol.Tool]]:
    async with connected(address) as (session, greeting), asyncio.timeout(START_S):
        title, version = (one_line(text)[:80] for text in (greeting.serverInfo.name, greeting.serverInfo.version))
        return ForeignServer(address.name, str(address), title, version), (await session.list_tools()).tools


class McpConnection:
    """A session kept open by its own task, because the package requires closing it in the task that opened it."""

    def __init__(self, server: ServerAddress) -> None:
        self.session: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._hold(server))

    async def _hold(self, server: ServerAddress) -> None:
        broken: ToolError = BrokenConnection("the connection is closed")
        try:
            async with connected(server) as (session, _):
                self.session.set_result(session)
                await asyncio.Event().wait()
        except ToolError as error:
            broken = error
        finally:
            if not self.session.done():
                self.session.set_exception(broken)

    async def ask(self, mcp_tool: McpTool, arguments: dict[str, Json], watch: Stopwatch) -> protocol.CallToolResult:
        """Return a call's result; time counts once a session exists. Raises `ToolError` or `BrokenConnection`."""
        name = mcp_tool.tool.card.name
        session = await asyncio.shield(self.session)
        params = protocol.CallToolRequestParams(name=mcp_tool.called, arguments=arguments)
        # Do not use `call_tool`, which would match results against regular expressions that the server wrote.
        request = protocol.ClientRequest(protocol.CallToolRequest(params=params))
        answer = asyncio.create_task(session.send_request(request, protocol.CallToolResult))
        try:
            with running([watch]):
                await asyncio.wait({answer, self.task}, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
        except McpError as error:
            # A restarted server does not know earlier sessions.
            if error.error.code == protocol.CONNECTION_CLOSED or error.error.message == "Session terminated":
                self.task.cancel()
                raise BrokenConnection(f"{name}: {error.error.message}", sent=True) from error
            fault = Fault.BAD_ARGUMENTS if error.error.code == protocol.INVALID_PARAMS else Fault.TOOL_ERROR
            raise ToolError(f"{name}: {clean(redact(error.error.message), MAX_TEXT)}", fault) from error
        except ValueError as error:
            raise ToolError(f"{name}: the answer is not a valid call result: {one_line(str(error))}") from error
        finally:
            answer.cancel()
        raise BrokenConnection(f"{name}: the connection has broken", sent=True)


class McpTools(CachedTools):
    """Runs built-in tools as `CachedTools` does, and tools of external servers by calling them."""

    def __init__(self, foreign_tools: Mapping[str, McpTool], *args: Any, **options: Any) -> None:
        """Connect to no server yet; the further arguments are those of `CachedTools`."""
        super().__init__(*args, **options)
        self._foreign = foreign_tools
        self._encoder = ImageEncoder(self.store, ImageRules())
        self._connections: dict[str, McpConnection] = {}
        self._repeating: dict[str, asyncio.Lock] = {}
        # Servers that were unreachable for `AWAY_S`, for which calls do not wait again.
        self._given_up: set[str] = set()

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
        """See `CachedTools.call`."""
        name = tool.card.name
        mcp_tool = self._foreign.get(name)
        if mcp_tool is None or mcp_tool.tool is not tool:
            return await super().call(tool, args, images, seed, spent, overlays=overlays)
        if self._closed:
            raise Outage("the tool service is closed")
        if len(images) != len(mcp_tool.images):
            raise ToolError(f"{name} takes {len(mcp_tool.images)} images, not {len(images)}", Fault.BAD_ARGUMENTS)
        encoded = [await asyncio.to_thread(self._encoder.encoded, ref.image) for ref in images]
        sent = mcp_tool.arguments([(data.decode("ascii"), image.media_type) for image, data in encoded])
        arguments = args.model_dump(mode="json", exclude_none=True) | sent
        spent = spent or CallTime()
        try:
            answer = await self._ask(mcp_tool, arguments, spent)
        except BrokenConnection:
            # Repeat broken calls of a server one at a time.
            async with self._repeating.setdefault(mcp_tool.address.name, asyncio.Lock()):
                answer = await self._ask_again(mcp_tool, arguments, spent)
        self._given_up.discard(mcp_tool.address.name)
        finding = await asyncio.to_thread(finding_of, name, mcp_tool.server.about, answer, images, self.store)
        self.computed += 1
        return finding

    async def _ask_again(
        self, mcp_tool: McpTool, arguments: dict[str, Json], spent: CallTime
    ) -> protocol.CallToolResult:
        """Repeat a call whose connection broke, while no other such call is running, and return its result.

        Raises `ToolError`, or `Outage` if the server stays unreachable or this service is closed.
        """
        server, start, breaks, pause = mcp_tool.address.name, self._clock(), 0, 0.25
        while True:
            try:
                return await self._ask(mcp_tool, arguments, spent)
            except BrokenConnection as error:
                breaks += error.sent
                if breaks == MAX_BREAKS:
                    raise ToolError(str(error)) from error
                if not error.sent and (server in self._given_up or self._clock() - start > AWAY_S):
                    self._given_up.add(server)
                    raise Outage(str(error)) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, 5.0)
            if self._closed:
                raise Outage("the tool service is closed")

    async def _ask(self, mcp_tool: McpTool, arguments: dict[str, Json], spent: CallTime) -> protocol.CallToolResult:
        connection = self._connections.get(mcp_tool.address.name)
        if connection is None or connection.task.done() or connection.task.cancelling():
            connection = self._connections[mcp_tool.address.name] = McpConnection(mcp_tool.address)
        watch = Stopwatch(self._clock)
        answer = asyncio.create_task(connection.ask(mcp_tool, arguments, watch))
        try:
            return await finished(mcp_tool.tool.card.name, answer, watch, spent, self._timeouts, self._clock)
        except ToolError as error:
            if self._closed:
                raise Outage("the tool service is closed") from error
            raise
        finally:
            answer.cancel()
            if watch.read().ran >= self._timeouts.running_s:
                # A question that ran out of time says nothing about the server, so only a call's own timeout closes the
                # connection.
                connection.task.cancel()

    def close(self) -> None:
        """Stop answering calls; a caller that still waits gets an `Outage`."""
        super().close()
        for connection in self._connections.values():
            connection.task.cancel()


def _part(content: protocol.ContentBlock) -> str | bytes:
    """Return a part of a result for a model: text, or an image as base64; for other types a placeholder."""
    if isinstance(content, protocol.TextContent):
        return content.text
    if isinstance(content, protocol.ImageContent):
        return content.data.encode()
    if isinstance(content, protocol.AudioContent):
        return "[a sound, which is left out]"
    if isinstance(content, protocol.ResourceLink):
        return f"[a link to {content.uri}{f': {content.description}' if content.description else ''}]"
    resource = content.resource
    if isinstance(resource, protocol.TextResourceContents):
        return resource.text
    if (resource.mimeType or "").startswith("image/") and resource.mimeType != "image/svg+xml":
        return resource.blob.encode()
    return f"[{resource.uri}: {len(resource.blob) * 3 // 4:,} bytes of {resource.mimeType or 'no type'}, left out]"


def texts_match(texts: Sequence[str], structured: Mapping[str, Json]) -> bool:
    """Return whether the text parts of a result agree with its structured content.

    FastMCP wraps a list as `{"result": [...]}` and writes one text part per item, but flattens nested lists and omits
    nulls: `[0.5, None, 0.7]` arrives as the texts "0.5" and "0.7". An object that is not wrapped has one text part,
    which is its JSON. Prose that the server wrote for people cannot be compared with anything, and counts as a match.
    """
    if structured.keys() == {"result"}:
        value = structured["result"]
        items = value if isinstance(value, list) else [value]
        return len(texts) == len(items) and all(map(_is_text_of, texts, items))
    if len(texts) == 1 and _is_text_of(texts[0], structured):
        return True
    return not all(map(_is_json, texts))


def _is_text_of(text: str, value: Json | Mapping[str, Json]) -> bool:
    if isinstance(value, str):
        return text == value
    # Compare as text, because True == 1 in Python.
    return _is_json(text) and json.dumps(json.loads(text), sort_keys=True) == json.dumps(value, sort_keys=True)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def finding_of(
    name: str, version: str, result: protocol.CallToolResult, images: Sequence[ImageRef], store: ImageStore
) -> Finding:
    """Convert a result of the tool `name` on `images` to a tool output.

    Images of the result are stored and belong to the call's first image, if any. `confidence` is that of the structured
    content if it is a number in 0..1, else 0.0.

    Raises:
        ToolError: the server reports a failed call, or the result is empty, too large or unreadable.
    """
    parts = [_part(content) for content in result.content]
    text = clean(redact("\n".join(part for part in parts if isinstance(part, str))), MAX_TEXT)
    encoded = [part.decode() for part in parts if isinstance(part, bytes)]
    # Replace non-finite numbers, which JSON does not have, by null and keep the rest.
    structured = json.loads(json.dumps(result.structuredContent or {}), parse_constant=lambda _: None)
    data_text = json.dumps(structured)
    data = json.loads(redact(data_text))
    texts = [part for part in parts if isinstance(part, str)]
    if data and not (text and texts_match(texts, structured)):
        text = clean(json.dumps(data, ensure_ascii=False), MAX_TEXT)
    if result.isError:
        raise ToolError(f"{name}: {text or 'the call failed, and the server does not say why'}")
    try:
        if len(data_text) > MAX_DATA or len(encoded) > MAX_IMAGES:
            raise ValueError(f"it has {len(encoded)} images and {len(data_text):,} characters of data")  # noqa: TRY301
        stored = [store.put(read_image({"data": data}, None), "an image") for data in encoded]
    except (DataError, ValueError) as error:
        raise ToolError(f"{name}: the result cannot be used: {one_line(str(error))}") from error
    except OSError as error:
        raise Outage(f"images cannot be written: {error.strerror or error}") from error
    if not (text or stored):
        raise ToolError(f"{name}: the result has no text, image or structured content")
    value = data.get("confidence")
    is_confidence = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0
    refs = tuple(ImageRef("", image, images[0].name if images else None) for image in stored)
    return Finding(
        text, data, float(value) if is_confidence else 0.0, backend=foreign.BACKEND, version=version, images=refs
    )
