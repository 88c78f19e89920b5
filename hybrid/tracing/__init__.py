"""The spans of a run: functions return the attributes at the start and end of each span, and a tracer records them.

with tracing.span(lambda: tracing.tool_call("depth", ("img:1",), {})) as ended:
    finding = await ...
    ended(lambda: tracing.tool_finding(finding, refs, cached=False))

An exception that leaves the `with` block is recorded as the error of the span. An installed package offers a tracer in
the entry-point group `hybrid.tracing` under a word (`otlp`) or a file suffix (`jsonl`). The entry point is a context
manager that takes the value of `--trace`, the `SpanFacts` of the run and whether texts are recorded; it sets `TRACER`.

Names follow the semantic conventions for generative AI (https://github.com/open-telemetry/semantic-conventions-genai);
attributes without a name there are `hybrid.*`. Images are recorded as the first digits of their hash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hybrid.core.messages import AssistantMessage, ImagePart, Message, images_of, parts_of
from hybrid.core.types import Attempt, Finding, ImageRef, Json, Outcome
from hybrid.plugins.weights import names_directory

# The entry-point group of tracers.
GROUP: Final = "hybrid.tracing"
NO_ERROR = frozenset({Outcome.ANSWERED, Outcome.ABSTAINED, Outcome.UNPARSED})


@dataclass(frozen=True, slots=True)
class SpanFacts:
    """Attributes of a span that are known when it begins or ends, named as in docs/tracing.md.

    Attributes that are None are left out. `texts` are exported only with `--trace-text`. `name` is the name of a span
    that begins, `error` the kind of a failure.
    """

    attributes: Mapping[str, Json]
    texts: Mapping[str, Json] = field(default_factory=dict)
    name: str = ""
    error: str = ""


Describe = Callable[[], SpanFacts]
End = Callable[[Describe], None]
# Opens a span and returns its context manager, which yields the function that ends it. It is called in one event loop,
# and must not raise or wait.
Tracer = Callable[[SpanFacts], AbstractContextManager[End]]
TRACER: ContextVar[Tracer | None] = ContextVar("the tracer of the run", default=None)


def span(describe: Describe) -> AbstractContextManager[End]:
    """Open a span of the run's tracer; its context manager yields the function that records the end of the span."""
    tracer = TRACER.get()
    return nullcontext(lambda _: None) if tracer is None else tracer(describe())


def run_span(benchmark: str, folder: str) -> SpanFacts:
    """Return the attributes at the start of a command's span; `folder` is the name of the run's folder."""
    return SpanFacts({"hybrid.benchmark": benchmark, "hybrid.run": folder}, name=f"run {benchmark}")


def question(solver: str, id_: str, task: str) -> SpanFacts:
    """Return the attributes at the start of a question's span; `solver` is the solver's name in the run."""
    name = f"question {solver}"
    return SpanFacts({"hybrid.solver": solver, "hybrid.question.id": id_, "hybrid.task": task}, name=name)


def attempted(attempt: Attempt) -> SpanFacts:
    """Return the attributes at the end of a question's span.

    They have the outcome, which is also the `error` unless the solver replied.
    """
    if not attempt.exchanges:
        return SpanFacts({})
    outcome = attempt.exchanges[-1].reply.outcome
    return SpanFacts({"hybrid.outcome": outcome.value}, error="" if outcome in NO_ERROR else outcome.value)


def model_call(typed: str, provider: str, messages: Sequence[Message]) -> SpanFacts:
    """Return the attributes at the start of a model call's span; `typed` is the model's name as the user typed it."""
    model = typed.partition(":")[2] or typed
    # A path to weights is private, so only the folder's name is recorded.
    model_name = Path(model).name if names_directory(model) else model
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model_name}
    texts = {"gen_ai.input.messages": [_message(message) for message in messages]}
    return SpanFacts({**attributes, **_images(images_of(messages))}, texts, f"chat {model_name}")


def model_reply(message: AssistantMessage, cost_usd: float | None) -> SpanFacts:
    """Return the attributes at the end of a model call's span: the model's reply and its cost."""
    # The tokens of a reused reply are left out, because another run has paid for them.
    used = None if message.reused else message.usage
    attributes: Mapping[str, Json] = {
        "gen_ai.usage.input_tokens": used.input_tokens if used else None,
        "gen_ai.usage.output_tokens": used.output_tokens if used else None,
        "gen_ai.usage.reasoning.output_tokens": used.reasoning_tokens if used else None,
        "gen_ai.usage.cache_read.input_tokens": used.cached_tokens if used else None,
        "gen_ai.response.finish_reasons": [message.finish_reason] if message.finish_reason else None,
        "hybrid.cost_usd": None if message.reused else cost_usd,
        "hybrid.reused": message.reused or None,
        "hybrid.requests": message.attempts,
    }
    return SpanFacts(attributes, {"gen_ai.output.messages": [_message(message)]})


def tool_call(name: str, images: Sequence[str], args: Mapping[str, Json]) -> SpanFacts:
    """Return the attributes at the start of a tool call's span."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
    return SpanFacts(attributes, {"gen_ai.tool.call.arguments": {"images": images, **args}}, f"execute_tool {name}")


def tool_finding(finding: Finding, images: Sequence[ImageRef], *, cached: bool) -> SpanFacts:
    """Return the attributes at the end of a tool call's span: output, images, and whether it came from the cache."""
    backend = {"hybrid.tool.backend": finding.backend, "hybrid.tool.version": finding.version}
    attributes = {**backend, "hybrid.tool.cached": cached, **_images(images)}
    return SpanFacts(attributes, {"gen_ai.tool.call.result": finding.text})


def _images(images: Sequence[ImageRef]) -> dict[str, Json]:
    return {"hybrid.images.sha256": [ref.image.sha256[:12] for ref in images] or None}


def _message(message: Message) -> Json:
    """Return a message in the form of the semantic conventions, with the names of its images."""
    parts: list[Json] = [
        {"type": "image", "name": part.ref.name} if isinstance(part, ImagePart) else {"type": "text", "content": part}
        for part in parts_of(message)
    ]
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    parts += [{"type": "tool_call", "id": call.id, "name": call.name, "arguments": dict(call.args)} for call in calls]
    return {"role": message.role, "parts": parts}
