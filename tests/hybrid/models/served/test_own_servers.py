"""Servers that the program starts are asked, shared and logged, and they are stopped however the program ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hybrid.models.served import process
from tests.finished_runs import Command, run_command
from tests.own_servers import processes, starts, write_program
from tests.time_limits import running_process, wait_until

pytestmark = pytest.mark.system
# Seconds after which a process that should have started or ended counts as hanging. A test that passes does not wait
# that long.
LATEST_S = 600


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run `hybrid` in an empty folder, where `vllm:` starts the program of the tests."""
    from functools import partial

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYBRID_VLLM", str(write_program(tmp_path)))
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    return partial(run_command, capsys, monkeypatch)


@pytest.fixture
def blink(tmp_path: Path, fakes: Any) -> tuple[str, ...]:
    """Return the words of a run of the MLLM alone on six questions."""
    data = fakes.blink_folder(tmp_path / "blink")
    return ("run", "blink", "--data", str(data), "--model", "vllm:tiny", "--solver", "mllm", "--out", "run")


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for_end(pids: list[int]) -> None:
    """Fail if one of the processes still runs after `LATEST_S`."""
    end = time.monotonic() + LATEST_S
    while any(map(is_alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [pid for pid in pids if is_alive(pid)]


def test_a_run_starts_its_server_asks_it_and_ends_it(
    command: Command, blink: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-provider-1")
    result = command(*blink, "--server-arg", "seconds=0.5", "--server-arg", "enforce-eager=on", "--json", code=0)
    assert json.loads(result.out)["solvers"]["mllm"]["n"] == 6
    assert "starting vLLM for vllm:tiny; its log is run/server.log" in result.err
    log = Path("run/server.log").read_text()
    assert '"serve", "tiny", "--served-model-name", "tiny", "--seconds", "0.5", "--enforce-eager"' in log
    assert log.count("asked tiny Bearer EMPTY") >= 6
    assert "OPENAI_API_KEY" not in log
    pids = processes(Path("run/server.log"))
    assert len(pids) == 2
    wait_for_end(pids)
    manifest = json.loads(Path("run/manifest.json").read_text())
    assert manifest["identity"]["model"]["server"] == {"kind": "vllm", "enforce-eager": "on", "seconds": "0.5"}
    # No question is open, so no server is started. With other arguments it is a different run.
    command(*blink, "--server-arg", "seconds=0.5", "--server-arg", "enforce-eager=on", code=0)
    assert starts(Path("run/server.log")) == 1
    assert "server" in command(*blink, "--server-arg", "seconds=0", code=2).err


def test_a_server_that_does_not_start_is_named_with_its_last_lines(command: Command, blink: tuple[str, ...]) -> None:
    result = command(*blink, "--server-arg", "broken=hermse", code=2)
    assert "the server of vllm:tiny ended (exit code 1); its log is run/server.log" in result.err
    assert "ValueError: no such parser: hermse" in result.err


def test_a_server_that_ends_costs_no_finished_answer(command: Command, blink: tuple[str, ...]) -> None:
    # Send one request at a time: the end of the server would also cut off another reply that it is about to send.
    more = ("--allow", "blind", "--concurrency", "1", "--model-arg", "retries=0")
    result = command(*blink, *more, "--server-arg", "ends=5", code=3)
    stop = next(line for line in result.err.splitlines() if line.startswith("stopped with"))
    finished = len(Path("run/mllm/attempts.jsonl").read_text().splitlines())
    assert 0 < finished < 6
    assert stop.startswith(f"stopped with {6 - finished} questions open: the server of vllm:tiny ended (exit code 7)")
    assert "its log is run/server.log: " in stop
    assert "CUDA out of memory" in stop
    assert stop.endswith("finished answers are saved: run it again to continue")
    wait_for_end(processes(Path("run/server.log")))


def test_one_server_serves_all_runs_of_a_command(command: Command, blink: tuple[str, ...]) -> None:
    words = blink[1:-2]
    Path("run.yaml").write_text("matrix:\n  image-labels: [on, off]\n")
    command("run", *words, "--config", "run.yaml", "--out", "runs", code=0)
    logs = [*Path("runs").rglob("server.log")]
    assert sum(map(starts, logs)) == 1
    assert sum(log.read_text().count("asked tiny") for log in logs) >= 12
    wait_for_end([pid for log in logs for pid in processes(log)])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_program_that_dies_leaves_no_process(tmp_path: Path, fakes: Any, number: signal.Signals) -> None:
    data = fakes.blink_folder(tmp_path / "blink")
    environment = {"HYBRID_VLLM": str(write_program(tmp_path)), "HYBRID_HOME": str(tmp_path / "home")}
    words = ["blink", "--data", str(data), "--model", "vllm:tiny", "--solver", "mllm", "--out", "run"]
    program = [sys.executable, "-m", "hybrid", "run", *words, "--server-arg", "seconds=600"]
    run = subprocess.Popen(program, cwd=tmp_path, env={**os.environ, **environment})
    log = tmp_path / "run" / "server.log"
    try:
        end = time.monotonic() + LATEST_S
        while not (log.exists() and len(processes(log)) == 2) and time.monotonic() < end:
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(number)
        assert run.wait(LATEST_S) != 0
    finally:
        run.kill()
    wait_for_end(processes(log))


def test_a_server_and_its_watcher_ignore_the_signals_of_a_terminal() -> None:
    code = "import signal; print([signal.getsignal(getattr(signal, name)).name for name in ('SIGINT', 'SIGHUP')])"
    watcher = Path(process.__file__).with_name("watcher.py")
    # The standard input of the watcher stays open until the watcher has ended.
    with running_process(
        [sys.executable, "-E", watcher, sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout.read() == b"['SIG_IGN', 'SIG_IGN']\n"


def test_a_forked_child_does_not_keep_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends with the program, even if a forked child continues to run."""
    monkeypatch.setenv("HYBRID_VLLM", str(write_program(tmp_path)))
    from hybrid.models.served.commands import command_of

    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    server = process.server_for(command_of("vllm:tiny", {"seconds": "600"}))
    server._launch()
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        log = tmp_path / "home" / "servers" / "server.log"
        wait_until(lambda: processes(log), "the processes of the server")
        process.stop_servers()
        wait_for_end(processes(log))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
