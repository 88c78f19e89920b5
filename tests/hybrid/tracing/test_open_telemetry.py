"""The spans of a run: their nesting, their attributes, and what none of them contains."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `trace`")
from opentelemetry import trace as api
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from hybrid.config import RunConfig, ServiceOptions, parse_model_args
from hybrid.core.errors import UsageError
from hybrid.core.messages import AssistantMessage, TokenUsage, ToolCall
from hybrid.core.secrets import keep_secret
from hybrid.core.types import Usage
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import RunEnd, run_until_complete
from hybrid.tracing import run_span, span, tool_call
from hybrid.tracing.open_telemetry import export_spans
from tests.tables import cases

BEGUN = run_span("blink", "run")
CROP: dict[str, Any] = {"images": ["img:1"], "box": {"x0": 2, "y0": 2, "x1": 12, "y1": 12}}
CANARY = "zq10-canary"
KEY = "zq11-key-0123456789"


def answered(text: str, *calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(text, calls, usage=TokenUsage(100, 7, 3, 20), finish_reason="stop", attempts=1)


@pytest.fixture
def config(tmp_path: Path, fakes: Any) -> RunConfig:
    """Configuration of a run that asks two questions with one picture each, one after the other."""
    folder = fakes.blink_folder(tmp_path / "blink", 0, 2)
    settings = replace(parse_model_args(["price=1/2"]), base_url="http://127.0.0.1:9/v1")
    return RunConfig(
        "blink",
        ("controller", "mllm", "specialist"),
        model="openai:org/words",
        model_settings=settings,
        data=str(folder),
        service=ServiceOptions("classical"),
        concurrency=1,
        out=tmp_path / "run",
    )


def trace_run(run: ResolvedRun, model: Any, *, text: bool = False) -> tuple[tuple[ReadableSpan, ...], RunEnd]:
    """Run with the test's own model; return the spans, in the order of their ends."""
    assert run.resources.model is not None
    model.metadata = run.resources.model.metadata
    run = replace(run, resources=replace(run.resources, model=model))
    exported = InMemorySpanExporter()
    with export_spans(SimpleSpanProcessor(exported), BEGUN, text=text):
        end = asyncio.run(run_until_complete(run, lambda *_: None, lambda _: None))
    return exported.get_finished_spans(), end


Row = tuple[str, list[Any]]


def tree(spans: Sequence[ReadableSpan]) -> list[Row]:
    """Return names in the order of their starts, each with its children."""

    def below(parent: int | None) -> list[Row]:
        inner = [item for item in spans if (item.parent.span_id if item.parent else None) == parent]
        inner.sort(key=lambda value: value.start_time or 0)
        return [(entry.name, below(entry.get_span_context().span_id)) for entry in inner]  # type: ignore[union-attr]

    return below(None)


def spans_named(spans: Sequence[ReadableSpan], start: str) -> list[Mapping[str, Any]]:
    return [dict(item.attributes or {}) for item in spans if item.name.startswith(start)]


def test_the_spans_of_a_run_lie_in_each_other_and_count_what_its_attempts_count(config: RunConfig, fakes: Any) -> None:
    call = ToolCall("c1", "crop", CROP)
    model = fakes.QueueModel(
        [answered("", call), *(answered("Answer: (A)") for _ in range(4))], name="openai:org/words", provider="openai"
    )
    run = prepare(config)
    spans, end = trace_run(run, model)
    assert end.failures == ()
    chat: Row = ("chat org/words", [])
    (top,) = tree(spans)
    assert top[0] == "run blink"
    assert top[1][:4] == [
        ("question controller", [chat, ("execute_tool crop", []), chat]),
        ("question controller", [chat]),
        *[("question mllm", [chat])] * 2,
    ]
    assert [name for name, _ in top[1][4:]] == ["question specialist"] * 2

    chats = spans_named(spans, "chat ")
    attempts = [attempt for name in run.solvers for attempt in run.folder.attempts(name)]
    used = sum((exchange.reply.usage for item in attempts for exchange in item.exchanges), Usage())
    assert sum(entry["gen_ai.usage.input_tokens"] for entry in chats) == used.input_tokens == 500
    assert sum(value["gen_ai.usage.output_tokens"] for value in chats) == used.output_tokens == 35
    assert sum(first_chat["hybrid.cost_usd"] for first_chat in chats) == pytest.approx(used.cost_usd)
    assert len(chats) == used.model_calls
    assert len(spans_named(spans, "execute_tool ")) == used.tool_calls


def test_every_call_tells_its_attributes(config: RunConfig, fakes: Any) -> None:
    call = ToolCall("c1", "crop", CROP)
    model = fakes.QueueModel(
        [answered("", call), *(answered("Answer: (A)") for _ in range(2))], name="openai:org/words", provider="openai"
    )
    run = prepare(replace(config, solvers=("controller",)))
    spans, _ = trace_run(run, model)
    payload = {"hybrid.images.sha256": (run.sound[0].images[0].sha256[:12],)}
    assert spans_named(spans, "chat ")[0] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "org/words",
        **payload,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.reasoning.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "gen_ai.response.finish_reasons": ("stop",),
        "hybrid.cost_usd": pytest.approx(114e-6),
        "hybrid.requests": 1,
    }
    (tool,) = spans_named(spans, "execute_tool ")
    assert tool == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "crop",
        "gen_ai.tool.type": "function",
        **payload,
        "hybrid.tool.backend": "classical",
        "hybrid.tool.version": tool["hybrid.tool.version"],
        "hybrid.tool.cached": False,
    }
    assert spans_named(spans, "question ")[0] == {
        "hybrid.solver": "controller",
        "hybrid.question.id": "val_Spatial_Relation_1",
        "hybrid.task": "Spatial_Relation",
        "hybrid.outcome": "answered",
    }
    kinds = {item.name.split()[0]: item.kind for item in spans}
    assert kinds.pop("chat") is SpanKind.CLIENT
    assert set(kinds.values()) == {SpanKind.INTERNAL}


@pytest.mark.parametrize("text", [False, True])
def test_texts_are_told_where_they_are_wanted_and_images_targets_and_keys_never(
    config: RunConfig, fakes: Any, *, text: bool
) -> None:
    keep_secret(KEY)
    call = ToolCall("c1", "crop", CROP)
    values = [answered(f"{CANARY} {KEY}", call), answered("Answer: (A)"), answered("Answer: (A)")]
    run = prepare(replace(config, solvers=("controller",)))
    spans, _ = trace_run(run, fakes.QueueModel(values), text=text)
    everything = "\n".join(item.to_json() for item in spans)
    for message in (CANARY, json.dumps(run.sound[0].text.splitlines()[0])[1:-1], "img:1"):
        assert (message in everything) is text
    for never in (KEY, "base64", "target"):
        assert never not in everything
    texts = {key for entry in spans for key in entry.attributes or () if "messages" in key or "tool.call" in key}
    assert texts == (
        {"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"}
        if text
        else set()
    )
    if text:
        (reply,) = json.loads(spans_named(spans, "chat ")[0]["gen_ai.output.messages"])
        assert reply["role"] == "assistant"
        assert [part["type"] for part in reply["parts"]] == ["text", "tool_call"]


def spans_of(work: Any) -> Sequence[ReadableSpan]:
    """Return the spans of `work`, and of the run around them."""
    exported = InMemorySpanExporter()
    with export_spans(SimpleSpanProcessor(exported), BEGUN, text=False):
        work()
    return exported.get_finished_spans()


def test_no_provider_is_global_and_nothing_is_kept_outside() -> None:
    tracer_provider = api.get_tracer_provider()

    def work() -> None:
        assert api.get_tracer_provider() is tracer_provider
        # Simulate a provider's client that traces itself.
        with api.get_tracer("theirs").start_as_current_span("theirs"), span(lambda: tool_call("crop", (), {})):
            pass

    assert [item.name for item in spans_of(work)] == ["execute_tool crop", "run blink"]
    with span(lambda: tool_call("crop", (), {})) as result:
        assert result(None) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(*cases(__file__, "test_traces_that_cannot_be_made_are_refused"))
def test_traces_that_cannot_be_made_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RunConfig("blink", **changes)


def test_tracing_is_no_part_of_what_a_run_is(config: RunConfig, tmp_path: Path) -> None:
    traced = replace(config, trace=str(tmp_path / "spans.jsonl"), trace_text=True)
    assert prepare(traced).identity == prepare(config).identity
    with pytest.raises(UsageError, match=r"offers 'txt' in .*; available: jsonl, otlp"):
        prepare(replace(config, trace="spans.txt"))


def test_opentelemetry_is_heard_again_afterwards() -> None:
    logger = logging.getLogger("opentelemetry")
    assert (logger.handlers, logger.propagate) == ([], True)
