"""`--device` on the command line: a device that this machine lacks is refused before anything is asked or loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.finished_runs import Words

pytestmark = pytest.mark.gpu


def hybrid(folder: Path, *words: str, devices: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the program in a separate process that sees only the named CUDA devices; return the finished process."""
    environment = dict(os.environ) if devices is None else {**os.environ, "CUDA_VISIBLE_DEVICES": devices}
    root = Path(__file__).resolve().parents[3]
    environment["PYTHONPATH"] = os.pathsep.join([str(root), environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "hybrid", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("model", [(), ("--model", "embedded")])
def test_cuda_without_a_driver_is_refused_before_the_first_question(tmp_path: Path, model: Words) -> None:
    solvers = ("mllm", "specialist") if model else ("specialist",)
    words = ("run", "blink", "--data", "sample", "--limit", "2", "--solver", ",".join(solvers), *model)
    result = hybrid(tmp_path, *words, "--device", "cuda", "--out", "run", devices="")
    assert result.returncode == 2, result
    assert "--device cuda: torch sees no CUDA device on this machine" in result.stderr
    assert list(tmp_path.rglob("attempts*.jsonl")) == []


def test_a_second_card_that_is_not_there_is_refused(card: str, tmp_path: Path) -> None:
    words = ("run", "blink", "--data", "sample", "--limit", "2", "--solver", "specialist")
    result = hybrid(tmp_path, *words, "--device", "cuda:0,cuda:1", "--out", "run", devices="0")
    assert result.returncode == 2, result
    assert "--device cuda:1: torch sees no device beyond cuda:0 on this machine" in result.stderr


def test_a_run_on_the_device_is_one_command(device: str, tmp_path: Path) -> None:
    words = ("run", "blink", "--data", "sample", "--limit", "6", "--model", "embedded", "--device", device)
    result = hybrid(tmp_path, *words, "--solver", "controller,mllm,specialist", "--out", "run")
    assert result.returncode == 0, result.stderr
    assert [path.name for path in sorted((tmp_path / "run").glob("*.jsonl"))]
