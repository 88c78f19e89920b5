"""Messages between the processes of a run on Ray: frozen dataclasses, pickled by Ray.

A question is one stream: the run sends a `QuestionRequest`, the worker yields `HandlerCall`s and ends with an `Attempt`
or a `QuestionFailure`. The run sends the response to a `HandlerCall` in a separate call, with the numbers of the
question and of the call. Requests to tools are those of a worker process (`hybrid/serving/protocol.py`).
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
from hybrid.core.secrets import redact
from hybrid.core.timing import ElapsedTime
from hybrid.core.types import Attempt, Question, StoredImage
from hybrid.models.base import CallKey
from hybrid.serving.protocol import CallFailure, Response
from hybrid.solving.session import AskSetup


@dataclass(frozen=True)
class NodeCode:
    """The program and the folder with which a run was started; actors on other nodes must run the same program."""

    # The hash of the program's files (`cluster.code`).
    code: str
    # Base of relative paths of recordings and weights, on nodes that have this folder.
    folder: Path
    # The folders of `--path`.
    plugin_folders: tuple[Path, ...] = ()
    # The hash of the files in these folders (`cluster.plugin_code_hash`).
    plugins_hash: str = ""
    # Code hash of each plug-in that the run uses, by `folder/name`, as in its manifest.
    plugins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ready:
    """A started actor: its process and node, and the reason if it must not be used."""

    pid: int
    node: str
    refusal: str | None = None


@dataclass(frozen=True)
class WorkerSetup:
    """The options of the run and the values resolved from them, for a worker.

    Sent as a Ray object, which the worker reads after it knows the search path of plug-in benchmarks.
    """

    benchmark: Benchmark
    # Options and resolved values, without the model and the tools, which stay in the run's process.
    resources: AskSetup
    tools_offered: tuple[str, ...]
    # Whether the run has a budget, which must then allow each model call.
    metered: bool


@dataclass(frozen=True)
class ToolSetup:
    """The options of a tool actor, and which backend answers for each tool in the run."""

    place: NodeCode
    options: ServiceOptions
    backends: Mapping[str, str]
    # Number of tool actors per node, including this one, if they are spread evenly; they share the node's memory.
    neighbours: int


@dataclass(frozen=True)
class ModelReply:
    """A model's reply to a request of a call."""

    call: CallKey
    request_sha256: str
    reply: bytes = field(repr=False)


@dataclass(frozen=True)
class QuestionRequest:
    """One question for one solver. The run assigns its `number`; `replies` has the replies that are already known."""

    number: int
    question: Question
    solver: str
    # Images of the partner question that tools see instead (`--tool-output shuffled`).
    partner: tuple[StoredImage, ...] | None
    replies: tuple[ModelReply, ...] = ()


@dataclass(frozen=True)
class HandlerCall:
    """A running question's call of a method of the run's `QuestionHandler`.

    If it has a `number`, the result of the method is returned under this number.
    """

    number: int | None
    method: Callable[..., Awaitable[Any]]
    args: tuple[Any, ...]


@dataclass(frozen=True)
class QuestionFailure:
    """The error that ended a question, with its traceback as a note."""

    error: BaseException

    @classmethod
    def of(cls, error: BaseException) -> QuestionFailure:
        """Wrap the error itself if it can be copied, else a `RemoteError` with the same text."""
        trace = redact("".join(traceback.format_exception(error)))
        sent: BaseException = RemoteError(f"{type(error).__name__}: {error}")
        with suppress(Exception):
            # `deepcopy` rebuilds an error from the same parts as `pickle`.
            arrived = copy.deepcopy(error)
            sent = error if (type(arrived), str(arrived)) == (type(error), str(error)) else sent
        sent.__traceback__ = None
        sent.__notes__ = [trace]
        return cls(sent)


class RemoteError(Exception):
    """An error of a worker whose own class cannot be sent."""


# Messages of a worker about a question: calls to the run, then its end.
FromWorker = HandlerCall | Attempt | QuestionFailure


@dataclass(frozen=True)
class TimedResponse:
    """The outcome of a request about a tool, and its running time."""

    outcome: Response | CallFailure
    elapsed: ElapsedTime


@dataclass(frozen=True)
class ImagesLacking:
    """The request was not started: the store of the tool's node lacks these images."""

    sha256s: tuple[str, ...]


# A tool actor's answer to a request.
ToolAnswer = TimedResponse | ImagesLacking
