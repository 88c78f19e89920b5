"""What hangs in a test ends, and the failure says on what the test waited."""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from tests import runnable, time_limits
from tests.time_limits import join, limit_coroutine, running_process, wait_until

SLEEP = [sys.executable, "-c", "import time; print('starts', flush=True); time.sleep(600)"]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limits, "END_S", 0.2)


@pytest.mark.system
def test_a_process_without_a_timeout_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired, match=r"timed out after 0\.2 seconds"):
        subprocess.run(SLEEP, capture_output=True, check=False)
    with pytest.raises(subprocess.TimeoutExpired), subprocess.Popen(SLEEP, stdout=subprocess.DEVNULL) as process:
        pass
    assert process.wait(60) < 0


@pytest.mark.system
def test_a_limit_changes_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limits, "END_S", 500.0)
    threads = set(threading.enumerate())
    # Both lines are written at once, so the first read leaves the second one in the buffer.
    command = [sys.executable, "-c", "print('first\\nsecond')"]
    with running_process(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "first\n"
        assert process.communicate() == ("second\n", None)
    assert subprocess.run([*command[:2], "print(input())"], input=b"text", stdout=-1, check=True).stdout == b"text\n"
    assert not any(isinstance(thread, threading.Timer) for thread in {*threading.enumerate()} - threads)


@pytest.mark.system
def test_a_read_of_the_output_ends_and_the_failure_names_the_process() -> None:
    with pytest.raises(IndexError) as failure, running_process(SLEEP, stdout=subprocess.PIPE) as process:
        process.stdout.read().splitlines()[1]
    assert failure.value.__notes__[0].startswith("killed after 0.2 s: [")
    with pytest.raises(AssertionError, match=r"killed after 0.2 s"), running_process(SLEEP, stdout=-1) as process:
        process.stdout.read()


@pytest.mark.system
def test_a_failure_in_the_block_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limits, "END_S", 500.0)
    with pytest.raises(ZeroDivisionError), running_process(SLEEP, stdout=subprocess.DEVNULL) as process:
        raise ZeroDivisionError
    assert process.returncode < 0


def test_an_async_test_ends() -> None:
    async def wait_forever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(limit_coroutine(wait_forever)())


async def test_every_async_test_is_limited(request: pytest.FixtureRequest) -> None:
    assert request.node.obj.__wrapped__.__name__ == "test_every_async_test_is_limited"


def test_a_condition_and_a_thread_have_an_end() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"after 0.2 s still no sign of the file"):
        wait_until(lambda: False, "the file")
    event = threading.Event()
    thread = threading.Thread(target=event.wait, name="waiter", daemon=True)
    thread.start()
    with pytest.raises(AssertionError, match=r"waiter still runs after 0.2 s"):
        join(thread)
    event.set()
    join(thread)


def test_a_lost_server_of_forks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that joins the others after `tests/forked.py` has died does not wait for its reader forever."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "lost")
    (tmp_path / "hybrid-lost").mkdir()
    os.mkfifo(tmp_path / "hybrid-lost" / "held")
    with pytest.raises(OSError, match="No such device"):
        runnable._server.__wrapped__()
