"""Messages between the processes of a run on Ray: frozen values, pickled by Ray.

A question is one stream: the run sends a `QuestionRequest`, the worker yields `HandlerCall`s until an `Attempt` or a
`QuestionFailure`. What a `HandlerCall` wants comes by a call of the run, with the numbers of the question and of the call.
Requests to tools and their responses are those of a worker process (`hybrid/serving/protocol.py`).
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.benchmarks.base import Benchmark
from hybrid.config import ServiceOptions
from hybrid.models.base import CallKey
from hybrid.secrets import redact
from hybrid.serving.protocol import Failure, Response
from hybrid.solving.session import AskSetup
from hybrid.timing import ElapsedTime
from hybrid.types import Attempt, Question, StoredImage


@dataclass(frozen=True)
class NodeCode:
    """Where a run was started, and which program it is: an actor elsewhere must be the same one."""

    # The hash of the program's files (`cluster.code`).
    code: str
    # Relative names of recordings and weights count from here, where a node has such a folder.
    folder: Path
    # Folders with things outside of the project.
    named: tuple[Path, ...] = ()
    # The hash of the files in them (`cluster.plugin_code_hash`).
    beside: str = ""
    # By `folder/name` the code of each thing from outside that the run uses, as its manifest has it.
    plugins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ready:
    """An actor that can be asked: its process, its node, and why it must not be asked, if so."""

    pid: int
    node: str
    refusal: str | None = None


@dataclass(frozen=True)
class WorkerSetup:
    """The options of the run and everything that it has resolved of them, for a worker.

    An object of the store, which is read once the worker knows where to look for a benchmark from outside.
    """

    benchmark: Benchmark
    # The options, and what the run resolved of them without what stays in a process: model and tools.
    resources: AskSetup
    tools_offered: tuple[str, ...]
    # Whether the run has a budget: then each model call is allowed by it first.
    metered: bool


@dataclass(frozen=True)
class ToolSetup:
    """The options of a tool actor, and which backend answers for each tool in the run."""

    place: NodeCode
    options: ServiceOptions
    backends: Mapping[str, str]
    # Tool actors on one node, this one included, as far as they are spread evenly: they share its memory.
    neighbours: int


@dataclass(frozen=True)
class ModelReply:
    """A model's reply to a request of a call."""

    call: CallKey
    request_sha256: str
    reply: bytes = field(repr=False)


@dataclass(frozen=True)
class QuestionRequest:
    """One question for one solver; `number` is of the run. `said` is what need not be said again."""

    number: int
    question: Question
    solver: str
    # The images of its partner where tools look at those instead (`--tool-output shuffled`).
    partner: tuple[StoredImage, ...] | None
    said: tuple[ModelReply, ...] = ()


@dataclass(frozen=True)
class HandlerCall:
    """A method of the run's `QuestionHandler` that a question under way calls; answered where it has a number."""

    number: int | None
    method: Callable[..., Awaitable[Any]]
    args: tuple[Any, ...]


@dataclass(frozen=True)
class QuestionFailure:
    """The error that ended a question, with its traceback as a note."""

    error: BaseException

    @classmethod
    def of(cls, error: BaseException) -> QuestionFailure:
        """The error as it is where it survives the way; else one that says the same."""
        trace = redact("".join(traceback.format_exception(error)))
        sent: BaseException = RemoteError(f"{type(error).__name__}: {error}")
        with suppress(Exception):
            # Made anew from the same parts as where it arrives.
            arrived = copy.deepcopy(error)
            sent = error if (type(arrived), str(arrived)) == (type(error), str(error)) else sent
        sent.__traceback__ = None
        sent.__notes__ = [trace]
        return cls(sent)


class RemoteError(Exception):
    """An error of a worker whose own class cannot be sent."""


# Of a question: what its worker asks or tells, and how it ends.
FromWorker = HandlerCall | Attempt | QuestionFailure


@dataclass(frozen=True)
class TimedResponse:
    """The outcome of a request about a tool, and how long it has run."""

    outcome: Response | Failure
    elapsed: ElapsedTime


@dataclass(frozen=True)
class ImagesLacking:
    """A request that has not begun: the store of the tool's node lacks these images."""

    sha256s: tuple[str, ...]


# Of a tool actor to a request.
ToolAnswer = TimedResponse | ImagesLacking
