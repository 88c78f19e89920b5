"""The table of all rules: rules of single tools, rules that combine several tools, and at most one rule per route."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from hybrid.core.errors import BudgetSpent, ToolError
from hybrid.core.types import Finding, ImageRef, Kind, Prompt, StoredImage
from hybrid.plugins.registry import load
from hybrid.solving.rules import RuleTable, table
from hybrid.tool.rules import Rule, RuleInWords, SpecialistAnswer, choose
from tools import rules
from tools.rules import ask_specialists


def test_a_route_with_two_rules_in_the_project_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load("tools.rules", "mm_sap"), "Jigsaw", load("tools.rules", "mm_sap")["choice"])
    monkeypatch.setattr("hybrid.solving.rules.state", lambda: ("another",))
    with pytest.raises(ValueError, match=r"tools/jigsaw: another file also has a rule for 'Jigsaw'"):
        table()


SHOWN = ImageRef("img:1", StoredImage("0" * 64, 8, 8, "image/png"))


def prompt(route: str, kind: Kind = Kind.CHOICE) -> Prompt:
    return Prompt((SHOWN, "Which?"), kind, ("x", "y"), route=route)


@pytest.fixture
def rule_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Function that installs a rule for the route "mine". If tools from outside are named, the rule belongs to them."""

    def install_rule(answered: Callable[[Prompt, Any], Awaitable[SpecialistAnswer | None]], *outside: str) -> None:
        rule: Rule = RuleInWords(answered, ("depth", "ocr"))
        payload = {"other": RuleInWords(answered, ("crop",)), **({} if outside else {"mine": rule})}
        rule_table = RuleTable(payload, {"mine": dict.fromkeys(outside, rule)})
        monkeypatch.setattr(rules, "table", lambda: rule_table)

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
    with pytest.raises(ToolError, match=r"^theirs: the rule for 'mine' failed: ZeroDivisionError: by nothing$"):
        await ask_specialists(prompt("mine"), fakes.context_of(prompt("mine")))
    rule_of(fails)
    with pytest.raises(ZeroDivisionError):
        await ask_specialists(prompt("mine"), fakes.context_of(prompt("mine")))

    async def refuses(prompt: Prompt, ctx: Any) -> SpecialistAnswer | None:
        raise BudgetSpent("no calls left")

    rule_of(refuses, "theirs")
    with pytest.raises(BudgetSpent, match=r"^no calls left$"):
        await ask_specialists(prompt("mine"), fakes.context_of(prompt("mine")))


def choosing(place: int | None, *tools: str) -> Rule:
    """Return a rule that chooses this position after a call of its first tool, or abstains without a call."""

    async def answered(prompt: Prompt, ctx: Any) -> SpecialistAnswer | None:
        return None if place is None else choose(place, tools[0], await ctx.tool(tools[0], ("img:1",), {}))

    return RuleInWords(answered, tools)


ROUTED = RuleTable(
    {"by_text": choosing(0, "depth"), "Jigsaw": choosing(1, "jigsaw")},
    {
        "light": {"lamp": choosing(1, "ocr")},
        "by_text": {"silent": choosing(None, "crop"), "lamp": choosing(0, "ocr")},
        "Jigsaw": {"silent": choosing(None, "crop")},
    },
)
FILE = {"route": "by_text"}


@pytest.mark.parametrize(
    ("routes", "names"),
    [
        # For a row of a file, the rules for its task come first, then those for by_text, with the project's last.
        ({**FILE, "task_route": "light"}, ["light lamp", "by_text silent", "by_text lamp", "by_text "]),
        ({**FILE, "task_route": "none"}, ["by_text silent", "by_text lamp", "by_text "]),
        ({**FILE, "task_route": "by_text"}, ["by_text silent", "by_text lamp", "by_text "]),
        # A task that happens to have the name of another benchmark's route does not use the project's rule for it.
        ({**FILE, "task_route": "Jigsaw"}, ["Jigsaw silent", "by_text silent", "by_text lamp", "by_text "]),
        # The column `route` may name any route.
        (
            {"route": "Jigsaw", "fallback_route": "by_text"},
            ["Jigsaw silent", "Jigsaw ", "by_text silent", "by_text lamp", "by_text "],
        ),
        ({"route": "Jigsaw"}, ["Jigsaw silent", "Jigsaw "]),
        ({"route": "unknown"}, []),
    ],
)
def test_the_rules_of_a_prompt_in_order(routes: dict[str, str], names: list[str]) -> None:
    routed = replace(prompt(""), **routes)
    assert [f"{entry.route} {entry.owner}" for entry in ROUTED.rules_for(routed)] == names


async def test_rules_are_asked_until_one_answers(fakes: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(rules, "table", lambda: ROUTED)
    finding = Finding("", {}, 1.0, "classical", "1")
    ctx = fakes.context_of(prompt("by_text"), findings=[finding])
    assert (answer := await ask_specialists(prompt("by_text"), ctx)) is not None
    assert (answer.tool, answer.choice) == ("ocr", 0)
    passed = [step.text for step in ctx.log.steps if step.name == "passed on"]
    assert passed == ["the rule for 'by_text', that of silent, gives no answer"]


def test_the_tools_that_rules_may_ask_are_set_up_with_those_that_bring_them() -> None:
    assert ROUTED.tools_asked(["light"]) == {"lamp", "ocr"}
    assert ROUTED.tools_asked(["by_text"]) == {"depth", "silent", "crop", "lamp", "ocr"}
    assert ROUTED.order_of(["by_text", "light"]) == ("silent", "lamp")
    assert ROUTED.order_of(["light", "Jigsaw"]) == ()


def test_answers_are_counted_under_the_route_of_the_rule_that_may_ask_the_tool() -> None:
    routed = replace(prompt("Jigsaw"), fallback_route="by_text")
    by_name = {tool: ROUTED.counted_route(routed, tool) for tool in ("jigsaw", "crop", "depth", "unknown")}
    assert by_name == {"jigsaw": "Jigsaw", "crop": "Jigsaw", "depth": "by_text", "unknown": "Jigsaw"}


def test_a_rule_that_nothing_asks_is_named_with_the_routes_there_are() -> None:
    assert ROUTED.notes_for({"by_text", "ligth"}) == (
        "lamp: no question has the route 'light' of its rule (did you mean 'ligth'?); available: by_text, ligth",
        "silent, then lamp: asked for 'by_text' before the project's rule",
        "silent: no question has the route 'Jigsaw' of its rule; available: by_text, ligth",
    )
    assert ROUTED.notes_for(None) == (
        "silent, then lamp: asked for 'by_text' before the project's rule",
        "silent: asked for 'Jigsaw' before the project's rule",
    )
