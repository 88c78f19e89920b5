"""Plug-ins by name: `load("tools", "crop")` is the object that `tools/crop.py` exports.

Only the requested file is imported. Files of the project are trusted. Outside files are not trusted: within
`described_by` they are first imported in another process, with limits, and an outside tool is imported only there. A
defective plug-in is left out with a note; loading it by name raises `UsageError` with the reason.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from hybrid.core.error_text import in_one_line
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.display.notes import tell
from hybrid.plugins.discovery import (
    BY_PACKAGE,
    TOOLS,
    PluginKind,
    PluginOrigin,
    describe_entry,
    entry_points,
    find_origins,
    folders,
    kind_folders,
    left_out,
    looked_up,
    outside,
    own_names,
    recipe_file,
)

# Packages whose files are loaded by name but which plug-ins cannot extend, each with the name that its files export.
INNER = {"tools.rules": "RULES", "hybrid.cli": "command", "hybrid.models.batch_apis": "API"}


class Describer(Protocol):
    """Imports plug-ins from outside of the project in another process."""

    def __call__(self, package: str, name: str) -> Any:
        """Import a plug-in in the other process; return a tool's description, else None. Raises `UsageError`."""
        ...

    def close(self) -> None:
        """End the other process."""
        ...


class _Outside:
    """The importer of outside modules, created on first use, and the notes about left-out plug-ins so far."""

    make: Callable[[], Describer] | None = None
    describer: Describer | None = None
    # A new object for each outermost `described_by` context, by which the current one is recognised.
    inside: object = None
    notes: frozenset[str] = frozenset()


@contextmanager
def described_by(make: Callable[[], Describer]) -> Iterator[None]:
    """Within this context, a `Describer` imports outside plug-ins first; outside tools are not imported anywhere else.

    A nested call keeps the outer context.
    """
    if _Outside.make is not None:
        yield
        return
    messages = _Outside.notes
    _Outside.make, _Outside.describer, _Outside.inside, _Outside.notes = make, None, object(), frozenset()
    try:
        yield
    finally:
        describer = _Outside.describer
        _Outside.make, _Outside.describer, _Outside.inside, _Outside.notes = None, None, None, messages
        if describer is not None:
            describer.close()


def _leave_out(reason: str) -> None:
    """Print a note about a left-out plug-in once."""
    if reason not in _Outside.notes:
        _Outside.notes |= {reason}
        tell(f"note: left out: {reason}")


def state() -> tuple[object, ...]:
    """Return a key of everything that determines the result of `load` for a tool: search path and describer."""
    return folders(TOOLS), tuple(sys.path), _Outside.inside


def names(package: str) -> tuple[str, ...]:
    """Return the names that `load` accepts, sorted. Prints a note for each plug-in that is left out.

    `base`, tests and names that start with an underscore are not plug-ins.

    Raises:
        UsageError: the package is not installed.
    """
    if package in INNER:
        return tuple(sorted(own_names(package)))
    by_name, missing = looked_up(package)
    for reason in missing.values():
        _leave_out(reason)
    return tuple(sorted(by_name))


def is_outside(package: str, name: str) -> bool:
    """Return whether the plug-in with this name comes from outside of the project."""
    return (origin := _origin(package, name)) is not None and not origin.is_builtin


def _origin(package: str, name: str) -> PluginOrigin | None:
    """Return the origin of a plug-in; None for a file of the project, which needs no search."""
    if package in INNER or name in own_names(package):
        return None
    return find_origins(package).get(name)


def place_of(package: str, name: str) -> str:
    """Return the origin of an outside plug-in for messages: its file, or the package that offers it."""
    origin = _origin(package, name)
    return name if origin is None else origin.label


def plugin(group: str, name: str) -> Any:
    """Load the object that an installed package offers under this name in an entry-point group.

    Raises:
        UsageError: no package offers it, or several do; the message lists the offered names.
        ImportError: a required library is not installed.
    """
    entries = entry_points(group)
    matches = [entry for entry in entries if entry.name == name]
    if len(matches) > 1:
        raise UsageError(
            f"{name!r} is offered in {group} by {' and by '.join(map(describe_entry, matches))}: uninstall one"
        )
    if not matches:
        available = ", ".join(offered_names(group))
        raise UsageError(f"no installed package offers {name!r} in {group}; available: {available}")
    return matches[0].load()


def offered_names(group: str) -> tuple[str, ...]:
    """Return the names that installed packages offer in an entry-point group, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group)}))


def recipe_of(package: str, name: str) -> Path | None:
    """Return the recipe file of a plug-in; None if it is code."""
    if package in INNER or not BY_PACKAGE[package].recipe:
        return None
    origin = _origin(package, name)
    if origin is None:
        return recipe_file(folders(package), name) if name in own_names(package) else None
    return None if origin.entry is not None else recipe_file(origin.places, name)


def module_of(package: str, name: str) -> str:
    """Return the dotted module name of a plug-in, or of the module that reads its recipe. Imports nothing."""
    if recipe_of(package, name) is not None:
        return BY_PACKAGE[package].recipe.partition(":")[0]
    origin = _origin(package, name)
    return f"{package}.{name}" if origin is None or origin.entry is None else origin.entry.module


def import_submodule(module: str, name: str) -> ModuleType:
    """Import a module of a package by name."""
    return importlib.import_module(f"{module}.{name}")


def package_of(package: str, name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the installed package that offers a plug-in, with its folders; empty if it is on the search path."""
    origin = _origin(package, name)
    entry = None if origin is None else origin.entry
    top = None if entry is None else sys.modules.get(entry.module.partition(".")[0])
    return {} if top is None or not hasattr(top, "__path__") else {top.__name__: tuple(top.__path__)}


def loaded(package: str, name: str) -> Any:
    """Return the export of an already imported plug-in, else None; does not access the disk."""
    export = INNER[package] if package in INNER else BY_PACKAGE[package].export
    if (module := sys.modules.get(f"{package}.{name}")) is not None:
        return _exported(package, name, module, export)
    entries = () if package in INNER else entry_points(BY_PACKAGE[package].group)
    entry = next((entry for entry in entries if entry.name == name), None)
    return None if entry is None else _exported(package, name, sys.modules.get(entry.module), entry.attr or export)


def _exported(package: str, name: str, module: object, export: str) -> Any:
    """Return the attribute `export` of a module, else its tool of that name (`@tool`), else None."""
    value = getattr(module, export, None)
    if value is None and package == TOOLS:
        value = getattr(module, name, None)
        value = value if hasattr(value, "card") else None
    return value


def refuse_unknown(package: str, name: str) -> None:
    """Raise `UsageError` if a package has no plug-in of this name, or leaves it out. Imports nothing."""
    if package not in INNER and name in own_names(package):
        return
    all_names = names(package)
    if name in all_names:
        return
    if package not in INNER and (reason := left_out(package).get(name)):
        raise UsageError(reason)
    hint = "" if package in INNER else "; --path DIR adds your own"
    for root in outside() if package == TOOLS else ():
        if (root / f"{name}.py").is_file() and str(root) not in folders(TOOLS):
            kinds = ", ".join(sorted(f"{folder}/" for folder in kind_folders(root)))
            raise UsageError(
                f"{root / name}.py is not used: {root} has {kinds}, so its tools belong in {root / TOOLS}/"
            )
    raise UsageError(
        f"no {name!r} in {package}/{did_you_mean(name, all_names)}; available: {', '.join(all_names)}{hint}"
    )


# Exports of the project's own files that have been loaded, by package and name.
_CACHE: dict[tuple[str, str], Any] = {}


def load(package: str, name: str, *, in_process: bool = False) -> Any:
    """Load the object that a plug-in file exports; exports of the project's own Python files are cached.

    Args:
        package: its package.
        name: its file name.
        in_process: import it in this process, wherever it comes from, because its functions will be called.

    Raises:
        UsageError: there is no such plug-in (with the closest names), its import fails (with file and line), or it has
            the wrong type.
    """
    known = _CACHE.get((package, name))
    # A module may have been imported again since.
    if known is not None and known is loaded(package, name):
        return known
    return _load_uncached(package, name, in_process)


def _load_uncached(package: str, name: str, in_process: bool) -> Any:
    """Load a plug-in without the cache; see `load`."""
    refuse_unknown(package, name)
    if (recipe := recipe_of(package, name)) is not None:
        module_name, _, maker = BY_PACKAGE[package].recipe.partition(":")
        return getattr(importlib.import_module(module_name), maker)(recipe)
    origin = _origin(package, name)
    foreign = origin is not None and not origin.is_builtin
    if foreign and not in_process and _Outside.make is not None:
        _Outside.describer = _Outside.describer or _Outside.make()
        described = _Outside.describer(package, name)
        if package == TOOLS:
            return described
    entry = None if origin is None else origin.entry
    try:
        module = importlib.import_module(entry.module if entry else f"{package}.{name}")
    except (Exception, SystemExit) as error:
        message = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
        location = _line_of(error) or (describe_entry(entry) if entry else name)
        raise UsageError(f"{location}: cannot be imported: {message}") from error
    export = (entry.attr if entry else "") or (INNER[package] if package in INNER else BY_PACKAGE[package].export)
    if (value := _exported(package, name, module, export)) is None:
        alternative = f", or a function {name} under @tool" if package == TOOLS else ""
        raise UsageError(f"{module.__file__} must define {export}{alternative}")
    if foreign or package == TOOLS:
        _refuse_other(BY_PACKAGE[package], name, value, f"{module.__file__}: {export}")
    if origin is None:
        _CACHE[package, name] = value
    return value


def _refuse_other(kind: PluginKind, name: str, export: object, location: str) -> None:
    """Raise `UsageError` if an export has the wrong type or name, or if one of its attributes raises."""
    module, _, word = kind.type.partition(":")
    titled = "whose card has" if kind.name_attribute.startswith("card") else "of"
    expectation = f"{location} must be a {word}" + (f" {titled} the name {name!r}" if kind.name_attribute else "")
    if not isinstance(export, getattr(importlib.import_module(module), word)):
        raise UsageError(f"{expectation}, but is a {type(export).__name__}")
    for path in filter(None, (kind.name_attribute, *kind.reads)):
        value: Any = export
        try:
            for attribute in path.split("."):
                value = getattr(value, attribute)
        except Exception as error:
            raise UsageError(f"{location}: its {path} raises {in_one_line(error)}") from error
        if path == kind.name_attribute and value != name:
            raise UsageError(f"{expectation}, not {value!r}")


def load_each(package: str) -> Iterator[tuple[str, Any]]:
    """Yield each plug-in of a package with its name; an outside plug-in that fails to load is left out with a note.

    Raises:
        UsageError: a file of the project cannot be loaded.
    """
    for name in names(package):
        try:
            value = load(package, name)
        except UsageError as error:
            if not is_outside(package, name):
                raise
            _leave_out(str(error))
            continue
        yield name, value


def _line_of(error: BaseException) -> str:
    """Return file and line of the plug-in where its import failed; empty if the import did not start."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen") and frame.filename not in (__file__, importlib.__file__)
    ]
    if not frames:
        return ""
    first = Path(frames[0].filename)
    package_folder = first.parent if first.name == "__init__.py" else first
    last = [frame for frame in frames if Path(frame.filename).is_relative_to(package_folder)][-1]
    return f"{last.filename}:{last.lineno}"


# The packages of solvers.
SOLVERS = ("graphs", "baselines")


def solver_names() -> tuple[str, ...]:
    """Return all names that `--solver` accepts."""
    return tuple(sorted(name for package in SOLVERS for name in names(package)))


def package_of_solver(name: str) -> str:
    """Return the package of a solver. Raises `UsageError` for an unknown or left-out name."""
    if (package := next((candidate for candidate in SOLVERS if name in own_names(candidate)), None)) is not None:
        return package
    available = solver_names()
    if name in available:
        return next(candidate for candidate in SOLVERS if name in names(candidate))
    if reason := next((reason for candidate in SOLVERS if (reason := left_out(candidate).get(name))), None):
        raise UsageError(reason)
    raise UsageError(f"no solver {name!r}{did_you_mean(name, available)}; available: {', '.join(available)}")


def load_solver(name: str) -> Any:
    """Load a solver from graphs/ or baselines/. Raises `UsageError` for an unknown name."""
    return load(package_of_solver(name), name)


def solver_docstring(name: str) -> str:
    """Return the docstring of a solver's file. Raises `UsageError` for an unknown name."""
    package = package_of_solver(name)
    load(package, name)
    return importlib.import_module(module_of(package, name)).__doc__ or ""
