"""The rules of the specialists by route: those of the tools, and those in `tools/rules/` that combine several.

    rule = table().rules.get(prompt.route)

A plug-in tool takes precedence: its rule replaces the project's rule for the same route, and `notes` says so. If two
plug-in tools have a rule for a route, neither answers: `refuse_two` names them.
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
    """One rule per route."""

    rules: Mapping[str, Rule]
    # By route, the plug-in tools that have a rule for it.
    outside: Mapping[str, tuple[str, ...]]
    # Which of the project's rules are replaced, and which tools could not be imported, so that their rules are missing.
    notes: tuple[str, ...]

    def asked_of(self, prompt: Prompt) -> tuple[str, Rule | None]:
        """Return the route under which answers to a prompt are counted, and the rule for the prompt.

        The route is the prompt's own, extended by what the text asks if the rule goes by the text: "by_text/depth". So
        `hybrid calibrate` and the arbiter do not mix several kinds of questions.
        """
        rule = self.rules.get(prompt.route)
        name = rule.name_of(prompt)[0] if isinstance(rule, RuleByText) else None
        if not isinstance(rule, RuleByText) or name is None:
            return prompt.route, rule
        return f"{prompt.route}/{name}", rule.rules[name]

    def refuse_two(self, routes: Collection[str] | None) -> None:
        """Raise `UsageError` if two plug-in tools have a rule for one of these routes (None: any)."""
        for route, tools in self.outside.items():
            if len(tools) > 1 and (routes is None or route in routes):
                places = ", ".join(f"{name} ({place_of(TOOLS, name)})" for name in tools)
                raise UsageError(f"more than one tool has a rule for {route!r}: {places}; leave all but one out")


def counted_route(prompt: Prompt) -> str:
    """Return the route under which answers to a prompt are counted, see `RuleTable.asked_of`."""
    return table().asked_of(prompt)[0]


def table() -> RuleTable:
    """Return the rules of all available tools. Raises `ValueError` for a route with two rules in the project."""
    tool_names = names("tools")
    return _table(tool_names, state())


@lru_cache(maxsize=4)
def _table(tool_names: tuple[str, ...], cache_key: tuple[Any, ...]) -> RuleTable:
    """Return the table for the tools of these names; `cache_key` changes with anything else that `load` depends on."""
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
