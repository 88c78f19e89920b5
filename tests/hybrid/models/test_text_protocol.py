import re
from collections.abc import Callable, Mapping, Sequence

import pytest

from hybrid.config import ModelSettings
from hybrid.images import ImageStore
from hybrid.messages import (
    AssistantMessage,
    ImagePart,
    InvalidCall,
    Message,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolMessage,
    images_of,
    user_message,
)
from hybrid.models import CallKey
from hybrid.models.caller import Caller, ChatRequest, Keep
from hybrid.models.dialects import read
from hybrid.models.images import ImageEncoder, ImageRules
from hybrid.models.text_protocol import as_text, describe, with_calls
from hybrid.models.toolspec import spec
from hybrid.registry import load
from hybrid.registry import names as known
from hybrid.tool import Tool
from hybrid.types import ImageRef, Json


class Queue:
    """A `ChatClient` that says what it was given, in order, and keeps what it was asked."""

    name = "queue:test"

    def __init__(self, store: ImageStore, *texts: str) -> None:
        self.images = ImageEncoder(store, ImageRules())
        self.texts = list(texts)
        self.asked: list[tuple[Sequence[Message], Sequence[Tool]]] = []

    def metadata(self) -> Mapping[str, Json]:
        return {"model": self.name, "tool_calling": "native"}

    def connection(self) -> Mapping[str, Json]:
        return {}

    def request(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> ChatRequest[None]:
        self.asked.append((messages, tools))
        return ChatRequest(call, None, "", ())

    async def send(self, request: ChatRequest[None], keep: Keep) -> AssistantMessage:
        return AssistantMessage(self.texts.pop(0))

    def read(self, reply: bytes, call: CallKey) -> AssistantMessage:
        return AssistantMessage(reply.decode())

    async def close(self) -> None:
        """Nothing is held open."""


def text_model(queue: Queue) -> Caller[None]:
    return Caller(queue, ModelSettings(tool_calling="text"))


CALL = '```json\n{"tool": "crop", "images": ["img:1"], "args": {"zoom": 3}}\n```'


async def test_a_conversation_with_a_call_and_its_result(
    store: ImageStore, crop_tool: Tool, image: Callable[..., ImageRef]
) -> None:
    inner = Queue(store, f"I look closer.\n{CALL}\n", "Answer: (A)")
    model = text_model(inner)
    assert model.metadata()["tool_calling"] == "text"
    opening = user_message(["Which?", image("img:1", 1)])
    reply = await model.chat([opening], (crop_tool,), CallKey("q"))
    assert reply.text == "I look closer."
    assert reply.calls == (ToolCall("text00000", "crop", {"images": ["img:1"], "zoom": 3}),)
    result = ToolMessage("text_0_0", "crop", ("cut", ImagePart(image("img:1.1", 2))))
    final = await model.chat([opening, reply, result], (crop_tool,), CallKey("q", 0, 1))
    assert final.text == "Answer: (A)"
    assert not final.calls
    (first, tools), (second, _) = inner.asked
    assert tools == ()
    assert first[0].text.startswith("You can call tools")
    assert first[0].text.endswith("\nWhich?\nimg:1:")
    assert [message.role for message in second] == ["user", "assistant", "user"]
    assert read(second[1].text, (crop_tool,)).calls[0].args == {"images": ["img:1"], "zoom": 3}
    assert second[2].text == "Result of crop:\ncut\nimg:1.1:"
    assert [ref.name for ref in images_of(second)] == ["img:1", "img:1.1"]


async def test_without_tools_nothing_is_described_or_parsed(store: ImageStore) -> None:
    inner = Queue(store, CALL)
    reply = await text_model(inner).chat([user_message(["Which?"])], (), CallKey("q"))
    assert reply.text == CALL
    assert not reply.calls
    assert inner.asked[0][0][0].text == "Which?"


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


def test_the_tools_stand_before_the_question_and_its_format_line(crop_tool: Tool) -> None:
    """In the system message, so that all questions begin alike and nothing stands between a question and its form."""
    system, asked = SystemMessage("Be brief."), user_message(["Which?\nAnswer with (A) or (B)."])
    one = as_text([system, asked], (crop_tool,))
    two = as_text([system, user_message(["How many?"]), AssistantMessage("3")], (crop_tool,))
    assert one == [SystemMessage(f"Be brief.\n\n{describe([crop_tool])}"), asked]
    assert one[0] == two[0]
    assert as_text([system, asked], ()) == [system, asked]


def test_without_a_system_message_the_tools_open_the_question(crop_tool: Tool, image: Callable[..., ImageRef]) -> None:
    (asked,) = as_text([user_message([image("img:1", 1), "Which?"])], (crop_tool,))
    assert asked == user_message([describe([crop_tool]), image("img:1", 1), "Which?"])


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


def test_a_call_under_the_name_of_one_image_is_written_as_any_other(crop_tool: Tool) -> None:
    (said,) = as_text([AssistantMessage("", (ToolCall("c", "crop", {"image": "img:1"}),))], ())
    assert read(said.text, (crop_tool,)).calls[0].args == {"images": ["img:1"]}


@pytest.mark.parametrize(
    ("text", "reasoning", "used", "ended", "dropped"),
    [
        ("", "", TokenUsage(90, 45), "stop", True),
        ("<think>\nCrop it.\n</think>\n\n", "", TokenUsage(90, 58), "stop", True),
        ("\n\n", "I call crop.", TokenUsage(90, 58, 7), "stop", True),
        ("", "I call crop.", TokenUsage(90, 12), "stop", False),
        ("", "", TokenUsage(90, 1), "stop", False),
        ("", "", TokenUsage(90, 45), "length", False),
        ("(A)", "", TokenUsage(90, 45), "stop", False),
        ("", "", None, "stop", False),
    ],
)
def test_a_call_that_its_server_dropped_is_one_that_cannot_be_read(
    crop_tool: Tool, text: str, reasoning: str, used: TokenUsage | None, ended: str, dropped: bool
) -> None:
    reply = AssistantMessage(text, usage=used, finish_reason=ended, reasoning=reasoning)
    assert (with_calls(reply, [crop_tool], []).unreadable is not None) is dropped
    assert with_calls(reply, [], []).unreadable is None
