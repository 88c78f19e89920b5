"""Where the things lie that can be named: in the project, in folders that were named, in installed packages.

    add_search_path([Path("mine")], "--path")
    find_origins("tools")["redness"].label           # mine/tools/redness.py

`KINDS` has what can be added, each kind in the same three ways: a file of the project's package; a file in a folder
`DIR/tools`, `DIR/baselines`, ... of a folder that was named (one without such folders holds tools); an entry point of
an installed package, `NAME = package.module` in the group `hybrid.tools`, `hybrid.baselines`, ... Nothing is imported
here but the packages of the project. A name of the project stays the project's; of several things from outside with one
name none has it. `left_out` says why.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hybrid.cards import read_card
from hybrid.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Folders to look in, separated as those of `$PATH` are. Named here, since a shell that completes a name needs no
# options.
PATH_VARIABLE: Final = "HYBRID_TOOL_PATH"
# The distribution of the project.
OURS: Final = "hybrid-perception"


@dataclass(frozen=True)
class PluginKind:
    """One kind of what can be added."""

    # In messages. Two kinds of one word share their names: a graph and a baseline are both solvers.
    word: str
    # Where the project has its own.
    package: str
    # The name that a file defines.
    export: str
    # Where a named folder has them; with `hybrid.` before it the entry-point group.
    folder: str
    # The class of what is exported, `module:Class`.
    type: str
    # Attributes that lists read: they are read once when it is loaded, as they may raise.
    reads: tuple[str, ...] = ()
    # The one of them that must be the name of the file.
    named: str = ""
    # The maker of a thing of a file `NAME.yaml` or `recipes/NAME.yaml`, which holds no code: `module:function`.
    recipe: str = ""

    @property
    def group(self) -> str:
        """The entry-point group."""
        return f"hybrid.{self.folder}"


_FILE: Final = Path(__file__).with_name("plugins.toml")
KINDS: Final = read_card(_FILE, Mapping[str, tuple[PluginKind, ...]])["kind"]  # type: ignore[type-abstract]
BY_PACKAGE: Final[Mapping[str, PluginKind]] = {kind.package: kind for kind in KINDS}
# The package whose files a named folder holds that is not laid out like the project.
TOOLS: Final = "tools"

# Modules next to the things: seams of benchmarks and exports, benchmark cards, rules of the specialist-only solver.
NOT_THINGS: Final = ("base", "card", "rules")
# The folder, beside the things of a kind that has recipes, where they lie.
RECIPES: Final = "recipes"
# How the names of files begin that lie next to things and test them.
TESTS: Final = ("test_", "conftest")
# How the names of files end that decide what a thing does.
CODE_ENDINGS: Final = (".py", ".toml", ".yaml")
HASH_DIGITS: Final = 12

# By package the folders of the project, from before others were looked in.
_OWN: dict[str, tuple[str, ...]] = {}
# The folders that were named, each with the packages and folders of the files that it holds.
_NAMED: dict[Path, tuple[tuple[str, str], ...]] = {}


@dataclass(frozen=True)
class PluginOrigin:
    """Where one thing lies."""

    kind: PluginKind
    name: str
    # The folders in which its file is; none for an entry point.
    places: Sequence[str]
    own: bool
    entry: EntryPoint | None = None

    @property
    def label(self) -> str:
        """Its file or the package that offers it, in a message."""
        return _file_of(self.places, self.name) if self.entry is None else describe_entry(self.entry)


def folders(package: str) -> tuple[str, ...]:
    """Where the files of a package lie, those of named folders last."""
    return tuple(importlib.import_module(package).__path__)


def look_in(package: str, places: Sequence[str]) -> None:
    """Find the files of a package in these folders from now on; those that are no folder of the project are outside."""
    _OWN.setdefault(package, folders(package))
    importlib.import_module(package).__path__[:] = list(places)
    importlib.invalidate_caches()


def outside_folders(package: str) -> tuple[str, ...]:
    """The folders of a package that lie outside of the project."""
    own_folders = _OWN.get(package)
    return () if own_folders is None else tuple(place for place in folders(package) if place not in own_folders)


def looked_in() -> dict[str, tuple[str, ...]]:
    """The folders of tools, and of each package that has some outside of the project, for `look_in` elsewhere."""
    return {package: folders(package) for package in (TOOLS, *_OWN) if package == TOOLS or outside_folders(package)}


def outside() -> tuple[Path, ...]:
    """The folders that were named and whose files are still looked for."""
    _add_env_search_path()
    return tuple(
        root for root, entries in _NAMED.items() if any(place in folders(package) for package, place in entries)
    )


def add_search_path(places: Sequence[Path], option: str) -> None:
    """Find things in these folders too, from now on, each file `NAME.py` and each folder `NAME` with an `__init__.py`.

    Args:
        places: folders laid out like the project (`tools/`, `baselines/`, ...), or folders of tools.
        option: what the user calls them.

    Raises:
        UsageError: no such folder, or nothing in it.
    """
    for place in places:
        root = place.expanduser().resolve()
        if not root.is_dir():
            raise UsageError(f"{option} {place}: there is no such folder")
        entries = _held_by(root)
        if not entries:
            kinds = ", ".join(f"{kind.folder}/" for kind in KINDS)
            raise UsageError(
                f"{option} {place}: no tool lies there (a file NAME.py that defines TOOL), and no folder of {kinds}"
            )
        for package, folder in entries:
            if folder not in folders(package):
                look_in(package, (*folders(package), folder))
        _NAMED[root] = entries


def origin_facts(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """By `folder/name` where those of these things lie that are from outside of the project.

    A thing of a folder that was named has `path`, the folder, and `sha256`, the hash of the code there; a thing of an
    installed package has `package`, its name.

    Args:
        pairs: packages and names, as `load` takes them.
    """
    facts: dict[str, dict[str, Any]] = {}
    for package, name in pairs:
        origin = find_origins(package).get(name) if package in BY_PACKAGE else None
        if origin is None or origin.own:
            continue
        key = f"{origin.kind.folder}/{name}"
        if origin.entry is not None:
            facts[key] = {"package": origin.entry.dist.name if origin.entry.dist else origin.entry.value}
            continue
        root = next(root for root, entries in _NAMED.items() if any(place in origin.places for _, place in entries))
        facts[key] = {"path": str(root), "sha256": folder_hash(root)}
    return facts


def folder_hash(root: Path) -> str:
    """Hash of the names and contents of the code and its facts in a folder that `add_search_path` takes, 12 hex digits.

    Tests and files of other kinds do not count, nor do folders that hold no things.
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
    """The packages that a named folder has things of, each with the folder of their files."""
    inside = ((kind.package, str(root / kind.folder)) for kind in KINDS)
    entries = tuple((package, place) for package, place in inside if _stems([place], recipes=_has_recipes(package)))
    return entries or (((TOOLS, str(root)),) if _stems([str(root)]) else ())


def _add_env_search_path() -> None:
    if value := os.environ.get(PATH_VARIABLE):
        add_search_path([Path(place) for place in value.split(os.pathsep) if place], PATH_VARIABLE)


def own_names(package: str) -> set[str]:
    """The things of a package that are the project's.

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
    """The names of the things in folders of the project, read again where one has changed."""
    return frozenset(_stems(places, recipes=recipes))


def _has_recipes(package: str) -> bool:
    return package in BY_PACKAGE and BY_PACKAGE[package].recipe != ""


def recipe_file(places: Sequence[str], name: str) -> Path | None:
    """The file of a recipe of that name in some folders; None where there is none."""
    return next((file for file in _recipes(places) if file.stem == name), None)


def _recipes(places: Sequence[str]) -> Iterator[Path]:
    for place in places:
        for folder in (Path(place), Path(place) / RECIPES):
            yield from sorted(folder.glob("*.yaml"))


def find_origins(package: str) -> Mapping[str, PluginOrigin]:
    """The things of a package by name. Raises `UsageError` for a folder of the environment that is not there."""
    return looked_up(package)[0]


def left_out(package: str) -> Mapping[str, str]:
    """By name the reason why a thing from outside is not among those of a package, beginning with where it lies."""
    return looked_up(package)[1]


def looked_up(package: str) -> tuple[Mapping[str, PluginOrigin], Mapping[str, str]]:
    """`find_origins` and `left_out` by one look at the folders. Raises `UsageError` as `find_origins`."""
    by_package, missing = _catalogue(BY_PACKAGE[package].word)
    return by_package.get(package, {}), missing.get(package, {})


def _catalogue(word: str) -> tuple[dict[str, dict[str, PluginOrigin]], dict[str, dict[str, str]]]:
    """By package what is found of the kinds of a word, and why the rest is left out."""
    _add_env_search_path()
    all_origins: list[PluginOrigin] = []
    for kind in (kind for kind in KINDS if kind.word == word):
        # The things of the project, those in folders that were named, those of installed packages.
        outer = outside_folders(kind.package)
        places = _OWN.get(kind.package) or folders(kind.package)
        all_origins += (PluginOrigin(kind, name, places, own=True) for name in own_names(kind.package))
        for place in outer:
            names = sorted(_stems([place], extra=NOT_THINGS, recipes=kind.recipe != ""))
            all_origins += (PluginOrigin(kind, name, (place,), own=False) for name in names)
        for entry in entry_points(kind.group):
            is_ours = entry.dist is not None and entry.dist.name == OURS
            all_origins.append(PluginOrigin(kind, entry.name, (), is_ours, entry))
    by_name: dict[str, list[PluginOrigin]] = {}
    for origin in all_origins:
        by_name.setdefault(origin.name, []).append(origin)
    by_package: dict[str, dict[str, PluginOrigin]] = {}
    missing: dict[str, dict[str, str]] = {}
    for name, origins in by_name.items():
        whose = next((origin for origin in origins if origin.own), origins[0] if len(origins) == 1 else None)
        for origin in origins:
            reason = None if origin.own or is_word(name) else no_word(word)
            reason = reason or _helper_clash(origin)
            if reason is None and origin is whose:
                by_package.setdefault(origin.kind.package, {})[name] = origin
                continue
            other = next((candidate for candidate in origins if candidate is not origin), origin)
            conflict = f"there is a {word} {name!r} already, {other.label}; rename one of them"
            missing.setdefault(origin.kind.package, {})[name] = f"{origin.label}: {reason or conflict}"
    return by_package, missing


def _helper_clash(origin: PluginOrigin) -> str | None:
    """Why a file cannot be imported with its helpers: one of them has the name of another in an earlier folder."""
    if origin.own or origin.entry is not None:
        return None
    if origin.name in NOT_THINGS:
        return f"a {origin.kind.word} cannot have the name {origin.name!r}; rename it"
    all_folders = folders(origin.kind.package)
    earlier = all_folders[: all_folders.index(origin.places[0])]
    shadowed = sorted(_modules(earlier) & {name for name in _modules(origin.places) if name.startswith("_")})
    if not shadowed:
        return None
    return f"there is a {shadowed[0]!r} already, {_file_of(earlier, shadowed[0])}; rename the one beside it"


def no_word(word: str) -> str:
    """Of what the name of a thing is made."""
    return f"the name of a {word} is of lower-case letters, digits and underscores"


def is_word(name: str) -> bool:
    """Whether a thing can have that name."""
    return name.isidentifier() and name.isascii() and name == name.lower() and not name.startswith("_")


def _stems(places: Sequence[str], extra: Sequence[str] = (), *, recipes: bool = False) -> set[str]:
    """The names of the things in some folders; `kept` are names that are none and are taken for them."""
    stems = _modules(places) | ({file.stem for file in _recipes(places)} if recipes else set())
    return {name for name in stems if (name in extra or name not in NOT_THINGS) and name[0] != "_"}


def _modules(places: Sequence[str]) -> set[str]:
    """The names of everything in some folders that can be imported, less the tests."""
    return {module.name for module in pkgutil.iter_modules(list(places)) if not module.name.startswith(TESTS)}


def _file_of(places: Sequence[str], name: str) -> str:
    """Where a thing, or a helper, is written."""
    paths = (Path(place) / file_name for place in places for file_name in (f"{name}.py", name))
    return next((str(path) for path in paths if path.exists()), str(recipe_file(places, name) or name))


def describe_entry(entry: EntryPoint) -> str:
    """An entry point in a message."""
    package = "an installed package" if entry.dist is None else f"the installed package {entry.dist.name}"
    return f"{package} ({entry.name} = {entry.value})"


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """The modules that installed packages offer in a group, the same module under the same name once."""
    return _entry_points(tuple(sys.path)).get(group, ())


@lru_cache(maxsize=8)
def _entry_points(path: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    """The entry points for us that are found along this `sys.path`, by group: all metadata are read, so once."""
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
