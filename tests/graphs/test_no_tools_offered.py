"""A controller with nothing to offer (`--tools none`) asks as the MLLM alone does."""

from dataclasses import replace
from typing import Any

from baselines.mllm import SOLVER as MLLM
from graphs.controller import SOLVER as CONTROLLER
from hybrid.messages import SystemMessage
from hybrid.registry import load
from hybrid.types import Kind, Outcome, Prompt


async def test_nothing_is_said_of_tools(fakes: Any) -> None:
    prompt = Prompt(("Is it red?",), Kind.CHOICE, ("yes", "no"))
    said = []
    for solver in (CONTROLLER, MLLM):
        ctx = fakes.context_of(prompt, ["Answer: (B)"])
        reply = await solver.ask(prompt, ctx)
        assert (reply.text, reply.outcome) == ("Answer: (B)", Outcome.ANSWERED)
        # No budget was spent: nothing is noted.
        assert ctx.log.steps == []
        ((messages, tools, _),) = ctx.model.inner.calls
        assert tools == ()
        said.append(messages)
    assert said[0] == said[1]


async def test_an_empty_reply_is_asked_for_once_more(fakes: Any) -> None:
    prompt = Prompt(("Is it red?",), Kind.CHOICE, ("yes", "no"))
    ctx = fakes.context_of(prompt, ["", "Answer: (A)"])
    reply = await CONTROLLER.ask(prompt, ctx)
    assert (reply.text, reply.outcome) == ("Answer: (A)", Outcome.ANSWERED)
    assert len(ctx.model.inner.calls) == 2


async def test_with_a_menu_the_instructions_come_first(fakes: Any) -> None:
    prompt = Prompt(("Is it red?",), Kind.CHOICE, ("yes", "no"))
    ctx = replace(fakes.context_of(prompt, ["Answer: (A)"]), tools_offered=(load("tools", "crop"),))
    await CONTROLLER.ask(prompt, ctx)
    ((messages, tools, _),) = ctx.model.inner.calls
    assert isinstance(messages[0], SystemMessage)
    assert [tool.card.name for tool in tools] == ["crop"]
