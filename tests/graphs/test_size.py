"""The state of a question with ten images and ten tool calls stays small: it refers to stored pictures."""

import json
from dataclasses import asdict
from typing import Any

import pytest

from hybrid.config import Limits
from hybrid.core.messages import AssistantMessage, ToolCall, images_of
from hybrid.core.types import Attempt, Exchange, ImageRef, Kind, Outcome, Prompt
from hybrid.log.attempts import attempt_line
from hybrid.plugins.registry import load, load_solver
from hybrid.serving.service import CachedTools
from hybrid.solving.controls import ToolCondition
from hybrid.solving.session import Session

CALLS = 10
LIMIT_BYTES = 100_000
TOOLS = ("saliency", "depth", "crop", "scanpath", "markers")


@pytest.mark.system
async def test_ten_images_and_ten_calls_add_under_100_kb(service: CachedTools, fakes: Any, tmp_path: Any) -> None:
    images = tuple(fakes.stored(service.store, seed, (320, 240)) for seed in range(CALLS))
    refs = tuple(ImageRef(f"img:{place}", image) for place, image in enumerate(images, 1))
    question = fakes.question("q1", images=images)
    prompt = Prompt((question.text, *refs), Kind.CHOICE, question.choices)
    points = {"depth": {"points": [{"x": 40, "y": 50}, {"x": 300, "y": 60}]}}
    replies: list[Any] = [
        AssistantMessage(
            "",
            (
                ToolCall(
                    f"c{n}",
                    TOOLS[n % len(TOOLS)],
                    {"images": [f"img:{n + 1}"], **points.get(TOOLS[n % len(TOOLS)], {})},
                ),
            ),
        )
        for n in range(CALLS)
    ]
    model = fakes.QueueModel([*replies, "Answer: (A)"])
    tools_offered = tuple(load("tools", name) for name in TOOLS)
    limits = Limits(tool_calls=CALLS, turns=CALLS + 1)
    resources = fakes.resources(model, ToolCondition(service), tools_offered, limits=limits)
    reply = await Session(question, load_solver("controller"), resources).ask(prompt)
    assert (reply.outcome, reply.usage.tool_calls) == (Outcome.ANSWERED, CALLS)
    assert [step.fault for step in reply.steps if step.kind == "tool"] == [None] * CALLS

    log = len(attempt_line(Attempt("q1", (Exchange(prompt, reply),), 1.0)))
    state = model.calls[-1][0]
    pictures = images_of(state)
    assert len(pictures) >= 2 * CALLS
    assert log + len(json.dumps([asdict(message) for message in state])) < LIMIT_BYTES
    # With the pictures inline, the state would be far larger.
    assert sum(len(service.store.read(ref.image)) for ref in pictures) > 20 * LIMIT_BYTES
