from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hybrid.core.messages import (
    AssistantMessage,
    InvalidCall,
    Message,
    SentImage,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UnreadableCall,
    user_message,
)
from hybrid.core.types import StoredImage
from hybrid.models import CallKey, remembering
from hybrid.models.base import Likelihoods
from hybrid.tool import Tool
from tests.hybrid.models.reply_log import Pages

CALL = CallKey("q", 0, 1, "sha", "controller")


class Scoring:
    """A model with local weights, which can score options."""

    name, provider = "hf:m", "hf"

    def metadata(self) -> Mapping[str, Any]:
        return {"model": self.name}

    def connection(self) -> Mapping[str, Any]:
        return {}

    async def likelihood(self, messages: Sequence[Message], options: Sequence[str]) -> AssistantMessage:
        return AssistantMessage(options[-1])

    async def close(self) -> None:
        """Do nothing, because no resource is open."""


def reply() -> AssistantMessage:
    picture = StoredImage("ab" * 32, 4, 3, "image/png")
    return AssistantMessage(
        "half a \ud83d character",
        (ToolCall("c1", "crop", {"images": ["img:1"]}, "hermes", ("fence",)),),
        (InvalidCall("c2", "crop", "{oops", "no JSON"),),
        TokenUsage(5, 2, 1, 3),
        "stop",
        "I will not.",
        (SentImage("img:1", picture, replace(picture, width=2)),),
        2,
        {"A": 0.75, "B": 0.25},
        {"content": [{"type": "thinking", "signature": "xyz"}], "id": "run-1"},
        "A closer look.",
        unreadable=UnreadableCall("hermes", "<tool_call>{", "no JSON"),
        said_by="openai:m",
    )


async def test_a_message_comes_back_as_it_was(fakes: Any, crop_tool: Tool) -> None:
    inner, log = fakes.QueueModel([reply()]), Pages()
    model = remembering(inner, log)
    text = reply()
    history: list[Message] = [user_message(["Which?"]), text, user_message(["Sure?"])]
    first = await model.chat(history, (crop_tool,), CALL)
    # Random values from the provider do not change the conversation's hash.
    history[1] = replace(text, native={"id": "run-2"}, usage=None, attempts=0)
    second = await remembering(fakes.QueueModel([]), log).chat(history, (crop_tool,), CALL)
    assert second == first == text
    assert len(inner.calls) == 1


@pytest.mark.parametrize("changed", ["message", "calls", "status", "tools", "call", "damaged", "no text"])
async def test_anything_else_is_asked(changed: str, fakes: Any, crop_tool: Tool) -> None:
    log = Pages()
    asking = AssistantMessage("", (ToolCall("c1", "crop", {}),))
    result = ToolMessage("c1", "crop", ("found",))
    await remembering(fakes.QueueModel(["one"]), log).chat([user_message(["Which?"]), asking, result], (), CALL)
    asking = replace(asking, calls=(ToolCall("c1", "crop", {"zoom": 2} if changed == "calls" else {}),))
    messages: list[Message] = [
        user_message(["What?" if changed == "message" else "Which?"]),
        asking,
        replace(result, failed=changed == "status"),
    ]
    if changed == "damaged":
        log.update(dict.fromkeys(log, b'{"content": 5'))
    if changed == "no text":
        log.update({key: value.replace(b'"one"', b"1") for key, value in log.items()})
    call = CallKey("q", 0, 1, "sha", "mllm") if changed == "call" else CALL
    tools = (crop_tool,) if changed == "tools" else ()
    assert (await remembering(fakes.QueueModel(["two"]), log).chat(messages, tools, call)).text == "two"


async def test_likelihoods_stay_available() -> None:
    model: Any = remembering(Scoring(), Pages())  # type: ignore[arg-type]
    assert isinstance(model, Likelihoods)
    assert (await model.likelihood([user_message(["q"])], ("A", "B"))).text == "B"
