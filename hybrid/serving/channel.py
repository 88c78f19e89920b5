"""What a run and the worker process of its tools say to each other: lines of JSON over a pair of sockets.

    channel = LoopChannel(sock, on_message, on_end)         # in an event loop, which never waits for the other side
    channel.send(Asked(1, "depth", {}, refs, 0, None))
    channel = ThreadChannel(sock)                           # in threads: a line is out when `send` returns
    setup = channel.first()
    loop.add_reader(sock, lambda: [do(message) for message in channel.waiting()])

References, arguments, descriptions and findings cross, no pixels and no objects: whatever a worker says, nothing in it
is run.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from hybrid.config import ServiceOptions
from hybrid.serving.loader import Answering
from hybrid.tool import BackendName, Bin, CheckSeries, Provenance
from hybrid.types import Fault, Finding, ImageRef, Json

if TYPE_CHECKING:
    from pydantic import TypeAdapter

CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Setup:
    """The first line to a worker: where modules are found, what it serves, and the tools that are not to run."""

    modules: tuple[str, ...]
    """`sys.path`."""
    tools: tuple[str, ...]
    """The folders of the package `tools`."""
    images: Path
    findings: Path | None
    options: ServiceOptions
    refused: Mapping[str, str]
    """By the name of the tool the reason."""
    kind: Literal["setup"] = "setup"


@dataclass(frozen=True, slots=True)
class Asked:
    """One call. `left` is the seconds that its question has; None without a limit."""

    call: int
    tool: str
    args: Mapping[str, Json]
    images: tuple[ImageRef, ...]
    seed: int
    left: float | None
    kind: Literal["asked"] = "asked"


@dataclass(frozen=True, slots=True)
class Describe:
    """A tool is to be imported and described, as a call with a number of its own."""

    call: int
    tool: str
    kind: Literal["describe"] = "describe"


@dataclass(frozen=True, slots=True)
class DescribedBackend:
    """A `BackendCard` without its functions; of what it needs the names."""

    name: BackendName
    version: str
    summary: str
    weights: str | None
    provenances: tuple[Provenance, ...]
    reliability: tuple[Bin, ...]
    batch: int
    learned_tolerance: float
    needs: tuple[str, ...]
    package: str | None


@dataclass(frozen=True, slots=True)
class DescribedCheck:
    """A `KnownAnswer` without its function."""

    name: str
    series: CheckSeries | None


@dataclass(frozen=True, slots=True)
class Described:
    """A `Tool` without its functions: its card, the schema of its arguments and the hash of its code."""

    call: int
    tool: str
    summary: str
    limits: str
    measured: str
    backends: tuple[DescribedBackend, ...]
    images: tuple[int, int]
    needs: tuple[str, ...]
    checks: tuple[DescribedCheck, ...]
    schema: Mapping[str, Json]
    code: str
    kind: Literal["described"] = "described"


@dataclass(frozen=True, slots=True)
class Up:
    """The worker takes calls."""

    kind: Literal["up"] = "up"


@dataclass(frozen=True, slots=True)
class Alive:
    """The worker's event loop turns."""

    kind: Literal["alive"] = "alive"


@dataclass(frozen=True, slots=True)
class Began:
    """A job (`hybrid.serving.service.ReportJob`) begins, at a time of `time.monotonic`, one clock for the machine."""

    job: int
    tool: str
    stage: str
    calls: tuple[int, ...]
    rate: float
    at: float
    kind: Literal["began"] = "began"


@dataclass(frozen=True, slots=True)
class Ended:
    """A job has ended."""

    job: int
    kind: Literal["ended"] = "ended"


@dataclass(frozen=True, slots=True)
class Answered:
    """The finding of a call, the seconds it is charged, and how many requests this worker has computed so far.

    `cached` says whether it was kept from an earlier call.
    """

    call: int
    finding: Finding
    busy: float
    computed: int
    cached: bool = False
    kind: Literal["answered"] = "answered"


@dataclass(frozen=True, slots=True)
class Failed:
    """The error of a call: its class in `hybrid.errors`, empty for a defect of our own."""

    call: int
    error: str
    message: str
    fault: Fault
    busy: float
    trace: str = ""
    """The traceback of a defect of the tool."""
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Which backend answers for a tool from now on."""

    tool: str
    answering: Answering
    kind: Literal["loaded"] = "loaded"


@dataclass(frozen=True, slots=True)
class Noticed:
    """A line for the user."""

    line: str
    kind: Literal["noticed"] = "noticed"


ToWorker = Setup | Asked | Describe
FromWorker = Up | Alive | Began | Ended | Answered | Described | Failed | Loaded | Noticed
Message = ToWorker | FromWorker


@cache
def _codec() -> TypeAdapter[Message]:
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[Message, Field(discriminator="kind")])


def _line(message: Message) -> bytes:
    return _codec().dump_json(message) + b"\n"


@dataclass
class _Lines:
    """Bytes as they come, cut into messages."""

    _parts: list[bytes] = field(default_factory=list)

    def take(self, data: bytes) -> Iterator[Message]:
        """The messages that these bytes complete."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            line, self._parts = b"".join((*self._parts, end)), []
            yield _codec().validate_json(line)
        if rest:
            self._parts.append(rest)


class ThreadChannel:
    """One end, read by one thread and written by any. The other side is gone where reading raises `EOFError`."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        self._lines = _Lines()

    def send(self, message: Message) -> None:
        """Say it: when this returns it is out of the process, whatever happens to that. Nobody may listen any more."""
        line = _line(message)
        with self._lock, suppress(OSError):
            self._sock.sendall(line)

    def first(self) -> Message:
        """The first message, which is waited for: the other side says no more before it has an answer."""
        while True:
            for message in self._lines.take(self._received(0)):
                return message

    def waiting(self) -> list[Message]:
        """What the other side has said."""
        try:
            return list(self._lines.take(self._received(socket.MSG_DONTWAIT)))
        except BlockingIOError:
            return []

    def _received(self, flags: int) -> bytes:
        try:
            data = self._sock.recv(CHUNK, flags)
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError
        return data


class LoopChannel:
    """One end, used in one event loop.

    Args:
        sock: becomes non-blocking.
        on_message: called with each message.
        on_end: called once when the other side is gone, or says what is no message.
    """

    def __init__(self, sock: socket.socket, on_message: Callable[[Message], None], on_end: Callable[[], None]) -> None:
        sock.setblocking(False)
        self._sock, self._on_message, self._on_end = sock, on_message, on_end
        self._loop = asyncio.get_running_loop()
        self._lines, self._out, self._open = _Lines(), b"", True
        self._loop.add_reader(sock.fileno(), self._read)

    def send(self, message: Message) -> None:
        """Say it, as soon as the other side takes it."""
        waits = bool(self._out)
        self._out += _line(message)
        if not waits:
            self._write()

    def close(self) -> None:
        """Say and hear nothing more. The event loop may have ended."""
        if not self._open:
            return
        self._open = False
        if not self._loop.is_closed():
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
        self._sock.close()

    def _read(self) -> None:
        while self._open:
            try:
                data = self._sock.recv(CHUNK)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            if not data:
                self._end()
                return
            try:
                for message in self._lines.take(data):
                    self._on_message(message)
            except ValueError:
                self._end()
                return

    def _end(self) -> None:
        if self._open:
            self.close()
            self._on_end()

    def _write(self) -> None:
        if not self._open:
            return
        try:
            sent = self._sock.send(self._out)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            # The reader hears of the end as well.
            sent = len(self._out)
        self._out = self._out[sent:]
        if self._out:
            self._loop.add_writer(self._sock.fileno(), self._write)
        else:
            self._loop.remove_writer(self._sock.fileno())
