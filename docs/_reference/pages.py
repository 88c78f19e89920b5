"""Return every generated page with its position in the navigation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from _reference import benchmarks, commands, conclusion, exports, metrics, run_files, solvers, surroundings, tools
from _reference.markdown import Page

KINDS: tuple[tuple[str, Callable[[], tuple[Page, ...]]], ...] = (
    ("Commands", commands.pages),
    ("Tools", tools.pages),
    ("Benchmarks", benchmarks.pages),
    ("Metrics", metrics.pages),
    ("The conclusion", conclusion.pages),
    ("Solvers", solvers.pages),
    ("Exports", exports.pages),
    ("Files of a run", run_files.pages),
    ("Environment variables", surroundings.environment),
    ("Exit codes", surroundings.exit_codes),
)
"""Groups of pages in the order of the navigation; the first page of a group is its overview."""


@cache
def _made() -> tuple[tuple[str, tuple[Page, ...]], ...]:
    return tuple((title, make()) for title, make in KINDS)


def generated() -> tuple[Page, ...]:
    """Every page."""
    return tuple(page for _, made in _made() for page in made)


def navigation() -> list[Any]:
    """Return the section of the reference in the form of `nav` in mkdocs.yml."""
    return [{title: made[0].path if len(made) == 1 else _several(made)} for title, made in _made()]


def _several(made: tuple[Page, ...]) -> list[Any]:
    return [made[0].path, *({page.title: page.path} for page in made[1:])]
