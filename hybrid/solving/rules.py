"""The rules of the specialists, by route: those of the tools, and those in `tools/rules/` that join several.

    rule = table().rules.get(prompt.route)

A tool from outside of the project is added to be used: its rule takes the place of the project's for the same route,
and `notes` says so. Of two from outside neither answers: `refuse_two` names them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hybrid.core.errors import UsageError
from hybrid.core.types import Prompt
from hybrid.plugins.registry import TOOLS, is_outside, load, names, place_of, state
from hybrid.tool import Tool
from hybrid.tool.rules import Rule, RuleByText


@dataclass(frozen=True)
class RuleTable:
    """One rule a route."""

    rules: Mapping[str, Rule]
    # By route the tools from outside of the project that have a rule for it.
    outside: Mapping[str, tuple[str, ...]]
    # Which rules of the project are not asked, and which tools could not be imported, so that theirs are missing.
    notes: tuple[str, ...]

    def asked_of(self, prompt: Prompt) -> tuple[str, Rule | None]:
        """The rule for a prompt, and the route that its answers are counted under.

        That is the prompt's own route, but where the rule goes by the text it also names what the text asks:
        "by_text/depth". So `hybrid calibrate` and the arbiter do not mix questions of several kinds.
        """
        rule = self.rules.get(prompt.route)
        name = rule.name_of(prompt)[0] if isinstance(rule, RuleByText) else None
        if not isinstance(rule, RuleByText) or name is None:
            return prompt.route, rule
        return f"{prompt.route}/{name}", rule.rules[name]

    def refuse_two(self, routes: Collection[str] | None) -> None:
        """Raise `UsageError` where two tools from outside have a rule for one of these routes; None: for any."""
        for route, tools in self.outside.items():
            if len(tools) > 1 and (routes is None or route in routes):
                places = ", ".join(f"{name} ({place_of(TOOLS, name)})" for name in tools)
                raise UsageError(f"more than one tool has a rule for {route!r}: {places}; leave all but one out")


def counted_route(prompt: Prompt) -> str:
    """The route that answers to a prompt are counted under: see `RuleTable.asked_of`."""
    return table().asked_of(prompt)[0]


def table() -> RuleTable:
    """The rules of everything that can be found now. Raises `ValueError` for a route with two rules in the project."""
    tool_names = names("tools")
    return _table(tool_names, state())


@lru_cache(maxsize=4)
def _table(tool_names: tuple[str, ...], cache_key: tuple[Any, ...]) -> RuleTable:
    """The table of the tools of these names; `found` is what `load` depends on besides."""
    del cache_key
    modules = [(f"tools/rules/{name}.py", load("tools.rules", name)) for name in names("tools.rules")]
    modules += [(f"tools/{name}", load("tools", name).rules) for name in tool_names if not is_outside(TOOLS, name)]
    builtin: dict[str, Rule] = {}
    for location, rules in modules:
        for route, rule in rules.items():
            if builtin.setdefault(route, rule) is not rule:
                raise ValueError(f"{location}: there is another rule for {route!r} elsewhere")
    outside: dict[str, tuple[str, ...]] = {}
    external: dict[str, Rule] = {}
    notes = []
    for name in tool_names:
        if not is_outside(TOOLS, name):
            continue
        try:
            tool: Tool = load("tools", name)
        except UsageError as error:
            notes.append(f"its rules are not asked: {error}")
            continue
        for route, rule in tool.rules.items():
            external[route] = rule
            outside[route] = (*outside.get(route, ()), name)
    single = {route: rule for route, rule in external.items() if len(outside[route]) == 1}
    notes += [
        f"{outside[route][0]} answers {route!r} instead of the project's rule" for route in single if route in builtin
    ]
    builtin_kept = {route: rule for route, rule in builtin.items() if route not in outside}
    return RuleTable({**builtin_kept, **single}, outside, tuple(notes))
