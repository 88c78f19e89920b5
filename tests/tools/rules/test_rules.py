"""The table of all rules: those next to the tools and those that join several, and no route with two of them."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from hybrid.errors import BudgetSpent, NoBackend, ToolError, UsageError
from hybrid.registry import load, names
from hybrid.solving.answer_confidence import AnswerConfidence
from hybrid.solving.controls import ORACLE, ORACLE_ANSWER
from hybrid.solving.rules import RuleTable, table
from hybrid.tool.rules import Rule, RuleInWords, SpecialistAnswer, choose
from hybrid.types import Finding, ImageRef, Kind, Prompt, StoredImage
from tools import rules
from tools.rules import ask_specialists, claimed, has_rule, tools_asked


def test_each_rule_lies_next_to_its_one_tool_or_joins_several() -> None:
    joined = {route: rule for name in names("tools.rules") for route, rule in load("tools.rules", name).items()}
    alone = {route: (name, rule) for name in names("tools") for route, rule in load("tools", name).rules.items()}
    assert set(names("tools.rules")) <= set(names("hybrid.benchmarks"))
    assert table().rules == joined | {route: rule for route, (_, rule) in alone.items()}
    assert all(len(rule.tools) > 1 for rule in joined.values())
    assert all(rule.tools == (name,) for name, rule in alone.values())
    assert (table().outside, table().notes) == ({}, ())


def test_a_route_with_two_rules_in_the_project_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load("tools.rules", "mm_sap"), "Jigsaw", load("tools.rules", "mm_sap")["choice"])
    monkeypatch.setattr("hybrid.solving.rules.state", lambda: ("another",))
    with pytest.raises(ValueError, match=r"tools/jigsaw: there is another rule for 'Jigsaw' elsewhere"):
        table()


SHOWN = ImageRef("img:1", StoredImage("0" * 64, 8, 8, "image/png"))


def prompt(route: str, kind: Kind = Kind.CHOICE) -> Prompt:
    return Prompt((SHOWN, "Which?"), kind, ("x", "y"), route=route)


@pytest.fixture
def rule_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes this the rule for the route "mine"; where tools from outside are named, it is theirs."""

    def made(answered: Callable[[Prompt, Any], Awaitable[SpecialistAnswer | None]], *outside: str) -> None:
        rule: Rule = RuleInWords(answered, ("depth", "ocr"))
        found = RuleTable({"mine": rule, "other": RuleInWords(answered, ("crop",))}, {"mine": outside}, ())
        monkeypatch.setattr(rules, "table", lambda: found if outside else replace(found, outside={}))

    return made


async def depth_says(prompt: Prompt, ctx: Any) -> SpecialistAnswer | None:
    return choose(1, "depth", await ctx.tool("depth", ("img:1",), {}))


async def test_a_route_without_a_rule_is_an_abstention(fakes: Any, rule_of: Any) -> None:
    rule_of(depth_says)
    assert has_rule(prompt("mine"))
    assert not has_rule(prompt("none"))
    assert await ask_specialists(prompt("none"), fakes.context_of(prompt("none"))) is None
    found = Finding("", {}, 0.8, "learned", "1")
    answer = await ask_specialists(prompt("mine"), fakes.context_of(prompt("mine"), findings=[found]))
    assert answer == SpecialistAnswer("Answer: (B)", "depth", found, 1)


async def test_a_tool_without_weights_is_an_abstention_that_says_so(fakes: Any, rule_of: Any) -> None:
    rule_of(depth_says)
    ctx = fakes.context_of(prompt("mine"), findings=[NoBackend("depth has no weights")])
    assert await ask_specialists(prompt("mine"), ctx) is None
    assert [(step.name, step.text) for step in ctx.log.steps if step.kind == "rule"] == [
        ("no backend", "depth has no weights")
    ]


@pytest.mark.parametrize(
    ("kind", "said", "place"),
    [(Kind.CHOICE, "Answer: (B)", 1), (Kind.CHOICE, "I do not know", None), (Kind.TEXT, "Answer: (B)", None)],
)
async def test_what_an_oracle_says_is_the_answer(
    fakes: Any, rule_of: Any, kind: Kind, said: str, place: int | None
) -> None:
    rule_of(depth_says)
    oracle = Finding("", {ORACLE_ANSWER: said}, 0.3, ORACLE, ORACLE)
    one = prompt("mine", kind)
    answer = await ask_specialists(one, fakes.context_of(one, findings=[oracle]))
    assert answer == SpecialistAnswer(said, "depth", oracle, place, 1.0)
    assert claimed(answer, one, 0.5) == AnswerConfidence(1.0)
    # Another backend's data of this name, or an oracle without an answer, are findings like any other.
    for plain in (replace(oracle, backend="learned"), replace(oracle, data={})):
        answer = await ask_specialists(one, fakes.context_of(one, findings=[plain]))
        assert answer == choose(1, "depth", plain)


async def test_a_rule_asks_no_tool_that_it_does_not_name(fakes: Any, rule_of: Any) -> None:
    async def asks_crop(prompt: Prompt, ctx: Any) -> SpecialistAnswer | None:
        await ctx.tool("crop", ("img:1",), {})
        return None

    rule_of(asks_crop)
    with pytest.raises(LookupError, match="the rule for 'mine' asks crop, and names only depth, ocr"):
        await ask_specialists(prompt("mine"), fakes.context_of(prompt("mine")))


async def test_an_error_of_a_rule_from_outside_names_its_tool(fakes: Any, rule_of: Any) -> None:
    async def fails(prompt: Prompt, ctx: Any) -> SpecialistAnswer | None:
        raise ZeroDivisionError("by nothing")

    rule_of(fails, "theirs")
    with pytest.raises(ToolError, match=r"^theirs, its rule for 'mine': ZeroDivisionError: by nothing$"):
        await ask_specialists(prompt("mine"), fakes.context_of(prompt("mine")))
    rule_of(fails)
    with pytest.raises(ZeroDivisionError):
        await ask_specialists(prompt("mine"), fakes.context_of(prompt("mine")))

    async def refuses(prompt: Prompt, ctx: Any) -> SpecialistAnswer | None:
        raise BudgetSpent("no calls left")

    rule_of(refuses, "theirs")
    with pytest.raises(BudgetSpent, match=r"^no calls left$"):
        await ask_specialists(prompt("mine"), fakes.context_of(prompt("mine")))


def test_the_tools_that_may_be_asked(rule_of: Any) -> None:
    rule_of(depth_says, "theirs")
    assert tools_asked(None) == tools_asked() == {"depth", "ocr", "crop", "theirs"}
    assert tools_asked(["other", "none"]) == {"crop"}
    assert tools_asked(["mine"]) == {"depth", "ocr", "theirs"}
    assert tools_asked([]) == frozenset()


def test_two_rules_from_outside_are_refused_where_they_may_be_asked(rule_of: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("hybrid.solving.rules.place_of", lambda _, name: f"at {name}")
    rule_of(depth_says, "theirs", "others")
    for routes in (None, ["mine"]):
        with pytest.raises(UsageError, match="more than one tool has a rule for 'mine': theirs"):
            tools_asked(routes)
    assert tools_asked(["other"]) == {"crop"}


def test_what_is_claimed_of_an_answer_without_a_card() -> None:
    learned = choose(0, "depth", Finding("", {}, 0.8, "learned", "1"))
    assert claimed(learned, prompt("mine"), 0.25) == AnswerConfidence(0.25, 0.8)
    assert claimed(replace(learned, sure=0.6), prompt("mine"), 0.25) == AnswerConfidence(0.25, 0.6)
    assert claimed(learned, prompt("mine", Kind.SCANPATH), 0.25) == AnswerConfidence(0.25, None)
    by_hand = replace(learned, finding=replace(learned.finding, backend="classical"))
    assert claimed(by_hand, prompt("mine"), 0.25) == AnswerConfidence(0.25, None)
