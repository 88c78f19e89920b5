"""The tools in a LangChain agent: a real loop of `create_agent` with a queued model."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from PIL import Image
from pydantic import Field

import hybrid
from hybrid.core.errors import UsageError
from hybrid.integrations.langchain import langchain_tools
from hybrid.plugins.registry import names
from tests.tables import cases


class QueueChat(BaseChatModel):
    """Returns the queued messages in order and records its input."""

    replies: list[AIMessage]
    requests: list[list[BaseMessage]] = Field(default_factory=list)
    bound: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "queue"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> "QueueChat":
        self.bound.extend(tool.tool_call_schema if isinstance(tool.tool_call_schema, dict) else {} for tool in tools)
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.requests.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self.replies.pop(0))])


def calls(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "call-1", "type": "tool_call"}])


@pytest.fixture
def folder(tmp_path: Path, fakes: Any) -> Path:
    """A folder of pictures, one of them in a subfolder, and one picture outside."""
    pictures = tmp_path / "pictures"
    (pictures / "trip").mkdir(parents=True)
    for place, path in enumerate((pictures / "one.png", pictures / "trip" / "two.png", tmp_path / "outside.png")):
        path.write_bytes(fakes.encoded(fakes.pixels(place, (64, 48))))
    return pictures


def as_tool_message(message: BaseMessage) -> ToolMessage:
    assert isinstance(message, ToolMessage)
    return message


def test_every_tool_is_one_and_its_card_describes_it() -> None:
    tools = {tool.name: tool for tool in langchain_tools()}
    assert tuple(tools) == names("tools")
    depth, jigsaw = tools["depth"], tools["jigsaw"]
    card = hybrid.tool("depth").tool.card
    for words in (card.summary, card.limits, *(backend.summary for backend in card.backends), "origin at the top left"):
        assert words in depth.description
    assert isinstance(jigsaw.args_schema, dict)
    images = jigsaw.args_schema["properties"]["images"]
    assert (images["minItems"], images["maxItems"]) == hybrid.tool("jigsaw").tool.card.images
    assert "allowed folder" not in str(images)


def test_a_program_gives_images_as_it_has_them(folder: Path) -> None:
    (crop,) = langchain_tools(["crop"])
    file = folder / "one.png"
    data = file.read_bytes()
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    with Image.open(io.BytesIO(data)) as picture:
        ways = [file, data, url, {"data": base64.b64encode(data).decode()}, picture, np.asarray(picture)]
        values = [crop.invoke({"type": "tool_call", "id": "1", "name": "crop", "args": {"image": way}}) for way in ways]
    assert {item.status for item in values} == {"success"}
    assert all(entry.content == values[0].content for entry in values)


@pytest.mark.parametrize(*cases(__file__, "test_what_a_tool_cannot_answer_is_an_error_that_the_model_reads", list))
def test_what_a_tool_cannot_answer_is_an_error_that_the_model_reads(
    folder: Path, arguments: dict[str, Any], words: str
) -> None:
    model = QueueChat(replies=[calls("crop", **arguments), AIMessage("then not")])
    agent = create_agent(model, langchain_tools(["crop"], folder=folder))
    result = agent.invoke({"messages": [{"role": "user", "content": "look"}]})
    text = as_tool_message(result["messages"][-2])
    assert text.status == "error"
    assert words in str(text.content)
    assert result["messages"][-1].content == "then not"


def test_an_unknown_tool_or_folder_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'crop'"):
        langchain_tools(["crob"])
    with pytest.raises(UsageError, match="absent is not a folder"):
        langchain_tools(["crop"], folder=tmp_path / "absent")
