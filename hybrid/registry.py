"""Find things by their file name: `load("tools", "crop")` is the one object that `tools/crop.py` exports.

Adding a tool, a benchmark, a baseline or a graph is adding one file; only the file that is asked for is imported.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
from collections.abc import Sequence
from typing import Any

from hybrid.errors import UsageError

EXPORTS = {
    "tools": "TOOL",
    "tools.rules": "RULES",
    "hybrid.benchmarks": "BENCHMARK",
    "hybrid.cli": "command",
    "graphs": "SOLVER",
    "baselines": "SOLVER",
}


NOT_THINGS = ("base", "rules")
"""Modules between the things that are none: the seam of the benchmarks, the rules of the specialist alone."""


def names(package: str) -> tuple[str, ...]:
    """File stems in a package, sorted; `base` and names that start with an underscore are not things."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise UsageError(f"the package {package!r} is not installed")
    found = (module.name for module in pkgutil.iter_modules(spec.submodule_search_locations))
    return tuple(sorted(name for name in found if name not in NOT_THINGS and not name.startswith("_")))


def folders(package: str) -> tuple[str, ...]:
    """Where the files of a package lie."""
    return tuple(importlib.import_module(package).__path__)


def look_in(package: str, places: Sequence[str]) -> None:
    """Find the files of a package in these folders from now on."""
    importlib.import_module(package).__path__[:] = list(places)


def refuse_unknown(package: str, name: str) -> None:
    """Raise `UsageError`, with the nearest name, where a package has no file of that name. Nothing is imported."""
    known = names(package)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise UsageError(f"no {name!r} in {package}/{hint}; there are: {', '.join(known)}")


def load(package: str, name: str) -> Any:
    """The object a file exports. Raises `UsageError` with the nearest names, or with what the file lacks."""
    refuse_unknown(package, name)
    export = EXPORTS[package]
    try:
        module = importlib.import_module(f"{package}.{name}")
    except ImportError as error:
        raise UsageError(f"{package.replace('.', '/')}/{name}.py cannot be imported: {error}") from error
    if not hasattr(module, export):
        raise UsageError(f"{module.__file__} must define {export}")
    return getattr(module, export)


def solver_names() -> tuple[str, ...]:
    """Every word that `--solver` takes: the files of graphs/ and baselines/."""
    return tuple(sorted((*names("graphs"), *names("baselines"))))


def load_solver(name: str) -> Any:
    """The solver of that name, from graphs/ or baselines/. Raises `UsageError` for an unknown name."""
    package = "graphs" if name in names("graphs") else "baselines"
    if name not in names(package):
        near = difflib.get_close_matches(name, solver_names(), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise UsageError(f"no solver {name!r}{hint}; there are: {', '.join(solver_names())}")
    return load(package, name)


def solver_docstring(name: str) -> str:
    """What the file of a solver says of it. Raises `UsageError` for an unknown name."""
    load_solver(name)
    package = "graphs" if name in names("graphs") else "baselines"
    return importlib.import_module(f"{package}.{name}").__doc__ or ""
