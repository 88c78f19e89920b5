"""The seam of tracing: a run says of its questions, model and tool calls when they begin and how they end.

    with span(ToolCallBegun("depth", ("img:1",), {})) as ended:
        finding = await ...
        ended(ToolAnswered(finding, refs, cached=False))

An exception that leaves the block is the error of its span. Unless `--trace` sets a `Tracer` nothing is kept. An
installed package offers one in the entry-point group `hybrid.tracing` under a word (`otlp`) or the ending of a file
(`jsonl`): a context manager that takes the value of `--trace`, a `RunBegun`, and whether texts are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol

from hybrid.messages import AssistantMessage, Message
from hybrid.types import Attempt, Finding, ImageRef, Json, Usage

GROUP: Final = "hybrid.tracing"
"""The entry-point group of tracers."""


@dataclass(frozen=True, slots=True)
class RunBegun:
    """A command asks the open questions of a run; `folder` is the name of its folder, without where that lies."""

    benchmark: str
    folder: str


@dataclass(frozen=True, slots=True)
class QuestionBegun:
    """A question is put to a solver, under its name in the run."""

    solver: str
    id: str
    task: str


@dataclass(frozen=True, slots=True)
class ModelCallBegun:
    """A conversation is sent to a model, under its name as typed."""

    model: str
    provider: str
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class ToolCallBegun:
    """A tool is called."""

    name: str
    images: Sequence[str]
    args: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """The reply of a model, and what it is charged as."""

    message: AssistantMessage
    used: Usage


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """A finding, on which images, and whether it was kept from an earlier call."""

    finding: Finding
    images: tuple[ImageRef, ...]
    cached: bool


Begun = RunBegun | QuestionBegun | ModelCallBegun | ToolCallBegun
Ended = Attempt | ModelReplied | ToolAnswered
End = Callable[[Ended], None]


class Tracer(Protocol):
    """Keeps spans. Used in one event loop; raises nothing and does not wait."""

    def span(self, begun: Begun) -> AbstractContextManager[End]:
        """The block of a span; gives the function that takes how it ended."""
        ...


TRACER: ContextVar[Tracer | None] = ContextVar("the tracer of the run", default=None)


def span(begun: Begun) -> AbstractContextManager[End]:
    """The block of a span of the run's tracer."""
    tracer = TRACER.get()
    return nullcontext(lambda _: None) if tracer is None else tracer.span(begun)
