"""Hybrid's tools as an MCP server (modelcontextprotocol.io): over stdio, or streamable HTTP on this machine only.

    hybrid tools serve --tools crop,depth --allow-folder pictures
    hybrid tools serve --http

A result has text and pictures as content, and numbers, confidence and backend as structured content. If a tool cannot
answer, the result says so (`isError`). docs/security.md describes the server's exposure. It needs the extra `mcp`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import signal
import socket
import sys
import tomllib
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import click
import mcp.types as protocol
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from uvicorn.protocols.http.h11_impl import H11Protocol

from hybrid.core.errors import HybridError
from hybrid.core.images import PNG
from hybrid.core.secrets import redact
from hybrid.integrations.pictures import MAX_BYTES
from hybrid.integrations.toolbox import COORDINATES, Toolbox
from hybrid.tool import Tool
from hybrid.version import __version__

ADDRESS = "127.0.0.1"
PATH = "/mcp"
# Maximum bytes of one HTTP request; base64 encodes three bytes of an image as four.
MAX_BODY_BYTES = 2 * MAX_BYTES
METHODS = ("POST", "DELETE")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Seconds without data after which a connection that has not sent a complete request is closed.
IDLE_S = 30.0
# Seconds for running calls to finish when the server is stopped.
LEAVE_S = 2
# JSON schema of the structured content, the same for all tools.
STRUCTURE: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger(__name__)


def output_schema(tool: Tool) -> dict[str, Any]:
    """Return the JSON schema of a tool's structured content, with the schema of its data if it declares one."""
    if tool.output is None:
        return STRUCTURE
    # References in the data's schema are resolved from the root, so its `$defs` move there.
    data = {key: value for key, value in tool.output.items() if key != "$defs"}
    schema = {**STRUCTURE, "properties": {**STRUCTURE["properties"], "data": data}}
    return {**schema, "$defs": tool.output["$defs"]} if "$defs" in tool.output else schema


def mcp_server(toolbox: Toolbox) -> Server[Any, Any]:
    """Return a server for the toolbox, which is not connected yet."""
    by_name = "" if toolbox.folder is None else " or as the path of a file from the allowed folder on"
    server: Server[Any, Any] = Server(
        "hybrid",
        __version__,
        f"Vision specialists that look at images. An image is given as a data URL or base64{by_name}. {COORDINATES}",
    )

    async def list_tools(request: protocol.ListToolsRequest) -> protocol.ServerResult:
        tool_list = [
            protocol.Tool(
                name=name,
                description=toolbox.describe(name),
                inputSchema=toolbox.schema(name),
                outputSchema=output_schema(toolbox.tools[name]),
                annotations=protocol.ToolAnnotations(readOnlyHint=True, openWorldHint=False),
            )
            for name in toolbox.tools
        ]
        return protocol.ServerResult(protocol.ListToolsResult(tools=tool_list))

    async def call_tool(request: protocol.CallToolRequest) -> protocol.ServerResult:
        name = request.params.name
        try:
            finding = await toolbox.call(name, request.params.arguments or {})
            facts = json.loads(redact(json.dumps(finding.as_json())))
            pictures = [
                protocol.ImageContent(type="image", data=base64.b64encode(png).decode(), mimeType=PNG)
                for png in finding.pngs
            ]
            text = protocol.TextContent(type="text", text=facts["text"])
            result = protocol.CallToolResult(content=[text, *pictures], structuredContent=facts)
        except (HybridError, OSError) as error:
            message = redact(str(error))
        except Exception as error:
            log.exception("a defect in the tool %s", name)
            message = redact(f"{name} failed: {type(error).__name__}: {error}")
        else:
            return protocol.ServerResult(result)
        failed = protocol.CallToolResult(content=[protocol.TextContent(type="text", text=message)], isError=True)
        return protocol.ServerResult(failed)

    # The package's decorators would validate arguments first, and put image data into their error messages.
    server.request_handlers[protocol.ListToolsRequest] = list_tools
    server.request_handlers[protocol.CallToolRequest] = call_tool
    return server


def serve(toolbox: Toolbox, port: int | None) -> None:
    """Serve over stdin and stdout, or over HTTP on a port (0 for a free one), printing the address on stderr."""
    if port is None:
        # Exit at once: an orderly end would wait for a thread that reads stdin, and there is nothing to save.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        asyncio.run(serve_stdio(toolbox))
        return
    with listening(port) as bound:
        address = f"http://{ADDRESS}:{bound.getsockname()[1]}{PATH}"
        click.echo(f"{address} serves {len(toolbox.tools)} tools; Ctrl-C ends it", err=True)
        asyncio.run(serve_http(toolbox, bound))
        click.echo("ended", err=True)


async def serve_stdio(toolbox: Toolbox) -> None:
    """Serve over this process's own stdin and stdout until stdin ends.

    Meanwhile other readers of stdin get nothing, and other output goes to stderr. The file descriptors 0 and 1
    themselves are redirected, so that this includes C libraries and processes that a tool starts.
    """
    server = mcp_server(toolbox)
    sys.stdout.flush()
    reads, writes = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        with (
            open(reads, encoding="utf-8", errors="replace") as stdin,
            open(writes, "w", encoding="utf-8", newline="\n") as stdout,
        ):
            async with stdio_server(anyio.wrap_file(stdin), anyio.wrap_file(stdout)) as (read, write):
                await server.run(read, write, server.create_initialization_options())
    finally:
        sys.stdout.flush()


class LoopbackOnly:
    """An ASGI application with the access rules of a local server; `hybrid view` uses the same rules.

    A request gets 421 if its `Host` is not the opened address (DNS rebinding), 403 if it comes from another `Origin`,
    and 404 if it is for another path. A GET request gets 405: it would open an event stream, which this server does not
    have, and keep the connection open indefinitely. All checks precede reading the body.
    """

    def __init__(self, app: App, port: int) -> None:
        self._app = app
        self._hosts = frozenset((f"{ADDRESS}:{port}", f"localhost:{port}"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            status = 421
        elif any(origin != f"http://{hosts[0]}" for origin in _values(scope, b"origin")):
            status = 403
        elif scope["path"] != PATH:
            status = 404
        elif scope["method"] not in METHODS:
            status = 405
        else:
            await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")]
        headers += [(b"allow", ", ".join(METHODS).encode())] if status == 405 else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": f"{status}\n".encode()})


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for key, value in scope["headers"] if key.lower() == name]


def listening(port: int) -> socket.socket:
    """Return a listening socket on 127.0.0.1; port 0 for a free one. Raises `OSError` if the port is taken."""
    bound = socket.socket()
    try:
        bound.bind((ADDRESS, port))
        bound.listen()
    except BaseException:
        bound.close()
        raise
    return bound


async def serve_http(toolbox: Toolbox, bound: socket.socket) -> None:
    """Serve on a socket from `listening` until SIGINT or SIGTERM. This must run in the main thread.

    Each request is answered separately with JSON, because the tools keep no state about clients.
    """
    manager = StreamableHTTPSessionManager(
        mcp_server(toolbox), json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
    )
    app = LoopbackOnly(manager.handle_request, bound.getsockname()[1])
    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=LEAVE_S,
    )
    server, loop = _Ended(config), asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, server.handle_exit, number, None)
    try:
        async with manager.run():
            await server.serve([bound])
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


class ImpatientProtocol(H11Protocol):
    """A connection that is closed after `IDLE_S` of silence; uvicorn would wait forever for an unfinished request."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request, and wait for the next part."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(IDLE_S, self._close_if_silent)

    def _close_if_silent(self) -> None:
        # Do not close the connection while a complete request is being answered.
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            self.transport.close()


class _Ended(uvicorn.Server):
    """A server that a signal stops in an orderly way; uvicorn's own server would raise the signal again."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing, because the event loop has its own handlers."""
        yield
