"""An end for everything that a test waits for, so that a test that hangs fails and says on what it waited.

    with running_process(command, stdout=subprocess.PIPE) as process:    # killed at the latest after `END_S`
    wait_until(path.exists, "the file")
    join(thread)

`conftest.py` limits every async test and every process without a timeout of its own.
"""

import asyncio
import functools
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# A test that passes does not wait that long.
END_S = 600.0


def limit_processes(patch: pytest.MonkeyPatch) -> None:
    """Let `wait` and `communicate` of a process raise `TimeoutExpired` after `END_S` if they have no timeout.

    The process is killed first. This includes `subprocess.run` and leaving a `with subprocess.Popen(...)`.
    """
    wait, communicate = subprocess.Popen.wait, subprocess.Popen.communicate

    def wait_limited(process: Any, timeout: float | None = None) -> int:
        if timeout is not None:
            return wait(process, timeout)
        try:
            return wait(process, END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise

    def communicate_limited(process: Any, input: Any = None, timeout: float | None = None) -> Any:  # noqa: A002
        if timeout is not None:
            return communicate(process, input, timeout)
        # A timeout would change the result: with one pipe, the text that a `readline` has left in the buffer is lost.
        with kill_late(process) as expired:
            output = communicate(process, input)
        if expired.is_set():
            raise subprocess.TimeoutExpired(process.args, END_S)
        return output

    patch.setattr(subprocess.Popen, "wait", wait_limited)
    patch.setattr(subprocess.Popen, "communicate", communicate_limited)


@contextmanager
def kill_late(process: Any) -> Iterator[threading.Event]:
    """Kill the process if the block takes longer than `END_S`; yield an event that is set in that case.

    If a child of the process has its output open, only pytest's `faulthandler_timeout` ends a read of it.
    """
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        process.kill()

    alarm = threading.Timer(END_S, expire)
    alarm.daemon = True
    alarm.start()
    try:
        yield expired
    finally:
        alarm.cancel()
        # Python warns of a fork in a process with several threads.
        alarm.join()


def limit_coroutine(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., Coroutine[Any, Any, None]]:
    """Return the async test with an end: `TimeoutError` after `END_S`, at the line that waits."""

    @functools.wraps(test)
    async def limited(*args: Any, **values: Any) -> None:
        async with asyncio.timeout(END_S):
            await test(*args, **values)

    return limited


@contextmanager
def running_process(command: Sequence[str | Path], **options: Any) -> Iterator[Any]:
    """Run a `subprocess.Popen` that is killed when the block fails, or after `END_S`.

    A read of its output then returns instead of waiting forever; the block should wait for the process.
    """
    with subprocess.Popen(command, **options) as process, kill_late(process) as expired:
        try:
            yield process
        except BaseException as error:
            if expired.is_set():
                error.add_note(f"killed after {END_S:g} s: {command}")
            process.kill()
            raise
    assert not expired.is_set(), f"killed after {END_S:g} s: {command}"


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Wait until the condition holds; fail after `END_S`."""
    end = time.monotonic() + END_S
    while not holds():
        if time.monotonic() > end:
            pytest.fail(f"after {END_S:g} s still no sign of {what}")
        time.sleep(0.02)


def join(thread: threading.Thread) -> None:
    """Wait for the end of a thread; fail after `END_S`. The thread should be a daemon, for which Python never waits."""
    thread.join(END_S)
    assert not thread.is_alive(), f"{thread.name} still runs after {END_S:g} s"
