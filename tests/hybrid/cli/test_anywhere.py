"""The program runs from any directory, also next to packages with the same names as the project's."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.plugins.registry import names
from tests.finished_runs import Words

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("tools", "graphs", "baselines")


def started(folder: Path, *words: str, path: str | None = str(ROOT)) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {} if path is None else {"PYTHONPATH": path}
    command = [sys.executable, *words]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.system
@pytest.mark.parametrize("words", [("-m", "hybrid"), ("-P", "-m", "hybrid")])
def test_packages_of_the_same_names_beside_it_are_not_taken(tmp_path: Path, words: Words) -> None:
    (tmp_path / "hybrid").mkdir()
    for room in ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("raise RuntimeError('not ours')\n")
    process = started(tmp_path, *words, "tools", "list")
    assert [line.split()[0] for line in process.splitlines()] == list(names("tools"))
    assert "specialist" in started(tmp_path, *words, "solvers", "list")


@pytest.mark.system
def test_a_clone_that_is_not_installed_starts_from_its_root() -> None:
    process = started(ROOT, "-m", "hybrid", "tools", "list", path=None)
    assert [line.split()[0] for line in process.splitlines()] == list(names("tools"))


def test_types_are_shipped() -> None:
    assert all((ROOT / room / "py.typed").is_file() for room in ("hybrid", *ROOMS))


@pytest.mark.system
def test_the_files_of_a_run_are_readable_by_a_group(tmp_path: Path) -> None:
    program = (
        "import os, runpy, sys; os.umask(0o027); sys.argv[0] = 'hybrid'; runpy.run_module('hybrid', None, '__main__')"
    )
    arguments = ("run", "mm_sap", "--data", "sample", "--task", "BasicVisQA", "--limit", "1", "--solver", "chance")
    started(tmp_path, "-c", program, *arguments, "--out", str(tmp_path / "run"))
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file() and path.name != ".lock"]
    assert {"manifest.json", "questions.jsonl", "attempts.jsonl"} <= {path.name for path in files}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o640}
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in files} == {0o750}
    paths = [path for path in Path(os.environ["HYBRID_HOME"]).rglob("*") if path.is_file()]
    assert paths
    assert {stat.S_IMODE(path.stat().st_mode) & 0o047 for path in paths} == {0o040}
