"""The tools that a run offers and its solvers may call, and their backends.

    choice = choose_tools(config, benchmark.card)
    in_use = tools_in_use(solvers, "blink", choice, config.service, {"Relative_Depth"})
    in_use.tools_offered                  # offered to a model
    in_use.metadata("arbiter")            # {"depth": {"backend": "classical:...", "code": "..."}, ...}

A solver calls the offered tools, if it offers any, and those that it requires (`Solver.required_tools`); each of these
tools calls the tools that it needs. No other tool is imported, hashed or checked. The manifest records tools per
solver, so a tool may change, be added or be removed without changing the runs of solvers that never call it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.benchmarks.card import BenchmarkCard
from hybrid.config import AUTO, LOCAL, RunConfig, ServiceOptions
from hybrid.core.error_text import in_one_line
from hybrid.core.errors import UsageError, did_you_mean, install_extra
from hybrid.core.repetitions import word_of
from hybrid.core.types import Json
from hybrid.plugins.registry import (
    is_outside,
    load,
    names,
    package_of_solver,
    place_of,
    plugin,
    refuse_unknown,
    solver_names,
)
from hybrid.plugins.weights import ABSENT, backends_in_use, missing_library, names_directory, no_directory
from hybrid.running.object_code import NO_SOURCE, object_code
from hybrid.running.permissions import answering
from hybrid.serving.service import GROUP, ForeignTools
from hybrid.serving.sources import CODE_DIGITS, code_of, made_by, shown_by
from hybrid.solving.rules import table
from hybrid.solving.solver import Solver
from hybrid.tool import BackendCard, Tool

# The value of `--tools` for every tool.
EVERY_TOOL = "all"
# The value of `--tools` that offers no tool.
NO_TOOL = "none"
# Stands for the benchmark's own tools in a list of tools.
BENCHMARK_TOOLS = "default"


@dataclass(frozen=True)
class ToolChoice:
    """The tools that a configuration offers to a model, by name and in order."""

    tools_offered: tuple[str, ...] = ()
    # The tools that the user named. Other tools are left out without an error if they cannot answer.
    named: tuple[str, ...] = ()
    # The tools of external MCP servers, offered or not.
    foreign: ForeignTools = field(default_factory=ForeignTools)
    # The tools passed in by Python code.
    objects: Mapping[str, Tool] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolsInUse:
    """Tools by solver, and their backends."""

    # The tools offered to a model; empty if no solver offers tools.
    tools_offered: tuple[Tool, ...]
    # Every tool that may be called, by name.
    tools: Mapping[str, Tool]
    # Active backend by tool name, with version and weights (`weights.backends_in_use`).
    backends: Mapping[str, str]
    # The names of the tools that each solver may call, sorted.
    by_solver: Mapping[str, tuple[str, ...]]
    # The tools of external MCP servers, called or not.
    foreign: ForeignTools = field(default_factory=ForeignTools)
    # Reasons why requested tools cannot be imported.
    left_out: tuple[str, ...] = ()
    # Notes on external rules that run before the project's rules or that never run, on tools whose rules are missing,
    # and on missing libraries of classical backends.
    notes: tuple[str, ...] = ()
    # The tools passed in by Python code, called or not.
    objects: Mapping[str, Tool] = field(default_factory=dict)
    # External tools whose rules share a route, in the order in which these rules are used.
    rule_order: tuple[str, ...] = ()

    @property
    def without_wording(self) -> tuple[str, ...]:
        """The names of the tools that have no second wording (`Tool.wording`)."""
        return tuple(name for name, tool in self.tools.items() if not tool.wording)

    def metadata(self, solver: str) -> dict[str, Json]:
        """Return the tools of a solver as in the manifest: backend and code hash by name."""
        return {name: {"backend": self.backends[name], "code": self._code(name)} for name in self.by_solver[solver]}

    def reliability(self, solver: str) -> dict[str, Json]:
        """Return how often the answers of a solver's tools were right, and on which data, as the cards state."""
        return {
            tool.card.name: {
                "bins": [[bin_.confidence, bin_.right, bin_.n] for bin_ in card.reliability],
                "counted_on": card.counted_on,
            }
            for tool, card in self._answering(solver)
            if card.reliability
        }

    def _answering(self, solver: str) -> list[tuple[Tool, BackendCard]]:
        return answering([self.tools[name] for name in self.by_solver[solver]], self.backends)

    def learned(self, solver: str) -> bool:
        """Return whether a solver may call a tool with a learned backend."""
        return any(card.name == "learned" for _, card in self._answering(solver))

    def _code(self, name: str) -> str:
        """Return the hash of a tool's code; for a foreign tool, of its description."""
        if name in self.objects:
            # The hash covers the texts that a model reads and the code; without source, only the texts.
            tool = self.objects[name]
            code = object_code(*made_by(tool))
            read = hashlib.sha256(json.dumps([shown_by(tool), code], sort_keys=True).encode()).hexdigest()[:CODE_DIGITS]
            return f"{NO_SOURCE}; card {read}" if code == NO_SOURCE else read
        foreign = self.foreign.tools.get(name)
        return (code_of(self.tools[name]) if foreign is None else foreign.code)[:CODE_DIGITS]

    def unchecked(self, service: ServiceOptions) -> tuple[str, ...]:
        """Return the tools whose weights `--unchecked-weights` admits without a test on known answers.

        A tool that only calls other tools has no weights to check.
        """
        learned = (tool for tool, card in answering(self.tools.values(), self.backends) if card.name == "learned")
        return tuple(tool.card.name for tool in learned if service.unchecked and tool.looked_into)

    def computed_in(self, solver: str, service: ServiceOptions) -> dict[str, Json]:
        """Return `--tool-dtype` and `--tool-compile` if a network answers this solver; empty by default."""
        if not self.learned(solver):
            return {}
        dtype: dict[str, Json] = {"tool_dtype": service.dtype} if service.dtype != AUTO else {}
        return {**dtype, **({"tool_compile": True} if service.compiled else {})}


def choose_tools(config: RunConfig, card: BenchmarkCard) -> ToolChoice:
    """Return the tools that `--tools` and `--mcp` offer to a model. Asks the MCP servers for their tools.

    The default is the benchmark's own tools (also selectable in a list) and the foreign tools that take an image.

    Raises:
        UsageError: an unknown tool, a foreign tool that cannot be offered, a server that cannot be asked, or weights
            that no tool loads.
    """
    _check_weights(config.service)
    foreign, objects = _foreign_tools(config), config.objects.tools
    if config.tools == (NO_TOOL,):
        return ToolChoice((), (), foreign, objects)
    if config.tools == (EVERY_TOOL,):
        return ToolChoice((*names("tools"), *foreign.tools, *objects), (), foreign, objects)
    of_benchmark = card.tools_offered or names("tools")
    if config.tools in ((), (BENCHMARK_TOOLS,)):
        with_image = (name for name, tool in foreign.tools.items() if tool.tool.card.images[1])
        return ToolChoice((*of_benchmark, *with_image), (), foreign, objects)
    requested_names = tuple(name for name in config.tools if name != BENCHMARK_TOOLS)
    servers = [tool.server.name for tool in foreign.tools.values()]
    for name in requested_names:
        if name in foreign.left_out:
            raise UsageError(f"--tools {name}: {foreign.left_out[name].removeprefix(f'{name}: ')}")
        if name not in foreign.tools and name not in objects:
            # If a name begins with a server's name, report that server's tools.
            server = next((candidate for candidate in servers if name.startswith(f"{candidate}_")), None)
            if server is None:
                try:
                    refuse_unknown("tools", name)
                except UsageError as error:
                    raise UsageError(f"--tools: {error}") from error
            elif name not in names("tools"):
                available = ", ".join(
                    tool_name for tool_name, tool in foreign.tools.items() if tool.server.name == server
                )
                raise UsageError(f"--tools {name}: the MCP server {server} has no such tool; it has: {available}")
    tool_names = (
        tool_name for name in config.tools for tool_name in (of_benchmark if name == BENCHMARK_TOOLS else (name,))
    )
    return ToolChoice(tuple(dict.fromkeys(tool_names)), requested_names, foreign, objects)


def _check_weights(service: ServiceOptions) -> None:
    """Raise `UsageError` for weights that no tool would load."""
    tool_names = names("tools")
    for name, folder in service.weights.items():
        if name not in tool_names:
            hint = did_you_mean(name, tool_names)
            raise UsageError(f"--weights {name}={folder}: unknown tool{hint}; available: {', '.join(tool_names)}")
        if service.backend == "classical":
            raise UsageError(f"--weights {name}={folder}: --backend classical loads no weights")
        place = Path(folder).expanduser()
        if place.is_file() or (names_directory(folder) and not place.is_dir()):
            raise UsageError(f"--weights {name}={folder}: {no_directory(folder)}")


def _foreign_tools(config: RunConfig) -> ForeignTools:
    """Return the tools that the servers of `--mcp` list. Raises `UsageError`."""
    if not config.mcp:
        if config.mcp_images:
            raise UsageError(f"--mcp-image {next(iter(config.mcp_images))}: needs --mcp")
        return ForeignTools()
    if config.engine != LOCAL:
        reason = "tools of other servers are called from this process"
        raise UsageError(f"--mcp: {reason}, not by --engine {config.engine}")
    try:
        foreign_tools: Callable[..., ForeignTools] = plugin(GROUP, "mcp")
    except ImportError as error:
        raise UsageError(f"--mcp needs the package mcp: {install_extra('mcp')} ({error})") from error
    return foreign_tools(config.mcp, config.mcp_images, names("tools"))


def tools_in_use(
    solvers: Mapping[str, Solver],
    benchmark: str,
    choice: ToolChoice,
    service: ServiceOptions,
    routes: Collection[str] | None = None,
) -> ToolsInUse:
    """Import the tools that the solvers may call, and find the backend of each.

    Args:
        solvers: solvers by name.
        benchmark: the benchmark's name.
        choice: the tools to offer. A tool that cannot answer or be imported is left out unless the user named it.
        service: the permitted backends and weights.
        routes: the routes that questions can have, None if unknown; rules for other routes call no tool.

    Raises:
        UsageError: a required or named tool does not exist or cannot be imported.
        WeightsError: unusable weights given by the user.
    """
    offered_tools = choice.tools_offered if any(solver.offers_tools for solver in solvers.values()) else ()
    required = {name: _required(name, solver, benchmark, routes) for name, solver in solvers.items()}
    optional = {*offered_tools} - {*choice.named}
    requested = (*offered_tools, *sorted(frozenset().union(*required.values())))
    tools, backends, left_out = _import_tools(requested, optional, service, choice)
    offered_tools = tuple(
        name for name in offered_tools if name not in optional or backends.get(name, ABSENT) != ABSENT
    )
    without = missing_library(tool.card for name, tool in tools.items() if backends[name] == ABSENT)
    by_solver = {
        name: with_needs({*required[name], *(offered_tools if solver.offers_tools else ())}, tools, backends)
        for name, solver in solvers.items()
    }
    called_names = {name for names_called in by_solver.values() for name in names_called}
    used = {name: tool for name, tool in tools.items() if name in called_names}
    answer = {name: backend for name, backend in backends.items() if name in called_names}
    menu = tuple(tools[name] for name in offered_tools)
    # Building the table imports all tools, so it is built only for solvers that use rules.
    rules = table() if any(required.values()) else None
    return ToolsInUse(
        menu,
        used,
        backends=answer,
        by_solver=by_solver,
        foreign=choice.foreign,
        left_out=left_out,
        notes=(*(rules.notes_for(routes) if rules else ()), *([without] if without else [])),
        objects=choice.objects,
        rule_order=rules.order_of(routes) if rules else (),
    )


def _required(name: str, solver: Solver, benchmark: str, routes: Collection[str] | None) -> frozenset[str]:
    """Return the tools that a solver requires. Raises `UsageError` if a plug-in solver raises an error."""
    try:
        return solver.required_tools(benchmark, routes)
    except Exception as error:
        if isinstance(error, UsageError) or word_of(name) not in solver_names():
            raise
        package = package_of_solver(word_of(name))
        if not is_outside(package, word_of(name)):
            raise
        location = place_of(package, word_of(name))
        raise UsageError(f"{location}: its required_tools raises {in_one_line(error)}") from error


def _import_tools(
    tool_names: Iterable[str], optional: Collection[str], service: ServiceOptions, choice: ToolChoice
) -> tuple[dict[str, Tool], dict[str, str], tuple[str, ...]]:
    """Return the tools of a run (requested, needed, foreign), their backends, and why optional tools are missing.

    Raises what `tools_in_use` raises.
    """
    tools = {name: tool.tool for name, tool in choice.foreign.tools.items()}
    backends = {name: tool.backend for name, tool in choice.foreign.tools.items()}
    broken: dict[str, str] = {}
    waiting = list(tool_names)
    while waiting:
        if (name := waiting.pop(0)) in tools or name in broken:
            continue
        try:
            tools[name] = choice.objects.get(name) or load("tools", name)
        except UsageError as error:
            if name not in optional:
                raise
            broken[name] = str(error)
            continue
        backends |= backends_in_use([tools[name]], service.backend, service.weights)
        waiting += _needed_by(tools[name], backends)
    return tools, backends, tuple(broken.values())


def _needed_by(tool: Tool, backends: Mapping[str, str]) -> list[str]:
    """Return the names of the tools that a tool calls with its active backend."""
    of_backend = [need for _, card in answering([tool], backends) for need in card.needs]
    return [need.tool for need in (*tool.card.needs, *of_backend)]


def with_needs(tool_names: Iterable[str], tools: Mapping[str, Tool], backends: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sorted names of the requested tools and all that they need, directly or indirectly."""
    reached: set[str] = set()
    waiting = list(tool_names)
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached.add(name)
            waiting += _needed_by(tools[name], backends)
    return tuple(sorted(reached))
