import pytest

from hybrid.core.messages import AssistantMessage, TokenUsage, ToolCall
from hybrid.models.dialects import read
from hybrid.models.text_protocol import as_text, with_calls
from hybrid.tool import Tool
from tests.tables import cases


def test_a_call_under_the_name_of_one_image_is_written_as_any_other(crop_tool: Tool) -> None:
    (text,) = as_text([AssistantMessage("", (ToolCall("c", "crop", {"image": "img:1"}),))], ())
    assert read(text.text, (crop_tool,)).calls[0].args == {"images": ["img:1"]}


@pytest.mark.parametrize(
    *cases(__file__, "test_a_call_that_its_server_dropped_is_one_that_cannot_be_read", used=TokenUsage)
)
def test_a_call_that_its_server_dropped_is_one_that_cannot_be_read(
    crop_tool: Tool, text: str, reasoning: str, used: TokenUsage | None, finish_reason: str, dropped: bool
) -> None:
    reply = AssistantMessage(text, usage=used, finish_reason=finish_reason, reasoning=reasoning)
    assert (with_calls(reply, [crop_tool], []).unreadable is not None) is dropped
    assert with_calls(reply, [], []).unreadable is None
