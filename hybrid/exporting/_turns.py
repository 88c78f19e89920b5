"""The conversations of a question as turns, for formats that keep every turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from hybrid.core.machine_paths import hide_paths_in_step
from hybrid.core.types import Attempt, ImageRef, Json, Step
from hybrid.scoring.attempt_facts import calls_of
from hybrid.solving.styles import AS_TRAINED


@dataclass(frozen=True)
class Call:
    """A tool call with its arguments; `id` is unique within the question."""

    id: str
    tool: str
    args: Mapping[str, Json]


@dataclass(frozen=True)
class Turn:
    """The content from one side of the conversation, with its step in the trace; `calls` are the model's calls."""

    role: Literal["user", "assistant", "tool"]
    parts: tuple[str | ImageRef, ...]
    calls: tuple[Call, ...] = ()
    answers: Call | None = None  # The call that a tool's turn answers
    step: Step | None = None

    @property
    def text(self) -> str:
        """The text without the images."""
        return "\n".join(part for part in self.parts if isinstance(part, str))


def turns(attempt: Attempt) -> Iterator[Turn]:
    """Yield the turns of each prompt in order: the prompt, every model reply, every tool output, the solver's reply."""
    numbers = count(1)

    def call(tool: object, args: Mapping[str, Json]) -> Call:
        return Call(f"call-{next(numbers)}", str(tool), args)

    for exchange in attempt.exchanges:
        yield Turn("user", tuple(part for part in exchange.prompt.parts if part != ""))
        traced, last_text = iter(calls_of(exchange)), None
        waiting: list[Call] = []
        # If a tool style was used, maps the tool that ran to the name by which the model called it.
        dressed: dict[object, object] = {}
        for step in map(hide_paths_in_step, exchange.reply.steps):
            if step.kind == "model":
                tool_calls = step.data.get("tool_calls")
                entries = tool_calls if isinstance(tool_calls, Sequence) and not isinstance(tool_calls, str) else ()
                call_records = filter(None, map(_mapping, entries))
                waiting = [call(record.get("tool", ""), _mapping(record.get("args"))) for record in call_records]
                last_text = step.text
                yield Turn("assistant", (step.text,), tuple(waiting), step=step)
            elif step.name == AS_TRAINED:
                dressed[_mapping(step.data.get("ran")).get("tool")] = _mapping(step.data.get("wrote")).get("tool")
            elif step.kind == "tool":
                args, names = next(traced).args, (step.name, dressed.get(step.name))
                model_call = next((candidate for candidate in waiting if candidate.tool in names), None)
                if model_call is None:
                    # A rule called the tool, or the model's call is not in the trace.
                    model_call = call(step.name, args)
                    yield Turn("assistant", ("",), (model_call,))
                else:
                    waiting.remove(model_call)
                yield Turn("tool", (*filter(None, (step.text,)), *step.images), answers=model_call, step=step)
                last_text = None
        if last_text != exchange.reply.text or waiting:
            yield Turn("assistant", (exchange.reply.text,))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
