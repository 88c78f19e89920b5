"""The interface between a tool service and an executor that runs tools: threads, a worker process, or Ray actors.

    finding, answering = await executor.find(QueuedCall(...), watch)

The service has parsed the arguments, found no cached output and called the needed tools first, so an executor gets only
complete calls.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, cast

import hybrid.core.errors
from hybrid.core.errors import HybridError, Outage, ToolError, UsageError
from hybrid.core.timing import Stopwatch
from hybrid.core.types import Fault, Finding, Json
from hybrid.plugins.registry import loaded
from hybrid.serving.loader import BackendIdentity
from hybrid.serving.protocol import (
    CallFailure,
    LoadRequest,
    LoadResponse,
    NeedRequest,
    NeedResponse,
    Request,
    Response,
    ToolRequest,
    ToolResponse,
)
from hybrid.tool import BackendName, Found, Need, Tool

if TYPE_CHECKING:
    from hybrid.tool import Args


@dataclass(frozen=True)
class QueuedCall:
    """A complete call: the request that determines an output, with its tool and its arguments as objects."""

    tool: Tool
    args: Args
    request: ToolRequest


class Executor(Protocol):
    """Runs tools. Work continues if the caller is cancelled; `watch` measures the running time of the work."""

    # Maximum seconds of a call; infinite if the executor itself ends calls that take too long.
    timeout_s: float
    # One line for the user per backend that was unavailable or moved, and per tool that is no longer run.
    notices: list[str]

    async def load(self, tool: Tool, watch: Stopwatch) -> BackendIdentity:
        """Load the active backend of a tool. Raises the exceptions of `Loader.load`."""

    async def need_args(
        self, tool: Tool, backend: BackendName, place: int, args: Args, findings: Found, watch: Stopwatch
    ) -> Mapping[str, Json] | None:
        """Return the arguments for need number `place` of a tool; None if the needed tool is not called."""

    async def find(self, call: QueuedCall, watch: Stopwatch) -> tuple[Finding, BackendIdentity]:
        """Return the output of a call, and its backend; the `parent` of a picture is the number of the input it shows.

        The output is cached, unless another backend than the expected one made it.

        Raises:
            ToolError: the tool cannot answer, hangs, or ends its process.
            Outage: the tool was not run.
        """

    def warm(self) -> None:
        """Start whatever takes long to start, because a call is likely."""

    def close(self) -> None:
        """Stop; a caller that still waits gets an `Outage`."""


def needs_of(tool: Tool, backend: BackendName) -> Sequence[Need]:
    """Return the tools that a tool needs with this backend, in the order in which they are called."""
    card = tool.backend(backend)
    return (*tool.card.needs, *(card.needs if card else ()))


def need_args(need: Need, args: Args, findings: Found) -> Mapping[str, Json] | None:
    """Return the arguments for a needed tool; None if it is not called. Runs code of the tool that has this need."""
    return need.args(args) if need.given is None else need.given(args, findings)


class MessageExecutor(ABC):
    """An `Executor` that runs tools in another process, by messages."""

    timeout_s = math.inf

    def __init__(self) -> None:
        self.notices: list[str] = []

    @abstractmethod
    async def ask(self, request: Request, watch: Stopwatch) -> Response:
        """Send a request, which has no number yet, and return the response.

        Raises the error of a `CallFailure`, or an `Outage` if no response arrives.
        """

    def _name(self, tool: Tool) -> str:
        """Return the name by which the other process finds the tool.

        Raises `UsageError` if the other process would find another tool.
        """
        name = tool.card.name
        if not tool.code and loaded("tools", name) is not tool:
            raise UsageError(f"{name} is not a file of tools/; only those can run in a worker process")
        return name

    async def load(self, tool: Tool, watch: Stopwatch) -> BackendIdentity:
        """See `Executor.load`."""
        return cast(LoadResponse, await self.ask(LoadRequest(0, self._name(tool)), watch)).answering

    async def need_args(
        self, tool: Tool, backend: BackendName, place: int, args: Args, findings: Found, watch: Stopwatch
    ) -> Mapping[str, Json] | None:
        """See `Executor.need_args`."""
        json_args = args.model_dump(mode="json")
        request = NeedRequest(0, self._name(tool), backend=backend, place=place, args=json_args, findings=findings)
        return cast(NeedResponse, await self.ask(request, watch)).args

    async def find(self, call: QueuedCall, watch: Stopwatch) -> tuple[Finding, BackendIdentity]:
        """See `Executor.find`."""
        request = replace(call.request, tool=self._name(call.tool))
        response = cast(ToolResponse, await self.ask(request, watch))
        return response.finding, response.answering


def failure_of(number: int, error: Exception, notices: tuple[str, ...] = ()) -> CallFailure:
    """Convert an error to a message."""
    fault = error.fault if isinstance(error, ToolError) else Fault.TOOL_ERROR
    is_expected = isinstance(error, HybridError)
    words = getattr(error, "marked", str(error)) if is_expected else f"{type(error).__name__}: {error}"
    trace, message = (text.encode("utf-8", "replace").decode() for text in (getattr(error, "trace", ""), words))
    return CallFailure(
        number, type(error).__name__ if is_expected else "", message=message, fault=fault, trace=trace, notices=notices
    )


def error_of(failure: CallFailure) -> HybridError:
    """Convert a message to its error. Only hybrid's own error classes are created, and only from a text."""
    if not failure.error:
        return Outage(f"the worker process of the tools failed: {failure.message}")
    error_class = getattr(hybrid.core.errors, failure.error, None)
    if not (isinstance(error_class, type) and issubclass(error_class, HybridError)):
        return ToolError(failure.message, failure.fault)
    if not issubclass(error_class, ToolError):
        return error_class(failure.message)
    error = error_class(failure.message, failure.fault)
    error.trace = failure.trace
    return error
