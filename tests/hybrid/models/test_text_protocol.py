import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hybrid.messages import (
    AssistantMessage,
    ImagePart,
    InvalidCall,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    images_of,
    user_message,
)
from hybrid.models import CallKey
from hybrid.models.text_protocol import TextProtocol, as_text, describe, parse
from hybrid.tool import Tool
from hybrid.types import ImageRef, Json


class Queue:
    """A `ChatModel` that says what it was given, in order, and keeps what it was asked."""

    name = "queue:test"
    provider = "queue"

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.asked: list[tuple[Sequence[Message], Sequence[Tool]]] = []
        self.closed = False

    def facts(self) -> Mapping[str, Json]:
        return {"model": self.name}

    def connection(self) -> Mapping[str, Json]:
        return {}

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        self.asked.append((messages, tools))
        return AssistantMessage(self.texts.pop(0))

    async def close(self) -> None:
        self.closed = True


CALL = '```json\n{"tool": "crop", "images": ["img:1"], "args": {"zoom": 3}}\n```'


async def test_a_conversation_with_a_call_and_its_result(crop_tool: Tool, image: Callable[..., ImageRef]) -> None:
    inner = Queue(f"I look closer.\n{CALL}\n", "Answer: (A)")
    model = TextProtocol(inner)
    opening = user_message(["Which?", image("img:1", 1)])
    reply = await model.chat([opening], (crop_tool,), CallKey("q"))
    assert reply.text == "I look closer."
    assert reply.calls == (ToolCall("text_0_0", "crop", {"images": ["img:1"], "zoom": 3}),)
    result = ToolMessage("text_0_0", "crop", ("cut", ImagePart(image("img:1.1", 2))))
    final = await model.chat([opening, reply, result], (crop_tool,), CallKey("q", 0, 1))
    assert final.text == "Answer: (A)"
    assert not final.calls
    (first, tools), (second, _) = inner.asked
    assert tools == ()
    assert first[0].text.startswith("Which?\nYou can call tools")
    assert [message.role for message in second] == ["user", "assistant", "user"]
    assert parse(second[1].text)[1][0].args == {"images": ["img:1"], "zoom": 3}
    assert second[2].text == "Result of crop:\ncut"
    assert [ref.name for ref in images_of(second)] == ["img:1", "img:1.1"]


async def test_without_tools_nothing_is_described_or_parsed() -> None:
    inner = Queue(CALL)
    reply = await TextProtocol(inner).chat([user_message(["Which?"])], (), CallKey("q"))
    assert reply.text == CALL
    assert not reply.calls
    assert inner.asked[0][0][0].text == "Which?"


async def test_it_is_the_inner_model_but_for_the_protocol() -> None:
    inner = Queue()
    model = TextProtocol(inner)
    await model.close()
    assert inner.closed
    assert (model.name, model.provider) == ("queue:test", "queue")
    assert model.facts() == {"model": "queue:test", "tool_calling": "text"}


def test_a_batch_of_results_is_one_message_and_errors_say_so(crop_tool: Tool, image: Callable[..., ImageRef]) -> None:
    broken = InvalidCall("text_0_1", None, "{oops", "x")
    call = ToolCall("text_0_0", "crop", {"images": ["img:1"]})
    messages: list[Message] = [
        SystemMessage("Be brief."),
        user_message(["Which?", image("img:1", 1)]),
        AssistantMessage("", (call,), (broken,)),
        ToolMessage("text_0_0", "crop", (ImagePart(image("img:1.1", 2)),)),
        ToolMessage("text_0_1", None, ("not JSON",), failed=True),
        user_message(["Answer now."]),
    ]
    out = as_text(messages, (crop_tool,))
    assert [message.role for message in out] == ["system", "user", "assistant", "user", "user"]
    assert out[3].text == "Result of crop:\n\nError of the tool:\nnot JSON"
    assert len(images_of([out[3]])) == 1
    assert "```json\n{oops\n```" in out[2].text


def test_the_description_names_every_argument(crop_tool: Tool) -> None:
    text = describe([crop_tool])
    assert "- crop: Cuts a piece out." in text
    args = json.loads(text.partition("args: ")[2])
    assert set(args["properties"]) == {"box", "zoom"}
    assert args["required"] == ["box"]


def test_only_blocks_that_name_a_tool_are_calls() -> None:
    text = 'Look:\n```json\n{"answer": "A"}\n```\n```python\n{"tool": "crop"}\n```\n`{"tool": "crop"}`'
    assert parse(text) == (text, (), ())


def test_two_calls_keep_their_order_and_the_text_between() -> None:
    text = f"a\n{CALL}\nb\n{CALL.replace('3', '4')}\nc"
    rest, calls, invalid = parse(text, turn=2)
    assert rest == "a\n\nb\n\nc"
    assert [(call.id, call.args["zoom"]) for call in calls] == [("text_2_0", 3), ("text_2_1", 4)]
    assert invalid == ()


INVALID = {
    '{"tool": "crop", }': "not JSON",
    '{"tool": ""}': "name of a tool",
    '{"tool": 3}': "name of a tool",
    '{"tool": "crop", "images": "img:1"}': "list of image names",
    '{"tool": "crop", "args": []}': "must be an object",
    '{"tool": "crop", "args": {"images": []}}': "next to",
    '{"tool": "crop", "zoom": 3}': "unknown keys zoom",
}


def test_what_is_wrong_with_a_call_is_told() -> None:
    for block, told in INVALID.items():
        rest, calls, invalid = parse(f"```json\n{block}\n```")
        assert (rest, calls) == ("", ())
        assert told in invalid[0].error
        assert block in invalid[0].written


names = st.text(min_size=1, max_size=8)
json_values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), st.lists, max_leaves=5)


@given(
    names, st.lists(names, max_size=3), st.dictionaries(names.filter(lambda n: n != "images"), json_values, max_size=3)
)
def test_any_call_survives_the_text(tool: str, images: list[str], args: dict[str, Any]) -> None:
    block = json.dumps({"tool": tool, "images": images, "args": args})
    _, calls, invalid = parse(f"before\n```json\n{block}\n```\nafter")
    assert invalid == ()
    assert (calls[0].name, calls[0].args) == (tool, {"images": images, **args})


@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from(["```json\n", "```", '{"tool": ', '"a"', "}", "\n", "["])).map("".join)
)
def test_any_text_is_parsed_or_kept(text: str) -> None:
    rest, calls, invalid = parse(text)
    assert (calls or invalid) or rest == text
    assert len({call.id for call in (*calls, *invalid)}) == len(calls) + len(invalid)
