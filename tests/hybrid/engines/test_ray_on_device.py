"""If two tools of a Ray run share one device, the answers equal those of a run in this process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench._networks import NETWORKS
from hybrid.log.folder import RunFolder

pytest.importorskip("ray")
pytestmark = pytest.mark.gpu

TASKS = {"depth": ("depth_anything_v2_small", "Relative_Depth"), "detection": ("owlv2_base", "Counting")}


def test_two_tools_share_half_a_gpu_and_answer_as_in_this_process(device: str, tmp_path: Path) -> None:
    weights = list[str]()
    for tool, (network, _) in TASKS.items():
        (tmp_path / tool).mkdir()
        NETWORKS[network].build(tmp_path / tool, False)
        weights += ["--weights", f"{tool}={tmp_path / tool}"]
    tasks = ["--task", ",".join(task for _, task in TASKS.values())]
    common = ["run", "blink", "--data", "sample", "--limit", "8", "--solver", "specialist", *tasks, *weights]
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    answers = []
    for name, engine in (("here", []), ("ray", ["--engine", "ray", "--tool-gpu", "0.5"])):
        words = [*common, "--unchecked-weights", "--device", device, "--tool-dtype", "float32", *engine, "--out", name]
        command = [sys.executable, "-m", "hybrid", *words]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        attempts = RunFolder.existing(tmp_path / name).attempts("specialist")
        answers.append({attempt.id: [exchange.reply.text for exchange in attempt.exchanges] for attempt in attempts})
    assert len(answers[0]) == 8
    assert answers[1] == answers[0]
