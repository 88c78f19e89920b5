"""Every solver that asks the MLLM handles an empty reply in the same way: one more identical request, and a note."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from hybrid.config import Limits
from hybrid.core.messages import AssistantMessage
from hybrid.core.types import Fault, ImageRef, Kind, Prompt, Reply
from hybrid.models.replies import read_end
from hybrid.plugins.registry import load_solver, solver_names
from hybrid.serving.service import CachedTools
from hybrid.solving.controls import ToolCondition
from hybrid.solving.empty_replies import is_empty
from hybrid.solving.session import Session
from hybrid.solving.solver import Log
from tests.tables import cases

ASKING = tuple(name for name in solver_names() if load_solver(name).needs_model)


@pytest.fixture
def ask(service: CachedTools, fakes: Any) -> Any:
    """Give one prompt to a solver with a queued model; return the reply and the model."""
    image = fakes.stored(service.store, 1)

    def run(name: str, replies: Sequence[Any], limits: Limits | None = None) -> tuple[Reply, Any]:
        model = fakes.QueueModel(list(replies))
        shared = fakes.resources(model, ToolCondition(service), limits=limits or Limits())
        question = fakes.question("q1", images=(image,))
        prompt = Prompt((question.text, ImageRef("img:1", image)), Kind.CHOICE, question.choices)
        return asyncio.run(Session(question, load_solver(name), shared).ask(prompt)), model

    return run


def faults(reply: Reply) -> int:
    return [step.fault for step in reply.steps].count(Fault.EMPTY_REPLY)


def test_who_asks_the_model() -> None:
    assert set(ASKING) >= {"controller", "verify", "arbiter", "mllm", "caption", "text_only"}


def test_an_empty_description_is_asked_for_once_more(ask: Any) -> None:
    reply, model = ask("caption", ["", "a grey picture", "Answer: (B)"])
    assert (reply.text, faults(reply), len(model.calls)) == ("Answer: (B)", 1, 3)
    assert "a grey picture" in model.calls[-1][0][-1].text


@pytest.mark.parametrize("name", ASKING)
def test_a_refusal_of_the_provider_is_not_asked_for_again(ask: Any, name: str) -> None:
    first = ["a grey picture"] if name == "caption" else []
    reply, model = ask(name, [*first, AssistantMessage(refusal="content_filter"), "never asked for"])
    assert (reply.text, faults(reply)) == ("", 0)
    assert Fault.REFUSAL in [step.fault for step in reply.steps]
    assert model.replies == ["never asked for"]


def reply_ending(finish_reason: str | None = None, **row: Any) -> AssistantMessage:
    """Return a reply with this finish reason and the end that is derived from it."""
    reason, end = read_end("chat_completions", finish_reason)
    return AssistantMessage(finish_reason=reason, end=end, **row)


@pytest.mark.parametrize(*cases(__file__, "why a reply is empty", reply=lambda row: reply_ending(**row)))
def test_an_empty_reply_says_why_it_is_empty(reply: AssistantMessage, empty: bool, reason: str, remedy: str) -> None:
    log = Log()
    assert is_empty(reply, log) is empty
    assert [step.fault for step in log.steps] == [Fault.EMPTY_REPLY] * bool(reason)
    for step in log.steps:
        assert reason in step.text
        assert remedy in str(step.data.get("remedy", "" if not remedy else None))
