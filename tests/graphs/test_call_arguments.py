"""Arguments of tool calls written by a model: whatever they contain, the call gets a reply and the solver continues.

The model can reach images only by name, and only those that it has been shown.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.messages import MAX_DEPTH, AssistantMessage, ToolCall, readable
from hybrid.core.types import Fault, ImageRef, Kind, Outcome, Prompt, Reply
from hybrid.models.text_protocol import as_text, with_calls
from hybrid.plugins.registry import load, load_solver
from hybrid.serving.service import CachedTools
from hybrid.solving.controls import ToolCondition
from hybrid.solving.session import Session


class ToldInText:
    """A `ChatModel` that shows another model its tools as text."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def chat(self, messages: Any, tools: Any, call: Any) -> Any:
        return with_calls(await self._inner.chat(as_text(messages, tools), (), call), tools, messages, call.call)


BOX = {"x0": 0, "y0": 0, "x1": 10, "y1": 10}
LONE = "\ud800"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.fixture
def ask(service: CachedTools, fakes: Any) -> Callable[..., tuple[Reply, Any]]:
    """Ask a controller with the tool `crop` about one image; return its reply and the model."""
    image = fakes.stored(service.store, 1)

    def run(*replies: Any, wrap: Any = None) -> tuple[Reply, Any]:
        model = fakes.QueueModel([*replies, "Answer: (A)"])
        tools_offered = (load("tools", "crop"),)
        shared = fakes.resources(wrap(model) if wrap else model, ToolCondition(service), tools_offered)
        question = fakes.question("q1", images=(image,))
        prompt = Prompt((question.text, ImageRef("img:1", image)), Kind.CHOICE, question.choices)
        return asyncio.run(Session(question, load_solver("controller"), shared).ask(prompt)), model

    return run


def crops(*arguments: Any, name: str = "crop") -> AssistantMessage:
    return AssistantMessage("", tuple(ToolCall(f"c{n}", name, args) for n, args in enumerate(arguments)))


BAD = {
    "huge": {"images": ["img:1"], "box": "7" * 1_000_000},
    "nested": {"images": ["img:1"], "box": nested(900)},
    "nested a little": {"images": ["img:1"], "box": nested(MAX_DEPTH + 1)},
    "many values": {"images": ["img:1"], "box": [1] * 100_000},
    "NaN": {"images": ["img:1"], "box": {**BOX, "x1": float("nan")}},
    "infinite": {"images": ["img:1"], "box": {**BOX, "x1": float("inf")}},
    "a number without end": {"images": ["img:1"], "box": {**BOX, "x1": 10**400}},
    "a surrogate": {"images": ["img:1"], "box": LONE},
    "a surrogate as a name": {"images": ["img:1"], LONE: 1},
    "a NUL": {"images": ["img:1"], "box": "\0"},
    "images that are no list": {"images": {"img:1": 1}, "box": BOX},
    "images that are no names": {"images": [1, None], "box": BOX},
}


@pytest.mark.parametrize("case", BAD)
def test_arguments_that_no_tool_can_take_are_answered_in_words(ask: Any, case: str) -> None:
    reply, model = ask(crops(BAD[case]))
    assert (reply.text, reply.outcome, reply.usage.tool_calls) == ("Answer: (A)", Outcome.ANSWERED, 1)
    assert [step.fault for step in reply.steps if step.kind == "tool"] == [Fault.BAD_ARGUMENTS]
    (answer,) = [message.text for message in model.calls[-1][0] if message.role == "tool"]
    assert answer.startswith("bad_arguments: ")
    assert len(answer) < 1000


@pytest.mark.parametrize(
    "block",
    [
        '{"tool": "crop", "images": ["img:1"], "args": [1]}',
        '{"tool": "crop", "images": ["img:1"], "args": {"images": ["img:1"]}}',
        '{"tool": "", "args": {}}',
        '{"tool": "crop", "images": ["img:1"], "args": {"box": NaN}}',
        '{"tool": "crop", "images": ["img:1"], "args": {"box": ' + "[" * 900 + "]" * 900 + "}}",
        '{"tool": "crop", "images": ["img:1"], "args": {"box": ' + "[" * 9000 + "]" * 9000 + "}}",
        '{"tool": "crop", "images": ["img:1"], "args": {"box": "' + "7" * 1_000_000 + '"}}',
        '{"tool": "crop", "images": ["\\ud800"], "args": {}}',
        '{"tool": "crop", "x": 1}',
        '{"tool": "crop"',
    ],
)
def test_a_bad_call_in_text_is_answered_in_words(ask: Any, block: str) -> None:
    reply, model = ask(f"```json\n{block}\n```", wrap=ToldInText)
    assert (reply.text, reply.usage.tool_calls, len(model.calls)) == ("Answer: (A)", 1, 2)
    (fault,) = [step.fault for step in reply.steps if step.kind == "tool"]
    assert fault in (Fault.UNREADABLE_CALL, Fault.BAD_ARGUMENTS, Fault.UNKNOWN_IMAGE)
    assert model.calls[-1][0][-1].text.removeprefix("Error of crop:\n").startswith(fault.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8) | st.just(LONE),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.system
@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(["images", "box", LONE, "x"]), json_values, max_size=4))
def test_any_arguments_make_a_message_that_can_be_kept_and_sent(args: dict[str, Any]) -> None:
    message = readable(crops(args))
    assert len(message.calls) + len(message.invalid) == 1
    for call in (*message.calls, *message.invalid):
        json.dumps(asdict(call), allow_nan=False, ensure_ascii=False).encode()
