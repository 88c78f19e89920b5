"""The packages: imports go one way, top-level names belong to the project alone, and nothing heavy loads for
`--help`."""

import ast
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.tables import cases, stored

ROOT = Path(__file__).parents[1]
OURS = "hybrid-perception"
ROOMS = ("hybrid", "tools", "graphs", "baselines", "training")
EVERYTHING = frozenset(
    ("stats", "answers", "marks", "samples", "serving", "models", "solving", "benchmarks", "running")
)
# For each package, those that it may import besides itself and the shared packages.
MAY_IMPORT: Mapping[str, frozenset[str]] = {
    # The packages of hybrid, each with those that it may import. "hybrid" is the root, which uses the packages that do
    # the work.
    "hybrid": frozenset(),
    "core": frozenset(),
    "plugins": frozenset(),
    # The public names of the plug-in interfaces.
    "solver": frozenset({"solving", "serving"}),
    "benchmark": frozenset({"answers", "benchmarks"}),
    "config": frozenset(),
    "display": frozenset({"stats"}),
    "tool": frozenset(),
    "log": frozenset(),
    "stats": frozenset(),
    "answers": frozenset(),
    "marks": frozenset(),
    "serving": frozenset(),
    "models": frozenset(),
    "samples": frozenset({"marks"}),
    "tracing": frozenset(),
    "solving": frozenset({"answers", "models", "serving", "tracing"}),
    "benchmarks": frozenset({"answers", "marks", "samples", "stats"}),
    "running": (EVERYTHING - {"running", "answers", "marks", "stats"}) | {"tracing"},
    "engines": frozenset({"running", "benchmarks", "models", "serving", "solving"}),
    "scoring": EVERYTHING - {"marks", "samples"},
    "report": frozenset({"scoring", "stats", "benchmarks", "answers", "solving", "serving", "models"}),
    # The code of the run reconstructs what a model was shown.
    "exporting": frozenset({"scoring", "stats", "benchmarks", "answers", "models", "serving", "solving"}),
    "interface": frozenset({"answers", "serving"}),
    "integrations": frozenset({"interface", "models", "serving"}),
    "cli": EVERYTHING | {"engines", "scoring", "report", "exporting", "interface", "integrations", "tools"},
    # Only the specialists are called with a solver's context; no other tool knows of solvers.
    "tools": frozenset({"marks", "samples", "serving"}),
    "tools.rules": frozenset({"tools", "solving"}),
    "graphs": frozenset({"tools", "tools.rules", "solving", "serving", "models", "answers", "benchmarks"}),
    "baselines": frozenset({"tools", "tools.rules", "solving", "answers"}),
    # Templates become files of other repositories and may import anything.
    "templates": EVERYTHING | {"scoring", "solver", "benchmark"},
    # The training of the shipped model uses runs of the project.
    "training": frozenset({"models", "benchmarks", "running", "serving", "solving", "samples"}),
}
# Shared by every package: types, plug-ins, options, files of a run, output for people, the interface of a tool.
SHARED = frozenset({"hybrid", "core", "plugins", "config", "display", "log", "tool"})
# Files that import a module by a name that is computed at run time.
BY_STRING = ("hybrid/plugins/discovery.py", "hybrid/plugins/registry.py")
MAX_FUNCTION_LINES = 50
HEAVY = ("torch", "transformers", "langchain", "langgraph", "cv2", "numpy", "pyarrow", "PIL", "pydantic")


def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements at any depth; expressions, which are most of a file, are skipped."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


@dataclass(frozen=True)
class Import:
    """An import of a module, or of a name in it, by another; also inside functions and for type checkers only."""

    importer: str
    module: str
    # A name imported from the module; None for the module itself.
    name: str | None = None


class Tree:
    """The modules below some folders, by dotted name, and what their files have; each file is parsed once."""

    def __init__(self, root: Path) -> None:
        self.paths = {
            ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
            for room in ROOMS
            for path in sorted((root / room).rglob("*.py"))
        }
        self.imports: list[Import] = []
        # The number of lines of each function, by its module and name.
        self.lines: list[tuple[str, str, int]] = []
        # The files without a docstring.
        self.silent: list[Path] = []
        for module, path in self.paths.items():
            tree = parsed(path)
            self.imports += self._imports(module, tree)
            for node in statements(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    self.lines.append((module, node.name, (node.end_lineno or node.lineno) - node.lineno + 1))
            self.silent += [] if ast.get_docstring(tree) else [path]

    def _imports(self, module: str, tree: ast.Module) -> Iterator[Import]:
        package = module if self.paths[module].name == "__init__.py" else module.rpartition(".")[0]
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (Import(module, alias.name) for alias in node.names if alias.name in self.paths)
            elif isinstance(node, ast.ImportFrom):
                above = ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level])
                base = node.module or "" if node.level == 0 else ".".join(filter(None, (above, node.module)))
                for alias in node.names:
                    if f"{base}.{alias.name}" in self.paths:
                        yield Import(module, f"{base}.{alias.name}")
                    elif base in self.paths:
                        yield Import(module, base, alias.name)

    def room(self, module: str) -> str:
        """Return the package of a module: a key of `MAY_IMPORT`."""
        first, second = (*module.split("."), "")[:2]
        if first == "hybrid":
            package = self.paths.get(f"hybrid.{second}", Path())
            is_folder = package.name == "__init__.py" or any(
                name.startswith(f"hybrid.{second}.") for name in self.paths
            )
            return second if is_folder else first
        return "tools.rules" if (first, second) == ("tools", "rules") else first


def against_the_rooms(tree: Tree) -> list[str]:
    """Return imports that `MAY_IMPORT` does not allow."""
    return sorted(
        {
            f"{result.importer} imports {result.module}"
            for result in tree.imports
            if (to := tree.room(result.module)) != (of := tree.room(result.importer))
            # The core imports nothing but itself.
            and to not in MAY_IMPORT[of] | (SHARED if of != "core" else frozenset())
            # The entry points, `import hybrid` and `python -m hybrid`: they call the packages that do the work.
            and result.importer not in ("hybrid", "hybrid.__main__")
        }
    )


def cycles(tree: Tree) -> list[list[str]]:
    """Return sets of modules that import each other in a circle: the strongly connected components (Tarjan 1972)."""
    graph: dict[str, set[str]] = {module: set() for module in tree.paths}
    for result in tree.imports:
        graph[result.importer].add(result.module)
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    circles: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        open_.append(module)
        for other in sorted(graph[module] - {module}):
            if other not in order:
                visit(other)
            if other in open_:
                low[module] = min(low[module], low[other])
        if low[module] == order[module]:
            place = open_.index(module)
            circles.append(sorted(open_[place:]))
            del open_[place:]

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return [circle for circle in circles if len(circle) > 1]


def imported_by_string(tree: Tree) -> list[str]:
    """Return calls that import a module of the project, or one whose name is computed at run time."""
    return [
        f"{module}: {ast.unparse(node)}"
        for module, path in tree.paths.items()
        # Few files contain these words, and parsing them takes long.
        if not path.as_posix().endswith(BY_STRING) and re.search("import_module|__import__", path.read_text())
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith(("import_module", "__import__"))
        and not (
            node.args and isinstance(node.args[0], ast.Constant) and str(node.args[0].value).split(".")[0] not in ROOMS
        )
    ]


def from_outside(tree: Tree) -> list[str]:
    """Return imports from outside of a folder of names with a leading underscore; `_shared` counts as one."""
    results = []
    for item in tree.imports:
        parts = [*item.module.split("."), *([item.name] if item.name else [])]
        hidden = next((place for place, part in enumerate(parts) if re.match(r"_(?!_)", part)), None)
        if hidden is None:
            continue
        folder = ".".join(parts[:hidden])
        if item.name == parts[hidden] and tree.paths[item.module].name != "__init__.py":
            folder = folder.rpartition(".")[0]
        if not f"{item.importer}.".startswith(f"{folder}."):
            results.append(f"{item.importer} imports {'.'.join(parts)}")
    return sorted(results)


def used_by_one_alone(tree: Tree) -> list[str]:
    """Return modules of a `_shared` folder that fewer than two neighbours use, directly or through the folder."""
    results = []
    for module, path in tree.paths.items():
        if path.parent.name != "_shared" or path.name == "__init__.py":
            continue
        shared = module.rpartition(".")[0]
        parent = shared.rpartition(".")[0]
        reached, users = [module], set()
        for inner in reached:
            for importer in {item.importer for item in tree.imports if item.module == inner}:
                if not importer.startswith(f"{shared}."):
                    users.add(importer.removeprefix(f"{parent}.").split(".")[0])
                elif importer not in reached:
                    reached.append(importer)
        if len(users) < 2:
            results.append(f"{module} is used by {', '.join(sorted(users)) or 'none'}")
    return results


def too_long(tree: Tree) -> list[str]:
    """Return functions of more than `MAX_FUNCTION_LINES`, docstring included."""
    return [f"{module}: {name} has {count} lines" for module, name, count in tree.lines if count > MAX_FUNCTION_LINES]


def past_entry_point(tree: Tree) -> list[str]:
    """Return imports from outside of its folder of a module that an entry point of the project names."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"].values()
    plugins = {value.partition(":")[0] for group in groups for value in group.values()}
    return sorted(
        f"{item.importer} imports {item.module}"
        for item in tree.imports
        if item.module in plugins and not item.importer.startswith(f"{item.module.rpartition('.')[0]}.")
    )


GUARDS = (against_the_rooms, cycles, imported_by_string, from_outside, past_entry_point, used_by_one_alone, too_long)


@pytest.fixture(scope="module")
def checkout() -> Tree:
    return Tree(ROOT)


# A line of Python.
PYTHON = re.compile(
    r"^\s*(?:import \w|from [\w.]+ import |(?:async )?def \w+\(|class \w+[:(]|return |raise |@[\w.]+(?:\(.*\))?$)", re.M
)


def test_no_data_file_holds_python() -> None:
    parts = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    data = [name for name in parts if name.endswith((".toml", ".json", ".yaml"))]
    assert data
    assert [name for name in data if PYTHON.search((ROOT / name).read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.__name__)
def test_the_house_is_in_order(guard: Callable[[Tree], list[Any]], checkout: Tree) -> None:
    assert guard(checkout) == []


def test_the_rooms_of_the_map_are_those_there_are_and_point_one_way(checkout: Tree) -> None:
    assert {checkout.room(module) for module in checkout.paths} == set(MAY_IMPORT)
    # Raises CycleError if two packages may import each other.
    assert set(TopologicalSorter(MAY_IMPORT).static_order()) == set(MAY_IMPORT)


# The files of a tree that passes all checks.
CLEAN: Mapping[str, str] = stored(__file__, "clean")
LONG = "def f():\n" + "    a = 1\n" * 50
# Each row replaces one file of the clean tree, and has the message that the check then gives.
ARGUMENTS, BROKEN = cases(__file__, "test_a_guard_sees", guard={guard.__name__: guard for guard in GUARDS}.__getitem__)


@pytest.mark.parametrize(ARGUMENTS, [*BROKEN, (too_long, "tools/depth.py", LONG, "tools.depth: f has 51 lines")])
def test_a_guard_sees(guard: Callable[[Tree], list[Any]], path: str, text: str, seen: str, tmp_path: Path) -> None:
    for name, body in {**CLEAN, path: text}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(body)
    assert any(seen in str(item) for item in guard(Tree(tmp_path)))


def test_the_guards_let_an_orderly_tree_pass(tmp_path: Path) -> None:
    for name, body in CLEAN.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(body)
    assert [guard(Tree(tmp_path)) for guard in GUARDS] == [[]] * len(GUARDS)


def foreign_owners(owners: dict[str, list[str]]) -> list[str]:
    """Return other distributions that install one of the project's top-level names."""
    return sorted({f"{dist} owns {name}" for name in ROOMS for dist in owners.get(name, []) if dist != OURS})


def test_no_other_distribution_owns_our_names() -> None:
    owners = {name: list(dists) for name, dists in importlib.metadata.packages_distributions().items()}
    assert not foreign_owners(owners)


def test_an_owner_is_named() -> None:
    assert foreign_owners({"tools": ["Mako", OURS], "hybrid": ["dwave-hybrid"], "numpy": ["numpy"]}) == [
        "Mako owns tools",
        "dwave-hybrid owns hybrid",
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_the_rooms_are_those_of_this_checkout(room: str) -> None:
    spec = importlib.util.find_spec(room)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    assert [Path(place).resolve() for place in spec.submodule_search_locations] == [ROOT / room]


# A package may keep such a name if it refuses the module under it (`tests/hybrid/test_interface.py`).
KEPT = {"hybrid/__init__.py: tool"}


def test_no_init_hides_a_module_under_a_name_it_exports() -> None:
    hidden = []
    for init in (path for room in ROOMS for path in files(room) if path.name == "__init__.py"):
        modules = {path.stem for path in init.parent.iterdir() if path.suffix == ".py" or path.is_dir()}
        # `from package import module` names the module itself.
        package = ".".join(init.parent.relative_to(ROOT).parts)
        for node in parsed(init).body:
            names: set[str] = set()
            if isinstance(node, ast.ImportFrom) and node.module != package:
                names = {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names = {node.name}
            hidden += [f"{init.relative_to(ROOT)}: {name}" for name in names & modules]
    assert set(hidden) == KEPT


def modules_loaded_by(*command: str) -> set[str]:
    """Return the imports of a command, from Python's own record."""
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", *command], capture_output=True, text=True, check=True, timeout=300
    )
    return set(re.findall(r"^import time:.*\|\s*(\S+)$", result.stderr, re.MULTILINE))


@pytest.mark.system
def test_help_loads_nothing_heavy() -> None:
    loaded = modules_loaded_by("hybrid", "--help")
    assert "hybrid.cli" in loaded
    assert "click" in loaded
    assert not {name for name in loaded if name.split(".")[0].startswith(HEAVY)}


def test_every_file_says_what_it_is(checkout: Tree) -> None:
    assert checkout.silent == []


def test_a_wheel_has_every_data_file_of_the_packages() -> None:
    kept = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-data"]
    names = subprocess.run(["git", "ls-files", *kept], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    taken = {path for room, patterns in kept.items() for pattern in patterns for path in (ROOT / room).glob(pattern)}
    assert [name for name in names.split() if not name.endswith(".py") and ROOT / name not in taken] == []


def test_the_lock_pins_what_is_asked_for_and_names_no_address() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = dict(line.split(" ;")[0].split("==")[:2] for line in lines if "==" in line and not line.startswith("#"))
    assert all(re.fullmatch(r"[\w.\-]+(\[[\w,]+\])?==[\w.+!]+( ;.*)?|#.*|", line) for line in lines)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    values = (*project["dependencies"], *extras["local"], *extras["parquet"], *extras["vision"])
    for requirement in (item for item in map(Requirement, values) if item.name != project["name"]):
        assert requirement.specifier.contains(pins[requirement.name]), requirement
