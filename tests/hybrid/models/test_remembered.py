import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from hybrid.errors import Outage
from hybrid.images import ImageStore
from hybrid.models import CallKey, ModelSettings, open_model, remembering
from hybrid.models.base import Likelihoods
from hybrid.models.remembered import RememberedModel
from hybrid.models.text_protocol import TextProtocol
from hybrid.tool import Tool

CALL = CallKey("q", 0, 1, "sha", "controller")


@dataclass
class Pages:
    """A `ReplyLog` in memory."""

    kept: dict[tuple[CallKey, str], bytes] = field(default_factory=dict)

    def said(self, call: CallKey, request_sha256: str) -> bytes | None:
        return self.kept.get((call, request_sha256))

    def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
        self.kept[call, request_sha256] = reply


class Listening:
    """A model that keeps its replies itself."""

    name, provider = "openai:m", "openai"

    def __init__(self) -> None:
        self.log: Any = None

    def listen(self, log: Any) -> None:
        self.log = log


class Scoring:
    """A model whose weights are at hand."""

    name, provider = "hf:m", "hf"

    def facts(self) -> Mapping[str, Any]:
        return {"model": self.name}

    def connection(self) -> Mapping[str, Any]:
        return {}

    async def likelihood(self, messages: Sequence[BaseMessage], options: Sequence[str]) -> AIMessage:
        return AIMessage(options[-1])


def reply() -> AIMessage:
    call = {"name": "crop", "args": {"images": ["img:1"]}, "id": "c1", "type": "tool_call"}
    bad = {"name": "crop", "args": "{oops", "id": "c2", "error": "no JSON", "type": "invalid_tool_call"}
    return AIMessage(
        [{"type": "text", "text": "half a \ud83d character"}],
        tool_calls=[call],
        invalid_tool_calls=[bad],
        usage_metadata={"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
        response_metadata={"finish_reason": "stop", "images_sent": [{"name": "img:1"}]},
    )


async def test_a_message_comes_back_as_it_was(fakes: Any, crop_tool: Tool) -> None:
    inner, log = fakes.QueueModel([reply()]), Pages()
    model = remembering(inner, log)
    asked = [HumanMessage("Which?", id="drawn anew")], (crop_tool,), CALL
    first = await model.chat(*asked)
    again = await remembering(fakes.QueueModel([]), log).chat([HumanMessage("Which?", id="other")], (crop_tool,), CALL)
    assert again == first
    assert again.tool_calls == first.tool_calls
    assert again.invalid_tool_calls == first.invalid_tool_calls
    assert len(inner.calls) == 1


@pytest.mark.parametrize("changed", ["message", "status", "tools", "call", "damaged"])
async def test_anything_else_is_asked(changed: str, fakes: Any, crop_tool: Tool) -> None:
    log = Pages()
    result = ToolMessage("found", tool_call_id="c1", status="success")
    await remembering(fakes.QueueModel(["one"]), log).chat([HumanMessage("Which?"), result], (), CALL)
    other = ToolMessage("found", tool_call_id="c1", status="error" if changed == "status" else "success")
    messages = [HumanMessage("What?" if changed == "message" else "Which?"), other]
    if changed == "damaged":
        log.kept = dict.fromkeys(log.kept, b'{"content": 5')
    call = CallKey("q", 0, 1, "sha", "mllm") if changed == "call" else CALL
    tools = (crop_tool,) if changed == "tools" else ()
    assert (await remembering(fakes.QueueModel(["two"]), log).chat(messages, tools, call)).content == "two"


async def test_what_was_not_said_is_not_kept(fakes: Any) -> None:
    log = Pages()
    with pytest.raises(Outage):
        await remembering(fakes.QueueModel([Outage("away")]), log).chat([HumanMessage("q")], (), CALL)
    assert not log.kept


async def test_everything_else_is_passed_through(fakes: Any) -> None:
    inner = fakes.QueueModel([])
    model = remembering(inner, Pages())
    assert isinstance(model, RememberedModel)
    assert not isinstance(model, Likelihoods)
    assert (model.name, model.provider, model.facts(), model.connection()) == (
        inner.name,
        inner.provider,
        inner.facts(),
        inner.connection(),
    )
    await model.close()
    assert inner.closed


async def test_likelihoods_stay_available() -> None:
    model: Any = remembering(Scoring(), Pages())  # type: ignore[arg-type]
    assert isinstance(model, Likelihoods)
    assert (await model.likelihood([HumanMessage("q")], ("A", "B"))).content == "B"


def test_a_listener_keeps_its_own_replies() -> None:
    log = Pages()
    for wrap in (lambda model: model, TextProtocol):
        inner: Any = Listening()
        model = wrap(inner)
        assert remembering(model, log) is model
        assert inner.log is log


def test_text_calls_are_remembered_around_the_protocol(fakes: Any) -> None:
    assert isinstance(remembering(TextProtocol(fakes.QueueModel([])), Pages()), RememberedModel)


def test_recordings_and_the_embedded_model_are_not_kept(store: ImageStore) -> None:
    model = open_model("embedded", ModelSettings(), store)
    assert remembering(model, Pages()) is model


async def test_the_log_holds_ascii(fakes: Any) -> None:
    log = Pages()
    await remembering(fakes.QueueModel([reply()]), log).chat([HumanMessage("ü")], (), CALL)
    (kept,) = log.kept.values()
    assert json.loads(kept.decode("ascii"))["content"] == reply().content
