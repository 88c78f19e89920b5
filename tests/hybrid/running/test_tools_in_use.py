"""A run sets up the tools that its solvers may call, and no others."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hybrid
import tools
from hybrid.config import ServiceOptions
from hybrid.core.errors import WeightsError
from hybrid.plugins.registry import load, load_solver, names
from hybrid.running.tools_in_use import ToolChoice, ToolsInUse, tools_in_use

ROOT = Path(hybrid.__file__).parent.parent
CLASSICAL = ServiceOptions("classical")


def used(*solvers: str, tools_offered: tuple[str, ...] = (), service: ServiceOptions = CLASSICAL) -> ToolsInUse:
    by_solver = {name: load_solver(name) for name in solvers}
    choice = ToolChoice(tools_offered or names("tools"), tools_offered)
    return tools_in_use(by_solver, "blink", choice, service, tuple(load("hybrid.benchmarks", "blink").card.tasks))


def test_what_a_backend_needs_is_needed_with_that_backend_alone(tmp_path: Path) -> None:
    assert used("controller", tools_offered=("relation",)).by_solver["controller"] == ("relation",)
    (tmp_path / "model.safetensors").write_bytes(b"x")
    weights = {name: str(tmp_path) for name in ("detection", "depth")}
    learned = used("controller", tools_offered=("relation",), service=ServiceOptions("auto", weights))
    assert learned.by_solver["controller"] == ("depth", "detection", "markers", "relation")


def test_rules_for_other_tasks_want_no_weights(tmp_path: Path) -> None:
    """Weights named for another task's tool are not searched for."""
    absent = ServiceOptions(weights={"correspondence": str(tmp_path / "absent")})
    request = {"specialist": load_solver("specialist"), "arbiter": load_solver("arbiter")}
    result = tools_in_use(request, "blink", ToolChoice(), absent, ("Jigsaw", "Relative_Depth"))
    assert result.by_solver == dict.fromkeys(request, ("depth", "jigsaw", "markers"))
    with pytest.raises(WeightsError, match="absent"):
        tools_in_use(request, "blink", ToolChoice(), absent, ("Visual_Correspondence",))
    with pytest.raises(WeightsError, match="absent"):
        tools_in_use(request, "blink", ToolChoice(), absent)


FACTS = """
import json, sys
from types import SimpleNamespace
from hybrid.solving.rules import table
from hybrid.running.tools_in_use import ToolChoice, tools_in_use
from hybrid.config import ServiceOptions
solver = SimpleNamespace(offers_tools=True, required_tools=lambda benchmark, routes: frozenset())
found = tools_in_use({"one": solver}, "blink", ToolChoice(("crop",), ("crop",)), ServiceOptions("classical"))
print(json.dumps(found.metadata("one")))
assert "tools.jigsaw" not in sys.modules
"""


@pytest.mark.system
def test_another_tool_may_change_break_and_come(tmp_path: Path) -> None:
    copy = shutil.copytree(tools.__path__[0], tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def facts() -> dict[str, Any]:
        values = [sys.executable, "-c", FACTS]
        result = subprocess.run(values, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
        return dict(json.loads(result.stdout))

    first = facts()
    assert list(first) == ["crop"]
    (copy / "jigsaw" / "__init__.py").write_text("raise RuntimeError('nobody asks for it')\n")
    shutil.copytree(copy / "ocr", copy / "reading")
    assert facts() == first
    (copy / "crop.py").write_text((copy / "crop.py").read_text() + "# edited\n")
    assert facts()["crop"]["code"] != first["crop"]["code"]
