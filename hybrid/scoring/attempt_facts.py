"""The tool calls and other facts that statistics need of a recorded attempt, cached so that its line is parsed once.

    attempt = read_attempt(recorded, "q7")       # the whole attempt; its facts for statistics stay in memory
    facts_of(recorded, "q7").asks.usages         # without reading the line again
    calls_of(attempt.exchanges[0])               # the tool calls of an exchange, from its steps

Facts take less than 1 KB per attempt, and are released with the last object that holds the file open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from hybrid.core.errors import DataError
from hybrid.core.types import Attempt, Exchange, Fault, Finding, Json, Step, Usage
from hybrid.log.attempts import Recorded
from hybrid.log.folder import RunFolder
from hybrid.log.lines import OpenFile
from hybrid.solving.paraphrase import UNCHANGED


@dataclass(frozen=True, slots=True)
class FaultedStep:
    """A step of a tool that ended in a fault, or in which the provider refused a picture of the tool."""

    tool: str
    fault: Fault
    error: str
    # False for a refused picture: the call itself has an earlier step.
    is_call: bool


@dataclass(frozen=True, slots=True)
class AskFacts:
    """Cost and time of an attempt; `seconds` and `started` are those of `Attempt`."""

    # The cost of answering each prompt, in order.
    usages: tuple[Usage, ...]
    seconds: float
    started: float | None


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """Facts of one attempt."""

    asks: AskFacts
    # The tool of each call that ended without a fault.
    answered: tuple[str, ...]
    faulted: tuple[FaultedStep, ...]
    # How replies ended, if not normally: kind and finish reason.
    ends: tuple[tuple[str, str], ...]
    # Confidence, 0..1, of the specialists' last answer; None if it is missing or unusable.
    confidence: float | None

    @property
    def has_calls(self) -> bool:
        """Whether a tool was called, even if every call ended in a fault."""
        return bool(self.answered) or any(step.is_call for step in self.faulted)


_FACTS: Final[WeakKeyDictionary[OpenFile, dict[str, AttemptFacts]]] = WeakKeyDictionary()


def read_attempt(recorded: Recorded, identity: str) -> Attempt:
    """Read an attempt with its steps, and remember its facts. Raises `DataError` or `KeyError`."""
    attempt = recorded.by_id[identity]
    if recorded.index.file is not None:
        _FACTS.setdefault(recorded.index.file, {}).setdefault(identity, _facts(attempt))
    return attempt


def known_facts(recorded: Recorded, identity: str) -> AttemptFacts | None:
    """Return the facts of an attempt that was read before; None for any other attempt."""
    return None if recorded.index.file is None else _FACTS.get(recorded.index.file, {}).get(identity)


def facts_of(recorded: Recorded, identity: str) -> AttemptFacts:
    """Return the facts of an attempt. Raises `DataError` if it cannot be read, `KeyError` if it is missing."""
    if (facts := known_facts(recorded, identity)) is not None:
        return facts
    attempt = read_attempt(recorded, identity)
    return known_facts(recorded, identity) or _facts(attempt)


def asks_of(recorded: Recorded, identity: str, *, parse_steps: bool = True) -> AskFacts:
    """Return the cost and time of an attempt, even if its steps are unreadable. Raises what `facts_of` raises.

    Parse the steps if later statistics need them; without them an attempt takes a quarter of the time.
    """
    if not parse_steps and known_facts(recorded, identity) is None:
        return _asks(recorded.without_steps[identity])
    try:
        return facts_of(recorded, identity).asks
    except DataError:
        return _asks(recorded.without_steps[identity])


def _asks(attempt: Attempt) -> AskFacts:
    usages = tuple(exchange.reply.usage for exchange in attempt.exchanges)
    return AskFacts(usages, attempt.seconds, attempt.started)


def _facts(attempt: Attempt) -> AttemptFacts:
    steps = [step for exchange in attempt.exchanges for step in exchange.reply.steps]
    return AttemptFacts(
        _asks(attempt),
        tuple(step.name for step in steps if step.kind == "tool" and step.fault is None),
        tuple(faulted for step in steps if step.fault is not None for faulted in _faults_of(step)),
        tuple(end for step in steps if step.kind == "model" for end in _ends(step.data)),
        _confidence(attempt),
    )


def _faults_of(step: Step) -> Iterator[FaultedStep]:
    assert step.fault is not None  # noqa: S101 - the caller selects such steps
    if step.fault is Fault.PICTURE_REFUSED:
        # The step of the call itself came before this step.
        yield FaultedStep(str(step.data.get("tool")), step.fault, step.text, is_call=False)
    if step.kind == "tool":
        place = step.data.get("raised_at")
        error = f"{step.text} ({place})" if isinstance(place, str) else step.text
        yield FaultedStep(step.name, step.fault, error, is_call=True)


def _ends(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield how the replies of a step ended, including earlier replies that were broken off."""
    broken = data.get("broken_off")
    for reason in broken if isinstance(broken, list | tuple) else ():
        yield "broken_off", str(reason)
    reason = data.get("finish_reason")
    # Older runs saved a reason only for replies that were cut.
    end = data.get("end", "cut" if reason else None)
    if end is not None:
        yield str(end), str(reason or "")


def _confidence(attempt: Attempt) -> float | None:
    for exchange in reversed(attempt.exchanges):
        for step in reversed(exchange.reply.steps):
            answer = step.data.get("specialist_answer")
            if isinstance(answer, Mapping):
                value = answer.get("confidence")
                return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None
    return None


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A recorded tool call, with images and arguments as the tool got them.

    `finding` is the output; None after a fault.
    """

    tool: str
    images: tuple[str, ...]
    args: Mapping[str, Json]
    seconds: float
    fault: Fault | None
    finding: Finding | None


def calls_of(exchange: Exchange) -> tuple[TracedCall, ...]:
    """Return the tool calls of one exchange, in order."""
    calls = []
    for step in (step for step in exchange.reply.steps if step.kind == "tool"):
        images, args = step.data.get("images"), step.data.get("args")
        image_names = tuple(map(str, images)) if isinstance(images, list | tuple) else ()
        arguments = args if isinstance(args, Mapping) else {}
        data, confidence = step.data.get("data"), step.data.get("confidence")
        finding = None
        if step.fault is None and isinstance(data, Mapping):
            confidence_value = float(confidence) if isinstance(confidence, int | float) else 0.0
            backend, version = str(step.data.get("backend", "")), str(step.data.get("version", ""))
            finding = Finding(step.text, data, confidence_value, backend=backend, version=version, images=step.images)
        calls.append(
            TracedCall(step.name, image_names, args=arguments, seconds=step.seconds, fault=step.fault, finding=finding)
        )
    return tuple(calls)


def unchanged_outputs(folder: RunFolder, solver: str) -> tuple[int, int]:
    """Return how many tool outputs of a run with paraphrased output kept their wording, and how many have text.

    Raises `DataError` if a trace cannot be read. Older versions did not mark such outputs, so their runs count none.
    """
    exchanges = (exchange for attempt in folder.recorded(solver).by_id.values() for exchange in attempt.exchanges)
    findings = (call.finding for exchange in exchanges for call in calls_of(exchange))
    versions = [finding.version for finding in findings if finding is not None and finding.text.strip()]
    return sum(version.startswith(UNCHANGED) for version in versions), len(versions)


def lacks_pictures(folder: RunFolder, solver: str) -> bool:
    """Return whether no tool output of a solver has a picture; this includes the case that no tool answered."""
    return not any(any(outputs) for _, outputs in _picture_flags(folder, solver))


def questions_with_pictures(folder: RunFolder, solver: str) -> frozenset[str]:
    """Return the ids of the questions that have tool output and whose tool outputs all contain a picture."""
    return frozenset(name for name, outputs in _picture_flags(folder, solver) if outputs and all(outputs))


def _picture_flags(folder: RunFolder, solver: str) -> Iterator[tuple[str, list[bool]]]:
    """Yield the id of each question, and for each of its tool outputs whether it has a picture."""
    for name, attempt in folder.recorded(solver).by_id.items():
        steps = (step for exchange in attempt.exchanges for step in exchange.reply.steps)
        yield name, [bool(step.images) for step in steps if step.kind == "tool" and step.fault is None]
