"""The table of all rules: those next to the tools and those that join several, and no route with two of them."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from hybrid.core.errors import BudgetSpent, ToolError, UsageError
from hybrid.core.types import ImageRef, Kind, Prompt, StoredImage
from hybrid.plugins.registry import load
from hybrid.solving.rules import RuleTable, table
from hybrid.tool.rules import Rule, RuleInWords, SpecialistAnswer, choose
from tools import rules
from tools.rules import ask_specialists, tools_asked


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

    def install_rule(answered: Callable[[Prompt, Any], Awaitable[SpecialistAnswer | None]], *outside: str) -> None:
        rule: Rule = RuleInWords(answered, ("depth", "ocr"))
        rule_table = RuleTable({"mine": rule, "other": RuleInWords(answered, ("crop",))}, {"mine": outside}, ())
        monkeypatch.setattr(rules, "table", lambda: rule_table if outside else replace(rule_table, outside={}))

    return install_rule


async def depth_says(prompt: Prompt, ctx: Any) -> SpecialistAnswer | None:
    return choose(1, "depth", await ctx.tool("depth", ("img:1",), {}))


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


def test_two_rules_from_outside_are_refused_where_they_may_be_asked(rule_of: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("hybrid.solving.rules.place_of", lambda _, name: f"at {name}")
    rule_of(depth_says, "theirs", "others")
    for routes in (None, ["mine"]):
        with pytest.raises(UsageError, match="more than one tool has a rule for 'mine': theirs"):
            tools_asked(routes)
    assert tools_asked(["other"]) == {"crop"}
