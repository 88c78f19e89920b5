"""The hash of a tool's code: what changes it, what does not, and that an output of other code is never returned."""

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
from hybrid.plugins.registry import load
from hybrid.serving.sources import code_of

ROOT = Path(hybrid.__file__).parent.parent


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
        result = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
        )
        return result.stdout

    return run


CODES = """
import json, tools
from hybrid.plugins.registry import load
from hybrid.serving.sources import code_of
assert next(iter(tools.__path__)).startswith(%r)
print(json.dumps({name: code_of(load("tools", name)) for name in ("depth", "markers", "jigsaw")}))
"""


@pytest.mark.system
def test_a_tool_that_needs_an_edited_one_is_other_code(shell: Shell, tmp_path: Path) -> None:
    data = json.loads(shell("-c", CODES % str(tmp_path)))
    edited = tmp_path / "tools" / "markers" / "__init__.py"
    edited.write_text(edited.read_text() + "# edited\n")
    after = json.loads(shell("-c", CODES % str(tmp_path)))
    assert {name for name in data if data[name] != after[name]} == {"markers", "depth"}
    assert data["jigsaw"] == code_of(load("tools", "jigsaw"))


@pytest.mark.system
def test_an_edited_tool_says_what_it_says_now(shell: Shell, tmp_path: Path, fakes: Any) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(fakes.encoded(fakes.pixels(1)))
    shell("-m", "hybrid", "tools", "new", "extent", "--tool-path", str(tmp_path / "tools"))
    text = tmp_path / "tools" / "extent.py"

    def says(*options: str) -> str:
        return shell("-m", "hybrid", "tools", "run", "extent", str(picture), *options).splitlines()[0]

    first = says()
    assert first.endswith(" of 1.")
    text.write_text(text.read_text().replace(" of 1.", " of one."))
    assert says() == first.replace(" of 1.", " of one.")
    count = len(list((tmp_path / "home" / "findings").rglob("*.json")))
    assert says("--no-cache") == says()
    text.write_text(text.read_text().replace(" of one.", " in 0..1."))
    assert says("--no-cache").endswith(" in 0..1.")
    assert len(list((tmp_path / "home" / "findings").rglob("*.json"))) == count == 2
