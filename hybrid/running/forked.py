"""Runs steps of work in a forked process, whose end frees everything that it imported and decoded.

    with closing(in_fork(steps())) as made:      # from a generator
        first, second = next(made), next(made)

The fork inherits everything imported here, and its notes and progress bars are printed like this process's own.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from functools import partial
from types import FrameType
from typing import Any, NoReturn

from hybrid.core.errors import HybridError
from hybrid.log.lines import OpenFile
from hybrid.serving.worker_process import end_with_parent, ending

HEAD = b"."
# Maximum number of open files in one value.
MAX_FILES = 8


def can_fork() -> bool:
    """Return whether this is Linux with one thread: in a fork, a lock held by another thread would stay locked.

    Threads of libraries, which Python does not know, count too.
    """
    return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1


def in_fork(steps: Generator[Any, None, None]) -> Generator[Any, None, None]:
    """Yield the values of `steps`, computed one step ahead in a fork of this process if possible.

    Without a fork, each value is computed on demand. Values are copied by pickle; an `OpenFile` stays the same open
    file. Closing this generator ends the other process.

    Raises:
        HybridError: the other process ended unexpectedly.
        BaseException: any error of a step; an error that is not a `HybridError` has the traceback of the other process
            as a note.
    """
    if not can_fork():
        yield from steps
        return
    parent_end, child_end = socket.socketpair()
    _flush()
    child = -1
    try:
        child = os.fork()
        if child == 0:
            parent_end.close()
            _serve(steps, child_end)
    finally:
        # The child must never return into the caller's code, which continues in the parent.
        if child == 0:
            os._exit(1)
    child_end.close()
    try:
        _ask(parent_end, child)
        while True:
            raised, value = _answer(parent_end, child)
            if raised:
                raise value
            if value is StopIteration:
                return
            _ask(parent_end, child)
            yield value
    finally:
        # Close the socket before the signal: the child checks for a closed socket as soon as it can be interrupted.
        parent_end.close()
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGINT)
            os.waitpid(child, 0)


def _ask(sock: socket.socket, child: int) -> None:
    try:
        sock.sendall(HEAD)
    except ConnectionError as error:
        _say_ended(child, error)


def _answer(sock: socket.socket, child: int) -> tuple[bool, Any]:
    """Return whether the requested step raised, and its value or error."""
    try:
        _, files, *_ = socket.recv_fds(sock, len(HEAD), MAX_FILES, socket.MSG_CMSG_CLOEXEC)
        open_files = [OpenFile(file) for file in files]
        with sock.makefile("rb") as stream:
            unpickler = pickle.Unpickler(stream)  # noqa: S301 - this program's own fork wrote it
            unpickler.persistent_load = open_files.__getitem__  # type: ignore[method-assign]
            raised, value = unpickler.load()
    except (ConnectionError, EOFError) as error:
        _say_ended(child, error)
    return raised, value


def _say_ended(child: int, error: Exception) -> NoReturn:
    status = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert status is not None  # noqa: S101 - without WNOHANG, waitid waits and returns a result
    cause = ending(status.si_status if status.si_code == os.CLD_EXITED else -status.si_status)
    raise HybridError(
        f"the process that reads the data ended too early ({cause}); if the machine ran out of memory, free some and "
        "repeat the command"
    ) from error


def _serve(steps: Generator[Any, None, None], sock: socket.socket) -> None:
    """Compute a value on each request, until the other side closes the socket.

    An interrupt ends a step, which cleans up as in the parent process; between steps interrupts are ignored.
    """
    end_with_parent()
    sys.unraisablehook = _end_with_interruption
    # A closed terminal sends the signal to parent and child; the parent closes the socket when it ends.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Background processes of a script ignore SIGINT; this fork inherits that and keeps it.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    if callable(handler):
        handler = partial(_interrupted, handler)
    with suppress(KeyboardInterrupt, ConnectionError), closing(steps):
        while sock.recv(len(HEAD)):
            signal.signal(signal.SIGINT, handler)
            # If an interrupt arrived earlier, the parent has closed the socket.
            result = _next_step(steps) if _open(sock) else None
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if result is None:
                break
            data, files = result
            _flush()
            socket.send_fds(sock, [HEAD], [file.number for file in files])
            sock.sendall(data)


def _interrupted(handler: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None) -> None:
    """Interrupt only once: the terminal signals both processes, and the parent's cleanup signals the child again."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handler(number, frame)


def _open(sock: socket.socket) -> bool:
    try:
        return bool(sock.recv(len(HEAD), socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True


def _end_with_interruption(unraisable: sys.UnraisableHookArgs) -> None:
    """Exit on an interrupt inside an object's finaliser, where Python would swallow it."""
    if unraisable.exc_type is KeyboardInterrupt:
        os._exit(1)
    sys.__unraisablehook__(unraisable)


def _next_step(steps: Generator[Any, None, None]) -> tuple[bytes, list[OpenFile]]:
    """Return the next value or error, and its open files, which would otherwise be closed."""
    try:
        return _pickle((False, next(steps, StopIteration)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if not isinstance(error, HybridError | OSError):
            error.add_note("".join(traceback.format_exception(error)))
        try:
            data, files = _pickle((True, error))
            pickle.loads(data)  # noqa: S301 - Some values can be pickled but not unpickled.
        except Exception:
            return _pickle((True, RuntimeError("".join(traceback.format_exception(error)))))
        return data, files


def _pickle(value: object) -> tuple[bytes, list[OpenFile]]:
    files: list[OpenFile] = []

    def place(value: object) -> int | None:
        if not isinstance(value, OpenFile):
            return None
        files.append(value)
        return len(files) - 1

    stream = io.BytesIO()
    pickler = pickle.Pickler(stream)
    pickler.persistent_id = place  # type: ignore[method-assign]
    pickler.dump(value)
    return stream.getvalue(), files


def _flush() -> None:
    """Flush buffers, because a fork copies them."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
