"""The spans of a run: how they lie in each other, what they tell, and what is in none of them."""

import asyncio
import base64
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `trace`")
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from hybrid.errors import NoBackend, Outage, ToolError, UsageError
from hybrid.images import ImageStore
from hybrid.messages import AssistantMessage, Message, TokenUsage, ToolCall, ToolMessage, user_message
from hybrid.models.base import CallKey, parse_model_args
from hybrid.models.circuit import Circuit
from hybrid.models.failures import StatusError
from hybrid.models.sending import Sender
from hybrid.prompts import Wording
from hybrid.registry import load
from hybrid.running.config import OTLP, RunConfig
from hybrid.running.engine import attempt_question
from hybrid.running.open_telemetry import refuse_untraceable, tracing
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import RunEnd, carry_out
from hybrid.running.span_attributes import SpanTeller, error_of, without_images
from hybrid.secrets import keep_secret
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ServiceOptions, ToolService
from hybrid.solving.controls import Control, Perfect
from hybrid.solving.kit import Kit, Limits, Solver
from hybrid.solving.session import Resources
from hybrid.tracing import ModelCallBegun, ModelReplied, RunBegun, ToolCallBegun, Tracer
from hybrid.types import Fault, ImageRef, Prompt, Reply, StoredImage, Usage

BEGUN = RunBegun("blink", "val", "run", ("mllm",), "real", 1)
CROP: dict[str, Any] = {"images": ["img:1"], "box": {"x0": 2, "y0": 2, "x1": 12, "y1": 12}}
IMAGE = StoredImage("ab" * 32, 40, 30, "image/png")


def answered(text: str, *calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(text, calls, usage=TokenUsage(100, 7, 3, 20), finish_reason="stop", attempts=1)


@pytest.fixture
def config(tmp_path: Path, fakes: Any) -> RunConfig:
    """Two questions of one picture each, asked one after the other."""
    folder = fakes.blink_folder(tmp_path / "blink", 0, 2)
    settings = replace(parse_model_args(["price=1/2"]), base_url="http://127.0.0.1:9/v1")
    return RunConfig(
        "blink",
        ("controller", "mllm", "specialist"),
        "openai:org/words",
        model_settings=settings,
        data=str(folder),
        service=ServiceOptions("classical"),
        concurrency=1,
        out=tmp_path / "run",
    )


def asked(run: ResolvedRun, model: Any = None, *, text: bool = False) -> tuple[tuple[ReadableSpan, ...], RunEnd]:
    """Carry a run out with a model of the test's own; the spans, in the order of their ends."""
    if model is not None and run.resources.model is not None:
        model.facts = run.resources.model.facts
        run = replace(run, resources=replace(run.resources, model=model))
    kept = InMemorySpanExporter()
    with tracing(OTLP, BEGUN, text=text, exporter=kept) as tracer:
        run = replace(run, resources=replace(run.resources, tracer=tracer))
        end = asyncio.run(carry_out(run, lambda *_: None, lambda _: None))
    return kept.get_finished_spans(), end


Row = tuple[str, list[Any]]


def tree(spans: Sequence[ReadableSpan]) -> list[Row]:
    """Names in the order of their beginnings, each with what lies in it."""

    def below(parent: int | None) -> list[Row]:
        inner = [span for span in spans if (span.parent.span_id if span.parent else None) == parent]
        inner.sort(key=lambda span: span.start_time or 0)
        return [(span.name, below(span.get_span_context().span_id)) for span in inner]  # type: ignore[union-attr]

    return below(None)


def named(spans: Sequence[ReadableSpan], start: str) -> list[Mapping[str, Any]]:
    return [dict(span.attributes or {}) for span in spans if span.name.startswith(start)]


def test_the_spans_of_a_run_lie_in_each_other_and_count_what_its_attempts_count(config: RunConfig, fakes: Any) -> None:
    call = ToolCall("c1", "crop", CROP)
    model = fakes.QueueModel(
        [answered("", call), *(answered("Answer: (A)") for _ in range(4))], name="openai:org/words", provider="openai"
    )
    run = prepare(config)
    spans, end = asked(run, model)
    assert end.failures == ()
    chat: Row = ("chat org/words", [])
    crop: Row = ("execute_tool crop", [])
    first, second = (("invoke_agent controller", [chat, crop, chat]), ("invoke_agent controller", [chat]))
    (top,) = tree(spans)
    assert top[0] == "run blink"
    assert top[1][:4] == [
        ("question controller", [first]),
        ("question controller", [second]),
        *[("question mllm", [("invoke_agent mllm", [chat])])] * 2,
    ]
    assert [name for name, _ in top[1][4:]] == ["question specialist"] * 2
    assert all(inner[0][0] == "ask specialist" for _, inner in top[1][4:])

    chats = named(spans, "chat ")
    attempts = [one for name in run.solvers for one in run.folder.attempts(name)]
    used = sum((exchange.reply.usage for one in attempts for exchange in one.exchanges), Usage())
    assert sum(one["gen_ai.usage.input_tokens"] for one in chats) == used.input_tokens == 500
    assert sum(one["gen_ai.usage.output_tokens"] for one in chats) == used.output_tokens == 35
    assert sum(one["gen_ai.usage.reasoning.output_tokens"] for one in chats) == used.reasoning_tokens == 15
    assert sum(one["gen_ai.usage.cache_read.input_tokens"] for one in chats) == used.cached_tokens == 100
    assert sum(one["hybrid.cost_usd"] for one in chats) == pytest.approx(used.cost_usd)
    assert len(chats) == used.model_calls
    assert len(named(spans, "execute_tool ")) == used.tool_calls


def test_what_calls_tell(config: RunConfig, fakes: Any) -> None:
    call = ToolCall("c1", "crop", CROP)
    model = fakes.QueueModel(
        [answered("", call), *(answered("Answer: (A)") for _ in range(2))], name="openai:org/words", provider="openai"
    )
    run = prepare(replace(config, solvers=("controller",)))
    spans, _ = asked(run, model)
    image = run.sound[0].images[0]
    shown = {
        "hybrid.images.count": 1,
        "hybrid.images.sha256": (image.sha256[:12],),
        "hybrid.images.width": (image.width,),
        "hybrid.images.height": (image.height,),
    }
    assert named(spans, "chat ")[0] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "org/words",
        **shown,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.reasoning.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "gen_ai.response.finish_reasons": ("stop",),
        "hybrid.cost_usd": pytest.approx(114e-6),
        "hybrid.requests": 1,
        "hybrid.refused": False,
        "hybrid.tool_calls": 1,
    }
    (tool,) = named(spans, "execute_tool ")
    assert tool == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "crop",
        "gen_ai.tool.type": "function",
        **shown,
        "hybrid.tool.backend": "classical",
        "hybrid.tool.version": tool["hybrid.tool.version"],
        "hybrid.tool.cached": False,
        "hybrid.tool.pictures": 1,
    }
    assert named(spans, "question ")[0] == {
        "hybrid.solver": "controller",
        "hybrid.question.id": "val_Spatial_Relation_1",
        "hybrid.task": "Spatial_Relation",
        "hybrid.outcome": "answered",
    }
    assert named(spans, "invoke_agent ")[0] == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "controller",
        "hybrid.solver": "controller",
        "hybrid.ask": 0,
        "hybrid.prompt.kind": "choice",
        **shown,
        "hybrid.outcome": "answered",
    }
    kinds = {span.name.split()[0]: span.kind for span in spans}
    assert kinds.pop("chat") is SpanKind.CLIENT
    assert set(kinds.values()) == {SpanKind.INTERNAL}
    assert all(span.start_time <= span.end_time for span in spans)  # type: ignore[operator]


def test_a_finding_that_was_kept_says_so(config: RunConfig, fakes: Any, tmp_path: Path) -> None:
    for cached, isolated in ((False, False), (True, False), (True, True)):
        model = fakes.QueueModel([answered("", ToolCall("c1", "crop", CROP)), answered("(A)"), answered("(A)")])
        out, service = tmp_path / f"{cached}{isolated}", replace(config.service, isolated=isolated)
        spans, _ = asked(prepare(replace(config, solvers=("controller",), out=out, service=service)), model)
        assert [one["hybrid.tool.cached"] for one in named(spans, "execute_tool crop")] == [cached]


@pytest.mark.slow
def test_the_embedded_model_and_real_tools(config: RunConfig, tmp_path: Path) -> None:
    solvers, out = ("controller", "specialist"), tmp_path / "sample"
    plain = RunConfig("blink", solvers, "embedded", data="sample", tasks=("Jigsaw",), limit=1, out=out)
    run = prepare(replace(plain, service=ServiceOptions("classical")))
    spans, end = asked(run)
    assert end.failures == ()
    attempts = [one for name in solvers for one in run.folder.attempts(name)]
    used = sum((exchange.reply.usage for one in attempts for exchange in one.exchanges), Usage())
    chats = named(spans, "chat embedded")
    assert sum(one["gen_ai.usage.input_tokens"] for one in chats) == used.input_tokens > 0
    assert sum(one["gen_ai.usage.output_tokens"] for one in chats) == used.output_tokens > 0
    assert {one["gen_ai.tool.name"] for one in named(spans, "execute_tool")} == {"jigsaw"}
    # It runs in this process.
    assert {span.kind for span in spans} == {SpanKind.INTERNAL}
    assert len({span.get_span_context().trace_id for span in spans}) == 1  # type: ignore[union-attr]
    everything = "\n".join(span.to_json() for span in spans)
    for question in run.sound:
        assert question.text not in everything
        for image in question.images:
            assert base64.b64encode(run.service.store.path(image.sha256).read_bytes())[:60].decode() not in everything
    assert "base64" not in everything


# What is in no span

QUESTION, CHOICE, TARGET, REPLY, FINDING, ARGUMENT, KEY, TOOL, REASON = (
    f"zq{number}-{word}-canary"
    for number, word in enumerate(
        ("question", "choice", "target", "reply", "finding", "argument", "key", "tool", "finish reason"), 10
    )
)
TEXTS = (QUESTION, REPLY, FINDING, ARGUMENT)
BLOB = base64.b64encode(bytes(range(256)) * 4).decode()
LONG_KEY = f"{'zq' * 100}.zq20-tail-of-a-key"
PICTURE = f"data:image/png;base64,{BLOB}"


class Everything(Solver):
    """Says all canaries to the model and to tools, and makes every fault."""

    needs_model = True

    async def ask(self, prompt: Prompt, kit: Kit) -> Reply:
        message = kit.message(prompt, f"{PICTURE} {KEY} {BLOB}")
        first = await kit.model([message])
        finding = await kit.tool("crop", ["img:1"], {"box": CROP["box"]})
        for name, images in ((TOOL, ["img:1"]), ("crop", [ARGUMENT]), ("crop", ["img:1"])):
            with pytest.raises(ToolError):
                await kit.tool(name, images, {ARGUMENT: f"{ARGUMENT} {PICTURE}"})
        told: list[Message] = [message, first, ToolMessage("c1", "crop", (finding.text,))]
        return Reply((await kit.model(told)).text)


def in_every_span(tmp_path: Path, fakes: Any, *, text: bool) -> str:
    """Everything that is exported of one question that holds all canaries, as text."""
    keep_secret(KEY, LONG_KEY)
    store = ImageStore(tmp_path / "images")
    service = ToolService(store, FindingCache(None, store), ServiceOptions("classical", threads=1))
    control = Control(service, "oracle", lambda *_: Perfect(f"{FINDING} {PICTURE} {KEY} {LONG_KEY}"))
    call = ToolCall("c1", TOOL, {ARGUMENT: f"{ARGUMENT} {BLOB} {KEY}"})
    said = AssistantMessage(f"{REPLY} {PICTURE}", (call,), usage=TokenUsage(1, 1), finish_reason=REASON)
    resources = Resources(fakes.QueueModel([said, said]), control, (), Wording(), Limits())
    question = fakes.question(
        "q1", images=(fakes.stored(store, 1),), text=QUESTION, choices=(CHOICE, "b"), target=TARGET
    )
    kept = InMemorySpanExporter()
    with tracing(OTLP, BEGUN, text=text, exporter=kept) as tracer:
        shared = replace(resources, tracer=tracer)
        run: Any = SimpleNamespace(benchmark=load("hybrid.benchmarks", "blink"), resources=shared)
        attempt = asyncio.run(attempt_question(run, Everything(), question, "every"))
    service.close()
    assert REPLY in attempt.exchanges[0].reply.text
    return "\n".join(json.dumps(json.loads(span.to_json()), ensure_ascii=False) for span in kept.get_finished_spans())


def test_no_text_no_image_no_key_and_no_target_is_told(tmp_path: Path, fakes: Any) -> None:
    everything = in_every_span(tmp_path, fakes, text=False)
    for canary in (*TEXTS, CHOICE, TARGET, KEY, LONG_KEY[-10:], TOOL, REASON, "base64", BLOB[:40], "data:image"):
        assert canary not in everything
    assert everything.count('"execute_tool unknown"') == 1
    for fault in (Fault.UNKNOWN_TOOL, Fault.UNKNOWN_IMAGE, Fault.BAD_ARGUMENTS):
        assert f'"error.type": "{fault.value}"' in everything


def test_texts_are_told_where_they_are_wanted_and_nothing_else(tmp_path: Path, fakes: Any) -> None:
    everything = in_every_span(tmp_path, fakes, text=True)
    for canary in TEXTS:
        assert canary in everything
    for canary in (TARGET, KEY, LONG_KEY[-10:], REASON, "base64", BLOB[:40], "data:image"):
        assert canary not in everything
    assert "[redacted]" in everything
    assert "[data URL]" in everything
    assert f"[{len(BLOB)} characters]" in everything


def test_messages_have_the_form_of_the_conventions() -> None:
    ref = ImageRef("img:1", IMAGE)
    said = AssistantMessage("hm", (ToolCall("c1", "crop", {"x": 1}),), finish_reason="tool_calls")
    messages = (user_message(["Which?", ref]), said, ToolMessage("c1", "crop", ("found",)))
    told = SpanTeller(frozenset(), text=True)
    start = told.begun(ModelCallBegun("google_genai:g", "google_genai", messages))
    assert start.attributes["gen_ai.provider.name"] == "gcp.gemini"
    picture = {"type": "image", "name": "img:1", "sha256": "ab" * 6, "width": 40, "height": 30}
    assert json.loads(str(start.attributes["gen_ai.input.messages"])) == [
        {"role": "user", "parts": [{"type": "text", "content": "Which?"}, picture]},
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "hm"},
                {"type": "tool_call", "id": "c1", "name": "crop", "arguments": {"x": 1}},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "found"}]},
    ]
    end = told.ended(ModelReplied(said, Usage(1)))
    (reply,) = json.loads(str(end.attributes["gen_ai.output.messages"]))
    assert reply["role"] == "assistant"
    assert end.attributes["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert "gen_ai.usage.input_tokens" not in end.attributes


@pytest.mark.parametrize(
    ("name", "provider", "told", "client"),
    [
        ("openai:Qwen/Qwen2-VL", "openai", "Qwen/Qwen2-VL", True),
        ("hf:/models/of/mine/qwen/", "hf", "qwen", False),
        ("hf:Qwen/Qwen2-VL", "hf", "Qwen/Qwen2-VL", False),
        ("replay:../me/answers", "replay", "answers", True),
        ("embedded", "embedded", "embedded", False),
    ],
)
def test_a_model_is_told_by_its_name_and_not_by_where_it_lies(
    name: str, provider: str, told: str, *, client: bool
) -> None:
    start = SpanTeller(frozenset()).begun(ModelCallBegun(name, provider, ()))
    assert (start.name, start.attributes["gen_ai.request.model"], start.client) == (f"chat {told}", told, client)


@settings(max_examples=40)
@given(
    st.text(),
    st.binary(min_size=200, max_size=400),
    st.integers(48, 120),
    st.sampled_from(["{}", "data:image/png;base64,{}", "x DATA:image/jpeg;name=a;base64,{}"]),
)
def test_no_image_gets_through_a_text(around: str, data: bytes, width: int, form: str) -> None:
    blob = base64.b64encode(data).decode()
    wrapped = "\n".join(blob[at : at + width] for at in range(0, len(blob), width))
    for image in (blob, base64.urlsafe_b64encode(data).decode(), wrapped):
        shown = json.dumps(without_images({"a": [f"{around} {form.format(image)} {around}"]}))
        assert image[:48] not in shown
        assert "base64," not in shown


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=40), st.lists))
def test_ordinary_values_stay_as_they_are(value: Any) -> None:
    assert without_images(value) == value


@given(st.text())
def test_a_name_that_a_model_made_up_is_told_to_nobody(name: str) -> None:
    start = SpanTeller(frozenset({"crop"})).begun(ToolCallBegun(name, (name,), {name: name}))
    assert start.attributes["gen_ai.tool.name"] == ("crop" if name == "crop" else "unknown")
    assert set(start.attributes) == {"gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.type"}


# Faults, retries and ends


def spans_of(work: Any) -> Sequence[ReadableSpan]:
    """The spans of what `work` does with a tracer."""
    kept = InMemorySpanExporter()

    async def with_tracer(tracer: Tracer) -> None:
        await work(tracer)

    with tracing(OTLP, BEGUN, text=False, exporter=kept) as tracer:
        asyncio.run(with_tracer(tracer))
    return kept.get_finished_spans()


def test_retries_are_events_of_the_call() -> None:
    failing = [StatusError(503, f"{QUESTION}"), ConnectionError(QUESTION)]

    async def request() -> str:
        if failing:
            raise failing.pop(0)
        return "reply"

    async def no_sleep(_: float) -> None:
        pass

    async def work(tracer: Tracer) -> None:
        sender = Sender("openai:m", 3, Circuit("m"), sleep=no_sleep)
        with tracer.span(ModelCallBegun("openai:m", "openai", ())):
            assert await sender.send(request, CallKey("q")) == ("reply", 3)

    call, _ = spans_of(work)
    assert [(event.name, dict(event.attributes or {})) for event in call.events] == [
        ("request failed", {"hybrid.request": 1, "error.type": "retry", "http.response.status_code": 503}),
        ("request failed", {"hybrid.request": 2, "error.type": "retry"}),
    ]
    assert call.status.status_code is StatusCode.UNSET


def test_an_error_is_told_by_its_kind() -> None:
    async def work(tracer: Tracer) -> None:
        for error in (ToolError(QUESTION, Fault.TIMEOUT), Outage(QUESTION), ExceptionGroup(QUESTION, [KeyError(1)])):
            with pytest.raises(type(error)), tracer.span(ToolCallBegun("crop", (), {})):
                raise error
        with tracer.span(ToolCallBegun("crop", (), {})) as span:
            span.ended(Fault.LOOP)

    *inner, run = spans_of(work)
    assert [(span.attributes or {})["error.type"] for span in inner] == ["timeout", "Outage", "KeyError", "loop"]
    assert {span.status.status_code for span in inner} == {StatusCode.ERROR}
    assert not any(span.events or span.status.description for span in inner)
    assert run.status.status_code is StatusCode.UNSET
    assert error_of(NoBackend("x")) == "absent"


def test_a_question_that_is_not_finished_and_one_without_budget(config: RunConfig, fakes: Any, tmp_path: Path) -> None:
    model = fakes.QueueModel([Outage(QUESTION), "(A)"])
    spans, end = asked(prepare(replace(config, solvers=("mllm",))), model)
    assert len(end.failures) == 1
    failed, well = named(spans, "question mllm")
    assert failed["error.type"] == "Outage"
    assert "hybrid.outcome" not in failed
    assert well["hybrid.outcome"] == "answered"
    assert "error.type" not in well
    limited = replace(config, solvers=("mllm",), limits=Limits(tokens=0), out=tmp_path / "limited")
    spans, _ = asked(prepare(limited), fakes.QueueModel([]))
    assert {one["error.type"] for one in named(spans, "invoke_agent")} == {"budget"}
    assert not named(spans, "chat")


def test_a_call_that_the_budget_of_seconds_ends_is_a_timeout(config: RunConfig, fakes: Any) -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    model = fakes.QueueModel(["(A)"] * 2, speaks=forever)
    spans, _ = asked(prepare(replace(config, solvers=("mllm",), limits=Limits(seconds=0.01))), model)
    assert [one["error.type"] for one in named(spans, "chat")] == ["timeout"] * 2
    assert {one["error.type"] for one in named(spans, "question")} == {"budget"}


def test_what_is_in_flight_when_a_run_is_cancelled_is_written(
    config: RunConfig, fakes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = prepare(replace(config, solvers=("mllm",), trace=str(tmp_path / "spans.jsonl")))

    async def stopped() -> None:
        asking = asyncio.Event()

        async def speak() -> None:
            asking.set()
            await asyncio.Event().wait()

        model = fakes.QueueModel(["(A)"] * 2, speaks=speak)
        model.facts = run.resources.model.facts  # type: ignore[union-attr]
        held = replace(run, resources=replace(run.resources, model=model))
        task = asyncio.create_task(carry_out(held, lambda *_: None, lambda _: None))
        await asking.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(stopped())
    rows = [json.loads(line) for line in (tmp_path / "spans.jsonl").read_text().splitlines()]
    assert [row["name"].split()[0] for row in rows] == ["chat", "invoke_agent", "question", "run"]
    assert {row["attributes"]["error.type"] for row in rows} == {"cancelled"}


def test_an_exporter_that_raises_costs_one_line(config: RunConfig, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(InMemorySpanExporter):
        def export(self, spans: Any) -> Any:
            raise ValueError("broken")

    with caplog.at_level(logging.WARNING), tracing(OTLP, BEGUN, text=False, exporter=Broken()) as tracer:
        for _ in range(1200):
            with tracer.span(ToolCallBegun("crop", (), {})):
                pass
    assert [record.getMessage() for record in caplog.records] == [
        "--trace otlp: spans are lost, and the run goes on: ValueError: broken"
    ]
    logger = logging.getLogger("opentelemetry")
    assert (logger.handlers, logger.propagate) == ([], True)


def test_nothing_of_this_is_global() -> None:
    from opentelemetry import trace

    before = trace.get_tracer_provider()

    async def work(tracer: Tracer) -> None:
        with tracer.span(ToolCallBegun("crop", (), {})):
            assert trace.get_current_span() is trace.INVALID_SPAN
            assert trace.get_tracer_provider() is before
            # As the client of a provider does that traces itself.
            with trace.get_tracer("com.anthropic.sdk.python").start_as_current_span("theirs") as theirs:
                assert not theirs.is_recording()

    assert [span.name for span in spans_of(work)] == ["execute_tool crop", "run blink"]


def test_other_tracing_with_images_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGCHAIN_TRACING_V2", "true")
    with pytest.raises(UsageError, match="LANGCHAIN_TRACING_V2=true has LangChain send"):
        refuse_untraceable(OTLP)
    monkeypatch.setenv("LANGSMITH_TRACING_V2", "false")
    refuse_untraceable(OTLP)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"trace": "spans.txt"}, "--trace spans.txt: write otlp, or a file that ends in .jsonl"),
        ({"trace_text": True}, "give --trace otlp or --trace FILE.jsonl with it"),
        ({"trace": OTLP, "engine": "ray"}, "leave --engine ray away"),
        ({"trace": OTLP, "trace_text": True, "tool_output": "oracle"}, "are the answers"),
    ],
)
def test_traces_that_cannot_be_made_are_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        RunConfig("blink", **changes)


def test_tracing_is_no_part_of_what_a_run_is(config: RunConfig, tmp_path: Path) -> None:
    traced = replace(config, trace=str(tmp_path / "spans.jsonl"), trace_text=True)
    assert prepare(traced).identity == prepare(config).identity
