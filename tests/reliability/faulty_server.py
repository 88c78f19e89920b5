"""An OpenAI-compatible server on 127.0.0.1 with planned faults; it logs every request, and can be killed and restarted.

    with FaultyServer(plan=seeded(0.05, FAULTS)) as server:
        ...                                     # POST {server.url}/chat/completions
        server.wait_for(50)
        server.stop()                           # every connection breaks, the port refuses
        server.start()                          # the same port answers again
        server.seen                             # one `Seen` per request, in the order of their arrival

A plan gives each request its fault, or None. The question is recognised by the number in "Is the cat 17 on the mat?"
(`tests/fakes.py`, `spatial_row`). A request that offers tools and has no result yet gets one call, of `crop` or by
`call`. Every other request gets an answer, "(A)" or "(B)" by the number of the question, so that a mix-up changes a
score.
"""

import asyncio
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Self

from bench._chat_server import (
    BUFFER_BYTES,
    answer_body,
    framed,
    offers_tools,
    read_request,
    sight,
    tool_call,
    tool_results,
)

QUESTION = re.compile(rb"Is the cat (\d+) on the mat")
# Duration of a slow reply, beyond every timeout of these tests; it ends early if the client disconnects.
SLOW_S = 30.0
CROP = json.dumps({"images": ["img:1"], "box": {"x0": 2, "y0": 2, "x1": 12, "y1": 12}})


class Fault(StrEnum):
    """Faults with which the server can answer a request."""

    HTTP_500 = "500"
    OVERLOADED = "503"
    RATE = "429"
    RATE_WITH_WAIT = "429 with Retry-After"
    UNREADABLE = "unreadable body"
    TRUNCATED = "truncated body"
    NOT_JSON_ARGUMENTS = "tool arguments that are not JSON"
    NO_OBJECT_ARGUMENTS = "tool arguments that are JSON and no object"
    EMPTY = "empty content"
    SLOW = "slow reply"
    DROPPED = "dropped connection"
    BAD_REQUEST = "400"
    WRONG_KEY = "401"
    NO_CREDIT = "402"
    FORBIDDEN = "403"
    NOT_FOUND = "404"


# Transient faults: the same request may be answered when it is sent again.
FAULTS = (
    *(Fault.HTTP_500, Fault.RATE, Fault.RATE_WITH_WAIT, Fault.UNREADABLE, Fault.TRUNCATED, Fault.NOT_JSON_ARGUMENTS),
    *(Fault.NO_OBJECT_ARGUMENTS, Fault.EMPTY, Fault.SLOW, Fault.DROPPED),
)
OF_CALLS = (Fault.NOT_JSON_ARGUMENTS, Fault.NO_OBJECT_ARGUMENTS)

UNREADABLE_BODIES = (b"<html><body>bad gateway</body></html>", b"", b"null", b"[]", b'{"choices": []}', b"\xff\xfe{")
ERRORS: Mapping[Fault, tuple[str, str]] = {
    Fault.HTTP_500: ("500 Internal Server Error", "server_error"),
    Fault.OVERLOADED: ("503 Service Unavailable", "overloaded"),
    Fault.RATE: ("429 Too Many Requests", "rate_limit_exceeded"),
    Fault.RATE_WITH_WAIT: ("429 Too Many Requests", "rate_limit_exceeded"),
    Fault.BAD_REQUEST: ("400 Bad Request", "bad_request"),
    Fault.WRONG_KEY: ("401 Unauthorized", "invalid_api_key"),
    Fault.NO_CREDIT: ("402 Payment Required", "payment_required"),
    Fault.FORBIDDEN: ("403 Forbidden", "forbidden"),
    Fault.NOT_FOUND: ("404 Not Found", "not_found"),
}


@dataclass(frozen=True)
class Request:
    """One request: its question (-1 if it names none), the number of earlier requests for it, and its content."""

    question: int
    earlier: int
    tool_results: int
    offers_tools: bool
    # Number of earlier requests to the server.
    number: int


@dataclass(frozen=True)
class Seen:
    """A logged request: its outcome and its time, in seconds of `time.monotonic`."""

    request: Request
    fault: Fault | None
    at: float


Plan = Callable[[Request], Fault | None]


def healthy(_: Request) -> None:
    """Answer every request."""


def seeded(share: float, faults: Sequence[Fault] = FAULTS, seed: int = 0) -> Plan:
    """Inject each fault with the probability `share`. The question and the number of earlier requests for it decide
    which."""

    def plan(request: Request) -> Fault | None:
        place = int(random.Random(f"{seed}/{request.question}/{request.earlier}").random() / share)
        return faults[place] if place < len(faults) else None

    return plan


def only(faults: Mapping[int, Fault], then: Plan = healthy) -> Plan:
    """Give these questions their fault, and the others the outcome of `then`."""
    return lambda request: faults.get(request.question) or then(request)


def always(fault: Fault) -> Plan:
    """Give every request the fault."""
    return lambda _: fault


# The tool and the arguments of the call for a question while tools are offered.
CallOf = Callable[[int], tuple[str, str]]


def call_of_crop(_: int) -> tuple[str, str]:
    """Return a call of `crop` with the same small box for every question."""
    return "crop", CROP


class FaultyServer:
    """The server, in its own thread; `plan` may be replaced while it runs."""

    def __init__(self, plan: Plan = healthy, latency_s: float = 0.0, call: CallOf = call_of_crop) -> None:
        self.plan = plan
        self.latency_s = latency_s
        self.call = call
        self.port = 0
        self.seen: list[Seen] = []
        self._counts: Counter[int] = Counter()
        self._changed = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """Address for a client."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, location: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen: on a free port the first time, later on the same one."""
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(600), "the server did not start"

    def stop(self) -> None:
        """Break every connection and refuse new ones."""
        if self._thread is None or self._loop is None:
            return
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(600)
        self._thread = None

    def wait_for(self, requests: int, seconds: float = 600.0) -> None:
        """Wait until this many requests have arrived in total. Raises `AssertionError` after `seconds`."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self.seen) >= requests, seconds)
        assert came, f"{len(self.seen)} of {requests} requests came within {seconds:g} s"

    def count_requests(self, since: int = 0) -> Counter[int]:
        """Return how many requests came for each question, without those before position `since` of the log."""
        with self._changed:
            return Counter(seen.request.question for seen in self.seen[since:])

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        server = await asyncio.start_server(
            self._connection, "127.0.0.1", self.port, limit=BUFFER_BYTES, backlog=512, reuse_address=True
        )
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._over.wait()
        server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        # Connections end by themselves now that their transports are gone.
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with suppress(ConnectionError, asyncio.CancelledError):
                while (request := await read_request(reader)) is not None and await self._answer(*request, writer):
                    await writer.drain()
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> bool:
        """Write the reply to one request; return whether the connection continues."""
        if not head.startswith(b"POST"):
            writer.write(framed(json.dumps({"object": "list", "data": [{"id": "mock", "object": "model"}]}).encode()))
            return True
        if (seen := sight(body)) is not None:
            probe = Request(-1, 0, 0, offers_tools=False, number=0)
            fault = self.plan(probe)
            writer.write(response(probe, fault, self.call) if fault in ERRORS else seen)
            return True
        request = self._request(body)
        fault = self.plan(request)
        if fault in OF_CALLS and not (request.offers_tools and not request.tool_results):
            fault = None
        with self._changed:
            self.seen.append(Seen(request, fault, time.monotonic()))
            self._changed.notify_all()
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        return await self._write(writer, request, fault)

    def _request(self, body: bytes) -> Request:
        match = QUESTION.search(body)
        question = int(match[1]) if match else -1
        previous = self._counts[question]
        self._counts[question] += 1
        return Request(question, previous, tool_results(body), offers_tools(body), len(self.seen))

    async def _write(self, writer: asyncio.StreamWriter, request: Request, fault: Fault | None) -> bool:
        if fault is Fault.DROPPED:
            writer.transport.abort()
            return False
        if fault is Fault.SLOW:
            await asyncio.sleep(SLOW_S)
        if fault is Fault.TRUNCATED:
            full = framed(answer_body({"content": answer_to(request.question)}, "stop"))
            writer.write(full[: len(full) - 40])
            await writer.drain()
            return False
        writer.write(response(request, fault, self.call))
        return True


def answer_to(question: int) -> str:
    """Return the server's final answer; right for two questions of three (`fakes.spatial_row` with answer "(A)")."""
    return "Answer: (B)" if question % 3 == 0 else "Answer: (A)"


def response(request: Request, fault: Fault | None, call: CallOf) -> bytes:
    """Return a complete response with the fault, or without one."""
    if fault is not None and fault in ERRORS:
        status, code = ERRORS[fault]
        options = {"error": {"message": f"{status}: as the test wants", "type": code, "code": code, "param": None}}
        headers = {"Retry-After": "1"} if fault is Fault.RATE_WITH_WAIT else {}
        return framed(json.dumps(options).encode(), status, headers)
    if fault is Fault.UNREADABLE:
        return framed(UNREADABLE_BODIES[request.number % len(UNREADABLE_BODIES)])
    if fault is Fault.EMPTY:
        return framed(answer_body({"content": ""}, "stop"))
    if fault is Fault.NOT_JSON_ARGUMENTS:
        return framed(answer_body(tool_call('{"images": ["img:1"], "box'), "tool_calls"))
    if fault is Fault.NO_OBJECT_ARGUMENTS:
        arguments = ("[1, 2]", '"img:1"', "null", "7")[request.number % 4]
        return framed(answer_body(tool_call(arguments), "tool_calls"))
    if request.offers_tools and not request.tool_results:
        tool, arguments = call(request.question)
        return framed(answer_body(tool_call(arguments, tool), "tool_calls"))
    return framed(answer_body({"content": answer_to(request.question)}, "stop"))
