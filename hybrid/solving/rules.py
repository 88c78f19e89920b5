"""The rules of the specialists by route: the rules of single tools, and those in `tools/rules/` that combine tools.

    for entry in table().rules_for(prompt):
        answer = await entry.rule(prompt, ctx)

Several rules of a route are asked in order until one answers: first those of external tools, in the order of `--tools`,
then the project's own. The rows of a file of questions have further routes (`RuleTable.rules_for`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.types import Prompt
from hybrid.plugins.discovery import TOOLS
from hybrid.plugins.registry import is_outside, load, names, state
from hybrid.tool import Tool
from hybrid.tool.rules import Rule, RuleByText


@dataclass(frozen=True)
class RuleEntry:
    """A rule, the route under which it was found, and the external tool that defines it ("" if none does)."""

    rule: Rule
    route: str
    owner: str = ""

    def resolve(self, prompt: Prompt) -> tuple[str, Rule]:
        """Return the route under which answers to a prompt are counted, and the rule for the prompt.

        If the rule was selected by the question's text, the route also names what the text asks for: "by_text/depth".
        So `hybrid calibrate` and the arbiter keep different kinds of questions apart.
        """
        name = self.rule.name_of(prompt)[0] if isinstance(self.rule, RuleByText) else None
        if not isinstance(self.rule, RuleByText) or name is None:
            return self.route, self.rule
        return f"{self.route}/{name}", self.rule.rules[name]


@dataclass(frozen=True)
class RuleTable:
    """The rules of the project and of external tools, by route."""

    # The project's rules, one per route.
    rules: Mapping[str, Rule]
    # Rules of external tools by route and tool, in the order in which they are used.
    outside: Mapping[str, Mapping[str, Rule]] = field(default_factory=dict)
    # Tools that could not be imported; their rules are missing.
    notes: tuple[str, ...] = ()
    # Cache of the rules by the three routes of a prompt: a report looks up the rules of every prompt of a run, and all
    # prompts together have few routes.
    _known: dict[tuple[str, ...], tuple[RuleEntry, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def rules_for(self, prompt: Prompt) -> tuple[RuleEntry, ...]:
        """Return the rules to ask about a prompt, in order.

        The task of a row in a question file may equal a benchmark's route by coincidence; then only external rules are
        asked.
        """
        routes = (prompt.route, prompt.fallback_route, prompt.task_route)
        if routes not in self._known:
            self._known[routes] = tuple(self._find_rules(*routes))
        return self._known[routes]

    def _find_rules(self, route: str, fallback: str, task: str) -> Iterator[RuleEntry]:
        routes = tuple(dict.fromkeys((route, fallback)))
        if task and task not in routes:
            yield from self._outside_rules(task)
        for name in routes:
            yield from self._outside_rules(name)
            if name in self.rules:
                yield RuleEntry(self.rules[name], name)

    def _outside_rules(self, route: str) -> Iterator[RuleEntry]:
        return (RuleEntry(rule, route, owner) for owner, rule in self.outside.get(route, {}).items())

    def counted_route(self, prompt: Prompt, tool: str | None = None) -> str:
        """Return the route under which answers to a prompt are counted: the route of the first rule for this tool."""
        for entry in self.rules_for(prompt):
            if tool is None or tool in entry.rule.tools:
                return entry.resolve(prompt)[0]
        return prompt.route

    def tools_for(self, prompt: Prompt) -> frozenset[str]:
        """Return the tools that the rules for a prompt may call."""
        return frozenset(tool for entry in self.rules_for(prompt) for tool in entry.resolve(prompt)[1].tools)

    def tools_asked(self, routes: Collection[str] | None = None) -> frozenset[str]:
        """Return the tools that rules of these routes may call, and the external tools that define such rules.

        None stands for all routes.
        """
        builtin = {tool for route, rule in self.rules.items() if _is_among(route, routes) for tool in rule.tools}
        external = {
            tool
            for route, rules in self.outside.items()
            if _is_among(route, routes)
            for owner, rule in rules.items()
            for tool in (owner, *rule.tools)
        }
        return frozenset(builtin | external)

    def order_of(self, routes: Collection[str] | None = None) -> tuple[str, ...]:
        """Return the external tools that share a route with another tool, in the order in which they are asked."""
        shared = (rules for route, rules in self.outside.items() if _is_among(route, routes) and len(rules) > 1)
        return tuple(dict.fromkeys(owner for rules in shared for owner in rules))

    def notes_for(self, routes: Collection[str] | None) -> tuple[str, ...]:
        """Return notes for the user on rules that run before the project's, and on rules that no question uses."""
        notes = list(self.notes)
        for route, rules in self.outside.items():
            owners = ", then ".join(rules)
            if routes is not None and route not in routes:
                hint = did_you_mean(route, routes)
                available = ", ".join(sorted(routes)) or "none"
                notes.append(
                    f"{owners}: no question has the route {route!r} of its rule{hint}; available: {available:.500}"
                )
            elif route in self.rules:
                notes.append(f"{owners}: asked for {route!r} before the project's rule")
        return tuple(notes)


def _is_among(route: str, routes: Collection[str] | None) -> bool:
    return routes is None or route in routes


@dataclass(frozen=True)
class RuleOrder:
    """The tools whose rules a run uses first: those named by the run, and those passed in from Python."""

    tool_names: tuple[str, ...] = ()
    objects: tuple[Tool, ...] = ()


NO_ORDER: Final = RuleOrder()
_ORDER: ContextVar[RuleOrder] = ContextVar("the order of the rules of external tools", default=NO_ORDER)


@contextmanager
def rules_in_order(tool_names: Collection[str], objects: Collection[Tool] = ()) -> Iterator[None]:
    """Within the body, use the rules of these tools first, in this order, including tools passed as objects."""
    token = _ORDER.set(RuleOrder(tuple(tool_names), tuple(objects)))
    try:
        yield
    finally:
        _ORDER.reset(token)


def counted_route(prompt: Prompt, tool: str | None = None) -> str:
    """Return the route under which answers to a prompt are counted: see `RuleTable.counted_route`."""
    return table().counted_route(prompt, tool)


def handed_in_tool(name: str) -> Tool | None:
    """Return the tool of that name that Python passed to the run, or None."""
    return next((tool for tool in _ORDER.get().objects if tool.card.name == name), None)


def table() -> RuleTable:
    """Return the rules of all tools available now. Raises `ValueError` if the project has two rules for a route."""
    tool_names = names(TOOLS)
    return _table(tool_names, _ORDER.get(), state())


@lru_cache(maxsize=16)
def _table(tool_names: tuple[str, ...], order: RuleOrder, cache_key: tuple[Any, ...]) -> RuleTable:
    """Return the table for the tools of these names; `cache_key` covers everything else that `load` depends on."""
    del cache_key
    modules = [(f"tools/rules/{name}.py", load("tools.rules", name)) for name in names("tools.rules")]
    modules += [(f"tools/{name}", load(TOOLS, name).rules) for name in tool_names if not is_outside(TOOLS, name)]
    builtin: dict[str, Rule] = {}
    for location, rules in modules:
        for route, rule in rules.items():
            if builtin.setdefault(route, rule) is not rule:
                raise ValueError(f"{location}: another file also has a rule for {route!r}")
    external: dict[str, Tool] = {tool.card.name: tool for tool in order.objects}
    notes = []
    for name in tool_names:
        if name in external or not is_outside(TOOLS, name):
            continue
        try:
            external[name] = load(TOOLS, name)
        except UsageError as error:
            notes.append(f"its rules are not used: {error}")
    ranks = {name: rank for rank, name in enumerate(order.tool_names)}
    outside: dict[str, dict[str, Rule]] = {}
    for name in sorted(external, key=lambda name: (ranks.get(name, len(ranks)), name)):
        for route, rule in external[name].rules.items():
            outside.setdefault(route, {})[name] = rule
    return RuleTable(builtin, outside, tuple(notes))
