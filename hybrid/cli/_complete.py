"""Shell completion of benchmarks, solvers, tools and runs, from file names only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from hybrid.log.manifest import MANIFEST
from hybrid.plugins.registry import names, solver_names

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]
# Default folder of runs.
RUNS = Path("runs")


def completing(candidates: Callable[[], Iterable[str]], *, comma_separated: bool = False) -> Completer:
    """Complete one of the known words; with `comma_separated`, after the words already typed: `A,B`."""

    def complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem[str]]:
        prefix, comma, _ = typed.rpartition(",") if comma_separated else ("", "", "")
        words = (f"{prefix}{comma}{word}" for word in candidates() if word not in prefix.split(","))
        return [CompletionItem(word) for word in words if word.startswith(typed)]

    return complete


benchmarks = completing(lambda: names("hybrid.benchmarks"))
benchmark_lists = completing(lambda: names("hybrid.benchmarks"), comma_separated=True)
solvers, solver_lists = completing(solver_names), completing(solver_names, comma_separated=True)
tools, tool_lists = completing(lambda: names("tools")), completing(lambda: names("tools"), comma_separated=True)


def runs(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem[str]]:
    """Complete the runs in the default folder, newest first, else files."""
    folders = [path.parent for path in RUNS.glob(f"*/{MANIFEST}")]
    youngest = sorted(folders, key=lambda path: (-path.stat().st_mtime, path))
    return completing(lambda: map(str, youngest))(context, parameter, typed) or [CompletionItem(typed, type="file")]
