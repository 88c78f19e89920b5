"""Tools outside of the project in a cluster: the complete command, as a user types it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="the extra `ray` is not installed")

from tests.hybrid.cli.test_plugins import TEXTS, write
from tests.servers import JsonHandler, LocalServer, listening
from tests.tool_source import tool_source

pytestmark = pytest.mark.slow

REDNESS = """reds = [float(request.images[0][..., 0].mean() / 255) for request in requests]
return [Evidence(WORDS.format(red), {"red_0_1": red}, 1.0) for red in reds]"""
WORDS = 'WORDS = "The red channel is at {:.2f}."\n'


class Caller(JsonHandler):
    """A model that calls redness and then answers."""

    def posted(self, body: bytes) -> None:
        data = json.loads(body)
        matches_any = any(message["role"] == "tool" for message in data["messages"])
        call = {"name": "redness", "arguments": json.dumps({"images": ["img:1"]})}
        message: dict[str, Any] = {"role": "assistant", "content": "Answer: (A)"}
        if not matches_any:
            message = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": call}]}
        choice = {"index": 0, "message": message, "finish_reason": "stop" if matches_any else "tool_calls"}
        self.answer({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]})


@pytest.fixture
def url() -> Iterator[str]:
    with listening(LocalServer(Caller)) as server:
        yield f"{server.url}/v1"


def in_a_folder(tmp_path: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Write a folder with a tool and its helper; return the option that names it, as a relative path."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "_words.py").write_text(WORDS)
    (folder / "redness.py").write_text(tool_source("redness", REDNESS, head="from tools._words import WORDS"))
    return ("--tool-path", "own"), {}


def in_the_environment(tmp_path: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Write a folder with a tool and its helper; return the environment variable that names the folder."""
    in_a_folder(tmp_path)
    return (), {"HYBRID_TOOL_PATH": str(tmp_path / "own")}


def in_a_package(tmp_path: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Write a package with an entry point, as an installer leaves it; return the variable that makes it importable."""
    site = tmp_path / "site"
    package, facts = site / "red_package", site / "red_package-1.0.dist-info"
    package.mkdir(parents=True)
    facts.mkdir()
    (package / "__init__.py").write_text("")
    (package / "words.py").write_text(WORDS)
    (package / "colour.py").write_text(tool_source("redness", REDNESS, head="from red_package.words import WORDS"))
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: red-package\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[hybrid.tools]\nredness = red_package.colour\n")
    return (), {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}


@pytest.mark.parametrize("lies", [in_a_folder, in_the_environment, in_a_package])
def test_workers_find_tools_of_ones_own(lies: Any, tmp_path: Path, fakes: Any, url: str) -> None:
    data = fakes.blink_folder(tmp_path / "blink", jigsaws=2, spatials=0)
    options, variables = lies(tmp_path)
    words: tuple[object, ...] = ("run", "blink", "--data", data, "--solver", "controller", "--model", "openai:m")
    words += ("--base-url", url)
    words += ("--tools", "redness", "--backend", "classical", "--engine", "ray", "--out", "run", *options)
    payload = {**os.environ, "RAY_enable_worker_prestart": "0", "HYBRID_HOME": str(tmp_path / "home"), **variables}
    command = [sys.executable, "-m", "hybrid", *map(str, words)]
    result = subprocess.run(
        command, cwd=tmp_path, env=payload, capture_output=True, text=True, check=False, timeout=300
    )
    assert result.returncode == 0, result.stderr
    attempts = (tmp_path / "run" / "controller" / "attempts.jsonl").read_text().splitlines()
    assert len(attempts) == 2
    assert all("The red channel is at 0." in line for line in attempts)


def test_workers_find_a_benchmark_a_model_and_a_solver_of_ones_own(tmp_path: Path) -> None:
    """Workers find plug-ins in a folder that they know only after they have received its name."""
    for folder in ("baselines", "benchmarks", "models"):
        write(tmp_path / "own", folder, f"own_{folder}", TEXTS[folder])
    words = ("run", "own_benchmarks", "--data", "sample", "--task", "Jigsaw", "--limit", "2", "--model", "own_models:x")
    words += ("--solver", "own_baselines", "--engine", "ray", "--out", "run", "--path", "own")
    options = {**os.environ, "RAY_enable_worker_prestart": "0", "HYBRID_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "hybrid", *words]
    result = subprocess.run(
        command, cwd=tmp_path, env=options, capture_output=True, text=True, check=False, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert len((tmp_path / "run" / "own_baselines" / "attempts.jsonl").read_text().splitlines()) == 2
