"""How an ask of the controller ends when the model or its server misbehaves, over a real socket.

Whatever the server says, an ask ends in an answer that can be scored or in a typed outcome; what was used is counted
exactly, and no budget is exceeded.
"""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from graphs._controller_texts import TEXTS
from graphs.controller import MOST_REPEATS
from hybrid.config import Limits, Price, RunLimits
from hybrid.errors import Outage
from hybrid.models.base import ModelRefused
from hybrid.solving.budgets import RunBudgetSpent, RunMeter
from hybrid.types import Fault, Outcome

PIECES = {"images": ["img:1", "img:2", "img:3"]}


def box(x0: float, y0: float, x1: float, y1: float) -> dict[str, Any]:
    return {"images": ["img:1"], "box": {"x0": x0, "y0": y0, "x1": x1, "y1": y1}}


async def test_endless_identical_calls_end_as_a_loop(asker: Any, completion: Any, tool_call: Any) -> None:
    reply = await asker(completion("", tool_call("jigsaw", PIECES)), limits=Limits(turns=50, tool_calls=50))
    asker.exact(reply)
    assert (reply.outcome, reply.text) == (Outcome.BUDGET, "")
    assert asker.faults(reply)[Fault.LOOP] == MOST_REPEATS
    assert (reply.usage.tool_calls, reply.usage.model_calls) == (1, MOST_REPEATS + 2)
    first, *repeats = asker.adversary.tool_texts()
    assert not first.startswith("Error")
    assert repeats == [f"Error: {TEXTS.repeated}"] * 2 + [f"Error: {TEXTS.repeated_too_often}\n{TEXTS.warning}"]
    assert not asker.adversary.requests[-1].get("tools")
    assert asker.scored(reply).correct == 0.0


async def test_identical_calls_in_one_message_run_once(asker: Any, completion: Any, tool_call: Any) -> None:
    calls = [tool_call("jigsaw", PIECES, f"c{n}") for n in range(5)]
    reply = await asker(completion("", *calls), completion("(A)"))
    asker.exact(reply)
    assert (reply.usage.tool_calls, asker.faults(reply)[Fault.LOOP]) == (1, 4)
    assert len(asker.adversary.tool_texts()) == 5


async def test_endless_new_calls_end_with_the_turns(asker: Any, completion: Any, tool_call: Any) -> None:
    calls = [completion("", tool_call("crop", box(n, 0, n + 20, 20))) for n in range(30)]
    reply = await asker(*calls, limits=Limits(turns=4, tool_calls=50))
    asker.exact(reply)
    assert (reply.usage.model_calls, reply.usage.tool_calls, reply.outcome) == (4, 3, Outcome.BUDGET)
    offered = [bool(request.get("tools")) for request in asker.adversary.requests]
    assert offered == [True, True, True, False]
    assert TEXTS.warning in asker.adversary.tool_texts()[-1]
    assert TEXTS.last_turn in json.dumps(asker.adversary.requests[-1]["messages"][-1])


async def test_endless_wrong_calls_end_with_the_calls(asker: Any, completion: Any, tool_call: Any) -> None:
    wrong = [completion("", tool_call("crop", {"box": n})) for n in range(30)]
    reply = await asker(*wrong, limits=Limits(turns=50, tool_calls=3))
    asker.exact(reply)
    assert (reply.usage.model_calls, reply.usage.tool_calls) == (4, 3)
    assert asker.faults(reply)[Fault.BAD_ARGUMENTS] == 3


@pytest.mark.parametrize("nothing", ["", None, " \n "])
async def test_an_empty_message_is_asked_for_once_more(asker: Any, completion: Any, nothing: str | None) -> None:
    reply = await asker(completion(nothing), completion("(A)"))
    asker.exact(reply)
    assert (reply.text, asker.faults(reply)) == ("(A)", {Fault.EMPTY_REPLY: 1})
    messages = asker.adversary.requests[1]["messages"]
    # The empty message itself is not sent back: some providers refuse a conversation that holds one.
    assert [message["role"] for message in messages] == ["system", "user", "user"]
    assert TEXTS.empty in json.dumps(messages[-1])


async def test_a_model_that_says_nothing_twice_is_unparsed(asker: Any, completion: Any) -> None:
    reply = await asker(completion(""))
    asker.exact(reply)
    assert (reply.outcome, reply.text, reply.usage.model_calls) == (Outcome.UNPARSED, "", 2)
    assert asker.faults(reply) == {Fault.EMPTY_REPLY: 2}
    verdict = asker.scored(reply)
    assert (verdict.correct, verdict.answer, verdict.outcome) == (0.0, None, Outcome.UNPARSED)


REFUSED = json.dumps({"error": {"message": "blocked", "code": "content_filter", "type": "invalid_request_error"}})


async def test_a_refusal_in_words_is_no_answer(asker: Any, completion: Any) -> None:
    reply = await asker(completion("I'm sorry, but I can't help with that."))
    assert (reply.outcome, reply.usage.model_calls) == (Outcome.ANSWERED, 1)
    assert (asker.scored(reply).outcome, asker.scored(reply).correct) == (Outcome.UNPARSED, 0.0)


@pytest.mark.parametrize("form", ["field", "finish", "status"])
async def test_a_refusal_of_the_provider_is_typed(asker: Any, completion: Any, raw: Any, form: str) -> None:
    replies = {
        "field": completion(None, refusal="I can't look at this."),
        "finish": completion("", finish="content_filter"),
        "status": raw(REFUSED.encode(), 400),
    }
    reply = await asker(replies[form], completion("(A)"))
    assert (reply.outcome, reply.text, asker.faults(reply)) == (Outcome.UNPARSED, "", {Fault.REFUSAL: 1})
    assert reply.usage.model_calls == len(asker.adversary.requests) == 1
    assert asker.scored(reply).outcome is Outcome.UNPARSED


MALFORMED = [b"", b"not json", b"{}", b"[]", b"null", b'{"choices": []}', b'{"choices": [{}]}', b"<html>busy</html>"]


@pytest.mark.parametrize("body", MALFORMED)
async def test_a_body_that_cannot_be_read_is_an_outage_after_the_retries(asker: Any, raw: Any, body: bytes) -> None:
    with pytest.raises(Outage, match="no reply after 2 attempts"):
        await asker(raw(body))
    assert len(asker.adversary.requests) == 2


@pytest.mark.parametrize("body", [b"not json", b'{"choices": []}'])
async def test_a_body_that_cannot_be_read_is_asked_for_again(
    asker: Any, raw: Any, completion: Any, body: bytes
) -> None:
    reply = await asker(raw(body), completion("(A)"))
    assert (reply.text, reply.usage.model_calls, len(asker.adversary.requests)) == ("(A)", 1, 2)


async def test_a_body_that_ends_too_early_is_asked_for_again(asker: Any, raw: Any, completion: Any) -> None:
    cut = raw(completion("(B)").body[:40], cut=True)
    reply = await asker(cut, completion("(A)"))
    assert (reply.text, len(asker.adversary.requests)) == ("(A)", 2)


@pytest.mark.parametrize(("status", "error", "requests"), [(500, Outage, 2), (413, Outage, 1), (401, ModelRefused, 1)])
async def test_an_error_of_the_server_is_nobodys_answer(
    asker: Any, raw: Any, status: int, error: type[Exception], requests: int
) -> None:
    with pytest.raises(error):
        await asker(raw(b'{"error": {"message": "no"}}', status))
    assert len(asker.adversary.requests) == requests


async def test_a_slow_reply_ends_with_the_seconds(asker: Any, completion: Any) -> None:
    reply = await asker(completion("(A)", held=True), limits=Limits(seconds=0.05))
    assert (reply.outcome, reply.text) == (Outcome.BUDGET, "")
    assert reply.usage.model_calls == 1
    assert asker.faults(reply) == {Fault.TIMEOUT: 1, Fault.BUDGET: 1}


async def test_what_was_said_before_the_seconds_ended_is_scored(asker: Any, completion: Any, tool_call: Any) -> None:
    slow = completion("(A)", held=True)

    def clock() -> float:
        """Each request takes nearly all of the question's time."""
        return 599.95 * len(asker.adversary.requests)

    replies = (completion("(B)?", tool_call("jigsaw", PIECES)), slow)
    reply = await asker(*replies, limits=Limits(seconds=600.0), clock=clock)
    # Words beside a call were not an answer, so there is none.
    assert (reply.outcome, reply.text, reply.usage.tool_calls) == (Outcome.BUDGET, "", 1)


async def test_the_tokens_of_a_question_end_its_ask(asker: Any, completion: Any, tool_call: Any) -> None:
    calls = [completion("", tool_call("crop", box(n, 0, n + 20, 20))) for n in range(9)]
    reply = await asker(*calls, limits=Limits(tokens=250))
    asker.exact(reply)
    # Each call counts 110 tokens: after three the budget is spent.
    assert (reply.usage.model_calls, reply.outcome) == (3, Outcome.BUDGET)


async def test_the_cost_of_a_question_ends_its_ask(asker: Any, completion: Any, tool_call: Any) -> None:
    calls = [completion("", tool_call("crop", box(n, 0, n + 20, 20))) for n in range(9)]
    reply = await asker(*calls, limits=Limits(cost_usd=0.0002), price=Price(1.0, 1.0))
    assert (reply.usage.model_calls, reply.outcome) == (2, Outcome.BUDGET)
    assert reply.usage.cost_usd == pytest.approx(220e-6)


async def test_a_call_that_never_came_back_counts_against_the_run(asker: Any, completion: Any) -> None:
    meter = RunMeter(RunLimits(model_calls=1))
    reply = await asker(completion("(A)", held=True), limits=Limits(seconds=0.05), run_meter=meter)
    assert (reply.outcome, meter.used.model_calls, meter.pending) == (Outcome.BUDGET, 1, 0)
    with pytest.raises(RunBudgetSpent):
        await asker(completion("(A)"), run_meter=meter)


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


async def test_without_calls_or_turns_the_tools_are_never_offered(asker: Any, completion: Any) -> None:
    for limits in (Limits(tool_calls=0), Limits(turns=1)):
        asker.adversary.requests.clear()
        reply = await asker(completion("(A)"), limits=limits)
        asker.exact(reply)
        assert not asker.adversary.requests[0].get("tools")
        assert [message["role"] for message in asker.adversary.requests[0]["messages"]] == ["system", "user"]
