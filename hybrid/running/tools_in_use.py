"""The tools that the solvers of a run may call, and what answers for each: nothing else is imported, hashed or checked.

    in_use = tools_in_use(solvers, "blink", offered, (), config.service, {"Relative_Depth"})
    in_use.menu                        # what a model is offered
    in_use.metadata("arbiter")            # {"depth": {"backend": "classical:...", "code": "..."}, ...}

A solver calls the menu if it offers that, and what it asks of its own accord (`Solver.asks`); each of these calls what
it needs. The manifest holds the facts with the solver, so that a tool which a solver does not call may change, come and
go without making its run another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from hybrid.config import ServiceOptions
from hybrid.errors import UsageError
from hybrid.integrations.mcp.foreign import CODE_DIGITS, NOTHING_FOREIGN, ForeignTools
from hybrid.registry import load
from hybrid.serving.sources import code_of
from hybrid.solving.solver import Solver
from hybrid.tool import Tool
from hybrid.types import Json
from hybrid.weights import ABSENT, backends_in_use


@dataclass(frozen=True)
class ToolsInUse:
    """Tools by solver and what answers for them."""

    tools_offered: tuple[Tool, ...]
    """What a model is offered; empty where no solver offers anything."""
    tools: Mapping[str, Tool]
    """Every tool that may be called, by name."""
    backends: Mapping[str, str]
    """By name the backend that answers, in which version and with which weights (`weights.backends_in_use`)."""
    by_solver: Mapping[str, tuple[str, ...]]
    """The names of the tools that each solver may call, sorted."""
    codes: Mapping[str, str] = field(default_factory=dict)
    """By name the hash of what a foreign tool is said to be, which stands for its code."""
    left_out: tuple[str, ...] = ()
    """Of each tool that would be on the menu and cannot be imported, why."""

    def metadata(self, solver: str) -> dict[str, Json]:
        """What the manifest says of the tools of a solver."""
        return {
            name: {"backend": self.backends[name], "code": self._code(name)[:CODE_DIGITS]}
            for name in self.by_solver[solver]
        }

    def _code(self, name: str) -> str:
        return self.codes.get(name) or code_of(self.tools[name])


def tools_in_use(
    solvers: Mapping[str, Solver],
    benchmark: str,
    offered: Iterable[str],
    named: Collection[str],
    service: ServiceOptions,
    routes: Collection[str] | None = None,
    foreign: ForeignTools = NOTHING_FOREIGN,
) -> ToolsInUse:
    """Find out.

    Args:
        solvers: by name.
        benchmark: its name.
        offered: the names of the tools on the menu, in order.
        named: those that somebody asked for by name: others that can answer nothing, or cannot be imported, are left
            out.
        service: which backends and weights may answer.
        routes: those that the questions can have, None where they are not known: the rules for others ask nothing.
        foreign: the tools of other MCP servers, which a menu may name too.

    Raises:
        UsageError: there is no tool of a name, or one that somebody asked for cannot be imported.
        WeightsError: weights that somebody asked for cannot be used.
    """
    tools_offered = tuple(offered) if any(solver.offers_tools for solver in solvers.values()) else ()
    asked = {name: solver.required_tools(benchmark, routes) for name, solver in solvers.items()}
    strangers = foreign.tools
    tools: dict[str, Tool] = {name: one.tool for name, one in strangers.items()}
    backends = foreign.backends
    broken: dict[str, str] = {}
    waiting = [*tools_offered, *sorted(frozenset().union(*asked.values()))]
    while waiting:
        if (name := waiting.pop(0)) in tools or name in broken:
            continue
        try:
            tools[name] = load("tools", name)
        except UsageError as error:
            if name in named or name not in tools_offered:
                raise
            broken[name] = str(error)
            continue
        backends |= backends_in_use([tools[name]], service.backend, service.weights)
        waiting += needs_of(tools[name], backends[name])
    tools_offered = tuple(name for name in tools_offered if name in named or backends.get(name, ABSENT) != ABSENT)
    by_solver = {
        name: with_needs({*asked[name], *(tools_offered if solver.offers_tools else ())}, tools, backends)
        for name, solver in solvers.items()
    }
    called = {name for names in by_solver.values() for name in names}
    return ToolsInUse(
        tuple(tools[name] for name in tools_offered),
        {name: tool for name, tool in tools.items() if name in called},
        {name: backend for name, backend in backends.items() if name in called},
        by_solver,
        {name: one.code for name, one in strangers.items() if name in called},
        tuple(broken.values()),
    )


def needs_of(tool: Tool, backend: str) -> tuple[str, ...]:
    """The tools that a tool calls when this backend answers for it, by name."""
    card = next((card for card in tool.card.backends if backend.startswith(f"{card.name}:")), None)
    return tuple(need.tool for need in (*tool.card.needs, *(card.needs if card else ())))


def with_needs(names: Iterable[str], tools: Mapping[str, Tool], backends: Mapping[str, str]) -> tuple[str, ...]:
    """The names and, whatever lies between, those of the tools that they need; sorted."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += needs_of(tools[name], backends[name])
    return tuple(sorted(found))
