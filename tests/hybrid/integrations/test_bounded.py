"""Messages of MCP servers have a maximum size, over HTTP and over stdio."""

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

pytest.importorskip("mcp")

import httpx

from hybrid.integrations.mcp import bounded, client
from hybrid.integrations.mcp.bounded import HOOKS, MessageTooLargeError

EVENT = b"data: 12345678\n\n"


class Chunks(httpx.AsyncByteStream):
    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


async def read(chunks: Sequence[bytes], headers: dict[str, str]) -> bytes:
    """Return the part of a response that a client with the limiting hooks reads."""

    def respond(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept-encoding"] == "identity"
        return httpx.Response(200, headers=headers, stream=Chunks(chunks))

    asking = httpx.AsyncClient(transport=httpx.MockTransport(respond), event_hooks=HOOKS)
    async with asking, asking.stream("GET", "http://127.0.0.1/mcp") as response:
        return b"".join([chunk async for chunk in response.aiter_raw()])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_MESSAGE_BYTES", 40)


@pytest.mark.parametrize(
    ("chunks", "kind"),
    [
        ([b"x" * 20, b"y" * 20], "application/json"),
        ([EVENT] * 90, "text/event-stream"),
        ([EVENT * 90], "text/event-stream"),
        # The end of an event is split between chunks.
        ([b"data: 12345678\n", b"\n"] * 9, "text/event-stream"),
        ([b"data: 12345678\r\n", b"\r\n"] * 9, "text/event-stream"),
        ([b"data: 12345678\r\n\r", b"\n"] * 9, "text/event-stream"),
        ([b"data: 12345678\r", b"\n", b"\r", b"\n"] * 9, "text/event-stream"),
        ([b"data: 12345678\r", b"\r"] * 9, "text/event-stream"),
    ],
)
async def test_messages_within_the_limit_are_read(chunks: Sequence[bytes], kind: str) -> None:
    assert await read(chunks, {"content-type": kind}) == b"".join(chunks)


@pytest.mark.parametrize(
    ("chunks", "headers"),
    [
        ([b"x" * 20, b"y" * 21], {}),
        ([EVENT, b"data: 1\n" * 5, b"x"], {"content-type": "text/event-stream"}),
        ([b"x" * 99], {"content-type": "text/event-stream"}),
        # A single line end does not end an event.
        ([b"data: 1\r", b"\n"] * 5, {"content-type": "text/event-stream"}),
        ([b"x"], {"content-encoding": "gzip"}),
    ],
)
async def test_a_message_past_the_limit_ends_the_reading(chunks: Sequence[bytes], headers: dict[str, str]) -> None:
    with pytest.raises(MessageTooLargeError):
        await read(chunks, headers)


@pytest.mark.system
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("[print('x' * 29) for _ in range(9)]", (0, b"x" * 29 + b"\n", "")),
        ("import sys; sys.exit(3)", (3, b"", "")),
        (
            "import itertools; [print('x' * 9, end='') for _ in itertools.count()]",
            (1, b"", "a message of more than 30"),
        ),
    ],
)
def test_a_line_over_stdio_has_the_limit(code: str, expected: tuple[int, bytes, str]) -> None:
    words = [sys.executable, "-E", client.RELAY, "30", sys.executable, "-c", code]
    end = subprocess.run(words, capture_output=True, check=False)
    status, line, error = expected
    assert end.returncode == status
    assert {row for row in end.stdout.splitlines(keepends=True) if row.endswith(b"\n")} <= {line}
    assert error in end.stderr.decode()


@pytest.mark.system
def test_a_command_that_is_not_there_is_named() -> None:
    end = subprocess.run([sys.executable, "-E", client.RELAY, "30", "/no/such"], capture_output=True, check=False)
    assert (end.returncode, end.stderr) == (127, b"/no/such: No such file or directory\n")
    assert Path(client.RELAY).is_file()
