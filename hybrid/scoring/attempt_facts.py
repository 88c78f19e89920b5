"""The facts that statistics need about each recorded attempt, kept so that a line is parsed once, not once per section.

    attempt = read_attempt(recorded, "q7")       # the whole attempt; its facts for statistics stay in memory
    facts_of(recorded, "q7").asks.usages         # without reading the line again

Facts take less than 1 KB per attempt, and are released with the last object that holds the file open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from hybrid.core.errors import DataError
from hybrid.core.types import Attempt, Fault, Step, Usage
from hybrid.log.attempts import Recorded
from hybrid.log.lines import OpenFile


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
    # The tools of the calls without a fault.
    answered: tuple[str, ...]
    faulted: tuple[FaultedStep, ...]
    # How replies ended, if not normally: kind and finish reason.
    ends: tuple[tuple[str, str], ...]
    # Confidence, 0..1, of the specialists' last answer; None without a usable one.
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
    """Return the facts of an attempt if it was read before."""
    return None if recorded.index.file is None else _FACTS.get(recorded.index.file, {}).get(identity)


def facts_of(recorded: Recorded, identity: str) -> AttemptFacts:
    """Return the facts of an attempt. Raises `DataError` if it cannot be read, `KeyError` if it is missing."""
    if (facts := known_facts(recorded, identity)) is not None:
        return facts
    attempt = read_attempt(recorded, identity)
    return known_facts(recorded, identity) or _facts(attempt)


def asks_of(recorded: Recorded, identity: str, *, parse_steps: bool = True) -> AskFacts:
    """Return the cost and time of an attempt, even if only its steps cannot be read. Raises as `facts_of`.

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
