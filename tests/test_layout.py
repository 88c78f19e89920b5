"""The rooms: imports point one way, names belong to us, and nothing heavy loads for `--help`."""

import ast
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
OURS = "hybrid-perception"
ROOMS = ("hybrid", "tools", "graphs", "baselines")
MAY_IMPORT = {
    "hybrid": {"hybrid"},
    "tools": {"tools", "hybrid"},
    "graphs": {"graphs", "tools", "hybrid"},
    "baselines": {"baselines", "tools", "hybrid"},
}
HEAVY = ("torch", "transformers", "langchain", "langgraph", "cv2", "numpy", "pyarrow", "PIL", "pydantic")


def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module named by an import statement, those inside functions included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module if node.level == 0 else f"relative.{node.module}"


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_one_way(room: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in files(room)
        for module in imported(parsed(path))
        if (top := module.split(".")[0]) in ROOMS
        and top not in MAY_IMPORT[room]
        and not path.is_relative_to(ROOT / "hybrid" / "cli")
    ]
    assert not wrong


BY_NAME = {("hybrid/benchmarks/blink/marks.py", "hybrid.marks.finding")}
"""Modules that a room may not import and asks for by a name written out; the registry's names are no such literals."""


def test_no_other_room_is_asked_for_by_a_literal_name() -> None:
    found = {
        (str(path.relative_to(ROOT)), node.args[0].value)
        for room in ROOMS
        for path in files(room)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and not path.is_relative_to(ROOT / "hybrid" / "cli")
        and ast.unparse(node.func).endswith(("import_module", "__import__"))
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and str(node.args[0].value).split(".")[0] not in MAY_IMPORT[room]
        and str(node.args[0].value).split(".")[0] in ROOMS
    }
    assert found <= BY_NAME


def test_the_guard_sees_imports_in_functions_and_relative_ones() -> None:
    body = "def f():\n    import tools.depth\n    from graphs import arbiter\nfrom . import x\nfrom .y import z"
    tree = ast.parse(body)
    assert list(imported(tree)) == ["relative.y", "tools.depth", "graphs"]


def foreign_owners(owners: dict[str, list[str]]) -> list[str]:
    """Distributions besides ours that install one of our top-level names."""
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


KEPT = {"hybrid/__init__.py: tool"}
"""A package may keep such a name if it refuses the module under it (`tests/hybrid/test_interface.py`)."""


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
    """What a command imports, from Python's own record."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", *command], capture_output=True, text=True, check=True, timeout=60
    )
    return set(re.findall(r"^import time:.*\|\s*(\S+)$", done.stderr, re.MULTILINE))


def test_help_loads_nothing_heavy() -> None:
    loaded = modules_loaded_by("hybrid", "--help")
    assert "hybrid.cli" in loaded
    assert "click" in loaded
    assert not {name for name in loaded if name.split(".")[0].startswith(HEAVY)}


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_says_what_it_is(room: str) -> None:
    assert not [str(path.relative_to(ROOT)) for path in files(room) if not ast.get_docstring(parsed(path))]


def test_the_lock_pins_what_is_asked_for_and_names_no_address() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = dict(line.split(" ;")[0].split("==")[:2] for line in lines if "==" in line and not line.startswith("#"))
    assert all(re.fullmatch(r"[\w.\-]+(\[[\w,]+\])?==[\w.+!]+( ;.*)?|#.*|", line) for line in lines)
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(pins[requirement.name]), requirement
