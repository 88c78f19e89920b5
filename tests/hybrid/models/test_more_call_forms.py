"""Forms of calls at the edge of prose: what is meant runs, what is told about does not."""

import pytest

from hybrid.messages import ToolCall
from hybrid.models.dialects import read
from hybrid.registry import load

TOOLS = [load("tools", name) for name in ("crop", "depth")]
HERMES = '<tool_call>{"name": "depth", "arguments": {"image": "img:1"}}</tool_call>'


def calls(text: str) -> list[tuple[str, object]]:
    return [(call.name, call.args.get("image")) for call in read(text, TOOLS).calls if isinstance(call, ToolCall)]


@pytest.mark.parametrize(
    "text",
    [
        f"I use `depth here: {HERMES} and `look`.",
        'I look: depth(image="img:1").',
        "So:\n  depth(image='img:1')",
        "Thought: near?\nAction: depth[img:1]",
        "Action: depth\nAction Input: img:1",
    ],
)
def test_a_call_that_is_meant_runs(text: str) -> None:
    assert calls(text) == [("depth", "img:1")]


@pytest.mark.parametrize(
    "text",
    [
        f"Such a call is `{HERMES}`; I need none.",
        'I could say depth(image="img:1") here, but (A) is nearer.',
        "The depth(near) of img:1 is small.",
        "One would write \"depth(image='img:1')\".",
        "Action: depth[near]",
    ],
)
def test_a_call_that_is_told_about_does_not(text: str) -> None:
    assert calls(text) == []
