"""The trace of a question, read back: every model and tool call of it.

    attempt = read_trace(folder, "controller", "val_Jigsaw_1")
    calls_of(attempt.exchanges[0])

A trace is one JSON file a question. One that is not there, or that cannot be read, is an error of this question alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hybrid.codecs import codec
from hybrid.errors import DataError
from hybrid.manifest import first_error
from hybrid.run_folder import RunFolder
from hybrid.types import Attempt, Exchange, Fault, Finding, Json, Step


class NoTrace(DataError):
    """There is no trace of a question."""


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A tool call as the trace has it: images and arguments as the tool got them; no finding after a fault."""

    tool: str
    images: tuple[str, ...]
    args: Mapping[str, Json]
    seconds: float
    fault: Fault | None
    finding: Finding | None


def read_trace(folder: RunFolder, solver: str, question_id: str) -> Attempt:
    """Everything that happened in an attempt.

    Raises:
        NoTrace: there is none.
        DataError: it cannot be read, or it is of another question.
    """
    path = folder.trace_path(solver, question_id)
    try:
        attempt: Attempt = codec(Attempt).validate_json(path.read_bytes())
    except FileNotFoundError:
        raise NoTrace(f"{path}: there is no such trace") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path}: not a trace ({first_error(error)})") from error
    if attempt.id != question_id:
        raise DataError(f"{path}: it is the trace of {attempt.id!r}, not of {question_id!r}")
    return attempt


def calls_of(exchange: Exchange) -> tuple[TracedCall, ...]:
    """The tool calls of one ask, in order."""
    return tuple(_call(step) for step in exchange.reply.steps if step.kind == "tool")


def _call(step: Step) -> TracedCall:
    images, args = step.data.get("images"), step.data.get("args")
    shown = images if isinstance(images, Sequence) and not isinstance(images, str) else ()
    given = args if isinstance(args, Mapping) else {}
    return TracedCall(step.name, tuple(map(str, shown)), given, step.seconds, step.fault, _finding(step))


def _finding(step: Step) -> Finding | None:
    """What the tool said; None where the call ended in a fault, or the step holds no finding."""
    data, confidence = step.data.get("data"), step.data.get("confidence")
    if step.fault is not None or not isinstance(data, Mapping):
        return None
    sure = float(confidence) if isinstance(confidence, int | float) else 0.0
    backend, version = str(step.data.get("backend", "")), str(step.data.get("version", ""))
    return Finding(step.text, data, sure, backend, version, step.images)
