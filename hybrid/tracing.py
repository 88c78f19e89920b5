"""The seam of tracing: what a run says of its questions, asks, model and tool calls when they happen.

    with tracer.span(ToolCallBegun("depth", ("img:1",), {})) as span:
        found = await ...
        span.ended(ToolAnswered(found, refs, cached=False))

A span ends with its block, and an exception that leaves the block is its error. Spans lie in each other as the blocks
do, tasks that are started inside included. Unless somebody asks for it (`--trace`) nothing is kept: `UNTRACED`. What is
made of it, and what of it is left out, is decided in one place, `hybrid/running/open_telemetry.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol

from hybrid.messages import AssistantMessage, Message
from hybrid.types import Attempt, Fault, Finding, ImageRef, Json, Prompt, Reply, Usage


@dataclass(frozen=True, slots=True)
class RunBegun:
    """A command asks what is open in a run; `folder` is the name of its folder, without where that lies."""

    benchmark: str
    split: str
    folder: str
    solvers: tuple[str, ...]
    tool_output: str
    questions: int


@dataclass(frozen=True, slots=True)
class QuestionBegun:
    """A question is put to a solver, under its name in the run. Its target is not among what is said of it."""

    solver: str
    id: str
    task: str


@dataclass(frozen=True, slots=True)
class AskBegun:
    """A prompt of the question, counted from 0."""

    solver: str
    number: int
    prompt: Prompt
    by_model: bool
    """Whether the solver asks an MLLM."""


@dataclass(frozen=True, slots=True)
class ModelCallBegun:
    """A conversation is sent to a model, under its name as typed."""

    model: str
    provider: str
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class ToolCallBegun:
    """A tool is called. The name, those of the images and the arguments may be anything that a model has said."""

    name: str
    images: Sequence[str]
    args: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """What came back, and what it is charged as."""

    message: AssistantMessage
    used: Usage


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """What was found, on which images, and whether it was kept from an earlier call."""

    finding: Finding
    images: tuple[ImageRef, ...]
    cached: bool


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A request of a model call failed, the first being number 1; `status` is that of HTTP where there is one."""

    number: int
    failure: str
    status: int | None


Begun = RunBegun | QuestionBegun | AskBegun | ModelCallBegun | ToolCallBegun
Ended = Attempt | Reply | ModelReplied | ToolAnswered | Fault


class Span(Protocol):
    """Something that goes on."""

    def ended(self, end: Ended) -> None:
        """Say what came of it, or which fault ended it, before its block ends."""
        ...

    def happened(self, event: RequestFailed) -> None:
        """Say what happens inside, when it does."""
        ...


class Tracer(Protocol):
    """Is told what goes on. Used in one event loop; raises nothing, and waits for nobody."""

    def span(self, begun: Begun) -> AbstractContextManager[Span]:
        """What goes on until the block ends."""
        ...


class _NoSpan:
    __slots__ = ()

    def __enter__(self) -> Span:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ended(self, end: Ended) -> None:
        pass

    def happened(self, event: RequestFailed) -> None:
        pass


_NO_SPAN: Final = _NoSpan()


class _Untraced:
    __slots__ = ()

    def span(self, begun: Begun) -> AbstractContextManager[Span]:
        del begun
        return _NO_SPAN


UNTRACED: Final[Tracer] = _Untraced()
"""Keeps nothing."""

INNERMOST: ContextVar[Span] = ContextVar("the innermost span", default=_NO_SPAN)
"""The span of the block around, for those who are not given one."""
