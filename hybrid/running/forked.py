"""Steps of work in a process of their own, which takes with it all that it imported and decoded.

    with closing(in_fork(steps())) as made:      # of a generator
        first, second = next(made), next(made)

The process is a fork: it has all that was imported here, and its notes and progress bars go where ours do.
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
# Open files in one value.
MAX_FILES = 8


def can_fork() -> bool:
    """Whether this is Linux and one thread: in a fork, a lock that another one holds would stay locked.

    Threads of libraries, which Python does not know, count as well.
    """
    return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1


def in_fork(steps: Generator[Any, None, None]) -> Generator[Any, None, None]:
    """The values of `steps`, made in a fork of this process where there can be one, which is always one step ahead.

    Where there can be none, each is made when it is asked for. They are copied by pickle; an `OpenFile` stays the same
    open file. Once this is closed, the other process has ended.

    Raises:
        HybridError: something else ended the other process.
        BaseException: what a step raises; an error that is none of ours has its traceback as a note.
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
        # Never back into what called this: that goes on in the first process.
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
        # In this order: the process looks whether the socket is closed once it can be interrupted.
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
    """Whether the step that was asked for raised, and its value or error."""
    try:
        _, files, *_ = socket.recv_fds(sock, len(HEAD), MAX_FILES, socket.MSG_CMSG_CLOEXEC)
        open_files = [OpenFile(file) for file in files]
        with sock.makefile("rb") as stream:
            unpickler = pickle.Unpickler(stream)  # noqa: S301 - our own fork wrote it
            unpickler.persistent_load = open_files.__getitem__  # type: ignore[method-assign]
            raised, value = unpickler.load()
    except (ConnectionError, EOFError) as error:
        _say_ended(child, error)
    return raised, value


def _say_ended(child: int, error: Exception) -> NoReturn:
    status = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert status is not None  # noqa: S101 - it is waited for
    cause = ending(status.si_status if status.si_code == os.CLD_EXITED else -status.si_status)
    raise HybridError(
        f"the process that reads the data ended too early ({cause}); if the machine has no memory left, free some and "
        "run it again"
    ) from error


def _serve(steps: Generator[Any, None, None], sock: socket.socket) -> None:
    """Make a value whenever one is asked for, until the other side has closed the socket.

    An interruption ends a step, which cleans up as it would in the first process; between steps it does nothing.
    """
    end_with_parent()
    sys.unraisablehook = _end_with_interruption
    # Ignored by what a script has put into the background, and by its fork.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    if callable(handler):
        handler = partial(_interrupted, handler)
    with suppress(KeyboardInterrupt, ConnectionError), closing(steps):
        while sock.recv(len(HEAD)):
            signal.signal(signal.SIGINT, handler)
            # What came before it could be interrupted has left a closed socket.
            result = _next_step(steps) if _open(sock) else None
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if result is None:
                break
            data, files = result
            _flush()
            socket.send_fds(sock, [HEAD], [file.number for file in files])
            sock.sendall(data)


def _interrupted(handler: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None) -> None:
    """Interrupt once: a terminal interrupts both processes, and the first one then this one again, which cleans up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handler(number, frame)


def _open(sock: socket.socket) -> bool:
    try:
        return bool(sock.recv(len(HEAD), socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True


def _end_with_interruption(unraisable: sys.UnraisableHookArgs) -> None:
    """End with an interruption that fell into what Python calls when an object goes: it would be lost there."""
    if unraisable.exc_type is KeyboardInterrupt:
        os._exit(1)
    sys.__unraisablehook__(unraisable)


def _next_step(steps: Generator[Any, None, None]) -> tuple[bytes, list[OpenFile]]:
    """The next value or error, and the open files in it, which would be closed if nothing held them."""
    try:
        return _pickle((False, next(steps, StopIteration)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if not isinstance(error, HybridError | OSError):
            error.add_note("".join(traceback.format_exception(error)))
        try:
            data, files = _pickle((True, error))
            pickle.loads(data)  # noqa: S301 - some can be written and not read
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
    """Write what is buffered: a fork has a copy of it."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
