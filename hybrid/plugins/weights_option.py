"""`--weights` of every command, and `weights=` of Python: DIR_OR_ID for one tool, or TOOL=DIR_OR_ID for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hybrid.core.errors import UsageError, did_you_mean
from hybrid.plugins.discovery import TOOLS
from hybrid.plugins.registry import load, names
from hybrid.tool import Tool

OPTION = "--weights"


def weights_by_tool(values: Iterable[str], tools: Sequence[Tool]) -> dict[str, str]:
    """Return the weights by tool name.

    Args:
        values: `DIR_OR_ID`, for the only one of the tools that loads weights, or `TOOL=DIR_OR_ID`.
        tools: the tools that the command runs.

    Raises:
        UsageError: it is not clear which tool loads them, a tool does not exist or is named twice.
    """
    by_tool: dict[str, str] = {}
    for value in values:
        name, source = _parse(value, tools)
        if name in by_tool:
            raise UsageError(f"{OPTION} {name}: given twice")
        by_tool[name] = source
    return by_tool


def weights_from_python(weights: str | Path | Mapping[str, str | Path] | None, tools: Sequence[Tool]) -> dict[str, str]:
    """Like `weights_by_tool`, for a source, or a mapping from the names of tools to sources."""
    if weights is None:
        return {}
    if isinstance(weights, str | Path):
        return weights_by_tool([str(weights)], tools)
    return weights_by_tool([f"{name}={source}" for name, source in weights.items()], tools)


def _parse(value: str, tools: Sequence[Tool]) -> tuple[str, str]:
    name, equals, source = value.partition("=")
    # The path of a folder may contain an equals sign.
    if equals and not Path(value).expanduser().is_dir():
        # Tools passed in from Python are not among the names.
        tool_names = {*names(TOOLS), *(tool.card.name for tool in tools)}
        if name not in tool_names:
            available = ", ".join(sorted(tool_names))
            hint = did_you_mean(name, sorted(tool_names))
            raise UsageError(f"{OPTION} {value}: unknown tool{hint}; available: {available}")
        if not source:
            raise UsageError(f"{OPTION} {value}: write {OPTION} {name}=DIR_OR_ID")
        return name, source
    loading = [tool.card.name for tool in tools if tool.backend("learned") is not None]
    if len(loading) == 1:
        return loading[0], value
    if not tools:
        raise UsageError(f"{OPTION} {value}: say which tool loads them: {OPTION} TOOL={value}")
    if not loading:
        tool_list = " and ".join(tool.card.name for tool in tools)
        raise UsageError(f"{OPTION} {value}: {tool_list} has no learned backend to load them")
    raise UsageError(f"{OPTION} {value}: {', '.join(loading)} load weights; say which: {OPTION} {loading[0]}={value}")


def tools_named(tool_names: Iterable[str]) -> list[Tool]:
    """Return the tools that can be loaded; the command itself reports why other tools cannot be."""
    tools: list[Tool] = []
    for name in tool_names:
        try:
            tools.append(load(TOOLS, name))
        except UsageError:
            continue
    return tools
