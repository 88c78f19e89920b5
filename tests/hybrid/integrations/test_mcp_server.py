"""`hybrid tools serve` as clients see it: the official client over stdio and HTTP, and LangChain's adapters."""

import asyncio
import base64
import http.client
import json
import re
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import jsonschema
import mcp.types as protocol
import uvicorn
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.memory import create_connected_server_and_client_session
from uvicorn.server import ServerState

import hybrid
from hybrid.core.secrets import keep_secret
from hybrid.integrations.mcp.server import PATH, ImpatientProtocol, listening, mcp_server, output_schema
from hybrid.integrations.toolbox import Toolbox
from hybrid.interface.findings import ShownFinding
from tests.hybrid.integrations.served import SERVE, Served, environment, over_http
from tests.tables import cases

QUADRANTS = {"grid": {"rows": 2, "columns": 2}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, fakes: Any) -> Path:
    """A folder with a picture in it, and a link to a picture next to it."""
    image_folder = tmp_path_factory.mktemp("images")
    pictures = image_folder / "pictures"
    pictures.mkdir()
    (pictures / "one.png").write_bytes(fakes.encoded(fakes.pixels(0, (64, 48))))
    (image_folder / "outside.png").write_bytes(fakes.encoded(fakes.pixels(1, (64, 48))))
    (pictures / "link.png").symlink_to(image_folder / "outside.png")
    return pictures


@asynccontextmanager
async def over_stdio(*command: str, errors: Path) -> AsyncIterator[ClientSession]:
    """Start a server with the official client; data that the client could not read fail the test."""
    strange: list[object] = []

    async def hear(message: object) -> None:
        strange.append(message)

    server = StdioServerParameters(command=command[0], args=list(command[1:]), env=environment())
    with errors.open("w") as log:
        async with stdio_client(server, log) as (read, write), ClientSession(read, write, message_handler=hear) as item:
            await item.initialize()
            yield item
    assert strange == []


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Served]:
    """A server over HTTP shared by all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(tmp_path_factory.mktemp("home")))
        with over_http("--tools", "crop,depth", "--allow-folder", str(folder), "--backend", "classical") as served:
            yield served


async def check_session(session: ClientSession, folder: Path) -> None:
    """Check a server with the tools crop and depth and this folder, as any client sees it."""
    by_name = {tool.name: tool for tool in (await session.list_tools()).tools}
    assert set(by_name) == {"crop", "depth"}
    card = hybrid.tool("depth").tool.card
    description = by_name["depth"].description or ""
    for words in (card.summary, card.limits, *(backend.summary for backend in card.backends)):
        assert words in description
    for name, tool in by_name.items():
        assert tool.outputSchema == output_schema(hybrid.tool(name).tool)
    data = base64.b64encode((folder / "one.png").read_bytes()).decode()
    expected = hybrid.tool("crop").run(folder / "one.png", **QUADRANTS)
    payload = {"type": "image", "data": data, "mimeType": "image/png"}
    for image in ("one.png", f"data:image/png;base64,{data}", data, payload):
        arguments = {"images": [image], **QUADRANTS}
        jsonschema.validate(arguments, by_name["crop"].inputSchema)
        result = await session.call_tool("crop", arguments)
        assert not result.isError
        text, *pictures = result.content
        assert isinstance(text, protocol.TextContent)
        assert text.text == expected.text
        assert all(isinstance(picture, protocol.ImageContent) for picture in pictures)
        assert [base64.b64decode(picture.data) for picture in pictures] == list(expected.pngs)  # type: ignore[union-attr]
        assert {picture.mimeType for picture in pictures} == {"image/png"}  # type: ignore[union-attr]
        assert result.structuredContent == expected.as_json()
    for image in ("link.png", "../outside.png", str(folder / "one.png"), f"file://{folder}/one.png"):
        result = await session.call_tool("crop", {"images": [image]})
        assert result.isError
        assert isinstance(result.content[0], protocol.TextContent)
        assert "the allowed folder has no image" in result.content[0].text


@pytest.mark.system
async def test_the_official_client_over_stdio(folder: Path, tmp_path: Path) -> None:
    words = ("--tools", "crop,depth", "--allow-folder", str(folder), "--backend", "classical")
    async with over_stdio(*SERVE, *words, errors=tmp_path / "errors") as session:
        await check_session(session, folder)
    assert (tmp_path / "errors").read_text() == ""


@pytest.mark.system
async def test_the_official_client_over_http(web: Served, folder: Path) -> None:
    async with streamable_http_client(web.url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        await check_session(session, folder)


@pytest.mark.system
async def test_agents_of_langchain_get_pictures_as_image_blocks(web: Served, folder: Path) -> None:
    pytest.importorskip("langchain_mcp_adapters")
    from langchain_mcp_adapters.client import MultiServerMCPClient

    client = MultiServerMCPClient({"hybrid": {"transport": "streamable_http", "url": web.url}})
    crop = next(tool for tool in await client.get_tools() if tool.name == "crop")
    call = {"type": "tool_call", "id": "1", "name": "crop", "args": {"images": ["one.png"], **QUADRANTS}}
    message = await crop.ainvoke(call)
    expected = hybrid.tool("crop").run(folder / "one.png", **QUADRANTS)
    text, *pictures = message.content_blocks
    assert (text["type"], text["text"]) == ("text", expected.text)
    assert {(picture["type"], picture["mime_type"]) for picture in pictures} == {("image", "image/png")}
    assert [base64.b64decode(picture["base64"]) for picture in pictures] == list(expected.pngs)
    assert message.artifact["structured_content"] == expected.as_json()
    refused = await crop.ainvoke({**call, "args": {"images": ["absent.png"]}})
    assert refused.status == "error"
    assert "the allowed folder has no image 'absent.png'" in str(refused.content)


NOISY = """
import asyncio, os, subprocess, sys
from hybrid.core.images import ImageStore, home
from hybrid.integrations.mcp.server import serve_stdio
from hybrid.integrations.toolbox import Toolbox
from hybrid.cli._output import RedactedStream
from hybrid.serving.cache import FindingCache
from hybrid.config import ServiceOptions
from hybrid.serving.service import CachedTools
from hybrid.tool import Args, BackendCard, Card, Evidence, Tool

class Noisy:
    def setup(self, device, weights):
        print("setting up")

    def run(self, requests):
        print("printed")
        os.write(1, b"written to the handle\\n")
        subprocess.run(["echo", "by a child"])
        nothing = os.path.samestat(os.fstat(0), os.stat(os.devnull))
        print("there is nothing to read" if nothing else "the protocol can be read")
        return [Evidence("heard", {}, 0.5) for _ in requests]

# As the program has it.
sys.stdout = RedactedStream(sys.stdout, needed=True)
tool = Tool(Card("noisy", "It prints.", "None.", (BackendCard("classical", "1", Noisy, "Prints."),)), Args)
store = ImageStore(home() / "images")
service = CachedTools(store, FindingCache(None, store), ServiceOptions(pictures="png"))
asyncio.run(serve_stdio(Toolbox({"noisy": tool}, service)))
"""


@pytest.mark.system
async def test_nothing_but_protocol_is_on_stdout(folder: Path, tmp_path: Path) -> None:
    script, errors = tmp_path / "noisy.py", tmp_path / "errors"
    script.write_text(NOISY)
    data = base64.b64encode((folder / "one.png").read_bytes()).decode()
    async with over_stdio(sys.executable, "-W", "ignore", str(script), errors=errors) as session:
        result = await session.call_tool("noisy", {"image": {"data": data}})
        assert not result.isError, result.content
        assert result.structuredContent is not None
        assert (result.structuredContent["text"], result.structuredContent["confidence"]) == ("heard", 0.5)
    text = errors.read_text()
    for words in ("setting up", "printed", "written to the handle", "by a child", "there is nothing to read"):
        assert words in text


@pytest.mark.parametrize(*cases(__file__, "test_an_error_is_a_result_that_says_so", list))
async def test_an_error_is_a_result_that_says_so(name: str, arguments: dict[str, Any], words: str) -> None:
    toolbox = Toolbox.of(["crop"])
    async with create_connected_server_and_client_session(mcp_server(toolbox)) as session:
        result = await session.call_tool(name, arguments)
        assert result.isError
        (content,) = result.content
        assert isinstance(content, protocol.TextContent)
        assert words in content.text
        assert "\n" not in content.text
        # The server continues.
        assert len((await session.list_tools()).tools) == 1
    toolbox.close()


async def test_a_defect_is_an_error_without_the_keys_of_this_machine() -> None:
    class Broken(Toolbox):
        async def call(self, name: str, arguments: Any) -> Any:
            if name == "told":
                return ShownFinding("it reads sk-secret-secret-secret", {"n": "sk-secret-secret-secret"}, 1.0, "b", "1")
            raise ZeroDivisionError("sk-secret-secret-secret")

    keep_secret("sk-secret-secret-secret")
    box = Toolbox.of(["crop"])
    async with create_connected_server_and_client_session(mcp_server(Broken(box.tools, box.service))) as session:
        result = await session.call_tool("any", {})
        text = await session.call_tool("told", {})
    box.close()
    assert result.isError
    assert isinstance(result.content[0], protocol.TextContent)
    assert result.content[0].text == "any failed: ZeroDivisionError: [redacted]"
    assert not text.isError
    assert text.structuredContent is not None
    assert (text.structuredContent["text"], text.structuredContent["data"]) == (
        "it reads [redacted]",
        {"n": "[redacted]"},
    )
    assert "secret" not in text.model_dump_json()


INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
)
SPOKEN = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def status(served: Served, headers: dict[str, str], path: str = PATH, method: str = "POST") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    by_header = {name: value.replace("PORT", str(served.port)) for name, value in headers.items()}
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in {**SPOKEN, "Content-Length": str(len(INITIALIZE)), **by_header}.items():
            connection.putheader(name, value)
        connection.endheaders(INITIALIZE.encode())
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(*cases(__file__, "test_a_request_is_meant_for_this_address_and_comes_from_no_other_page"))
def test_a_request_is_meant_for_this_address_and_comes_from_no_other_page(
    web: Served, headers: dict[str, str], expected: int
) -> None:
    assert status(web, headers) == expected


def test_there_is_one_path_and_one_address(web: Served) -> None:
    host = {"Host": "127.0.0.1:PORT"}
    assert status(web, host, "/") == 404
    assert status(web, host, "/mcp/../etc/passwd") == 404
    assert status(web, host, method="PUT") == 405
    # An accepted GET request would open a stream of events and keep the connection.
    assert status(web, {**host, "Accept": "text/event-stream"}, method="GET") == 405
    with socket.socket() as other, pytest.raises(OSError, match="refused"):
        # The server does not listen at the same port of another address of this machine.
        other.connect(("127.0.0.2", web.port))


def test_two_hosts_or_none_are_refused(web: Served) -> None:
    for heads in (b"", b"Host: 127.0.0.1:%d\r\nHost: example.org\r\n" % web.port):
        with socket.create_connection(("127.0.0.1", web.port)) as connection:
            data = "".join(f"{name}: {value}\r\n" for name, value in SPOKEN.items()).encode()
            rest = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(INITIALIZE)
            connection.sendall(b"POST /mcp HTTP/1.1\r\n" + heads + data + rest + INITIALIZE.encode())
            assert re.match(rb"HTTP/1\.1 4(00|21) ", connection.makefile("rb").readline())


def test_a_body_without_end_is_refused_before_it_is_read(web: Served) -> None:
    assert status(web, {"Host": "127.0.0.1:PORT", "Content-Length": str(10**12)}) == 413


@asynccontextmanager
async def impatient(app: Any) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to an application behind `ImpatientProtocol`."""
    config = uvicorn.Config(app, lifespan="off")
    config.load()
    make_protocol = lambda: ImpatientProtocol(config, ServerState(), {})  # noqa: E731
    async with await asyncio.get_running_loop().create_server(make_protocol, sock=listening(0)) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        yield reader, writer
        writer.close()


@pytest.mark.parametrize(
    "beginning",
    [b"", b"POST /mcp HTTP/1.1\r\nHost: a", b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"],
)
async def test_a_connection_that_falls_silent_is_closed(beginning: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.integrations.mcp.server.IDLE_S", 0.01)

    async def read_body(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        raise ConnectionError

    async with impatient(read_body) as (reader, writer):
        writer.write(beginning)
        # If the timer ends before the server has read these bytes, the system resets the connection instead.
        with suppress(ConnectionResetError):
            assert await reader.read() == b""


async def test_a_request_that_is_being_answered_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.integrations.mcp.server.IDLE_S", 0.01)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.1)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with impatient(answer) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 204")


def test_a_port_that_is_taken_is_an_error() -> None:
    with listening(0) as first, pytest.raises(OSError, match="in use"):
        listening(first.getsockname()[1])


CRASHES = '''"""A tool whose library ends the process."""

import os

from hybrid.tool import Args, BackendCard, Card, Tool


class CrashesArgs(Args):
    """No arguments."""


class Crashes:
    def setup(self, device, weights):
        """Nothing to load."""

    def run(self, requests):
        os._exit(9)


BACKEND = BackendCard("classical", "1", Crashes, "Ends the process.")
TOOL = Tool(Card("crashes", "It ends the process.", "None.", (BACKEND,)), CrashesArgs)
'''


@pytest.mark.system
async def test_a_tool_that_ends_its_process_costs_the_call_and_not_the_server(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "crashes.py").write_text(CRASHES)
    words = ("--tool-path", str(tmp_path / "own"), "--tools", "crashes,crop", "--allow-folder", str(folder))
    async with over_stdio(*SERVE, *words, errors=tmp_path / "errors") as session:
        result = await session.call_tool("crashes", {"image": "one.png"})
        assert result.isError
        assert "crashes ended its worker process" in str(result.content)
        assert not (await session.call_tool("crop", {"image": "one.png", **QUADRANTS})).isError
