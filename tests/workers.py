"""Tool worker processes for tests, forked by a process that has already loaded their common, slow imports.

    python -P tests/workers.py FD               # the server, which ends with the other side of the socket FD
    process = start(sock, environment)  # for `hybrid/serving/worker_process.py`, in the test process

A worker gets the environment, the working directory and stderr of the caller, and has loaded no tool before.
"""

import atexit
import functools
import gc
import json
import os
import select
import socket
import subprocess
import sys
import threading
import traceback

# Seconds after which a wait without a limit fails.
END_S = 600.0


class ForkedWorker:
    """The part of a `subprocess.Popen` that a `WorkerProcess` uses."""

    def __init__(self, ends: int) -> None:
        self._ends, self._lock = ends, threading.Lock()
        self.pid = int(os.read(ends, 16))
        self.returncode: int | None = None

    def __del__(self) -> None:
        os.close(self._ends)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process, in any thread; raises `TimeoutExpired`."""
        timeout = END_S if timeout is None else timeout
        if not select.select([self._ends], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("worker", timeout)
        with self._lock:
            if self.returncode is None:
                self.returncode = int(os.read(self._ends, 16))
            return self.returncode


@functools.cache
def server() -> socket.socket:
    """Return the socket of this process's server."""
    actual, reference = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [sys.executable, "-P", __file__, str(reference.fileno())]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(words, pass_fds=(reference.fileno(),), **quiet)  # type: ignore[call-overload]
    reference.close()
    atexit.register(process.wait, timeout=60)
    atexit.register(actual.close)
    return actual


def start(sock: socket.socket, environment: dict[str, str]) -> ForkedWorker:
    """Fork a worker at one end of a socket pair."""
    request = server()
    sys.audit("os.fork")
    actual, reference = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with reference:
        about = json.dumps([os.getcwd(), environment]).encode()
        socket.send_fds(request, [about], [sock.fileno(), reference.fileno(), 2])
    return ForkedWorker(actual.detach())


def serve(request: socket.socket) -> None:
    """Fork a worker for each request."""
    from hybrid.serving import worker

    worker.load_libraries()
    gc.collect()
    gc.freeze()
    while True:
        about, fds, _, _ = socket.recv_fds(request, 1 << 20, 3)
        if not about:
            return
        if os.fork() == 0:
            request.close()
            _watch(about, *fds)
        for fd in fds:
            os.close(fd)
        # The process that watched the previous worker has ended with that worker.
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _watch(about: bytes, sock: int, ends: int, err: int) -> None:
    """Fork the worker; send its process id and, when it has ended, its exit status."""
    from hybrid.serving.worker_process import end_with_parent

    end_with_parent()
    pid = os.fork()
    if pid == 0:
        os.close(ends)
        _work(about, sock, err)
    os.close(sock)
    os.close(err)
    with socket.socket(fileno=ends) as text:
        text.send(b"%d" % pid)
        text.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


def _work(about: bytes, sock: int, err: int) -> None:
    from hybrid.serving import worker

    os.setpgid(0, 0)
    os.dup2(err, 1)
    os.dup2(err, 2)
    folder, environment = json.loads(about)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = [str(sock)]
    try:
        worker.main()
    except BaseException:
        traceback.print_exc()
    os._exit(1)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
