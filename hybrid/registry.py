"""Find things by their name: `load("tools", "crop")` is the one object that `tools/crop.py` exports.

Adding a tool, a solver, a benchmark, a model or a statistic is adding one file, in the project or outside of it
(`hybrid/plugins.py` says where); only the file that is asked for is imported. The files of the project are trusted.
What lies outside is not: inside of `described_by` its import is first tried in another process, within a limit, and a
tool from outside is imported there alone. Of what is wrong with it a line says so, and it is left out; asking for it by
its name is a `UsageError` with the reason.
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

from hybrid.display.notes import tell
from hybrid.errors import UsageError, did_you_mean
from hybrid.plugins import (
    BY_PACKAGE,
    TOOLS,
    PluginKind,
    PluginOrigin,
    describe_entry,
    entry_points,
    find_origins,
    left_out,
    looked_up,
    recipe_file,
)
from hybrid.plugins import add_search_path as add_search_path  # noqa: PLC0414 - callers find all by name here
from hybrid.plugins import folders as folders  # noqa: PLC0414 - callers find all by name here
from hybrid.plugins import is_word as is_word  # noqa: PLC0414 - callers find all by name here
from hybrid.plugins import look_in as look_in  # noqa: PLC0414 - callers find all by name here
from hybrid.plugins import outside as outside  # noqa: PLC0414 - callers find all by name here
from hybrid.plugins import own_names as own_names  # noqa: PLC0414 - callers find all by name here
from hybrid.raised import in_one_line

# Packages whose files are found by name and to which nothing can be added from outside, with what they export.
INNER = {"tools.rules": "RULES", "hybrid.cli": "command", "hybrid.models.batch_apis": "API"}


class Describer(Protocol):
    """Imports what lies outside of the project in another process."""

    def __call__(self, package: str, name: str) -> Any:
        """The tool of that name, described; None for another thing. Raises `UsageError` where it cannot be loaded."""
        ...

    def close(self) -> None:
        """Import nothing more."""
        ...


class _Outside:
    """The importer of modules from outside, made when the first is loaded, and what was said of what is left out."""

    make: Callable[[], Describer] | None = None
    made: Describer | None = None
    # Another one in each `described_by`.
    inside: object = None
    said: frozenset[str] = frozenset()


@contextmanager
def described_by(make: Callable[[], Describer]) -> Iterator[None]:
    """Inside, things from outside are imported by a `Describer` before this process does, and tools there alone.

    Inside of another one that one stays.
    """
    if _Outside.make is not None:
        yield
        return
    messages = _Outside.said
    _Outside.make, _Outside.made, _Outside.inside, _Outside.said = make, None, object(), frozenset()
    try:
        yield
    finally:
        describer = _Outside.made
        _Outside.make, _Outside.made, _Outside.inside, _Outside.said = None, None, None, messages
        if describer is not None:
            describer.close()


def _leave_out(reason: str) -> None:
    """Say once why something is left out."""
    if reason not in _Outside.said:
        _Outside.said |= {reason}
        tell(f"note: left out: {reason}")


def state() -> tuple[object, ...]:
    """The state by which `load` finds a tool: where it looks, and what describes those from outside."""
    return folders(TOOLS), tuple(sys.path), _Outside.inside


def names(package: str) -> tuple[str, ...]:
    """The words that `load` takes, sorted. What is left out for its name is told.

    `base`, tests and names that start with an underscore are not things.

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
    """Whether the thing of that name lies outside of the project."""
    return (origin := _origin(package, name)) is not None and not origin.own


def _origin(package: str, name: str) -> PluginOrigin | None:
    """Where a thing of one of the `KINDS` lies; None for a file of the project, which is found without any look."""
    if package in INNER or name in own_names(package):
        return None
    return find_origins(package).get(name)


def place_of(package: str, name: str) -> str:
    """Where a thing from outside is written, in a message: its file, or the package that offers it."""
    origin = _origin(package, name)
    return name if origin is None else origin.label


def plugin(group: str, name: str) -> Any:
    """The object that an installed package offers in an entry-point group under a name.

    Raises:
        UsageError: none does, or several do; the message has the names that are offered.
        ImportError: a library that it needs is not installed.
    """
    entries = entry_points(group)
    matches = [entry for entry in entries if entry.name == name]
    if len(matches) > 1:
        raise UsageError(
            f"{name!r} is offered in {group} by {' and by '.join(map(describe_entry, matches))}: uninstall one"
        )
    if not matches:
        available = ", ".join(offered_names(group))
        raise UsageError(f"no installed package offers {name!r} in {group}; there are: {available}")
    return matches[0].load()


def offered_names(group: str) -> tuple[str, ...]:
    """The names that installed packages offer in an entry-point group, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group)}))


def recipe_of(package: str, name: str) -> Path | None:
    """The file of a thing that is a recipe; None for one that is code."""
    if package in INNER or not BY_PACKAGE[package].recipe:
        return None
    origin = _origin(package, name)
    if origin is None:
        return recipe_file(folders(package), name) if name in own_names(package) else None
    return None if origin.entry is not None else recipe_file(origin.places, name)


def module_of(package: str, name: str) -> str:
    """The dotted name of the module that a thing is written in, or that reads its recipe. Nothing is imported."""
    if recipe_of(package, name) is not None:
        return BY_PACKAGE[package].recipe.partition(":")[0]
    origin = _origin(package, name)
    return f"{package}.{name}" if origin is None or origin.entry is None else origin.entry.module


def import_submodule(module: str, name: str) -> ModuleType:
    """The module of that name in a package, imported only now."""
    return importlib.import_module(f"{module}.{name}")


def package_of(package: str, name: str) -> Mapping[str, tuple[str, ...]]:
    """The installed package that offers a thing, with its folders; nothing for one that lies in a named folder."""
    origin = _origin(package, name)
    entry = None if origin is None else origin.entry
    top = None if entry is None else sys.modules.get(entry.module.partition(".")[0])
    return {} if top is None or not hasattr(top, "__path__") else {top.__name__: tuple(top.__path__)}


def loaded(package: str, name: str) -> Any:
    """The export of a file that has been imported, without a look at the disk; else None."""
    export = INNER[package] if package in INNER else BY_PACKAGE[package].export
    if (module := sys.modules.get(f"{package}.{name}")) is not None:
        return getattr(module, export, None)
    entries = () if package in INNER else entry_points(BY_PACKAGE[package].group)
    entry = next((entry for entry in entries if entry.name == name), None)
    return None if entry is None else getattr(sys.modules.get(entry.module), entry.attr or export, None)


def refuse_unknown(package: str, name: str) -> None:
    """Raise `UsageError` where a package has no thing of that name, or say why it is left out. Nothing is imported."""
    if package not in INNER and name in own_names(package):
        return
    all_names = names(package)
    if name in all_names:
        return
    if package not in INNER and (reason := left_out(package).get(name)):
        raise UsageError(reason)
    hint = "" if package in INNER else "; --path DIR finds one of your own"
    raise UsageError(
        f"no {name!r} in {package}/{did_you_mean(name, all_names)}; there are: {', '.join(all_names)}{hint}"
    )


def load(package: str, name: str, *, in_process: bool = False) -> Any:
    """The object that a file exports.

    Args:
        package: where it lies.
        name: its file name.
        in_process: import it in this process, wherever it comes from, because its functions will be called.

    Raises:
        UsageError: there is no such thing (with the nearest names), it cannot be imported (with file and line), or it
            is not what it must be.
    """
    refuse_unknown(package, name)
    if (recipe := recipe_of(package, name)) is not None:
        module_name, _, maker = BY_PACKAGE[package].recipe.partition(":")
        return getattr(importlib.import_module(module_name), maker)(recipe)
    origin = _origin(package, name)
    foreign = origin is not None and not origin.own
    if foreign and not in_process and _Outside.make is not None:
        _Outside.made = _Outside.made or _Outside.make()
        described = _Outside.made(package, name)
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
    if not hasattr(module, export):
        raise UsageError(f"{module.__file__} must define {export}")
    value = getattr(module, export)
    if foreign or package == TOOLS:
        _refuse_other(BY_PACKAGE[package], name, value, f"{module.__file__}: {export}")
    return value


def _refuse_other(kind: PluginKind, name: str, export: object, location: str) -> None:
    """Raise `UsageError` for a thing of another type or name than its kind has, or whose card raises."""
    module, _, word = kind.type.partition(":")
    titled = "whose card has" if kind.named.startswith("card") else "of"
    expectation = f"{location} must be a {word}" + (f" {titled} the name {name!r}" if kind.named else "")
    if not isinstance(export, getattr(importlib.import_module(module), word)):
        raise UsageError(f"{expectation}, and is a {type(export).__name__}")
    for path in filter(None, (kind.named, *kind.reads)):
        value: Any = export
        try:
            for attribute in path.split("."):
                value = getattr(value, attribute)
        except Exception as error:
            raise UsageError(f"{location}: its {path} raises {in_one_line(error)}") from error
        if path == kind.named and value != name:
            raise UsageError(f"{expectation}, not {value!r}")


def load_each(package: str) -> Iterator[tuple[str, Any]]:
    """Every thing of a package with its name; one from outside that cannot be loaded is told and left out.

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
    """File and line of the thing itself where its import failed; nothing where it was not even begun."""
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
    """Every word that `--solver` takes."""
    return tuple(sorted(name for package in SOLVERS for name in names(package)))


def package_of_solver(name: str) -> str:
    """The package that has the solver of that name. Raises `UsageError` for an unknown name, or says why it is out."""
    if (package := next((candidate for candidate in SOLVERS if name in own_names(candidate)), None)) is not None:
        return package
    available = solver_names()
    if name in available:
        return next(candidate for candidate in SOLVERS if name in names(candidate))
    if reason := next((reason for candidate in SOLVERS if (reason := left_out(candidate).get(name))), None):
        raise UsageError(reason)
    raise UsageError(f"no solver {name!r}{did_you_mean(name, available)}; there are: {', '.join(available)}")


def load_solver(name: str) -> Any:
    """The solver of that name, from graphs/ or baselines/. Raises `UsageError` for an unknown name."""
    return load(package_of_solver(name), name)


def solver_docstring(name: str) -> str:
    """The docstring of a solver's file. Raises `UsageError` for an unknown name."""
    package = package_of_solver(name)
    load(package, name)
    return importlib.import_module(module_of(package, name)).__doc__ or ""
