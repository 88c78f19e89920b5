"""A solver that puts the tool output, if there is any, into the prompt and calls the model once, without a loop."""

from typing import Any

import numpy as np
import pytest

from baselines.result_only import SOLVER
from hybrid.config import Limits
from hybrid.core.types import Fault, Kind, Prompt

TOOLS = ("jigsaw",)


def parts(request: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the joined text and the kinds of all parts of a request's only message."""
    (message,) = request["messages"]
    assert message["role"] == "user"
    return "\n".join(part.get("text", "") for part in message["content"]), [part["type"] for part in message["content"]]


@pytest.mark.parametrize(("show", "text", "pictures"), [("text", True, 0), ("image", False, 1)])
async def test_the_form_of_the_finding_is_a_switch(
    asker: Any, completion: Any, show: str, text: bool, pictures: int
) -> None:
    reply = await asker(completion("(A)"), solver="result_only", tools=TOOLS, show=show)
    (tool,) = [step for step in reply.steps if step.kind == "tool"]
    message, kinds = parts(asker.adversary.requests[0])
    assert (tool.text in message) is text
    assert kinds.count("image_url") == len(asker.prompt.images) + pictures * len(tool.images)


async def test_a_tool_that_cannot_answer_has_found_nothing(asker: Any, completion: Any) -> None:
    plain = [np.full((96, 96, 3), 200, np.uint8), *(np.full((48, 48, 3), shade, np.uint8) for shade in (90, 70))]
    reply = await asker.about(*plain)(completion("(B)"), solver="result_only", tools=TOOLS)
    assert (reply.text, reply.usage.model_calls, asker.faults(reply)) == ("(B)", 1, {Fault.TOOL_ERROR: 2})


def test_its_cost_is_one_call() -> None:
    for route, findings in (("Jigsaw", 1), ("nothing", 0)):
        result = SOLVER.call_estimate(Prompt(("?",), Kind.CHOICE, route=route), Limits(turns=50))
        assert (result.low.calls, result.high.calls, result.high.findings) == (1, 1, findings)
