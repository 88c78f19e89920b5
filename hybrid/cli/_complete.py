"""Shell completion of benchmarks, solvers, tools and runs, from the names of files alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from hybrid.log.manifest import MANIFEST
from hybrid.registry import names, solver_names

# Where runs lie that were given no folder.
RUNS = Path("runs")


def _starting(words: Iterable[str], typed: str) -> list[CompletionItem[str]]:
    return [CompletionItem(word) for word in words if word.startswith(typed)]


def benchmarks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Every benchmark."""
    del ctx, param
    return _starting(names("hybrid.benchmarks"), incomplete)


def benchmark_lists(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Benchmarks after those that are there already: `A,B`."""
    del ctx, param
    return _listed(names("hybrid.benchmarks"), incomplete)


def solvers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Every word that `--solver` takes."""
    del ctx, param
    return _starting(solver_names(), incomplete)


def tools(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Every tool."""
    del ctx, param
    return _starting(names("tools"), incomplete)


def tool_lists(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Tools after those that are there already: `A,B`."""
    del ctx, param
    return _listed(names("tools"), incomplete)


def solver_lists(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Solvers after those that are there already: `A,B`."""
    del ctx, param
    return _listed(solver_names(), incomplete)


def _listed(words: Iterable[str], typed: str) -> list[CompletionItem[str]]:
    before, comma, _ = typed.rpartition(",")
    there = before.split(",")
    return _starting((f"{before}{comma}{word}" for word in words if word not in there), typed)


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The runs in the default place, the youngest first, and what a shell knows of files elsewhere."""
    del ctx, param
    folders = [path.parent for path in RUNS.glob(f"*/{MANIFEST}")]
    youngest = sorted(folders, key=lambda path: (-path.stat().st_mtime, path))
    return _starting(map(str, youngest), incomplete) or [CompletionItem(incomplete, type="file")]
