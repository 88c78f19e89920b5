"""An OpenAI-compatible server on the loopback interface that answers after a fixed time and logs its requests.

    with chat_server(latency_s=0.1) as server:
        ...                       # POST {server.url}/chat/completions
        requests = server.log()   # one `Served` a request, in the order of their ends

It runs in a process of its own, so that what a client costs is not mixed with what the server costs. A request that
offers tools gets one call of `crop`; every other one gets an answer. The words "question 17" of its prompt identify the
question. `answer_body` and `read_request` serve other servers too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hybrid.running.probes import PROBE_NUMBER, PROBE_TEXT

ROOT = Path(__file__).resolve().parents[1]

# A pattern that begins with letters, and plain texts, are found in a body of 100 kB in microseconds.
QUESTION = re.compile(rb"uestion (\d+)")
TOOL_RESULT = (b'"role":"tool"', b'"role": "tool"')
CALL_PROBE_TEXT = re.compile(rb"Call the tool (\w+) once on the image")
TOOLS = (b'"tools":[', b'"tools": [')
ANSWER = "Answer: (A)"
CROP_BOX = {"x0": 10, "y0": 10, "x1": 110, "y1": 90}
BUFFER_BYTES = 1 << 20
START_S = 30


@dataclass(frozen=True)
class Served:
    """One request: which question, how many tool results it carried, its size, and when it came and was answered."""

    question: int
    tool_results: int
    request_bytes: int
    began: float
    """Seconds since the epoch, when the last byte of the request had come."""
    ended: float


@dataclass(frozen=True)
class ChatServer:
    """A server that runs."""

    url: str
    """With `/v1` at its end, as clients want it."""

    def count(self) -> int:
        """Requests answered so far."""
        with urllib.request.urlopen(f"{self.url}/count", timeout=30) as reply:  # noqa: S310
            return int(json.load(reply))

    def log(self) -> tuple[Served, ...]:
        """Every request that was answered so far."""
        with urllib.request.urlopen(f"{self.url}/log", timeout=30) as reply:  # noqa: S310
            return tuple(Served(**entry) for entry in json.load(reply))


@contextmanager
def chat_server(latency_s: float) -> Iterator[ChatServer]:
    """A server in a separate process, on a free port of 127.0.0.1, until the block ends."""
    command = [sys.executable, "-m", "bench._chat_server", "--latency-s", str(latency_s)]
    # `bench` is a folder of commands and not installed: it is found from the root alone.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:  # noqa: S603
        try:
            assert process.stdout is not None  # noqa: S101
            yield ChatServer(f"http://127.0.0.1:{int(process.stdout.readline())}/v1")
        finally:
            process.terminate()


def tool_results(body: bytes) -> int:
    """Number of tool results that a request carries."""
    return sum(body.count(text) for text in TOOL_RESULT)


def offers_tools(body: bytes) -> bool:
    """Whether a request offers any."""
    return any(text in body for text in TOOLS)


async def read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes] | None:
    """The head and the body of the next request of a connection; None when the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        return head, await reader.readexactly(int(length[1])) if length else b""
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def framed(body: bytes, status: str = "200 OK", headers: Mapping[str, str] | None = None) -> bytes:
    """An HTTP/1.1 response with a JSON body."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def answer_body(message: Mapping[str, Any], finish_reason: str) -> bytes:
    """A chat completion with one message."""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "mock",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }
    return json.dumps(body).encode()


def sight(body: bytes) -> bytes | None:
    """The answer to what a run asks first, of a model that sees and calls tools; None for another question."""
    if PROBE_TEXT.encode() in body:
        return framed(answer_body({"content": PROBE_NUMBER}, "stop"))
    told = CALL_PROBE_TEXT.search(body)
    if told is None or not offers_tools(body):
        return None
    return framed(answer_body(tool_call('{"images": ["img:1"]}', told[1].decode()), "tool_calls"))


def tool_call(arguments: str, name: str = "crop", identity: str = "call_1") -> dict[str, Any]:
    """The message of a model that calls a tool; `arguments` is the text between the quotes."""
    call = {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"content": None, "tool_calls": [call]}


class _Mock:
    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s
        self._served: list[Served] = []
        self._answer = framed(answer_body({"content": ANSWER}, "stop"))
        arguments = json.dumps({"images": ["img:1"], "box": CROP_BOX})
        self._call = framed(answer_body(tool_call(arguments), "tool_calls"))

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Every request of one connection."""
        # A client that goes away in the middle of a reply ends its own connection and nothing else.
        with suppress(ConnectionError):
            while (request := await read_request(reader)) is not None:
                writer.write(await self._reply(*request))
                await writer.drain()
        writer.close()

    async def _reply(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"GET /v1/count"):
            return framed(json.dumps(len(self._served)).encode())
        if head.startswith(b"GET /v1/log"):
            return framed(json.dumps([asdict(entry) for entry in self._served]).encode())
        if not head.startswith(b"POST"):
            return framed(json.dumps({"object": "list", "data": [{"id": "mock", "object": "model"}]}).encode())
        if (seen := sight(body)) is not None:
            return seen
        began = time.time()
        named, results = QUESTION.search(body), tool_results(body)
        await asyncio.sleep(self._latency_s)
        self._served.append(Served(int(named[1]) if named else -1, results, len(body), began, time.time()))
        return self._call if offers_tools(body) and not results else self._answer


async def _serve(latency_s: float) -> None:
    server = await asyncio.start_server(_Mock(latency_s).connection, "127.0.0.1", 0, limit=BUFFER_BYTES, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency-s", type=float, required=True)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args().latency_s))
