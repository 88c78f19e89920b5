"""The result in the prompt and no loop: one call that shows the finding, and a plain ask where there is none."""

from typing import Any

import numpy as np
import pytest

from baselines.result_only import SOLVER
from hybrid.config import Limits
from hybrid.solving.controls import Control
from hybrid.types import Fault, Kind, Outcome, Prompt
from tests.graphs.test_verify import parts

TOOLS = ("jigsaw",)


async def test_one_call_shows_the_finding(asker: Any, completion: Any) -> None:
    reply = await asker(completion("(A)"), solver="result_only", tools=TOOLS)
    asker.exact(reply)
    assert (reply.text, reply.outcome, reply.usage.model_calls, reply.usage.tool_calls) == (
        "(A)",
        Outcome.ANSWERED,
        1,
        1,
    )
    (tool,) = [step for step in reply.steps if step.kind == "tool"]
    text, kinds = parts(asker.adversary.requests[0])
    assert text.index("Which image fits?") < text.index("What it found") < text.index(tool.text)
    assert kinds.count("image_url") == len(asker.prompt.images) + len(tool.images)
    assert not asker.adversary.requests[0].get("tools")


@pytest.mark.parametrize(("show", "text", "pictures"), [("text", True, 0), ("image", False, 1)])
async def test_the_form_of_the_finding_is_a_switch(
    asker: Any, completion: Any, show: str, text: bool, pictures: int
) -> None:
    reply = await asker(completion("(A)"), solver="result_only", tools=TOOLS, show=show)
    (tool,) = [step for step in reply.steps if step.kind == "tool"]
    told, kinds = parts(asker.adversary.requests[0])
    assert (tool.text in told) is text
    assert kinds.count("image_url") == len(asker.prompt.images) + pictures * len(tool.images)


async def test_without_a_rule_it_asks_as_the_mllm_does(asker: Any, completion: Any) -> None:
    other = asker.about(*(asker.service.store.pixels(image) for image in asker.question.images), route="IQ_Test")
    await other(completion("(B)"), solver="result_only", tools=TOOLS)
    told = asker.adversary.requests[0]["messages"]
    asker.adversary.requests.clear()
    await other(completion("(B)"), solver="mllm", tools=TOOLS)
    # Images that a solver speaks of by name are shown under it; everything else is the same.
    plain = asker.adversary.requests[0]["messages"]
    assert [part for part in told[0]["content"] if part["type"] == "image_url"] == [
        part for part in plain[0]["content"] if part["type"] == "image_url"
    ]
    assert "What it found" not in str(told)


async def test_a_tool_that_cannot_answer_has_found_nothing(asker: Any, completion: Any) -> None:
    plain = [np.full((96, 96, 3), 200, np.uint8), *(np.full((48, 48, 3), shade, np.uint8) for shade in (90, 70))]
    reply = await asker.about(*plain)(completion("(B)"), solver="result_only", tools=TOOLS)
    assert (reply.text, reply.usage.model_calls, asker.faults(reply)) == ("(B)", 1, {Fault.TOOL_ERROR: 2})


async def test_a_blank_finding_is_none(asker: Any, completion: Any) -> None:
    reply = await asker(completion("(B)"), solver="result_only", tools=TOOLS, control=Control(asker.service, "blank"))
    assert "What it found" not in parts(asker.adversary.requests[0])[0]
    assert reply.usage.model_calls == 1


def test_its_cost_is_one_call() -> None:
    for route, findings in (("Jigsaw", 1), ("nothing", 0)):
        found = SOLVER.call_estimate(Prompt(("?",), Kind.CHOICE, route=route), Limits(turns=50))
        assert (found.low.calls, found.high.calls, found.high.findings) == (1, 1, findings)
