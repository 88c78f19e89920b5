import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from hybrid.messages import human, image_part, images_of, text_of
from hybrid.models import CallKey
from hybrid.models.text_protocol import TextProtocol, as_text, describe, parse
from hybrid.models.toolspec import spec
from hybrid.registry import load
from hybrid.registry import names as known
from hybrid.tool import Tool
from hybrid.types import ImageRef, Json


class Queue:
    """A `ChatModel` that says what it was given, in order, and keeps what it was asked."""

    name = "queue:test"
    provider = "queue"

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.asked: list[tuple[Sequence[BaseMessage], Sequence[Tool]]] = []
        self.closed = False

    def facts(self) -> Mapping[str, Json]:
        return {"model": self.name}

    def connection(self) -> Mapping[str, Json]:
        return {}

    async def chat(self, messages: Sequence[BaseMessage], tools: Sequence[Tool], call: CallKey) -> AIMessage:
        self.asked.append((messages, tools))
        return AIMessage(self.texts.pop(0), response_metadata={"call": call.call})

    async def close(self) -> None:
        self.closed = True


CALL = '```json\n{"tool": "crop", "images": ["img:1"], "args": {"zoom": 3}}\n```'


async def test_a_conversation_with_a_call_and_its_result(crop_tool: Tool, image: Callable[..., ImageRef]) -> None:
    inner = Queue(f"I look closer.\n{CALL}\n", "Answer: (A)")
    model = TextProtocol(inner)
    opening = human(["Which?", image("img:1", 1)])
    reply = await model.chat([opening], (crop_tool,), CallKey("q"))
    assert reply.content == "I look closer."
    assert reply.tool_calls == [
        {"name": "crop", "args": {"images": ["img:1"], "zoom": 3}, "id": "text_0_0", "type": "tool_call"}
    ]
    result = ToolMessage(
        [{"type": "text", "text": "cut"}, image_part(image("img:1.1", 2))], tool_call_id="text_0_0", name="crop"
    )
    final = await model.chat([opening, reply, result], (crop_tool,), CallKey("q", 0, 1))
    assert final.content == "Answer: (A)"
    assert not final.tool_calls
    (first, tools), (second, _) = inner.asked
    assert tools == ()
    assert text_of(first[0]).startswith("You can call tools")
    assert text_of(first[0]).endswith("\nWhich?")
    assert [message.type for message in second] == ["human", "ai", "human"]
    assert parse(text_of(second[1]))[1][0]["args"] == {"images": ["img:1"], "zoom": 3}
    assert text_of(second[2]) == "Result of crop:\ncut"
    assert [ref.name for ref in images_of(second)] == ["img:1", "img:1.1"]


async def test_without_tools_nothing_is_described_or_parsed() -> None:
    inner = Queue(CALL)
    reply = await TextProtocol(inner).chat([HumanMessage("Which?")], (), CallKey("q"))
    assert reply.content == CALL
    assert not reply.tool_calls
    assert text_of(inner.asked[0][0][0]) == "Which?"


async def test_it_is_the_inner_model_but_for_the_protocol() -> None:
    inner = Queue()
    model = TextProtocol(inner)
    await model.close()
    assert inner.closed
    assert (model.name, model.provider) == ("queue:test", "queue")
    assert model.facts() == {"model": "queue:test", "tool_calling": "text"}


def test_a_batch_of_results_is_one_message_and_errors_say_so(crop_tool: Tool, image: Callable[..., ImageRef]) -> None:
    broken = [{"name": None, "args": "{oops", "id": "text_0_1", "error": "x", "type": "invalid_tool_call"}]
    calls: list[Any] = [{"name": "crop", "args": {"images": ["img:1"]}, "id": "text_0_0", "type": "tool_call"}]
    messages = [
        SystemMessage("Be brief."),
        human(["Which?", image("img:1", 1)]),
        AIMessage("", tool_calls=calls, invalid_tool_calls=broken),
        ToolMessage([image_part(image("img:1.1", 2))], tool_call_id="text_0_0", name="crop"),
        ToolMessage("not JSON", tool_call_id="text_0_1", name=None, status="error"),
        HumanMessage("Answer now."),
    ]
    out = as_text(messages, (crop_tool,))
    assert [message.type for message in out] == ["system", "human", "ai", "human", "human"]
    assert text_of(out[3]) == "Result of crop:\n\nError of the tool:\nnot JSON"
    assert len(images_of([out[3]])) == 1
    assert "```json\n{oops\n```" in text_of(out[2])
    assert [message.type for message in messages] == ["system", "human", "ai", "tool", "tool", "human"]


def test_the_tools_stand_before_the_question_and_its_format_line(crop_tool: Tool) -> None:
    """In the system message, so that all questions begin alike and nothing stands between a question and its form."""
    system, asked = SystemMessage("Be brief."), HumanMessage("Which?\nAnswer with (A) or (B).")
    one = as_text([system, asked], (crop_tool,))
    two = as_text([system, HumanMessage("How many?"), AIMessage("3")], (crop_tool,))
    assert [message.type for message in one] == ["system", "human"]
    assert text_of(one[0]) == f"Be brief.\n\n{describe([crop_tool])}"
    assert one[0] == two[0]
    assert one[1] == asked
    assert as_text([system, asked], ()) == [system, asked]


def test_without_a_system_message_the_tools_open_the_question(crop_tool: Tool, image: Callable[..., ImageRef]) -> None:
    (asked,) = as_text([human([image("img:1", 1), "Which?"])], (crop_tool,))
    assert asked.type == "human"
    assert text_of(asked).startswith(describe([crop_tool]))
    assert text_of(asked).endswith("Which?")
    assert len(images_of([asked])) == 1


def test_the_description_names_every_argument(crop_tool: Tool) -> None:
    assert describe([crop_tool]).partition("The tools:\n")[2].splitlines() == [
        "- crop: Cuts a piece out. Sees no more than the image holds.",
        "  images: 1 name",
        "  args: {",
        "    box: number[], // x0, y0, x1, y1 in pixels of the image (4 entries)",
        "    zoom?: integer, // how much larger the piece is shown (1 to 4, default 2)",
        "  }",
    ]


def test_types_are_short_and_whole() -> None:
    text = describe([load("tools", name) for name in known("tools")])
    assert "    box?: {x0: number, y0: number, x1: number, y1: number}, // region\n" in text
    assert "    points?: {x?: number, y?: number, label?: string}[], // else those drawn\n" in text
    assert "grid?: {rows: integer /* 1 to 6 */, columns: integer /* 1 to 6 */}, //" in text
    assert '    aspect?: "content" | "layout" | "style" | "all", //' in text
    assert '    labels?: ("A" | "B" | "C" | "D" | "REF")[], //' in text
    assert "- forensics:" in text
    assert "  args: {}\n" in text
    for name in known("tools"):
        for field in spec(load("tools", name))["function"]["parameters"]["properties"]:
            assert field in ("image", "images") or re.search(rf"\n    {field}\??: ", text), (name, field)


def test_a_call_under_the_name_of_one_image_is_written_as_any_other() -> None:
    call: Any = {"name": "depth", "args": {"image": "img:1"}, "id": "c", "type": "tool_call"}
    (said,) = as_text([AIMessage("", tool_calls=[call])], ())
    assert parse(text_of(said))[1][0]["args"] == {"images": ["img:1"]}


def test_only_blocks_that_name_a_tool_are_calls() -> None:
    text = 'Look:\n```json\n{"answer": "A"}\n```\n```python\n{"tool": "crop"}\n```\n`{"tool": "crop"}`'
    assert parse(text) == (text, [], [])


def test_two_calls_keep_their_order_and_the_text_between() -> None:
    text = f"a\n{CALL}\nb\n{CALL.replace('3', '4')}\nc"
    rest, calls, invalid = parse(text, turn=2)
    assert rest == "a\n\nb\n\nc"
    assert [(call["id"], call["args"]["zoom"]) for call in calls] == [("text_2_0", 3), ("text_2_1", 4)]
    assert invalid == []


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
        assert (rest, calls) == ("", [])
        assert told in invalid[0]["error"]
        assert json.dumps(block)[1:-1] in json.dumps(invalid[0]["args"])


names = st.text(min_size=1, max_size=8)
json_values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), st.lists, max_leaves=5)


@given(
    names, st.lists(names, max_size=3), st.dictionaries(names.filter(lambda n: n != "images"), json_values, max_size=3)
)
def test_any_call_survives_the_text(tool: str, images: list[str], args: dict[str, Any]) -> None:
    block = json.dumps({"tool": tool, "images": images, "args": args})
    _, calls, invalid = parse(f"before\n```json\n{block}\n```\nafter")
    assert invalid == []
    assert (calls[0]["name"], calls[0]["args"]) == (tool, {"images": images, **args})


@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from(["```json\n", "```", '{"tool": ', '"a"', "}", "\n", "["])).map("".join)
)
def test_any_text_is_parsed_or_kept(text: str) -> None:
    rest, calls, invalid = parse(text)
    assert (calls or invalid) or rest == text
    assert len({call["id"] for call in (*calls, *invalid)}) == len(calls) + len(invalid)
