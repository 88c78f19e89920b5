"""The seam between a tool service, which asks, and whatever runs the tools: threads, a worker process, Ray actors.

    finding, answering = await executor.find(QueuedCall(...), watch)

The service has parsed the arguments, found no finding in its cache and asked the needed tools first, so an executor
gets complete calls only.
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
    """A complete call: the request that decides a finding, with its tool and its arguments as objects."""

    tool: Tool
    args: Args
    request: ToolRequest


class Executor(Protocol):
    """Runs tools. What it works on goes on when the caller is cancelled; `watch` shows how long it has run."""

    # How long a caller lets one call run; infinite where the executor itself ends what runs for too long.
    timeout_s: float
    # One line for each backend that could not be had or moved, and each tool that was given up, for the user.
    notices: list[str]

    async def load(self, tool: Tool, watch: Stopwatch) -> BackendIdentity:
        """Load the backend that answers for a tool. Raises what `Loader.load` raises."""

    async def need_args(
        self, tool: Tool, backend: BackendName, place: int, args: Args, findings: Found, watch: Stopwatch
    ) -> Mapping[str, Json] | None:
        """The arguments for need number `place` of a tool; None where it is not needed."""

    async def find(self, call: QueuedCall, watch: Stopwatch) -> tuple[Finding, BackendIdentity]:
        """The finding of a call, and which backend made it; `parent` of its pictures is the number of their input.

        It is kept in the cache, unless another backend than the expected one made it.

        Raises:
            ToolError: the tool cannot answer, hangs, or ends its process.
            Outage: the tool did not get to run.
        """

    def warm(self) -> None:
        """Start now what takes long to start: a call is likely to come."""

    def close(self) -> None:
        """End; a caller that still waits gets an `Outage`."""


def needs_of(tool: Tool, backend: BackendName) -> Sequence[Need]:
    """The tools that a tool needs when this backend answers, in the order in which they are asked."""
    card = tool.backend(backend)
    return (*tool.card.needs, *(card.needs if card else ()))


def need_args(need: Need, args: Args, findings: Found) -> Mapping[str, Json] | None:
    """The arguments for a needed tool; None where it is not needed. Runs code of the tool that needs it."""
    return need.args(args) if need.given is None else need.given(args, findings)


class MessageExecutor(ABC):
    """An `Executor` that runs tools in another process, by messages."""

    timeout_s = math.inf

    def __init__(self) -> None:
        self.notices: list[str] = []

    @abstractmethod
    async def ask(self, request: Request, watch: Stopwatch) -> Response:
        """The response to a request, which has no number yet.

        Raises what a `CallFailure` says, or an `Outage` where none arrives.
        """

    def _name(self, tool: Tool) -> str:
        """The name under which the other process finds the tool. Raises `UsageError` where it would find another."""
        name = tool.card.name
        if not tool.code and loaded("tools", name) is not tool:
            raise UsageError(f"{name} is no file of tools/, which alone can run in a worker process")
        return name

    async def load(self, tool: Tool, watch: Stopwatch) -> BackendIdentity:
        """As `Executor.load`."""
        return cast(LoadResponse, await self.ask(LoadRequest(0, self._name(tool)), watch)).answering

    async def need_args(
        self, tool: Tool, backend: BackendName, place: int, args: Args, findings: Found, watch: Stopwatch
    ) -> Mapping[str, Json] | None:
        """As `Executor.need_args`."""
        json_args = args.model_dump(mode="json")
        request = NeedRequest(0, self._name(tool), backend, place, json_args, findings)
        return cast(NeedResponse, await self.ask(request, watch)).args

    async def find(self, call: QueuedCall, watch: Stopwatch) -> tuple[Finding, BackendIdentity]:
        """As `Executor.find`."""
        request = replace(call.request, tool=self._name(call.tool))
        response = cast(ToolResponse, await self.ask(request, watch))
        return response.finding, response.answering


def failure_of(number: int, error: Exception, notices: tuple[str, ...] = ()) -> CallFailure:
    """An error as a message."""
    fault = error.fault if isinstance(error, ToolError) else Fault.TOOL_ERROR
    is_expected = isinstance(error, HybridError)
    words = getattr(error, "marked", str(error)) if is_expected else f"{type(error).__name__}: {error}"
    trace, message = (text.encode("utf-8", "replace").decode() for text in (getattr(error, "trace", ""), words))
    return CallFailure(number, type(error).__name__ if is_expected else "", message, fault, trace, notices)


def error_of(failure: CallFailure) -> HybridError:
    """The error of a message. Only classes of ours are made of it, and only from a text."""
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
