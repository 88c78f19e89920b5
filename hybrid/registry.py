"""Find things by their file name: `load("tools", "crop")` is the one object that `tools/crop.py` exports.

Adding a tool, a benchmark, a baseline or a graph is adding one file; only the file that is asked for is imported.

Installed packages offer more in the entry-point groups `GROUPS`: tools in `hybrid.tools`, exports in `hybrid.exports`
(`NAME = package.module`). Tools may also lie in folders that are named (`look_also_in`, `$HYBRID_TOOL_PATH`). A name is
given once: what is there twice is an error that says where. Inside of `described_by` tools from elsewhere are not
imported in this process.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from hybrid.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EXPORTS = {
    "tools": "TOOL",
    "tools.rules": "RULES",
    "hybrid.benchmarks": "BENCHMARK",
    "hybrid.cli": "command",
    "hybrid.exporting": "EXPORTER",
    "hybrid.scoring.sections": "SECTION",
    "graphs": "SOLVER",
    "baselines": "SOLVER",
}


NOT_THINGS = ("base", "card", "rules")
"""Modules next to the things: seams of benchmarks and exports, benchmark cards, rules of the specialist-only solver."""


TESTS = ("test_", "conftest")
"""How the names of files begin that lie next to things and test them."""
OPEN = "tools"
"""The package whose things may lie outside of the project."""
GROUPS = {"tools": "hybrid.tools", "hybrid.exporting": "hybrid.exports"}
"""By package the entry-point group in which installed packages offer more of its things."""
PATH_VARIABLE = "HYBRID_TOOL_PATH"
"""Folders with tools, separated as those of `$PATH` are."""

_OWN: dict[str, tuple[str, ...]] = {}
"""By package the folders of the project, from before others were looked in."""


class Describer(Protocol):
    """Describes tools whose code lies outside of the project without importing it here."""

    def __call__(self, name: str) -> Any:
        """The tool of that name. Raises `UsageError` where it cannot be imported."""
        ...

    def close(self) -> None:
        """Describe nothing more."""
        ...


class _Outside:
    """Who describes the tools from outside, made when the first is loaded."""

    make: Callable[[], Describer] | None = None
    made: Describer | None = None


@contextmanager
def described_by(make: Callable[[], Describer]) -> Iterator[None]:
    """Inside, `load` has tools from outside of the project described instead of importing them."""
    before = _Outside.make, _Outside.made
    _Outside.make, _Outside.made = make, None
    try:
        yield
    finally:
        describer = _Outside.made
        _Outside.make, _Outside.made = before
        if describer is not None:
            describer.close()


def is_outside(name: str) -> bool:
    """Whether the tool of that name is none of the project's own files."""
    return name in _offered(OPEN) or (OPEN in _OWN and name not in _stems(_OWN[OPEN]))


def state() -> tuple[object, ...]:
    """What decides, besides the name, which tool `load` gives: where it looks, and who describes those from outside."""
    return folders(OPEN), tuple(sys.path), _Outside.make, _Outside.made


def names(package: str) -> tuple[str, ...]:
    """The words that `load` takes, sorted: file stems in a package, and what installed packages offer (`GROUPS`).

    `base`, tests and names that start with an underscore are not things.

    Raises:
        UsageError: the package is not installed, or an installed package offers a thing of a name that is taken.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise UsageError(f"the package {package!r} is not installed")
    if package == OPEN:
        _look_where_the_environment_says()
    stems = _stems(folders(OPEN) if package == OPEN else spec.submodule_search_locations)
    offered = _offered(package)
    for name, entry in offered.items():
        if name in stems:
            place = f", {_file_of(name)}" if package == OPEN else ""
            raise UsageError(f"{_told(entry)}: {package} has a {name!r} already{place}")
    return tuple(sorted({*stems, *offered}))


def _stems(places: Sequence[str]) -> set[str]:
    """The names of the things in some folders."""
    return {name for name in _modules(places) if name not in NOT_THINGS and not name.startswith("_")}


def _modules(places: Sequence[str]) -> set[str]:
    """The names of everything in some folders that can be imported, less the tests."""
    return {module.name for module in pkgutil.iter_modules(list(places)) if not module.name.startswith(TESTS)}


def folders(package: str) -> tuple[str, ...]:
    """Where the files of a package lie."""
    return tuple(importlib.import_module(package).__path__)


def outside() -> tuple[Path, ...]:
    """The folders of tools that lie outside of the project."""
    own = _OWN.get(OPEN, folders(OPEN))
    return tuple(Path(place) for place in folders(OPEN) if place not in own)


def look_in(package: str, places: Sequence[str]) -> None:
    """Find the files of a package in these folders from now on."""
    _OWN.setdefault(package, folders(package))
    importlib.import_module(package).__path__[:] = list(places)


def look_also_in(places: Sequence[Path], option: str) -> None:
    """Find tools in these folders too, from now on: each file `NAME.py` and each folder `NAME` with an `__init__.py`.

    Args:
        places: folders; one that is looked in already adds nothing.
        option: what the user calls them.

    Raises:
        UsageError: no such folder, nothing in it, a file whose stem is no word, or one whose name is taken.
    """
    for place in places:
        folder = place.expanduser().resolve()
        if str(folder) in folders(OPEN):
            continue
        if not folder.is_dir():
            raise UsageError(f"{option} {place}: there is no such folder")
        if not _stems([str(folder)]):
            raise UsageError(f"{option} {place}: no tool lies there (a file NAME.py that defines {EXPORTS[OPEN]})")
        for name in sorted(_modules([str(folder)])):
            if not is_word(name.lstrip("_")):
                raise UsageError(f"{option} {place}: {name}.py: {NO_WORD}")
            if name in _modules(folders(OPEN)):
                raise UsageError(f"{option} {place}: there is a {name!r} already, {_file_of(name)}; rename one of them")
        look_in(OPEN, (*folders(OPEN), str(folder)))
        importlib.invalidate_caches()


NO_WORD = "the name of a tool is of lower-case letters, digits and underscores"


def is_word(name: str) -> bool:
    """Whether a tool can have that name."""
    return name.isidentifier() and name.isascii() and name == name.lower() and not name.startswith("_")


def _look_where_the_environment_says() -> None:
    if told := os.environ.get(PATH_VARIABLE):
        look_also_in([Path(place) for place in told.split(os.pathsep) if place], PATH_VARIABLE)


def _file_of(name: str) -> str:
    """Where the tool of that name, or a helper of tools, is written."""
    for place in map(Path, folders(OPEN)):
        for path in (place / f"{name}.py", place / name):
            if path.exists():
                return str(path)
    return name


def _offered(package: str) -> Mapping[str, EntryPoint]:
    """The things of a package that installed packages offer, by name; none for a package without a group."""
    return _entry_points(GROUPS[package], tuple(sys.path)) if package in GROUPS else {}


@lru_cache(maxsize=8)
def _entry_points(group: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """The entry points of a group that are found along this `sys.path`: all metadata are read for it, so once."""
    from importlib.metadata import distributions

    found: dict[str, EntryPoint] = {}
    for distribution in distributions(path=list(path)):
        for entry in distribution.entry_points:
            if entry.group != group:
                continue
            if not is_word(entry.name):
                raise UsageError(f"{_told(entry)}: {NO_WORD}")
            first = found.setdefault(entry.name, entry)
            if first.value != entry.value:
                raise UsageError(f"{_told(entry)}: {_told(first)} offers a thing of that name as well")
    return found


def place_of(name: str) -> str:
    """Where the tool of that name is written, in a message: its file, or the package that offers it."""
    entry = _offered(OPEN).get(name)
    return _file_of(name) if entry is None else _told(entry)


def _told(entry: EntryPoint) -> str:
    """An entry point in a message."""
    package = "an installed package" if entry.dist is None else f"the installed package {entry.dist.name}"
    return f"{package} ({entry.name} = {entry.value})"


def plugin(group: str, name: str) -> Any:
    """What an installed package offers in an entry-point group under a name.

    Raises:
        UsageError: none does; the message has the names that are offered.
        ImportError: a library that it needs is not installed.
    """
    offered = _entry_points(group, tuple(sys.path))
    if name not in offered:
        raise UsageError(f"no installed package offers {name!r} in {group}; there are: {', '.join(sorted(offered))}")
    return offered[name].load()


def module_of(package: str, name: str) -> str:
    """The dotted name of the module that a thing is written in. Nothing is imported."""
    entry = _offered(package).get(name)
    return f"{package}.{name}" if entry is None else entry.module


def package_of(name: str) -> Mapping[str, tuple[str, ...]]:
    """The installed package that offers a tool, with its folders; nothing for a tool that lies in a folder of tools."""
    entry = _offered(OPEN).get(name)
    top = None if entry is None else sys.modules.get(entry.module.partition(".")[0])
    return {} if top is None or not hasattr(top, "__path__") else {top.__name__: tuple(top.__path__)}


def loaded(package: str, name: str) -> Any:
    """What a file exports where it has been imported, without a look at the disk; else None."""
    found = getattr(sys.modules.get(f"{package}.{name}"), EXPORTS[package], None)
    if found is None and (entry := _offered(package).get(name)) is not None:
        found = getattr(sys.modules.get(entry.module), entry.attr or EXPORTS[package], None)
    return found


def refuse_unknown(package: str, name: str) -> None:
    """Raise `UsageError`, with the nearest name, where a package has no file of that name. Nothing is imported."""
    known = names(package)
    if name not in known:
        raise UsageError(f"no {name!r} in {package}/{did_you_mean(name, known)}; there are: {', '.join(known)}")


def load(package: str, name: str, *, here: bool = False) -> Any:
    """The object a file exports.

    Args:
        package: where it lies.
        name: its file name.
        here: import it in this process wherever it lies: its functions are to be called.

    Raises:
        UsageError: there is no such file (with the nearest names), it cannot be imported (with file and line), or it
            lacks what it must define.
    """
    refuse_unknown(package, name)
    if package == OPEN and _Outside.make is not None and not here and is_outside(name):
        _Outside.made = _Outside.made or _Outside.make()
        return _Outside.made(name)
    entry = _offered(package).get(name)
    export = (entry.attr if entry else "") or EXPORTS[package]
    module = _imported(entry.module if entry else f"{package}.{name}", _told(entry) if entry else name)
    if not hasattr(module, export):
        raise UsageError(f"{module.__file__} must define {export}")
    found = getattr(module, export)
    if package == OPEN and (called := getattr(getattr(found, "card", None), "name", None)) != name:
        raise UsageError(
            f"{module.__file__}: {export} must be a Tool whose card has the name {name!r}"
            + ("" if called is None else f", not {called!r}")
        )
    return found


def _imported(module: str, told: str) -> ModuleType:
    """The module. Raises `UsageError`, with file and line, where it cannot be imported."""
    try:
        return importlib.import_module(module)
    except Exception as error:
        said = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
        raise UsageError(f"{_line_of(error) or told}: cannot be imported: {said}") from error


def _line_of(error: Exception) -> str:
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
    own = first.parent if first.name == "__init__.py" else first
    last = [frame for frame in frames if Path(frame.filename).is_relative_to(own)][-1]
    return f"{last.filename}:{last.lineno}"


def solver_names() -> tuple[str, ...]:
    """Every word that `--solver` takes: the files of graphs/ and baselines/."""
    return tuple(sorted((*names("graphs"), *names("baselines"))))


def load_solver(name: str) -> Any:
    """The solver of that name, from graphs/ or baselines/. Raises `UsageError` for an unknown name."""
    package = "graphs" if name in names("graphs") else "baselines"
    if name not in names(package):
        known = solver_names()
        raise UsageError(f"no solver {name!r}{did_you_mean(name, known)}; there are: {', '.join(known)}")
    return load(package, name)


def solver_docstring(name: str) -> str:
    """What the file of a solver says of it. Raises `UsageError` for an unknown name."""
    load_solver(name)
    package = "graphs" if name in names("graphs") else "baselines"
    return importlib.import_module(f"{package}.{name}").__doc__ or ""
