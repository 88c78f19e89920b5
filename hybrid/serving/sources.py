"""The code of a tool as one hash, which is part of its cache keys and of a run's manifest.

    code_of(load("tools", "depth"))               # 64 hex digits that change with the tool's code

The hash covers the card, the argument schema, and the source of the tool's modules and of every module of `tools` and
`hybrid` that they import directly or indirectly, including imports inside functions. It covers the same for the tools
that the tool needs. Files are read and never imported. Comments count; line endings and the location of the project do
not. The code that runs a tool (service, cache, image store) is excluded, because outputs do not depend on it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from hybrid.core.types import Json
from hybrid.plugins.discovery import BY_PACKAGE, KINDS, TOOLS, folders, outside_folders
from hybrid.plugins.registry import is_outside, load, module_of, package_of, recipe_of
from hybrid.tool import Need, Tool

# Packages whose modules count, in addition to an installed package that provides the tool. Other distributions are
# recorded in the manifest by version.
PACKAGES = ("hybrid", "tools")

# Number of digits of a hash in a manifest.
CODE_DIGITS = 12
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<base>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(?P<plain>[^\n]*))",
    re.MULTILINE,
)
_COMMENT = re.compile(r"#[^\n]*")


def imports(text: str, package: str) -> Iterator[str]:
    """Yield every dotted name that a source may import; each is a module or a name within one.

    Uses a regular expression, because parsing all files would delay the start of a run. Import-like lines in strings
    count too: an extra name only costs a cached output, a missing one would return a stale output.

    Args:
        text: a Python source.
        package: the package for relative imports.
    """
    for match in _IMPORT.finditer(text):
        if match["base"] is None:
            yield from (name.split()[0] for name in _split_names(match["plain"]))
            continue
        try:
            base = importlib.util.resolve_name(match["base"], package)
        except ImportError:  # Skip a relative import that leads above the top-level package.
            continue
        yield base
        yield from (f"{base}.{name.split()[0]}" for name in _split_names(match["names"]))


def _split_names(names: str) -> list[str]:
    plain = _COMMENT.sub("", names).strip("() \t\\")
    return [name.strip() for name in re.split(r"[,;]", plain) if name.strip()]


class Sources:
    """The modules of some packages, as files.

    Args:
        folders: the folders of each package.
        files: files of additional modules, by name; they count, with their imports from the packages.
    """

    def __init__(self, folders: Mapping[str, Sequence[Path]], files: Mapping[str, Path] | None = None) -> None:
        self._folders = folders
        self._files = files or {}
        self._split_names: dict[Path, frozenset[str]] = {}
        self._read: dict[str, tuple[str, frozenset[str]] | None] = {}

    def sha256(self, modules: Sequence[str]) -> str:
        """Return the hex sha256 over these modules and everything that they import."""
        facts = [[name, read[0]] for name in sorted(self.reached(modules)) if (read := self._source(name))]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def reached(self, modules: Sequence[str]) -> frozenset[str]:
        """Return these modules, everything that they import, and the packages that contain them.

        A package's own imports count only if the package is imported by name, because `hybrid` is the parent of every
        module and, for its Python interface, imports everything.
        """
        reached: set[str] = set()
        waiting = list(modules)
        while waiting:
            name = waiting.pop()
            if name not in reached and (read := self._source(name)) is not None:
                reached.add(name)
                waiting += read[1]
        above = {name.rsplit(".", count)[0] for name in reached for count in range(1, name.count(".") + 1)}
        return frozenset(reached | {name for name in above if self._source(name) is not None})

    def _source(self, module: str) -> tuple[str, frozenset[str]] | None:
        """Return the hash of a module and its imports; None if it is not in these packages."""
        if module not in self._read:
            path = self._path(module)
            read = None
            if path is not None:
                content = path.read_bytes().replace(b"\r\n", b"\n")
                package = module if path.name == "__init__.py" else module.rpartition(".")[0]
                names = frozenset(imports(content.decode("utf-8", "replace"), package))
                # The facts of a module are in a TOML file next to it, with the same stem.
                facts = path.with_suffix(".toml")
                content += facts.read_bytes() if facts.is_file() else b""
                read = hashlib.sha256(content).hexdigest(), names
            self._read[module] = read
        return self._read[module]

    def _path(self, module: str) -> Path | None:
        """Return the file of a module of the packages. If a package has several folders, the first match counts."""
        if module in self._files:
            return self._files[module]
        package = next((name for name in self._folders if f"{module}.".startswith(f"{name}.")), "")
        inner = module.removeprefix(package).split(".")[1:]
        for folder in self._folders.get(package, ()):
            place = folder.joinpath(*inner)
            if "__init__.py" in self._names(place):
                return place / "__init__.py"
            if inner and f"{inner[-1]}.py" in self._names(place.parent):
                return place.with_name(f"{inner[-1]}.py")
        return None

    def _names(self, folder: Path) -> frozenset[str]:
        """Return the names of a folder's entries, read once; empty if it is not a folder."""
        if folder not in self._split_names:
            try:
                self._split_names[folder] = frozenset(os.listdir(folder))
            except (OSError, ValueError):
                self._split_names[folder] = frozenset()
        return self._split_names[folder]


@cache
def ours() -> Sources:
    """Return the modules of `hybrid` itself."""
    return Sources({"hybrid": (Path(__file__).parents[1],)})


def plugin_code_hashes(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return by `folder/name` the code hash of each plug-in among the items, given by package and name."""
    codes = {f"{BY_PACKAGE[package].folder}/{name}": code_hash_of_plugin(package, name) for package, name in pairs}
    return {name: code for name, code in codes.items() if code is not None}


def code_hash_of_plugin(package: str, name: str) -> str | None:
    """Return the hash of a plug-in's code: its module and everything that the module imports from its own location.

    The hash is 12 hex digits of sha256, as in a manifest; for a tool, the first digits of `code_of`. None for a file of
    the project, which the version identifies, and for a recipe, which has no code. Plug-ins other than tools must
    already be loaded in this process.
    """
    if package not in BY_PACKAGE or not is_outside(package, name) or recipe_of(package, name) is not None:
        return None
    if package == TOOLS:
        return code_of(load(TOOLS, name))[:CODE_DIGITS]
    module = module_of(package, name)
    places = {**{kind.package: outside_folders(kind.package) for kind in KINDS}, **package_of(package, name)}
    file = getattr(sys.modules.get(module), "__file__", None)
    files = {} if file is None or module.partition(".")[0] in places else {module: Path(file)}
    roots = {name: [Path(place) for place in locations] for name, locations in places.items()}
    return Sources(roots, files).sha256([module])[:CODE_DIGITS]


@lru_cache(maxsize=256)
def code_of(tool: Tool) -> str:
    """Return the hex sha256 of all code that affects a tool's output. Raises `UsageError` if a need names no tool."""
    if tool.code:
        return tool.code
    # The modules that define a tool: its own, and those of its parts.
    modules = tuple(sorted({module_of("tools", tool.card.name), *(_module(factory) for factory in made_by(tool))}))
    others = sorted({need.tool for need in _needs(tool)} - {tool.card.name})
    needed = {name: code_of(load("tools", name)) for name in others}
    own_packages = package_of("tools", tool.card.name)
    elsewhere = (name for name in modules if name.partition(".")[0] not in (*PACKAGES, *own_packages))
    files = ((name, getattr(sys.modules.get(name), "__file__", None)) for name in elsewhere)
    # Code typed into an interpreter has no file.
    others_files = tuple((name, Path(file)) for name, file in files if file is not None and Path(file).is_file())
    sources = _installed(folders("tools"), tuple(own_packages.items()), others_files)
    facts: list[Json] = [*shown_by(tool), sources.sha256(modules), needed]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def shown_by(tool: Tool) -> list[Json]:
    """Return the facts of a tool's card, and the schema of its arguments."""
    card = tool.card
    backends: list[Json] = [
        [
            backend.name,
            backend.version,
            backend.weights,
            backend.batch,
            backend.package,
            [need.tool for need in backend.needs],
        ]
        for backend in card.backends
    ]
    facts: list[Json] = [card.name, card.summary, card.limits, list(card.images), backends]
    return [facts, tool.args.model_json_schema()]


def made_by(tool: Tool) -> tuple[Callable[..., Any], ...]:
    """Return the classes and functions that make up a tool: its arguments, backends, needs and checks."""
    factories: list[Callable[..., Any]] = [tool.args, *(card.make for card in tool.card.backends)]
    factories += [call for need in _needs(tool) for call in (need.args, need.given) if call is not None]
    factories += [check.pose for check in tool.checks]
    # A wrapper of a user's function refers to it in `__wrapped__`.
    return tuple(getattr(factory, "__wrapped__", factory) for factory in factories)


def _module(factory: Callable[..., Any]) -> str:
    while isinstance(factory, partial):
        factory = factory.func
    return factory.__module__


def _needs(tool: Tool) -> tuple[Need, ...]:
    return (*tool.card.needs, *(need for card in tool.card.backends for need in card.needs))


@cache
def _installed(
    tools: tuple[str, ...],
    extra_packages: tuple[tuple[str, tuple[str, ...]], ...],
    others_files: tuple[tuple[str, Path], ...],
) -> Sources:
    packages = {"hybrid": folders("hybrid"), "tools": tools, **dict(extra_packages)}
    return Sources({name: [Path(place) for place in places] for name, places in packages.items()}, dict(others_files))
