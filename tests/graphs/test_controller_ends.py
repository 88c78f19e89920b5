"""How a prompt to the controller ends if the model or its server misbehaves, over a real socket.

Whatever the server replies, a prompt ends in an answer that can be scored or in a typed outcome; usage is counted
exactly, and no budget is exceeded.
"""

import asyncio
from collections import Counter
from typing import Any

import pytest

from hybrid.config import Limits, Price, RunLimits
from hybrid.core.types import Fault, Outcome
from hybrid.solving.budgets import RunBudgetSpent, RunMeter


def box(x0: float, y0: float, x1: float, y1: float) -> dict[str, Any]:
    return {"images": ["img:1"], "box": {"x0": x0, "y0": y0, "x1": x1, "y1": y1}}


async def test_endless_wrong_calls_end_with_the_calls(asker: Any, completion: Any, tool_call: Any) -> None:
    wrong = [completion("", tool_call("crop", {"box": n})) for n in range(30)]
    reply = await asker(*wrong, limits=Limits(turns=50, tool_calls=3))
    asker.exact(reply)
    assert (reply.usage.model_calls, reply.usage.tool_calls) == (4, 3)
    assert asker.faults(reply)[Fault.BAD_ARGUMENTS] == 3


async def test_a_slow_reply_ends_with_the_seconds(asker: Any, completion: Any) -> None:
    reply = await asker(completion("(A)", waits_for_end=True), limits=Limits(seconds=0.05))
    assert (reply.outcome, reply.text) == (Outcome.BUDGET, "")
    assert reply.usage.model_calls == 1
    assert asker.faults(reply) == {Fault.TIMEOUT: 1, Fault.BUDGET: 1}


async def test_the_cost_of_a_question_ends_its_ask(asker: Any, completion: Any, tool_call: Any) -> None:
    calls = [completion("", tool_call("crop", box(n, 0, n + 20, 20))) for n in range(9)]
    reply = await asker(*calls, limits=Limits(cost_usd=0.0002), price=Price(1.0, 1.0))
    assert (reply.usage.model_calls, reply.outcome) == (2, Outcome.BUDGET)
    assert reply.usage.cost_usd == pytest.approx(220e-6)


async def test_the_runs_budget_leaves_the_question_open(asker: Any, completion: Any, tool_call: Any) -> None:
    meter = RunMeter(RunLimits(model_calls=2))
    calls = [completion("", tool_call("crop", box(n, 0, n + 20, 20))) for n in range(9)]
    with pytest.raises(RunBudgetSpent, match="2 model calls"):
        await asker(*calls, run_meter=meter)
    assert len(asker.adversary.requests) == 2


async def test_many_asks_at_once_keep_to_the_runs_budget(asker: Any, completion: Any) -> None:
    meter = RunMeter(RunLimits(model_calls=7))
    ends = await asyncio.gather(*(asker(completion("(A)"), run_meter=meter) for _ in range(20)), return_exceptions=True)
    assert Counter(type(end).__name__ for end in ends) == {"Reply": 7, "RunBudgetSpent": 13}
    assert (len(asker.adversary.requests), meter.used.model_calls, meter.pending) == (7, 7, 0)
