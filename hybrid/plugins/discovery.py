"""Where plug-ins are: files of the project, folders on the search path, and entry points of installed packages.

    add_search_path([Path("mine")], "--path")
    find_origins("tools")["redness"].label           # mine/tools/redness.py

`KINDS` lists what can be added: a tool, a solver, a benchmark, a model, a statistic, ... Each kind is found in three
places:

- files of the project's package;
- files in `DIR/tools`, `DIR/baselines`, ... for each folder DIR on the search path; a DIR without such subfolders
  contains tools;
- entry points of installed packages, `NAME = package.module` in the group `hybrid.tools`, `hybrid.baselines`, ...

Names of the project cannot be overridden; if several outside plug-ins share a name, none of them is used. `left_out`
states the reason. No plug-in is imported here.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hybrid.core.errors import UsageError
from hybrid.core.toml_records import read_card

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Environment variable with the search path for plug-ins, separated like `$PATH`. It is defined here, not with the
# options, because shell completion needs it and does not load the options.
PATH_VARIABLE: Final = "HYBRID_TOOL_PATH"
# The project's distribution name.
OURS: Final = "hybrid-perception"


@dataclass(frozen=True)
class PluginKind:
    """One kind of plug-in."""

    # The word for this kind in messages. Kinds with the same word share their names: graphs and baselines are both
    # solvers.
    word: str
    # The project's package of this kind.
    package: str
    # The name that a plug-in file must define.
    export: str
    # Subfolder of a folder on the search path; with the prefix `hybrid.`, the entry-point group.
    folder: str
    # The class of the exported object, `module:Class`.
    type: str
    # Attributes that listings read. They are read once at loading, because they may raise.
    reads: tuple[str, ...] = ()
    # The attribute that must equal the file's name.
    name_attribute: str = ""
    # `module:function` that makes a plug-in from a code-free file `NAME.yaml` or `recipes/NAME.yaml`.
    recipe: str = ""

    @property
    def group(self) -> str:
        """The entry-point group."""
        return f"hybrid.{self.folder}"


_FILE: Final = Path(__file__).with_name("kinds.toml")
KINDS: Final = read_card(_FILE, Mapping[str, tuple[PluginKind, ...]])["kind"]  # type: ignore[type-abstract]
BY_PACKAGE: Final[Mapping[str, PluginKind]] = {kind.package: kind for kind in KINDS}
# The package of plug-ins in a folder without the project's subfolders.
TOOLS: Final = "tools"

# Modules that are not plug-ins: interfaces of benchmarks and exports, benchmark cards, and rules of the specialist
# solver.
NOT_THINGS: Final = ("base", "card", "rules")
# Subfolder for recipes, for kinds of plug-ins that have recipes.
RECIPES: Final = "recipes"
# Prefixes of test files next to plug-ins.
TESTS: Final = ("test_", "conftest")
# Endings of files that determine the behaviour of a plug-in.
CODE_ENDINGS: Final = (".py", ".toml", ".yaml")
HASH_DIGITS: Final = 12

# The project's own folders by package, from before the search path was extended.
_OWN: dict[str, tuple[str, ...]] = {}
# Folders on the search path, each with the packages and subfolders of its plug-ins.
_NAMED: dict[Path, tuple[tuple[str, str], ...]] = {}
# The latest option that named each of the folders in `_NAMED`.
_OPTIONS: dict[Path, str] = {}


@dataclass(frozen=True)
class PluginOrigin:
    """The origin of a plug-in."""

    kind: PluginKind
    name: str
    # The folders that contain its file; none for an entry point.
    places: Sequence[str]
    is_builtin: bool
    entry: EntryPoint | None = None

    @property
    def label(self) -> str:
        """The plug-in's file, or the package that offers it, for messages."""
        return _file_of(self.places, self.name) if self.entry is None else describe_entry(self.entry)


def folders(package: str) -> tuple[str, ...]:
    """Return the folders of a package; those of the search path come last."""
    return tuple(importlib.import_module(package).__path__)


def look_in(package: str, places: Sequence[str]) -> None:
    """Set the folders of a package; those that are not the project's own count as outside folders."""
    _OWN.setdefault(package, folders(package))
    importlib.import_module(package).__path__[:] = list(places)
    importlib.invalidate_caches()


def outside_folders(package: str) -> tuple[str, ...]:
    """Return the folders of a package outside of the project."""
    own_folders = _OWN.get(package)
    return () if own_folders is None else tuple(place for place in folders(package) if place not in own_folders)


def looked_in() -> dict[str, tuple[str, ...]]:
    """Return the folders of tools and of each package with outside folders, for `look_in` in another process."""
    return {package: folders(package) for package in (TOOLS, *_OWN) if package == TOOLS or outside_folders(package)}


def outside() -> tuple[Path, ...]:
    """Return the folders on the search path that are still in use."""
    _add_env_search_path()
    return tuple(
        root for root, entries in _NAMED.items() if any(place in folders(package) for package, place in entries)
    )


def kind_folders(root: Path) -> list[str]:
    """Return the names of the subfolders with plug-ins in a folder on the search path."""
    return [Path(place).name for _, place in _NAMED[root]]


def add_search_path(places: Sequence[Path], option: str) -> None:
    """Add folders to the search path; each file `NAME.py` and each folder `NAME` with an `__init__.py` is a plug-in.

    Args:
        places: folders laid out like the project (`tools/`, `baselines/`, ...), or folders of tools.
        option: what named them, such as `--path`, for errors.

    Raises:
        UsageError: a folder is missing, or has no plug-in.
    """
    for place in places:
        root = place.expanduser().resolve()
        if not root.is_dir():
            raise UsageError(f"{option} {place}: folder not found")
        entries = _held_by(root)
        if not entries:
            kinds = ", ".join(f"{kind.folder}/" for kind in KINDS)
            raise UsageError(
                f"{option} {place}: it contains neither a tool (a file NAME.py that defines TOOL) nor a folder of "
                f"{kinds}"
            )
        for package, folder in entries:
            if folder not in folders(package):
                look_in(package, (*folders(package), folder))
        _NAMED[root] = entries
        _OPTIONS[root] = option


def option_of(root: Path) -> str:
    """Return the latest `option` with which a folder was added to the search path; empty if it never was."""
    return _OPTIONS.get(root, "")


def add_path(path: str | Path | Sequence[str | Path]) -> None:
    """Like `add_search_path`, for the argument `path` of a function. Raises `UsageError`."""
    places = [path] if isinstance(path, str | Path) else path
    add_search_path([Path(place) for place in places], "path=")


def origin_facts(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """Describe, by `folder/name`, the origin of those plug-ins that come from outside of the project.

    For a folder on the search path: `path`, and `sha256`, the hash of its code. For an installed package: `package`,
    its name.

    Args:
        pairs: packages and names, as `load` takes them.
    """
    facts: dict[str, dict[str, Any]] = {}
    for package, name in pairs:
        origin = find_origins(package).get(name) if package in BY_PACKAGE else None
        if origin is None or origin.is_builtin:
            continue
        key = f"{origin.kind.folder}/{name}"
        if origin.entry is not None:
            facts[key] = {"package": origin.entry.dist.name if origin.entry.dist else origin.entry.value}
            continue
        root = next(root for root, entries in _NAMED.items() if any(place in origin.places for _, place in entries))
        facts[key] = {"path": str(root), "sha256": folder_hash(root)}
    return facts


def folder_hash(root: Path) -> str:
    """Return a hash (12 hex digits) of names and contents of the code files in a folder on the search path.

    Tests, other kinds of files and subfolders without plug-ins do not count.
    """
    total = hashlib.sha256()
    for _, place in _held_by(root):
        for path in sorted(Path(place).rglob("*")):
            parts = path.relative_to(place).parts
            counts = path.suffix in CODE_ENDINGS and not path.name.startswith(TESTS)
            if counts and not any(part.startswith((".", "__pycache__")) for part in parts) and path.is_file():
                name = path.relative_to(root).as_posix()
                content = path.read_bytes().replace(b"\r\n", b"\n")
                total.update(f"{name}\x1f{hashlib.sha256(content).hexdigest()}\x1e".encode())
    return total.hexdigest()[:HASH_DIGITS]


def _held_by(root: Path) -> tuple[tuple[str, str], ...]:
    """Return the packages for which a folder has plug-ins, each with the subfolder that contains its plug-ins."""
    inside = ((kind.package, str(root / kind.folder)) for kind in KINDS)
    entries = tuple((package, place) for package, place in inside if _stems([place], recipes=_has_recipes(package)))
    return entries or (((TOOLS, str(root)),) if _stems([str(root)]) else ())


def flat_tools(root: Path) -> list[str]:
    """Return the tools directly in a folder; they are not found once the folder has a subfolder such as `tools`."""
    return sorted(_stems([str(root)])) if _held_by(root) == ((TOOLS, str(root)),) else []


def _add_env_search_path() -> None:
    if value := os.environ.get(PATH_VARIABLE):
        add_search_path([Path(place) for place in value.split(os.pathsep) if place], PATH_VARIABLE)


def own_names(package: str) -> set[str]:
    """Return the names of the project's own plug-ins of a package.

    Raises:
        UsageError: the package is not installed.
    """
    places = _OWN.get(package)
    if places is None:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.submodule_search_locations is None:
            raise UsageError(f"the package {package!r} is not installed")
        places = tuple(spec.submodule_search_locations)
    looked_at = [
        place for folder in places for place in (folder, os.path.join(folder, RECIPES)) if os.path.isdir(place)
    ]
    return set(_stems_at(places, _has_recipes(package), tuple(os.stat(place).st_mtime_ns for place in looked_at)))


@lru_cache(maxsize=64)
def _stems_at(places: tuple[str, ...], recipes: bool, _changed_ns: tuple[int, ...]) -> frozenset[str]:
    """Return plug-in names in folders of the project; `_changed_ns` invalidates the cache when a folder changes."""
    return frozenset(_stems(places, recipes=recipes))


def _has_recipes(package: str) -> bool:
    return package in BY_PACKAGE and BY_PACKAGE[package].recipe != ""


def recipe_file(places: Sequence[str], name: str) -> Path | None:
    """Find the file of a recipe in some folders; None if there is none."""
    return next((file for file in _recipes(places) if file.stem == name), None)


def _recipes(places: Sequence[str]) -> Iterator[Path]:
    for place in places:
        for folder in (Path(place), Path(place) / RECIPES):
            yield from sorted(folder.glob("*.yaml"))


def find_origins(package: str) -> Mapping[str, PluginOrigin]:
    """Return the plug-ins of a package by name. Raises `UsageError` if a folder of `$HYBRID_TOOL_PATH` is missing."""
    return looked_up(package)[0]


def left_out(package: str) -> Mapping[str, str]:
    """Return, by name, the reason for not using an outside plug-in; the text starts with its origin."""
    return looked_up(package)[1]


# Results of the scans within `scanned_once`, by word of the kind.
_SCANS: ContextVar[dict[str, tuple[Any, Any]] | None] = ContextVar("scans", default=None)


@contextmanager
def scanned_once() -> Iterator[None]:
    """Scan the folders of plug-ins only once in the `with` block; a file that appears meanwhile is not seen.

    Use it for loops over thousands of questions that each need the table of rules, because a scan takes a millisecond.
    """
    token = _SCANS.set({})
    try:
        yield
    finally:
        _SCANS.reset(token)


def looked_up(package: str) -> tuple[Mapping[str, PluginOrigin], Mapping[str, str]]:
    """Return the results of `find_origins` and `left_out` from one scan of the folders. Raises like `find_origins`."""
    word, scans = BY_PACKAGE[package].word, _SCANS.get()
    if scans is None:
        by_package, missing = _catalogue(word)
    else:
        if word not in scans:
            scans[word] = _catalogue(word)
        by_package, missing = scans[word]
    return by_package.get(package, {}), missing.get(package, {})


def _catalogue(word: str) -> tuple[dict[str, dict[str, PluginOrigin]], dict[str, dict[str, str]]]:
    """Return the plug-ins found by package for the kinds with this word, and why others are left out."""
    _add_env_search_path()
    all_origins: list[PluginOrigin] = []
    for kind in (kind for kind in KINDS if kind.word == word):
        # Look first at the project's own plug-ins, then on the search path, then in installed packages.
        outer = outside_folders(kind.package)
        places = _OWN.get(kind.package) or folders(kind.package)
        all_origins += (PluginOrigin(kind, name, places, is_builtin=True) for name in own_names(kind.package))
        for place in outer:
            names = sorted(_stems([place], extra=NOT_THINGS, recipes=kind.recipe != ""))
            all_origins += (PluginOrigin(kind, name, (place,), is_builtin=False) for name in names)
        for entry in entry_points(kind.group):
            is_ours = entry.dist is not None and entry.dist.name == OURS
            all_origins.append(PluginOrigin(kind, entry.name, (), is_ours, entry))
    by_name: dict[str, list[PluginOrigin]] = {}
    for origin in all_origins:
        by_name.setdefault(origin.name, []).append(origin)
    by_package: dict[str, dict[str, PluginOrigin]] = {}
    missing: dict[str, dict[str, str]] = {}
    for name, origins in by_name.items():
        whose = next((origin for origin in origins if origin.is_builtin), origins[0] if len(origins) == 1 else None)
        for origin in origins:
            reason = None if origin.is_builtin or is_word(name) else no_word(word)
            reason = reason or _helper_clash(origin)
            if reason is None and origin is whose:
                by_package.setdefault(origin.kind.package, {})[name] = origin
                continue
            other = next((candidate for candidate in origins if candidate is not origin), origin)
            conflict = f"a {word} {name!r} already exists, {other.label}; rename one of them"
            missing.setdefault(origin.kind.package, {})[name] = f"{origin.label}: {reason or conflict}"
    return by_package, missing


def _helper_clash(origin: PluginOrigin) -> str | None:
    """Explain which helper is hidden by a file of the same name in an earlier folder; None if no helper is hidden."""
    if origin.is_builtin or origin.entry is not None:
        return None
    if origin.name in NOT_THINGS:
        return f"a {origin.kind.word} cannot have the name {origin.name!r}; rename it"
    all_folders = folders(origin.kind.package)
    earlier = all_folders[: all_folders.index(origin.places[0])]
    shadowed = sorted(_modules(earlier) & {name for name in _modules(origin.places) if name.startswith("_")})
    if not shadowed:
        return None
    return (
        f"the module {shadowed[0]!r} already exists ({_file_of(earlier, shadowed[0])}); rename the one next to "
        "the plug-in"
    )


def no_word(word: str) -> str:
    """Return the message about allowed names."""
    return f"the name of a {word} may only have lower-case letters, digits and underscores"


def is_word(name: str) -> bool:
    """Return whether a plug-in can have this name."""
    return name.isidentifier() and name.isascii() and name == name.lower() and not name.startswith("_")


def _stems(places: Sequence[str], extra: Sequence[str] = (), *, recipes: bool = False) -> set[str]:
    """Return plug-in names in some folders; `extra` are reserved names to include anyway."""
    stems = _modules(places) | ({file.stem for file in _recipes(places)} if recipes else set())
    return {name for name in stems if (name in extra or name not in NOT_THINGS) and name[0] != "_"}


def _modules(places: Sequence[str]) -> set[str]:
    """Return the names of all importable modules in some folders, without tests."""
    return {module.name for module in pkgutil.iter_modules(list(places)) if not module.name.startswith(TESTS)}


def _file_of(places: Sequence[str], name: str) -> str:
    """Return the path of the file of a plug-in or helper."""
    paths = (Path(place) / file_name for place in places for file_name in (f"{name}.py", name))
    return next((str(path) for path in paths if path.exists()), str(recipe_file(places, name) or name))


def describe_entry(entry: EntryPoint) -> str:
    """Describe an entry point for messages."""
    package = "an installed package" if entry.dist is None else f"the installed package {entry.dist.name}"
    return f"{package} ({entry.name} = {entry.value})"


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return entry points of installed packages in a group, without duplicates."""
    return _entry_points(tuple(sys.path)).get(group, ())


@lru_cache(maxsize=8)
def _entry_points(path: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return all `hybrid.*` entry points on `sys.path` by group; cached, because this reads all packages' metadata."""
    from importlib.metadata import distributions

    entries: dict[tuple[str, str, str], EntryPoint] = {}
    for distribution in distributions(path=list(path)):
        for entry in distribution.entry_points:
            if entry.group.startswith("hybrid."):
                entries.setdefault((entry.group, entry.name, entry.value), entry)
    by_group: dict[str, tuple[EntryPoint, ...]] = {}
    for (group, *_), entry in entries.items():
        by_group[group] = (*by_group.get(group, ()), entry)
    return by_group
