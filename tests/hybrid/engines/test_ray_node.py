"""A Ray node that dies during a run: Ray would end the process silently, but the run prints how to resume it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.time_limits import running_process

pytestmark = [pytest.mark.slow, pytest.mark.system]
pytest.importorskip("ray", reason="the extra `ray` is not installed")


def raylet_of(process: int) -> int | None:
    """Return the process id of the node that a run has started."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        if name.endswith("(raylet") and int(rest.split()[1]) == process:
            return int(path.parent.name)
    return None


def test_what_is_finished_is_kept_and_the_command_to_go_on_is_said(tmp_path: Path, fakes: Any) -> None:
    data, out = fakes.blink_folder(tmp_path / "blink", 0, 60), tmp_path / "run"
    words = ["run", "blink", "--data", str(data), "--model", "embedded"]
    words += ["--solver", "mllm", "--engine", "ray", "--out", str(out)]
    command = [sys.executable, "-m", "hybrid", *words]
    with running_process(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as run:
        attempts = out / "mllm/attempts.jsonl"
        while not (attempts.exists() and attempts.read_bytes().count(b"\n")):
            assert run.poll() is None
            time.sleep(0.02)
        node = raylet_of(run.pid)
        assert node is not None
        os.kill(node, signal.SIGKILL)
        _, text = run.communicate()
    assert run.returncode == 3
    assert "Ray's node on this machine has died" in text
    assert text.strip().endswith(f"To resume: hybrid {' '.join(words)}")
    assert attempts.read_bytes().count(b"\n") > 0
