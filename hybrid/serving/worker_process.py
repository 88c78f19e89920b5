"""A worker process from the run's side: start it, send it messages, read its memory use, kill it.

    process = WorkerProcess(setup, on_message, on_end)      # in an event loop
    process.send(LoadRequest(1, "depth"))
    process.kill()                                          # immediately, with all of its child processes

If the process ends by itself, `on_end` gets a description: `exit code 3`, `signal SIGSEGV`.
"""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from hybrid.core.secrets import redact
from hybrid.display.notes import OTHER_BARS
from hybrid.serving.channel import LoopChannel
from hybrid.serving.protocol import Message, Setup, ToWorker

# Environment variable with the number of threads of NumPy's linear algebra (OpenBLAS).
BLAS_THREADS = "OPENBLAS_NUM_THREADS"
# Environment variable with the number of threads of all libraries that use OpenMP. OpenBLAS reads it only if its own
# variable is missing.
ALL_THREADS = "OMP_NUM_THREADS"
POLL_S = 0.02
# A process that has closed its socket and not ended after this many polls is killed.
MAX_POLLS = 100
# Seconds to wait for a killed process to be gone; a process with much memory takes a while.
REAP_S = 5.0
PR_SET_PDEATHSIG = 1


class WorkerProcess:
    """One worker, from start to end.

    Args:
        setup: what the worker serves.
        on_message: called with each message of the worker.
        on_end: called once with a description of how the process ended, but not after `kill`.
    """

    def __init__(self, setup: Setup, on_message: Callable[[Message], None], on_end: Callable[[str], None]) -> None:
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        parent_end, child_end = socket.socketpair()
        try:
            with child_end:
                self._process = _started(child_end)
        except BaseException:
            parent_end.close()
            raise
        self._channel = LoopChannel(parent_end, on_message, self._on_socket_closed)
        self._channel.send(setup)
        self._gone = False

    def send(self, message: ToWorker) -> None:
        """Send a message; a worker that has ended does not get it."""
        self._channel.send(message)

    def resident_bytes(self) -> int | None:
        """Return the worker's resident memory in bytes; None if unavailable (outside Linux without psutil)."""
        if sys.platform == "linux":
            try:
                pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
            except (OSError, ValueError, IndexError):
                return None
            return pages * os.sysconf("SC_PAGE_SIZE")
        try:
            import psutil  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            return None
        try:
            return int(psutil.Process(self._process.pid).memory_info().rss)
        except psutil.Error:
            return None

    def kill(self) -> None:
        """Kill the worker and its children at once, without waiting for them to be gone."""
        if self._gone:
            return
        self._gone = True
        self._channel.close()
        self._kill()
        threading.Thread(target=self._process.wait, name="reaper", daemon=True).start()

    def close(self) -> None:
        """Kill the worker at once and wait until it is gone."""
        self.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(REAP_S)

    def _kill(self) -> None:
        # The worker has its own process group, whose other members may outlive it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _on_socket_closed(self, polls: int = 0) -> None:
        """Handle a closed socket, which precedes the end of the process."""
        if self._gone:
            return
        if self._process.poll() is None:
            if polls >= MAX_POLLS:
                self._kill()
            self._loop.call_later(POLL_S, self._on_socket_closed, polls + 1)
            return
        self._gone = True
        self._kill()
        self._on_end(ending(self._process.returncode))


def _started(sock: socket.socket) -> subprocess.Popen[bytes]:
    fd = sock.fileno()
    places = [str(Path.cwd()) if entry == "" else entry for entry in sys.path]
    return subprocess.Popen(  # noqa: S603 - this interpreter and a module of this project
        [sys.executable, "-P", "-m", "hybrid.serving.worker", str(fd)],
        stdin=subprocess.DEVNULL,
        stdout=2,
        pass_fds=(fd,),
        env={**_environment(), "PYTHONPATH": os.pathsep.join(places)},
        process_group=0,
    )


def start_detached(words: Sequence[str], output: BinaryIO) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one and its terminal, with the environment of a worker."""
    return subprocess.Popen(  # noqa: S603 - this program
        words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=_environment(), start_new_session=True
    )


def _environment() -> dict[str, str]:
    """Return the run's environment without the keys of models, which tools do not need; HF tokens stay.

    Progress bars of other libraries are off unless the user wants them, because the run shows what is being loaded.
    Except on ARM, NumPy's linear algebra uses one thread by default: tools run in several threads, and OpenBLAS's own
    threads would wait in busy loops.
    """
    environment = {OTHER_BARS: "1", **os.environ}
    # On ARM, PyTorch uses OpenBLAS, too, and large products of a network need its threads. OpenBLAS reads its own
    # variable before the general one, which the user may have set.
    if platform.machine().lower() not in ("aarch64", "arm64") and ALL_THREADS not in environment:
        environment.setdefault(BLAS_THREADS, "1")
    return {name: value for name, value in environment.items() if name.startswith("HF_") or redact(value) == value}


def ending(code: int) -> str:
    """Describe the end of a process by its exit code or, if negative, its signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def end_with_parent() -> None:
    """Make Linux kill this process when its parent ends, whatever it is running."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
