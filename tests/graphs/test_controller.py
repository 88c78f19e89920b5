"""The controller with a model that makes wrong calls, over a real socket with real tools: each call gets a reply."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import Field

from graphs.controller import TEXTS
from hybrid.config import Limits
from hybrid.core.types import Fault, Outcome
from hybrid.solving.coordinates import frame_named
from hybrid.solving.styles import style_of
from hybrid.tool import Args, Card, Tool
from tools._shared.args import RegionArg

PIECES = {"images": ["img:1", "img:2", "img:3"]}
WHOLE = {"images": ["img:1"]}


def box(x0: float, y0: float, x1: float, y1: float) -> dict[str, Any]:
    return {"images": ["img:1"], "box": {"x0": x0, "y0": y0, "x1": x1, "y1": y1}}


@pytest.mark.system
async def test_calls_that_run_side_by_side_are_told_and_named_in_their_order(
    asker: Any, completion: Any, tool_call: Any, fakes: Any
) -> None:
    """Concurrent calls are reported in the order of the requests, although `depth` on the large picture takes longer
    than the `crop` that is requested after it."""
    wide = asker.about(fakes.pixels(7, (900, 700)))
    points = {**WHOLE, "points": [{"x": 50, "y": 60}, {"x": 500, "y": 600}]}
    calls = [tool_call("depth", points, "slow"), tool_call("crop", box(0, 0, 20, 20), "fast")]
    reply = await wide(completion("", *calls), completion("(A)"))
    rows = [(step.name, [ref.name for ref in step.images]) for step in reply.steps if step.kind == "tool"]
    assert rows == [("depth", ["img:1.1"]), ("crop", ["img:1.2"])]


async def test_of_a_hundred_calls_in_one_message_the_budget_runs_and_each_is_answered_in_order(
    asker: Any, completion: Any, tool_call: Any
) -> None:
    calls = [tool_call("crop", box(n % 50, n // 50, n % 50 + 20, 40), f"c{n}") for n in range(100)]
    reply = await asker(completion("", *calls), completion("(A)"), limits=Limits(tool_calls=8))
    asker.exact(reply)
    assert (reply.usage.model_calls, reply.usage.tool_calls, asker.service.computed) == (2, 8, 8)
    assert (asker.faults(reply)[Fault.BUDGET], reply.outcome) == (93, Outcome.ANSWERED)
    second = asker.adversary.requests[1]
    answered = [message["tool_call_id"] for message in second["messages"] if message["role"] == "tool"]
    assert answered == [f"c{n}" for n in range(100)]
    texts = asker.adversary.tool_texts()
    assert all("times its size" in text for text in texts[:8])
    assert set(texts[8:-1]) == {"Error: not run: the question's budget of 8 tool calls is spent"}
    assert texts[-1].endswith(TEXTS["warning"])
    assert not second.get("tools")
    assert TEXTS["last_turn"] in json.dumps(second["messages"][-1])


async def test_readable_and_unreadable_calls_of_one_message_are_all_answered(
    asker: Any, completion: Any, tool_call: Any
) -> None:
    calls = [tool_call("crop", "{", "bad"), tool_call("jigsaw", PIECES, "good"), tool_call("crop", "}", "worse")]
    reply = await asker(completion("", *calls), completion("(A)"), limits=Limits(tool_calls=2))
    asker.exact(reply)
    messages = asker.adversary.requests[1]["messages"]
    ids = [item["id"] for message in messages for item in message.get("tool_calls") or []]
    assert sorted(ids) == ["bad", "good", "worse"]
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == ids
    assert asker.faults(reply) == {Fault.BAD_ARGUMENTS: 1, Fault.BUDGET: 2}
    assert reply.usage.tool_calls == 2


@pytest.mark.parametrize(
    ("frame", "region", "count"),
    [
        ("pixels", {"x0": 0, "y0": 0, "x1": 20, "y1": "20"}, 1),
        # The region of a whole image has no coordinates to convert.
        ("fractions", None, 1),
        # Numbers that the conversion changes are validated once more, in pixels.
        ("fractions", {"x0": 0, "y0": 0, "x1": 0.5, "y1": "0.5"}, 2),
    ],
)
async def test_the_arguments_of_a_call_are_validated_once(
    frame: str, region: Any, count: int, asker: Any, completion: Any, tool_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    validate, validated = Args.model_validate, []

    def count_validation(cls: type[Args], *args: Any, **options: Any) -> Args:
        validated.append(cls.__name__)
        return validate.__func__(cls, *args, **options)  # type: ignore[attr-defined, no-any-return]

    monkeypatch.setattr(Args, "model_validate", classmethod(count_validation))
    arguments = {**WHOLE, "box": region} if region else WHOLE
    replies = completion("", tool_call("crop", arguments)), completion("(A)")
    reply = await asker(*replies, frame=frame_named(frame))
    (step,) = (step for step in reply.steps if step.kind == "tool")
    assert (step.fault, validated) == (None, ["CropArgs"] * count)


async def test_a_box_that_is_empty_in_pixels_is_refused_in_the_words_of_the_tool(
    asker: Any, completion: Any, tool_call: Any
) -> None:
    """A box that is valid as the model wrote it may be empty after rounding to whole pixels; the tool's own error says
    so."""
    replies = completion("", tool_call("crop", box(0.5, 0.5, 0.5001, 0.9))), completion("(A)")
    reply = await asker(*replies, frame=frame_named("fractions"))
    asker.exact(reply)
    assert asker.faults(reply) == {Fault.BAD_ARGUMENTS: 1}
    (text,) = asker.adversary.tool_texts()
    assert text == ("Error: bad_arguments: wrong arguments for crop: box: Value error, a box needs x0 < x1 and y0 < y1")


class ZoomArgs(Args):
    """Arguments of a plug-in tool that enlarges less than the style asks for."""

    box: RegionArg
    scale: float = Field(default=1.0, le=2)


async def test_a_scale_of_the_style_that_the_tool_does_not_accept_is_refused(
    asker: Any, completion: Any, tool_call: Any
) -> None:
    style = replace(style_of("qwen3-vl", None), runs="zoom", begin="", frame="")
    tool = Tool(Card("zoom", "Zooms.", "No limits.", ()), ZoomArgs)
    zoom = tool_call("image_zoom_in_tool", {"bbox_2d": [0, 0, 20, 20], "label": "edge", "img_idx": 0})
    replies = completion("", zoom), completion("(A)")
    reply = await asker(*replies, style=style, tools_offered=(tool,))
    asker.exact(reply)
    assert asker.faults(reply) == {Fault.BAD_ARGUMENTS: 1}
    (text,) = asker.adversary.tool_texts()
    assert "scale: Input should be less than or equal to 2" in text
