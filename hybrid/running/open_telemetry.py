"""`--trace`: the spans of a run, sent over OTLP/HTTP or written as lines. The one file that knows OpenTelemetry.

    with tracing("otlp", RunBegun(...), text=False) as tracer:    # to what OTEL_EXPORTER_OTLP_ENDPOINT names
        ...
    with tracing("spans.jsonl", RunBegun(...), text=False): ...   # one span a line, as the SDK writes it as JSON

Spans are sent by a thread of their own. What cannot be sent is lost, which one line of the log says; at the end what is
left has `FLUSH_S` seconds. Nothing global is set: neither a provider nor a context, so that instrumentation of other
libraries neither gets into these spans nor is given any.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import Token
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from urllib.parse import unquote

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span as SdkSpan
from opentelemetry.trace import SpanKind, Status, StatusCode, format_trace_id, set_span_in_context
from opentelemetry.trace import Tracer as SdkTracer

from hybrid.errors import UsageError
from hybrid.registry import names
from hybrid.running.config import OTLP
from hybrid.running.span_attributes import SpanEnd, SpanTeller, error_of, event_of
from hybrid.secrets import keep_secret, redact
from hybrid.tracing import INNERMOST, Begun, Ended, RequestFailed, RunBegun, Span, Tracer
from hybrid.version import __version__

SERVICE = "hybrid"
FLUSH_S = 5.0
"""How long a command waits at its end for spans that are not sent yet."""
LAST_S = 1.0
"""How long the sending thread may take to hear that it is to stop."""
LINES_WAITING = 1_000_000
"""Spans that may wait for a disk."""
PROTOCOL = "http/protobuf"
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
LANGSMITH = ("LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING", "LANGCHAIN_TRACING")
"""Variables of which the first that is set switches LangSmith's own tracing on, images included."""
LONGEST_REASON = 300

log = logging.getLogger(__name__)


def refuse_untraceable(trace: str) -> None:
    """Raise `UsageError` where spans could not be sent or written, or LangChain would send images beside them."""
    told = next((name for name in LANGSMITH if os.environ.get(name, "").strip()), None)
    if told is not None and os.environ[told].strip() == "true":
        raise UsageError(
            f"--trace: {told}=true has LangChain send traces of its own, with images: unset it, or leave --trace away"
        )
    if trace == OTLP:
        for name in PROTOCOLS:
            if os.environ.get(name, PROTOCOL).strip() not in ("", PROTOCOL):
                raise UsageError(f"--trace {trace}: {name}={os.environ[name]}: only {PROTOCOL} is spoken here")
    elif not (folder := Path(trace).expanduser().parent).is_dir():
        raise UsageError(f"--trace {trace}: there is no folder {folder}")


@contextmanager
def tracing(
    trace: str,
    begun: RunBegun,
    *,
    text: bool,
    tools: Collection[str] = (),
    exporter: SpanExporter | None = None,
) -> Iterator[Tracer]:
    """A tracer whose spans lie in one of the run, and are sent when the block has ended.

    Args:
        trace: `otlp`, or a file that lines are appended to.
        begun: the run.
        text: whether texts are told.
        tools: names of tools besides those of `tools/`.
        exporter: takes the spans instead.

    Raises:
        UsageError: the file cannot be written, or a variable of the environment holds no value for it.
    """
    try:
        sending = _Sending(trace, exporter or _exporter(trace))
    except ValueError as error:
        raise UsageError(f"--trace {trace}: a variable OTEL_* cannot be used: {error}") from error
    try:
        tracer = _SpanTracer(sending.tracer, SpanTeller(frozenset({*names("tools"), *tools}), text))
        with tracer.span(begun) as span:
            log.info("trace %s", span.trace_id)
            yield tracer
    finally:
        sending.close()


def _exporter(trace: str) -> SpanExporter:
    if trace == OTLP:
        _keep_headers(os.environ)
        return OTLPSpanExporter()
    try:
        return _Lines(Path(trace).expanduser())
    except OSError as error:
        raise UsageError(f"--trace {trace}: cannot be written: {error.strerror or error}") from error


def _keep_headers(environment: Mapping[str, str]) -> None:
    """Register what the headers for a collector hold: keys, mostly."""
    for name in HEADERS:
        for pair in environment.get(name, "").split(","):
            value = unquote(pair.partition("=")[2]).strip()
            keep_secret(value, value.rpartition(" ")[2])


class _OpenSpan(AbstractContextManager["_OpenSpan"]):
    """A span from its begin to its end, the innermost of its block."""

    def __init__(self, tracer: SdkTracer, teller: SpanTeller, begun: Begun) -> None:
        self._tracer, self._teller, self._begun = tracer, teller, begun
        self._error: str | None = None

    def __enter__(self) -> _OpenSpan:
        start, around = self._teller.begun(self._begun), INNERMOST.get()
        # An empty context: what other libraries of this process trace is no parent of ours.
        parent = set_span_in_context(around.span, Context()) if isinstance(around, _OpenSpan) else Context()
        kind = SpanKind.CLIENT if start.client else SpanKind.INTERNAL
        self.span: SdkSpan = self._tracer.start_span(start.name, parent, kind, start.attributes)
        self._token: Token[Span] = INNERMOST.set(self)
        return self

    @property
    def trace_id(self) -> str:
        """As collectors show it."""
        return format_trace_id(self.span.get_span_context().trace_id)

    def ended(self, end: Ended) -> None:
        told: SpanEnd = self._teller.ended(end)
        self.span.set_attributes(told.attributes)
        self._error = told.error

    def happened(self, event: RequestFailed) -> None:
        self.span.add_event("request failed", event_of(event))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        INNERMOST.reset(self._token)
        wrong = self._error or (None if error is None else error_of(error))
        if wrong is not None:
            self.span.set_attribute("error.type", wrong)
            self.span.set_status(Status(StatusCode.ERROR))
        self.span.end()


class _SpanTracer:
    """A `Tracer` that makes spans of OpenTelemetry."""

    def __init__(self, tracer: SdkTracer, teller: SpanTeller) -> None:
        self._tracer, self._teller = tracer, teller

    def span(self, begun: Begun) -> _OpenSpan:
        return _OpenSpan(self._tracer, self._teller, begun)


class _Sending:
    """The thread that sends, and what it is told of."""

    def __init__(self, trace: str, exporter: SpanExporter) -> None:
        self._logger = _Unheard()
        self._exporter = _Watched(trace, exporter, self._logger)
        waiting = None if trace == OTLP else LINES_WAITING
        # Without a global provider nobody else ends it; `close` does.
        self._provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter, max_queue_size=waiting))
        self.tracer = self._provider.get_tracer(SERVICE, __version__)
        self._ended = False
        self._logger.listen()

    def close(self) -> None:
        """Send what is left, as far as that goes in `FLUSH_S` seconds.

        A collector that has taken nothing yet, and fails now, is away: it is not tried again.
        """
        ending = Thread(target=self._end, name="trace-end", daemon=True)
        self._logger.news.clear()
        ending.start()
        if self._exporter.delivers:
            ending.join(FLUSH_S)
        else:
            self._logger.news.wait(FLUSH_S)
        if not self._ended:
            self._exporter.tell(self._logger.last or f"the last are not sent within {FLUSH_S:g} s")
            self._exporter.shutdown()
        ending.join(LAST_S)
        if not ending.is_alive():
            # Else the thread, which ends with the process, would still be heard.
            self._logger.remove()

    def _end(self) -> None:
        self._provider.shutdown()
        self._ended = True
        self._logger.news.set()


class _Watched(SpanExporter):
    """Another exporter, of whose first failure the log gets one line."""

    def __init__(self, trace: str, inner: SpanExporter, reasons: _Unheard) -> None:
        self._trace, self._inner, self._reasons = trace, inner, reasons
        self.delivers = False
        """Whether anything has been taken."""
        self._told = False
        self._lock = Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._inner.export(spans)
        except Exception as error:
            self._reasons.last = f"{type(error).__name__}: {error}"
            result = SpanExportResult.FAILURE
        if result is SpanExportResult.SUCCESS:
            self.delivers = True
        else:
            self.tell(self._reasons.last)
        return result

    def tell(self, why: str) -> None:
        """Say once that spans are lost."""
        with self._lock:
            told, self._told = self._told, True
        if not told:
            reason = redact(" ".join(why.split()))[:LONGEST_REASON] or "no reason is given"
            log.warning("--trace %s: spans are lost, and the run goes on: %s", self._trace, reason)

    def shutdown(self) -> None:
        self._inner.shutdown()


class _Unheard(logging.Handler):
    """Takes what OpenTelemetry logs, a line for every try, and keeps the last."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        self.news = Event()
        """Set by every line."""
        self._logger = logging.getLogger("opentelemetry")
        self._propagated = self._logger.propagate

    def listen(self) -> None:
        """Let nobody else hear it."""
        self._logger.addHandler(self)
        self._logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()
        self.news.set()

    def remove(self) -> None:
        """Let others hear it again."""
        self._logger.removeHandler(self)
        self._logger.propagate = self._propagated


class _Lines(SpanExporter):
    """One JSON object a line, at the end of a file. Raises `OSError` where it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._file.write("".join(f"{span.to_json(indent=None)}\n" for span in spans))
        self._file.flush()
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self._file.close()


def _resource() -> Resource:
    """Who sends: `hybrid`, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES say otherwise."""
    told = Resource.create({SERVICE_VERSION: __version__})
    if str(told.attributes[SERVICE_NAME]).startswith("unknown_service"):
        return told.merge(Resource({SERVICE_NAME: SERVICE}))
    return told
