"""Export the spans of a run with OpenTelemetry: over OTLP/HTTP or as lines of a file. Entry points of `hybrid.tracing`.

with otlp("otlp", run_span(...), text=False): ...           # to OTEL_EXPORTER_OTLP_ENDPOINT
with lines("spans.jsonl", run_span(...), text=False): ...   # one span per line, in the JSON of the SDK

No global provider is set, so spans of other libraries are not included.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opentelemetry import trace as api
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.util.re import parse_env_headers

from hybrid import tracing
from hybrid.core.errors import ToolError, UsageError
from hybrid.core.secrets import keep_secret, redact
from hybrid.version import __version__

HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
log = logging.getLogger(__name__)


@contextmanager
def otlp(trace: str, facts: tracing.SpanFacts, *, text: bool) -> Iterator[None]:
    """Send the spans of the `with` block over OTLP/HTTP. Raises `UsageError` for an invalid OpenTelemetry variable."""
    for value in (value for name in HEADERS for value in parse_env_headers(os.environ.get(name, ""), True).values()):
        keep_secret(value, value.rpartition(" ")[2])
    try:
        processor = BatchSpanProcessor(OTLPSpanExporter())
    except ValueError as error:
        raise UsageError(f"--trace {trace}: a variable OTEL_* cannot be used: {error}") from error
    logger, losses = logging.getLogger("opentelemetry"), _FirstLoss(logging.ERROR)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(losses)
    try:
        with export_spans(processor, facts, text=text):
            yield
    finally:
        logger.removeHandler(losses)
        logger.propagate = propagated


@contextmanager
def lines(trace: str, facts: tracing.SpanFacts, *, text: bool) -> Iterator[None]:
    """Append the spans of the `with` block to a file. Raises `UsageError` if the file cannot be written."""
    try:
        file = Path(trace).expanduser().open("a", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--trace {trace}: cannot be written: {error.strerror or error}") from error
    exporter = ConsoleSpanExporter(out=file, formatter=lambda span: f"{span.to_json(indent=None)}\n")
    with file, export_spans(SimpleSpanProcessor(exporter), facts, text=text):
        yield


@contextmanager
def export_spans(processor: SpanProcessor, facts: tracing.SpanFacts, *, text: bool) -> Iterator[None]:
    """Pass the spans of the `with` block to a processor, inside the span of the run."""
    service = {"service.version": __version__, "service.name": os.environ.get("OTEL_SERVICE_NAME", "hybrid")}
    provider = TracerProvider(resource=Resource.create(service), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    tracer = _Tracer(provider.get_tracer("hybrid", __version__), text=text)
    token = tracing.TRACER.set(tracer.span)
    try:
        with tracer.span(facts):
            yield
    finally:
        tracing.TRACER.reset(token)
        provider.shutdown()


class _FirstLoss(logging.Handler):
    """Log only the first loss of spans; OpenTelemetry itself logs a line for each attempt."""

    def emit(self, record: logging.LogRecord) -> None:
        self.setLevel(logging.CRITICAL + 1)
        log.warning("--trace otlp: spans are lost, and the run goes on: %s", redact(record.getMessage()))


@dataclass(frozen=True)
class _Tracer:
    """A tracer whose spans nest like OpenTelemetry's context."""

    tracer: api.Tracer
    text: bool

    @contextmanager
    def span(self, facts: tracing.SpanFacts) -> Iterator[tracing.End]:
        """Record the `with` block as a span. If an error leaves the block, record its kind."""
        kind = api.SpanKind.CLIENT if facts.name.startswith("chat ") else api.SpanKind.INTERNAL
        with self.tracer.start_as_current_span(
            facts.name, kind=kind, record_exception=False, set_status_on_exception=False
        ) as span:
            self._tell(span, facts)
            try:
                yield lambda describe: self._tell(span, describe())
            except BaseException as error:
                # Leave out the error's message, which may contain a question or an answer.
                fault = error.fault.value if isinstance(error, ToolError) else type(error).__name__
                self._tell(span, tracing.SpanFacts({}, error=fault))
                raise

    def _tell(self, span: api.Span, facts: tracing.SpanFacts) -> None:
        span.set_attributes({key: value for key, value in facts.attributes.items() if value is not None})
        for key, content in facts.texts.items() if self.text else ():
            span.set_attribute(key, redact(json.dumps(content, ensure_ascii=False, default=str)))
        if facts.error:
            span.set_attribute("error.type", facts.error)
            span.set_status(api.StatusCode.ERROR)
