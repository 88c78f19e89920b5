"""Rules of external tools, run step by step as in the worker, and the run's handling of their results."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hybrid.core.errors import NoBackend, ToolError
from hybrid.core.types import Finding, Json, Kind, Prompt
from hybrid.serving.protocol import LineReader, RuleRequest, RuleResponse, line
from hybrid.serving.rules import MAX_CALLS, DescribedRule, next_step
from hybrid.tool.rules import Rule, SpecialistAnswer, asks, choose

PROMPT = Prompt(("Which?",), Kind.CHOICE, ("one", "two"), route="Which")


class Context:
    """A `RuleContext` whose tools number their calls."""

    def __init__(self, absent: tuple[str, ...] = ()) -> None:
        self.absent, self.calls, self.notes = absent, list[Any](), list[Any]()

    async def tool(self, name: str, images: Sequence[str], args: Mapping[str, Json]) -> Finding:
        if name in self.absent:
            raise NoBackend(f"{name}: no weights")
        self.calls.append((name, tuple(images), dict(args)))
        return Finding(name, {"call": len(self.calls)}, 0.5, "classical", "1")

    def rule(self, name: str, text: str) -> None:
        self.notes.append((name, text))


def described(rule: Rule) -> DescribedRule:
    """Return the rule as the run sees it: every message is a line, and the worker runs the rule."""

    async def step(request: RuleRequest) -> RuleResponse:
        (text,) = LineReader().take(line(request))
        assert isinstance(text, RuleRequest)
        (message,) = LineReader().take(line(next_step(rule, text)))
        assert isinstance(message, RuleResponse)
        return message

    return DescribedRule("mine", "Which", rule.tools, step)


def answer(rule: Rule, ctx: Context) -> SpecialistAnswer | None:
    return asyncio.run(_answer(described(rule), ctx))


async def _answer(rule: Rule, ctx: Any) -> SpecialistAnswer | None:
    return await rule(PROMPT, ctx)


@asks("mine", "other")
async def two_calls(prompt: Prompt, ctx: Any) -> SpecialistAnswer | None:
    first = await ctx.tool("mine", ["img:1"], {})
    second = await ctx.tool("other", ["img:1"], {"number": first.data["call"]})
    ctx.rule("noted", "once")
    return choose(second.data["call"] - 1, "other", second, sure=0.75)


def test_each_call_is_made_once_with_what_the_one_before_found() -> None:
    ctx = Context()
    text = answer(two_calls, ctx)
    assert text is not None
    assert (text.choice, text.tool, text.confidence, text.finding.data) == (1, "other", 0.75, {"call": 2})
    assert ctx.calls == [("mine", ("img:1",), {}), ("other", ("img:1",), {"number": 1})]
    assert ctx.notes == [("noted", "once")]


def test_a_tool_without_backend_is_told_to_the_rule_and_ends_one_that_does_not_go_on() -> None:
    with pytest.raises(NoBackend, match="other has no backend"):
        answer(two_calls, Context(absent=("other",)))


def make_rule(make: Callable[[Finding], Any]) -> Rule:
    """Return a rule whose answer is made from its tool output."""

    async def rule(prompt: Prompt, ctx: Any) -> Any:
        return make(await ctx.tool("mine", [], {}))

    return asks("mine")(rule)


async def _for_ever(prompt: Prompt, ctx: Any) -> SpecialistAnswer | None:
    while True:
        await ctx.tool("mine", [], {})


async def _sleeps(prompt: Prompt, ctx: Any) -> SpecialistAnswer | None:
    await asyncio.sleep(0)
    return None


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (make_rule(lambda finding: "B"), "must return a SpecialistAnswer or None, not str"),
        (make_rule(lambda finding: choose(2, "mine", finding)), "there is no choice with index 2: the question has 2"),
        (
            make_rule(lambda finding: choose(0, "mine", replace(finding))),
            "is not based on the output of any of its calls",
        ),
        (make_rule(lambda finding: choose(0, "mine", finding, sure=float("nan"))), "is not a probability"),
        (make_rule(lambda finding: SpecialistAnswer("x" * 30_000, "mine", finding)), "the answer has 30000 characters"),
        (asks("mine")(_for_ever), f"more than {MAX_CALLS} tool calls"),
        (asks("mine")(_sleeps), "may only await its tool calls"),
    ],
)
def test_what_is_no_answer_is_a_named_fault(rule: Rule, message: str) -> None:
    with pytest.raises(ToolError, match=rf"mine: the rule for 'Which' failed: .*{message}"):
        answer(rule, Context())
