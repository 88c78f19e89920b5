"""The spans of a run as those of OpenTelemetry: sent over OTLP/HTTP, or written as lines. Offered as `hybrid.tracing`.

    with otlp("otlp", RunBegun(...), text=False): ...           # to what OTEL_EXPORTER_OTLP_ENDPOINT names
    with lines("spans.jsonl", RunBegun(...), text=False): ...   # one span a line, as the SDK writes it as JSON

Names follow the semantic conventions for generative AI (https://github.com/open-telemetry/semantic-conventions-genai);
what they have no name for is `hybrid.*`. Of images there are number and the first digits of their hash. No global
provider is set, so the instrumentation of other libraries does not get into these spans.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from opentelemetry import trace as api
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.util.re import parse_env_headers

from hybrid import tracing
from hybrid.errors import ToolError, UsageError
from hybrid.messages import AssistantMessage, ImagePart, Message, images_of, parts_of
from hybrid.secrets import keep_secret, redact
from hybrid.types import Attempt, ImageRef, Outcome
from hybrid.version import __version__
from hybrid.weights import names_directory

HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
LANGSMITH = ("LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING", "LANGCHAIN_TRACING")
"""Variables that switch LangSmith's own tracing on, images included."""
NO_ERROR = frozenset({Outcome.ANSWERED, Outcome.ABSTAINED, Outcome.UNPARSED})
log = logging.getLogger(__name__)
Attributes = dict[str, Any]


@contextmanager
def otlp(trace: str, begun: tracing.RunBegun, *, text: bool) -> Iterator[None]:
    """Send the spans of the block over OTLP/HTTP. Raises `UsageError` for a variable of OpenTelemetry with no sense."""
    for value in (value for name in HEADERS for value in parse_env_headers(os.environ.get(name, ""), True).values()):
        keep_secret(value, value.rpartition(" ")[2])
    try:
        processor = BatchSpanProcessor(OTLPSpanExporter())
    except ValueError as error:
        raise UsageError(f"--trace {trace}: a variable OTEL_* cannot be used: {error}") from error
    with _first_loss(trace), kept(processor, begun, text=text):
        yield


@contextmanager
def lines(trace: str, begun: tracing.RunBegun, *, text: bool) -> Iterator[None]:
    """Append the spans of the block to a file. Raises `UsageError` where it cannot be written."""
    try:
        file = Path(trace).expanduser().open("a", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--trace {trace}: cannot be written: {error.strerror or error}") from error
    written = ConsoleSpanExporter(out=file, formatter=lambda span: f"{span.to_json(indent=None)}\n")
    with file, kept(SimpleSpanProcessor(written), begun, text=text):
        yield


@contextmanager
def kept(processor: SpanProcessor, begun: tracing.RunBegun, *, text: bool) -> Iterator[None]:
    """Give a processor the spans of the block, in one of the run."""
    if variable := next((name for name in LANGSMITH if os.environ.get(name, "").strip() == "true"), None):
        processor.shutdown()
        raise UsageError(f"--trace: {variable}=true has LangChain send traces of its own, with images: unset it")
    service = {"service.version": __version__, "service.name": os.environ.get("OTEL_SERVICE_NAME", "hybrid")}
    provider = TracerProvider(resource=Resource.create(service), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    tracer = _Tracer(provider.get_tracer("hybrid", __version__), text=text)
    token = tracing.TRACER.set(tracer)
    try:
        with tracer.span(begun):
            log.info("trace %032x", api.get_current_span().get_span_context().trace_id)
            yield
    finally:
        tracing.TRACER.reset(token)
        provider.shutdown()


@contextmanager
def _first_loss(trace: str) -> Iterator[None]:
    """Log the first loss of spans once; OpenTelemetry itself logs a line for every try."""
    logger = logging.getLogger("opentelemetry")
    losses: list[logging.LogRecord] = []

    def first(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR and not losses:
            losses.append(record)
            log.warning("--trace %s: spans are lost, and the run goes on: %s", trace, redact(record.getMessage()))
        return False

    handler, propagated = logging.Handler(), logger.propagate
    handler.addFilter(first)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


class _Tracer:
    """A `Tracer` whose spans nest as OpenTelemetry's context does."""

    def __init__(self, tracer: api.Tracer, *, text: bool) -> None:
        self._tracer, self._text = tracer, text

    @contextmanager
    def span(self, begun: tracing.Begun) -> Iterator[tracing.End]:
        """A span until the block ends, with the kind of the error that leaves it."""
        name, attributes = self._begun(begun)
        kind = api.SpanKind.CLIENT if isinstance(begun, tracing.ModelCallBegun) else api.SpanKind.INTERNAL
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield partial(self._ended, span)
            except BaseException as error:
                _fail(span, error_of(error))
                raise

    def _begun(self, begun: tracing.Begun) -> tuple[str, Attributes]:
        match begun:
            case tracing.RunBegun(benchmark, folder):
                return f"run {benchmark}", {"hybrid.benchmark": benchmark, "hybrid.run": folder}
            case tracing.QuestionBegun(solver, id_, task):
                attributes = {"hybrid.solver": solver, "hybrid.question.id": id_, "hybrid.task": task}
                return f"question {solver}", attributes
            case tracing.ModelCallBegun(typed, provider, messages):
                rest = typed.partition(":")[2] or typed
                # The place of a folder of weights stays here.
                model = rest.rstrip("/").rpartition("/")[2] if names_directory(rest) else rest
                attributes = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider}
                attributes |= {"gen_ai.request.model": model, **_images(images_of(messages))}
                return f"chat {model}", attributes | self._texts(
                    "gen_ai.input.messages", [_spoken(m) for m in messages]
                )
            case tracing.ToolCallBegun(name, images, args):
                attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
                said = self._texts("gen_ai.tool.call.arguments", {"images": list(images), **args})
                return f"execute_tool {name}", {**attributes, "gen_ai.tool.type": "function", **said}

    def _ended(self, span: api.Span, ended: tracing.Ended) -> None:
        match ended:
            case Attempt(exchanges=exchanges):
                for outcome in (exchange.reply.outcome for exchange in exchanges[-1:]):
                    span.set_attribute("hybrid.outcome", outcome.value)
                    if outcome not in NO_ERROR:
                        _fail(span, outcome.value)
            case tracing.ModelReplied(message, used):
                span.set_attributes(_replied(message, used.cost_usd))
                span.set_attributes(self._texts("gen_ai.output.messages", [_spoken(message)]))
            case tracing.ToolAnswered(finding, images, cached):
                attributes = {"hybrid.tool.backend": finding.backend, "hybrid.tool.version": finding.version}
                more = {"hybrid.tool.cached": cached, "hybrid.tool.pictures": len(finding.images)}
                span.set_attributes({**attributes, **more, **_images(images)})
                span.set_attributes(self._texts("gen_ai.tool.call.result", finding.text))

    def _texts(self, key: str, said: Any) -> Attributes:
        """One attribute with texts in it, as JSON; nothing where they are left out."""
        return {key: redact(json.dumps(said, ensure_ascii=False, default=str))} if self._text else {}


def _fail(span: api.Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(api.StatusCode.ERROR)


def error_of(error: BaseException) -> str:
    """The kind of an error, without its words: those may hold what was asked or answered."""
    return error.fault.value if isinstance(error, ToolError) else type(error).__name__


def _replied(message: AssistantMessage, cost_usd: float | None) -> Attributes:
    used = message.usage
    attributes = {
        "gen_ai.usage.input_tokens": used and used.input_tokens,
        "gen_ai.usage.output_tokens": used and used.output_tokens,
        "gen_ai.usage.reasoning.output_tokens": used and used.reasoning_tokens,
        "gen_ai.usage.cache_read.input_tokens": used and used.cached_tokens,
        "gen_ai.response.finish_reasons": None if message.finish_reason is None else [message.finish_reason],
        "hybrid.cost_usd": cost_usd,
        "hybrid.requests": message.attempts,
        "hybrid.refused": message.refusal is not None,
        "hybrid.tool_calls": len(message.calls) + len(message.invalid),
    }
    return {key: value for key, value in attributes.items() if value is not None}


def _images(images: Sequence[ImageRef]) -> Attributes:
    """How many, and which by the first digits of their hashes."""
    attributes = {"hybrid.images.sha256": [ref.image.sha256[:12] for ref in images]} if images else {}
    return {"hybrid.images.count": len(images), **attributes}


def _spoken(message: Message) -> dict[str, Any]:
    """A message in the form of the conventions; its images are named."""
    parts: list[dict[str, Any]] = [
        {"type": "image", "name": part.ref.name} if isinstance(part, ImagePart) else {"type": "text", "content": part}
        for part in parts_of(message)
    ]
    if isinstance(message, AssistantMessage):
        parts += [
            {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.args} for call in message.calls
        ]
    return {"role": message.role, "parts": parts}
