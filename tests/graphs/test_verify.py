"""The solver `verify` over a real socket: it proposes, sees evidence once and decides, with a fixed number of calls."""

from typing import Any

import pytest

from graphs.verify import SOLVER
from hybrid.config import Limits
from hybrid.core.errors import Outage
from hybrid.core.types import Kind, Outcome, Prompt

TOOLS = ("jigsaw",)


async def test_the_budget_of_the_question_holds(asker: Any, completion: Any) -> None:
    reply = await asker(completion("(B)"), completion("(A)"), solver="verify", tools=TOOLS, limits=Limits(tokens=100))
    asker.exact(reply)
    assert (reply.outcome, reply.usage.model_calls) == (Outcome.BUDGET, 1)


async def test_a_server_that_fails_is_nobodys_answer(asker: Any, raw: Any) -> None:
    with pytest.raises(Outage):
        await asker(raw(b"", 500), solver="verify", tools=TOOLS)


def test_its_cost_is_fixed() -> None:
    for route, most in (("Jigsaw", 2), ("nothing", 1)):
        result = SOLVER.call_estimate(Prompt(("?",), Kind.CHOICE, route=route), Limits(turns=50))
        assert (result.low.calls, result.high.calls) == (1, most)
    assert set(SOLVER.build().get_graph().nodes) == {"__start__", "propose", "specialist", "decide", "__end__"}
