"""The hash of a tool's code: what changes it, what does not, and that a finding of other code is never given."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hybrid
import tools
from hybrid.config import ServiceOptions
from hybrid.images import ImageStore
from hybrid.registry import load, names
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ToolService
from hybrid.serving.sources import Sources, code_of, imports
from hybrid.tool import Need

ROOT = Path(hybrid.__file__).parent.parent
FILES = {
    "tools/tiny.py": "from tools._near import helps\n\n\ndef run():\n    from tools._lazy import late\n",
    "tools/other.py": "import tools._near\n",
    "tools/_near.py": "from hybrid.deep import part\n",
    "tools/_lazy.py": "LATE = 1\n",
    "tools/_unused.py": "X = 1\n",
    "tools/__init__.py": "",
    "hybrid/__init__.py": "def run():\n    from hybrid.away import everything\n",
    "hybrid/deep/__init__.py": "from .part import thing\n",
    "hybrid/deep/part.py": "thing = 1\n",
    "hybrid/away.py": "import os\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two small packages."""
    for name, text in FILES.items():
        path = tmp_path / "first" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "first"


def tiny(folder: Path) -> str:
    """The hash of the tool `tiny`."""
    return Sources({name: [folder / name] for name in ("tools", "hybrid")}).sha256(["tools.tiny"])


REACHED = ("tools/tiny.py", "tools/_near.py", "tools/_lazy.py", "hybrid/deep/part.py", "hybrid/deep/__init__.py")


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_code_is_the_tool_and_what_it_imports(folder: Path, name: str) -> None:
    before = tiny(folder)
    path = folder / name
    path.write_text(path.read_text() + "# edited\n")
    packages = ("tools/__init__.py", "hybrid/__init__.py")
    assert (tiny(folder) != before) == (name in (*REACHED, *packages))


def test_line_endings_and_the_place_on_the_disk_do_not_count(folder: Path) -> None:
    before = tiny(folder)
    moved = shutil.copytree(folder, folder.parent / "second" / "place")
    for path in moved.rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert tiny(moved) == before


def test_a_module_that_moves_is_other_code(folder: Path) -> None:
    before = tiny(folder)
    (folder / "tools/_lazy.py").unlink()
    assert tiny(folder) != before


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import a.b as c, d\n", {"a.b", "d"}),
        ("    from a import (  # why\n        b,\n        c as d,\n    )\n", {"a", "a.b", "a.c"}),
        ("from . import b\nfrom ..x import y\n", {"p.q", "p.q.b", "p.x", "p.x.y"}),
        ("from .b import c\n", {"p.q.b", "p.q.b.c"}),
        ("if True:\n\timport a; import b\n", {"a", "import"}),
        ("x = 'from a'\nimportant = 1\n", set()),
    ],
)
def test_imports_are_found(text: str, found: set[str]) -> None:
    assert set(imports(text, "p.q")) == found


def test_no_import_of_ours_is_overlooked() -> None:
    """Compared with the parser, over every file of the two packages."""
    missed = {}
    for path in (*(ROOT / "hybrid").rglob("*.py"), *(ROOT / "tools").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        package = module.removesuffix(".__init__") if path.name == "__init__.py" else module.rpartition(".")[0]
        wanted: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                wanted |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        if left := wanted - set(imports(path.read_text(), package)):
            missed[module] = left
    assert missed == {}


@pytest.mark.parametrize("name", names("tools"))
def test_what_runs_a_tool_is_no_part_of_it(name: str) -> None:
    sources = Sources({room: [ROOT / room] for room in ("hybrid", "tools")})
    reached = sources.reached([f"tools.{name}", load("tools", name).args.__module__])
    rooms = {".".join(module.split(".")[:2]) for module in reached}
    assert "hybrid.tool" in rooms
    assert not rooms & {f"hybrid.{room}" for room in ("cli", "interface", "models", "running", "scoring", "solving")}
    assert not reached & {f"hybrid.serving.{module}" for module in ("service", "cache", "isolated")}


def test_every_tool_has_a_code_of_its_own() -> None:
    codes = {name: code_of(load("tools", name)) for name in names("tools")}
    assert len(set(codes.values())) == len(codes)


def test_card_arguments_and_needs_are_part_of_it(fakes: Any) -> None:
    backend = fakes.CountingBackend()
    one = fakes.counter(backend)
    variants = [one, fakes.counter(backend, batch=2), fakes.counter(backend, needs=(Need("markers", lambda _: {}),))]
    variants += [fakes.Tool(one.card, load("tools", "depth").args)]
    assert len({code_of(tool) for tool in variants}) == len(variants)
    assert code_of(one) == code_of(fakes.counter(fakes.CountingBackend()))


async def test_other_code_does_not_find_the_cached_finding(fakes: Any, tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "images")
    service = ToolService(store, FindingCache(tmp_path / "findings", store), ServiceOptions("classical"))
    backend = fakes.CountingBackend()
    refs = fakes.refs(store, 1)
    tool, same, other = fakes.counter(backend), fakes.counter(backend), fakes.counter(backend, images=(1, 2))
    for asked in (tool, same, other):
        await service.call(asked, fakes.NumberArgs(number=1), refs)
    service.close()
    assert backend.batches == [1, 1]


Shell = Callable[..., str]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Runs python over a copy of tools/ that may be edited."""
    shutil.copytree(next(iter(tools.__path__)), tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "HYBRID_HOME": str(tmp_path / "home"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
        )
        return done.stdout

    return run


CODES = """
import json, tools
from hybrid.registry import load
from hybrid.serving.sources import code_of
assert next(iter(tools.__path__)).startswith(%r)
print(json.dumps({name: code_of(load("tools", name)) for name in ("depth", "markers", "jigsaw")}))
"""


@pytest.mark.system
def test_a_tool_that_needs_an_edited_one_is_other_code(shell: Shell, tmp_path: Path) -> None:
    before = json.loads(shell("-c", CODES % str(tmp_path)))
    edited = tmp_path / "tools" / "markers" / "__init__.py"
    edited.write_text(edited.read_text() + "# edited\n")
    after = json.loads(shell("-c", CODES % str(tmp_path)))
    assert {name for name in before if before[name] != after[name]} == {"markers", "depth"}
    assert before["jigsaw"] == code_of(load("tools", "jigsaw"))


@pytest.mark.system
def test_an_edited_tool_says_what_it_says_now(shell: Shell, tmp_path: Path, fakes: Any) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(fakes.encoded(fakes.pixels(1)))
    shell("-m", "hybrid", "tools", "new", "extent", "--tool-path", str(tmp_path / "tools"))
    written = tmp_path / "tools" / "extent.py"

    def says(*options: str) -> str:
        return shell("-m", "hybrid", "tools", "run", "extent", str(picture), *options).splitlines()[0]

    first = says()
    assert first.endswith(" of 1.")
    written.write_text(written.read_text().replace(" of 1.", " of one."))
    assert says() == first.replace(" of 1.", " of one.")
    kept = len(list((tmp_path / "home" / "findings").rglob("*.json")))
    assert says("--no-cache") == says()
    written.write_text(written.read_text().replace(" of one.", " in 0..1."))
    assert says("--no-cache").endswith(" in 0..1.")
    assert len(list((tmp_path / "home" / "findings").rglob("*.json"))) == kept == 2
