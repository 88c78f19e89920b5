"""The messages about tools between processes: one request, one response, the same for a worker process and for Ray.

A worker process gets and sends them as lines (`line`, `LineReader`), an actor of Ray as pickled values.
References to images, arguments, descriptions and findings cross, no pixels and no objects: nothing that a worker sends
is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, get_args

from hybrid.config import ServiceOptions
from hybrid.core.types import Fault, Finding, ImageRef, Json, Prompt
from hybrid.log.codec import codec
from hybrid.serving.loader import BackendIdentity
from hybrid.tool import BackendName


@dataclass(frozen=True, slots=True)
class Setup:
    """The first line to a worker process: where modules are found, and what it serves."""

    # `sys.path`.
    modules: tuple[str, ...]
    # By package the folders of its files, where some lie outside of the project.
    folders: Mapping[str, tuple[str, ...]]
    images: Path
    findings: Path | None
    options: ServiceOptions


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One complete request: checked arguments, and the findings of every tool that this one needs."""

    # Given where it is sent to a worker process.
    number: int
    tool: str
    # The backend that is expected to answer, for which `needs` were found.
    answering: BackendIdentity
    args: Mapping[str, Json]
    images: tuple[ImageRef, ...]
    needs: Mapping[str, tuple[Finding, ...]]
    seed: int
    # Of the finding in the cache, if this backend makes it.
    key: str
    # Whether overlays are drawn.
    overlays: bool = True


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """Load the backend that answers for a tool."""

    number: int
    tool: str


@dataclass(frozen=True, slots=True)
class NeedRequest:
    """Ask a tool whose code is only in the worker for the arguments of its need number `place` (from 0)."""

    number: int
    tool: str
    backend: BackendName
    place: int
    args: Mapping[str, Json]
    # Of the needs before it.
    findings: Mapping[str, tuple[Finding, ...]]


@dataclass(frozen=True, slots=True)
class DescribeRequest:
    """Import a tool and describe it, or import another thing that lies outside of the project."""

    number: int
    # The name of the thing.
    tool: str
    # Where it lies.
    package: str = "tools"


@dataclass(frozen=True, slots=True)
class RuleRequest:
    """Ask the rule of a tool whose code is only in the worker what comes next: a call, or its answer."""

    number: int
    tool: str
    route: str
    prompt: Prompt
    # The findings of its calls so far, in order; None of a tool that has no backend.
    said: tuple[Finding | None, ...]


@dataclass(frozen=True, slots=True)
class ToolResponse:
    """A finding, which backend made it, and new lines for the user. Its pictures are in the image store."""

    number: int
    finding: Finding
    answering: BackendIdentity
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadResponse:
    """Which backend is loaded."""

    number: int
    answering: BackendIdentity
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NeedResponse:
    """The arguments for the tool that is needed; None where it is not needed."""

    number: int
    args: Mapping[str, Json] | None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleCall:
    """A tool call that a rule waits for."""

    tool: str
    images: tuple[str, ...]
    args: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """A `SpecialistAnswer` whose finding is that of call number `call` (from 0)."""

    answer: str
    call: int
    choice: int | None
    sure: float | None
    on_card: bool


@dataclass(frozen=True, slots=True)
class RuleResponse:
    """The next step of a rule; with neither a call nor an answer it abstains."""

    number: int
    call: RuleCall | None = None
    answer: RuleAnswer | None = None
    # Name and text of what it wrote into the trace, from its start on.
    remarks: tuple[tuple[str, str], ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportResponse:
    """A thing from outside was imported and is what it must be; of a tool all that is no code."""

    number: int
    card: Mapping[str, Json] | None = None
    checks: tuple[Mapping[str, Json], ...] = ()
    # By route the tools that its rule may call.
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Of its arguments.
    schema: Mapping[str, Json] = field(default_factory=dict)
    code: str = ""
    # Of the data of its outputs, as `Tool.output`.
    output: Mapping[str, Json] | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFailure:
    """The error that ends a request: its class in `hybrid.core.errors`, empty for a defect of our own."""

    number: int
    error: str
    message: str
    fault: Fault
    # The traceback of a defect of the tool.
    trace: str = ""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """The worker process takes requests."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The event loop of the worker process turns."""


@dataclass(frozen=True, slots=True)
class JobStart:
    """A stretch of a tool's own code begins, in its own thread, for one request or a batch."""

    job: int
    tool: str
    stage: str
    # Their numbers.
    requests: tuple[int, ...]
    # Whether this stage of the tool has not run before in this process, so that it also loads libraries.
    first: bool
    # Of `time.monotonic`, one clock for all processes of the machine.
    at: float


@dataclass(frozen=True, slots=True)
class JobEnd:
    """A job has ended, at a time of `time.monotonic`."""

    job: int
    at: float


Request: TypeAlias = ToolRequest | LoadRequest | NeedRequest | DescribeRequest | RuleRequest
Response: TypeAlias = ToolResponse | LoadResponse | NeedResponse | RuleResponse | ImportResponse
ToWorker: TypeAlias = Setup | Request
FromWorker: TypeAlias = WorkerReady | Heartbeat | JobStart | JobEnd | Response | CallFailure
Message: TypeAlias = ToWorker | FromWorker
KINDS: Mapping[bytes, Any] = {kind.__name__.encode(): kind for kind in get_args(Message)}


def line(message: Message) -> bytes:
    """A message as one line: the name of its type, and its fields as JSON."""
    kind: Any = type(message)
    return b" ".join((kind.__name__.encode(), codec(kind).dump_json(message))) + b"\n"


@dataclass
class LineReader:
    """Cuts bytes, as they arrive, into messages."""

    _parts: list[bytes] = field(default_factory=list)

    def take(self, data: bytes) -> Iterator[Message]:
        """The messages that these bytes complete. Raises `ValueError` for a line that is no message."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            name, _, fields = b"".join((*self._parts, end)).partition(b" ")
            self._parts = []
            if (kind := KINDS.get(name)) is None:
                raise ValueError(f"{name[:80]!r} is no type of a message")
            yield codec(kind).validate_json(fields)
        if rest:
            self._parts.append(rest)
