"""`hybrid report` and `hybrid view` as a user runs them."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.finished_runs import Command, Words
from tests.tables import cases
from tests.time_limits import running_process

COUNT = 28


@pytest.fixture
def run(large_run: Callable[[int], Path]) -> Path:
    return large_run(COUNT)


@pytest.mark.system
def test_a_report_is_written_and_may_replace_itself(command: Command, run: Path, tmp_path: Path) -> None:
    for errors in ("1", "2"):
        result = command("report", run, "-o", tmp_path / "site", "--sample-errors", errors)
        assert (result.code, result.out) == (0, f"wrote {tmp_path / 'site' / 'index.html'}\n")
        # Progress is on stderr.
        assert f"{COUNT}/{COUNT}" in result.err
    assert (tmp_path / "site" / "index.html").is_file()


def test_another_folder_is_left_alone(command: Command, run: Path) -> None:
    assert "contains something other than a report" in command("report", run, "-o", run, code=2).err
    assert (run / "manifest.json").is_file()
    assert not list(run.glob("*/scores.jsonl"))


@pytest.mark.parametrize(*cases(__file__, "test_wrong_options_are_one_line"))
def test_wrong_options_are_one_line(
    command: Command, large_runs: Callable[[int], Path], words: Words, message: str
) -> None:
    assert message in command("report", large_runs(COUNT) / "run", *words, code=2).err


@pytest.mark.system
def test_a_damaged_run_is_reported_and_named(command: Command, run: Path) -> None:
    path = run / "mllm" / "attempts.jsonl"
    path.write_bytes(b"{}\n" + path.read_bytes())
    result = command("report", run, "--json", code=3)
    assert "failed: " in result.err
    assert any("attempts.jsonl, line 1" in line for line in json.loads(result.out)["blink"]["warnings"])


@pytest.mark.system
def test_view_serves_until_it_is_interrupted(run: Path, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "hybrid", "view", str(run)]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with running_process(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        line = process.stderr.readline()
        url = re.match(r"(http://127\.0\.0\.1:\d+/) shows", line)
        assert url is not None, line
        assert httpx.get(url[1] + "1/live.json", trust_env=False).json()["answers"] == 3 * COUNT
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate()
    assert (process.returncode, rest) == (0, "stopped; the run is unchanged\n")
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.system
def test_view_waits_for_runs_that_begin(run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    command = [sys.executable, "-m", "hybrid", "view", "absent", "empty", str(run)]
    with running_process(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        notes = [process.stderr.readline() for _ in range(2)]
        assert notes == [
            f"note: waiting for a run to start in {name}; Ctrl-C ends it\n" for name in ("absent", "empty")
        ]
        url = process.stderr.readline().split()[0]

        def states() -> list[str]:
            return [entry["state"] for entry in httpx.get(f"{url}progress.json", trust_env=False).json()["runs"]]

        assert states() == ["waiting", "waiting", "finished"]
        assert httpx.get(f"{url}1/", trust_env=False).status_code == 404
        shutil.copytree(run, tmp_path / "absent")
        assert states() == ["finished", "waiting", "finished"]
        for place in (1, 3):
            assert httpx.get(f"{url}{place}/live.json", trust_env=False, timeout=600).json()["answers"] == 3 * COUNT
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate()
    assert (process.returncode, rest) == (0, "stopped; the runs are unchanged\n")


@pytest.mark.system
def test_a_full_disk_is_one_line(command: Command, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[str] = []

    def full(source: str, place: str, **_: object) -> None:
        copies.append(place)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), source, None, place)

    monkeypatch.setattr(shutil, "copy2", full)
    # `copytree` has `copy2` as the default of an argument, so the default is replaced as well.
    monkeypatch.setitem(shutil.copytree.__kwdefaults__ or {}, "copy_function", full)
    monkeypatch.setattr(shutil.copytree, "__defaults__", (False, None, full, False, False))
    result = command("report", run, "-o", tmp_path / "site", "--quiet", code=2)
    (line,) = result.err.strip().splitlines()
    assert len(copies) > 1
    name = copies[0].partition("/assets/")[2]
    assert line == (
        f"hybrid: {tmp_path / 'site' / 'assets' / name}: No space left on device; "
        "free some space and repeat the command"
    )
    assert not list(tmp_path.glob("*site*"))
