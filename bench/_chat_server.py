"""Servers on the loopback interface, and one of chat completions that answers after a fixed time and logs its requests.

with chat_server(latency_s=0.1) as server:
    ...                       # POST {server.url}/chat/completions
    requests = server.log()   # one `Served` per request, in order of completion
with on_thread(lambda head, body: framed(b"{}")) as url:
    ...                       # any other server: maps head and body of a request to the bytes of its reply
"""

from __future__ import annotations

import asyncio
import inspect
import json
import queue
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench._frame import options
from hybrid.running.probes import ORDER_NUMBERS, ORDER_TEXT, PROBE_NUMBER, PROBE_TEXT

ROOT = Path(__file__).resolve().parents[1]

# The pattern begins with letters, so a search in a body of 100 kB takes only microseconds.
QUESTION = re.compile(rb"uestion (\d+)")
TOOL_RESULT = (b'"role":"tool"', b'"role": "tool"')
CALL_PROBE_TEXT = re.compile(rb"Call the tool (\w+) once on the image")
TOOLS = (b'"tools":[', b'"tools": [')
ANSWER = "Answer: (A)"
CROP_BOX = {"x0": 10, "y0": 10, "x1": 110, "y1": 90}
BUFFER_BYTES = 1 << 20

# The bytes of a response, or pieces of them that are sent separately.
Reply = bytes | Sequence[bytes]
# Maps the head and body of a request to its reply. A `ConnectionError` breaks the connection.
Answer = Callable[[bytes, bytes], Reply | Awaitable[Reply]]


@dataclass(frozen=True)
class Served:
    """One request: its question, its number of tool results, its size, and when it was received and answered."""

    question: int
    tool_results: int
    request_bytes: int
    # Seconds since the epoch when the last byte of the request arrived.
    received_s: float
    answered_s: float


@dataclass(frozen=True)
class ChatServer:
    """A running server."""

    # Ends in `/v1`, as clients expect.
    url: str

    def count(self) -> int:
        """Return the number of requests answered so far."""
        return int(self._fetch("count"))

    def log(self) -> tuple[Served, ...]:
        """Return all requests answered so far."""
        return tuple(Served(**entry) for entry in self._fetch("log"))

    def _fetch(self, what: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/{what}", timeout=30) as reply:  # noqa: S310
            return json.load(reply)


@contextmanager
def chat_server(latency_s: float) -> Iterator[ChatServer]:
    """Run a server on a free port of 127.0.0.1, in a separate process, until the context manager exits.

    The separate process keeps the cost of the client apart from that of the server. A request that offers tools gets
    one call of `crop`, any other an answer. The words "question 17" in a prompt identify the question.
    """
    command = [sys.executable, "-m", "bench._chat_server", "--latency-s", str(latency_s)]
    # `bench` is a folder of commands that is not installed, so only the root can import it.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:  # noqa: S603
        try:
            assert process.stdout is not None  # noqa: S101
            yield ChatServer(f"http://127.0.0.1:{int(process.stdout.readline())}/v1")
        finally:
            process.terminate()


@contextmanager
def on_thread(answer: Answer) -> Iterator[str]:
    """Yield the address of a server on a thread of this process. Exceptions of `answer` are raised on exit."""
    defects, started_ids = list[Exception](), queue.SimpleQueue[tuple[int, Callable[[], object]]]()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answered(answer, reader, writer)
        except Exception as error:
            defects.append(error)
            writer.close()

    async def serve() -> None:
        server, event, loop = await _listening(connection), asyncio.Event(), asyncio.get_running_loop()
        started_ids.put((server.sockets[0].getsockname()[1], lambda: loop.call_soon_threadsafe(event.set)))
        await event.wait()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    port, end = started_ids.get()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        end()
        thread.join()
    if defects:
        raise defects[0]


async def _listening(connection: Callable[..., Awaitable[None]]) -> asyncio.Server:
    return await asyncio.start_server(connection, "127.0.0.1", 0, limit=BUFFER_BYTES, backlog=512)


async def answered(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request of one connection, until either side closes it."""
    with suppress(ConnectionError):
        while (request := await read_request(reader)) is not None:
            result = answer(*request)
            reply = await result if inspect.isawaitable(result) else result
            for piece in (reply,) if isinstance(reply, bytes) else reply:
                writer.write(piece)
                await writer.drain()
    writer.close()


def tool_results(body: bytes) -> int:
    """Return the number of tool results in a request."""
    return sum(body.count(text) for text in TOOL_RESULT)


def offers_tools(body: bytes) -> bool:
    """Return whether a request offers tools."""
    return any(text in body for text in TOOLS)


async def read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes] | None:
    """Read the head and body of the next request of a connection; None if the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        return head, await reader.readexactly(int(length[1])) if length else b""
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def framed(body: bytes, status: str = "200 OK", headers: Mapping[str, str] | None = None) -> bytes:
    """Return an HTTP/1.1 response with a JSON body."""
    payload = {"Content-Type": "application/json", "Content-Length": len(body), **(headers or {})}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in payload.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def answer_body(
    message: Mapping[str, Any], finish_reason: str, *, input_tokens: int = 100, output_tokens: int = 10
) -> bytes:
    """Return a chat completion with one message."""
    counts = {"prompt_tokens": input_tokens, "completion_tokens": output_tokens}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "mock",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}],
        "usage": {**counts, "total_tokens": input_tokens + output_tokens},
    }
    return json.dumps(body).encode()


def sight(body: bytes) -> bytes | None:
    """Answer a run's initial checks like a model that sees images and calls tools; None for other questions."""
    if PROBE_TEXT.encode() in body:
        return framed(answer_body({"content": PROBE_NUMBER}, "stop"))
    if ORDER_TEXT.encode() in body:
        return framed(answer_body({"content": " ".join(ORDER_NUMBERS)}, "stop"))
    match = CALL_PROBE_TEXT.search(body)
    if match is None or not offers_tools(body):
        return None
    return framed(answer_body(tool_call('{"images": ["img:1"]}', match[1].decode()), "tool_calls"))


def tool_call(arguments: str, name: str = "crop", identity: str = "call_1") -> dict[str, Any]:
    """Return the message of a model that calls a tool; `arguments` is the JSON text of the arguments."""
    call = {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"content": None, "tool_calls": [call]}


class _Mock:
    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s
        self._served: list[Served] = []
        self._answer = framed(answer_body({"content": ANSWER}, "stop"))
        arguments = json.dumps({"images": ["img:1"], "box": CROP_BOX})
        self._call = framed(answer_body(tool_call(arguments), "tool_calls"))

    async def __call__(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"GET /v1/count"):
            return framed(json.dumps(len(self._served)).encode())
        if head.startswith(b"GET /v1/log"):
            return framed(json.dumps([asdict(entry) for entry in self._served]).encode())
        if not head.startswith(b"POST"):
            return framed(json.dumps({"object": "list", "data": [{"id": "mock", "object": "model"}]}).encode())
        if (seen := sight(body)) is not None:
            return seen
        start = time.time()
        match, results = QUESTION.search(body), tool_results(body)
        await asyncio.sleep(self._latency_s)
        self._served.append(Served(int(match[1]) if match else -1, results, len(body), start, time.time()))
        return self._call if offers_tools(body) and not results else self._answer


async def _serve(latency_s: float) -> None:
    mock = _Mock(latency_s)
    server = await _listening(lambda reader, writer: answered(mock, reader, writer))
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(options(__doc__, {"--latency-s": 0.0}).latency_s))
