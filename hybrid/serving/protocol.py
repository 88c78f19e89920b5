"""The messages about tools to and from a worker process, a tool server or a Ray actor: one response per request.

A worker process and a tool server exchange them as lines (`line`, `LineReader`), a Ray actor as pickled values. They
contain image references, arguments, descriptions and outputs, but no pixels and no objects, so that nothing sent by a
worker is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, get_args

from hybrid.config import Pictures, ServiceOptions
from hybrid.core.types import Fault, Finding, ImageRef, Json, Prompt
from hybrid.log.codec import codec
from hybrid.serving.loader import BackendIdentity
from hybrid.tool import BackendName


@dataclass(frozen=True, slots=True)
class Setup:
    """The first line to a worker process: search paths of modules, and the images, outputs and options to use."""

    # The value of `sys.path`.
    modules: tuple[str, ...]
    # The folders of each package's files, by package, if some of the files are outside the project.
    folders: Mapping[str, tuple[str, ...]]
    images: Path
    findings: Path | None
    options: ServiceOptions


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One complete request: validated arguments, and the outputs of every tool that this tool needs."""

    # Number of the request, assigned when it is sent to a worker process.
    number: int
    tool: str
    # The backend that is expected to answer, for which `needs` were determined.
    answering: BackendIdentity
    args: Mapping[str, Json]
    images: tuple[ImageRef, ...]
    needs: Mapping[str, tuple[Finding, ...]]
    seed: int
    # Cache key of the output, if this backend makes it; empty if the output is not to be cached.
    key: str
    # Whether overlays are drawn.
    overlays: bool = True
    # How the output's pictures are stored.
    pictures: Pictures = "auto"


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """Load the active backend of a tool."""

    number: int
    tool: str


@dataclass(frozen=True, slots=True)
class NeedRequest:
    """Ask for the arguments of need number `place` (from 0) of a tool whose code is only in the worker."""

    number: int
    tool: str
    backend: BackendName
    place: int
    args: Mapping[str, Json]
    # Outputs of the needs before this one.
    findings: Mapping[str, tuple[Finding, ...]]


@dataclass(frozen=True, slots=True)
class DescribeRequest:
    """Import a tool and describe it, or import another plug-in."""

    number: int
    # The name of the plug-in.
    tool: str
    # The package to which it belongs.
    package: str = "tools"


@dataclass(frozen=True, slots=True)
class RuleRequest:
    """Ask for the next step (a call or the answer) of a rule whose code is only in the worker."""

    number: int
    tool: str
    route: str
    prompt: Prompt
    # The outputs of the rule's calls so far, in order; None for a tool without a backend.
    outputs: tuple[Finding | None, ...]


@dataclass(frozen=True, slots=True)
class ToolResponse:
    """A tool output, its backend, and new notices for the user. Its pictures are in the image store."""

    number: int
    finding: Finding
    answering: BackendIdentity
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadResponse:
    """The loaded backend."""

    number: int
    answering: BackendIdentity
    notices: tuple[str, ...] = ()
    # The devices that `--device auto` means; empty as long as torch is not imported.
    auto: str = ""


@dataclass(frozen=True, slots=True)
class NeedResponse:
    """The arguments for the needed tool; None if it is not called."""

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
    """A `SpecialistAnswer` that is based on the output of call number `call` (from 0)."""

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
    # Name and text of everything that the rule has logged since its start.
    remarks: tuple[tuple[str, str], ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportResponse:
    """Confirms the import of a valid plug-in; for a tool it contains everything except code."""

    number: int
    card: Mapping[str, Json] | None = None
    checks: tuple[Mapping[str, Json], ...] = ()
    # The tools that the tool's rules may call, by route.
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # JSON schema of the tool's arguments.
    schema: Mapping[str, Json] = field(default_factory=dict)
    code: str = ""
    # JSON schema of the data of the tool's outputs, as `Tool.output`.
    output: Mapping[str, Json] | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFailure:
    """The error that ends a request; `error` is its class in `hybrid.core.errors`, or empty for a defect of hybrid."""

    number: int
    error: str
    message: str
    fault: Fault
    # The traceback of a defect of the tool.
    trace: str = ""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """The worker process accepts requests."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Sent periodically while the worker's event loop is responsive."""

    # GPU memory that torch holds, in bytes.
    device_bytes: int = 0


@dataclass(frozen=True, slots=True)
class JobStart:
    """A stretch of a tool's own code starts, in its own thread, for one request or a batch."""

    job: int
    tool: str
    stage: str
    # Numbers of the requests.
    requests: tuple[int, ...]
    # Whether this stage of the tool runs for the first time in this process, so that it also loads libraries.
    first: bool
    # Time by `time.monotonic`, which all processes of the machine share.
    at: float


@dataclass(frozen=True, slots=True)
class JobEnd:
    """A job has ended, at a `time.monotonic` time."""

    job: int
    at: float


@dataclass(frozen=True, slots=True)
class ServedTool:
    """A network that a tool server has loaded: everything that its outputs depend on, and how often it was used."""

    # Hash of the tool's code.
    code: str
    # Location of the weights, and a hash of their files' names, sizes and times.
    weights: str
    files: str
    answering: BackendIdentity
    # Size of the weights.
    bytes: int
    # How often the server has loaded the network, and how often a client found it loaded.
    loads: int = 0
    hits: int = 0
    # Number of calls.
    requests: int = 0


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The first line of a tool server to a client, which then closes the connection or sends its `Setup`."""

    process: int
    # Time of the server's start, by `time.time`.
    started: float
    # Versions of Python, hybrid and all installed packages.
    versions: tuple[str, ...]
    # The environment variables on which outputs depend.
    environment: Mapping[str, str]
    device: str
    # The devices that `auto` means, if known.
    auto: str
    dtype: str
    compiled: bool
    unchecked: bool
    log: Path
    # Memory of the server's processes, and GPU memory.
    bytes: int
    device_bytes: int
    # Number of connections that use the server.
    clients: int
    tools: Mapping[str, ServedTool]
    # Tools that are not loaded yet, in the order of loading.
    loading: tuple[str, ...] = ()
    # Tools that could not be loaded, and why.
    failed: Mapping[str, str] = field(default_factory=dict)


Request: TypeAlias = ToolRequest | LoadRequest | NeedRequest | DescribeRequest | RuleRequest
Response: TypeAlias = ToolResponse | LoadResponse | NeedResponse | RuleResponse | ImportResponse
ToWorker: TypeAlias = Setup | Request
FromWorker: TypeAlias = WorkerReady | Heartbeat | JobStart | JobEnd | Response | CallFailure
Message: TypeAlias = ToWorker | FromWorker | ServerFacts
KINDS: Mapping[bytes, Any] = {kind.__name__.encode(): kind for kind in get_args(Message)}


def line(message: Message) -> bytes:
    """Encode a message as one line: the name of its type, and its fields as JSON."""
    kind: Any = type(message)
    return b" ".join((kind.__name__.encode(), codec(kind).dump_json(message))) + b"\n"


@dataclass
class LineReader:
    """Splits incoming bytes into messages."""

    _parts: list[bytes] = field(default_factory=list)

    def take(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that these bytes complete. Raises `ValueError` for an invalid line."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            name, _, fields = b"".join((*self._parts, end)).partition(b" ")
            self._parts = []
            if (kind := KINDS.get(name)) is None:
                raise ValueError(f"{name[:80]!r} is not a message type")
            yield codec(kind).validate_json(fields)
        if rest:
            self._parts.append(rest)
