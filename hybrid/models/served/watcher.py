"""Runs a command and ends it, with all its processes, when this process's standard input is closed.

    python watcher.py COMMAND WORD...

The program that starts it holds the other end of the pipe, so the server ends however the program ends, `kill -9`
included. Only the standard library is used, because this runs as a file, outside of the package.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

# Seconds that a server has to stop.
GRACE_S = 10.0


def main(words: list[str]) -> int:
    """Run the command; return its exit code, negative for a signal."""
    # A separate session is a group of processes that can be signalled together.
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
    closed = threading.Event()

    def read_to_end() -> None:
        with contextlib.suppress(OSError):
            # Do not read `sys.stdin`, because this thread would hold its lock while the interpreter exits.
            while os.read(0, 4096):
                pass
        closed.set()
        _signal_group(process.pid, signal.SIGTERM)
        # Child processes may outlive the server.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        _signal_group(process.pid, signal.SIGKILL)

    reader = threading.Thread(target=read_to_end, daemon=True)
    reader.start()
    code = process.wait()
    if closed.is_set():
        reader.join(GRACE_S + 5)
    # The server ended unexpectedly: stop its other processes.
    _signal_group(process.pid, signal.SIGKILL)
    return code


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    # The program that started this process handles Ctrl-C and a closed terminal; it then closes the pipe.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    exit_code = main(sys.argv[1:])
    sys.exit(exit_code if exit_code >= 0 else 128 - exit_code)
