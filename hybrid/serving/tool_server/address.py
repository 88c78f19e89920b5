"""The socket of the tool server, in the cache folder, for the same user only.

with listening() as listener: ...            # the server; one for each cache folder and machine
sock, facts = connect()                      # a client; `facts` is the server's first message

The folder has mode 0700 and the socket 0600, and both sides check the user of the other. The server holds a lock while
it runs, so that a socket without a server is recognized and replaced. Machines that share a cache folder each have
their own socket.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from hybrid.core.errors import HybridError, UsageError
from hybrid.core.images import home
from hybrid.serving.channel import ThreadChannel
from hybrid.serving.protocol import ServerFacts

# Maximum bytes of a socket's path, without the terminating zero.
MAX_PATH: Final = 103 if sys.platform == "darwin" else 107
# Folder of this process's open files, through which Linux reaches a socket with a longer path.
DESCRIPTORS = Path("/proc/self/fd")
# Seconds within which a server must answer; it also answers while it loads and computes.
ANSWER_S: Final = 10.0
BACKLOG: Final = 64


class ServerUnusable(HybridError):
    """A socket exists, but no server of this user answers on it."""


def server_folder() -> Path:
    """Return the folder of socket, lock and log."""
    return (home() / "tool-server").absolute()


def log_path() -> Path:
    """Return the log of the server of this machine."""
    return server_folder() / f"{_machine()}.log"


def socket_path() -> Path:
    """Return the path of the socket of this machine."""
    return server_folder() / f"{_machine()}.socket"


def _machine() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def make_folder() -> Path:
    """Create the folder of the socket, for this user only, and return it.

    Raises:
        UsageError: the folder belongs to another user or is not a folder, or the socket's path is too long.
        OSError: the folder cannot be created.
    """
    folder, path = server_folder(), socket_path()
    if (size := len(os.fsencode(path))) > MAX_PATH and not DESCRIPTORS.is_dir():
        raise UsageError(
            f"{path}: the path of a socket may have {MAX_PATH} bytes, this one has {size}: set HYBRID_HOME to a folder "
            "with a shorter path"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if reason := _folder_fault(folder):
        raise UsageError(f"{folder}: {reason}: set HYBRID_HOME to a folder of your own")
    folder.chmod(0o700)
    return folder


@contextmanager
def _address() -> Iterator[str]:
    """Yield the path of the socket, or a path through an open folder if it is too long. Raises `OSError`."""
    path = socket_path()
    if len(os.fsencode(path)) <= MAX_PATH or not DESCRIPTORS.is_dir():
        yield str(path)
        return
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield str(DESCRIPTORS / str(descriptor) / path.name)
    finally:
        os.close(descriptor)


def _folder_fault(folder: Path) -> str | None:
    """Return why the folder of the socket cannot be trusted; None if it can."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return "this is not a folder"
    return None if status.st_uid == os.getuid() else "this folder belongs to another user"


@contextmanager
def locked() -> Iterator[None]:
    """Hold the lock of this cache folder and machine until the context ends.

    Raises:
        UsageError: as `make_folder`, or a server is up.
        OSError: the lock cannot be made.
    """
    file = make_folder() / f"{_machine()}.lock"
    lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise UsageError(UP) from error
    finally:
        os.close(lock)


@contextmanager
def listening() -> Iterator[socket.socket]:
    """Hold the lock and listen on the socket until the context ends; a socket that an ended server left is replaced.

    Raises:
        UsageError, OSError: as `locked`, or the socket cannot be made.
    """
    path = socket_path()
    with locked(), socket.socket(socket.AF_UNIX) as listener:
        path.unlink(missing_ok=True)
        with _address() as address:
            listener.bind(address)
        try:
            path.chmod(0o600)
            listener.listen(BACKLOG)
            listener.setblocking(False)
            yield listener
        finally:
            path.unlink(missing_ok=True)


UP: Final = (
    "a tool server is already running for this cache folder: `hybrid tools status` describes it, `hybrid tools down` "
    "ends it"
)


def connect(answer_s: float = ANSWER_S) -> tuple[socket.socket, ServerFacts] | None:
    """Connect to the server; return the socket with its first message, or None if there is no socket.

    Raises:
        ServerUnusable: nobody answers, or the server belongs to another user.
    """
    path = socket_path()
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise ServerUnusable(f"{path} is not a socket: remove it")
        if reason := _folder_fault(path.parent):
            raise ServerUnusable(f"{path.parent}: {reason}")
    except OSError:
        return None
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.settimeout(answer_s)
        with _address() as address:
            sock.connect(address)
        return sock, _first_message(sock)
    except BaseException as error:
        sock.close()
        if isinstance(error, TimeoutError):
            raise ServerUnusable(f"it does not answer within {answer_s:g} s; `hybrid tools down` ends it") from error
        if isinstance(error, FileNotFoundError):
            return None
        if isinstance(error, OSError):
            raise ServerUnusable(
                f"it has ended unexpectedly (log: {log_path()}); start it again with `hybrid tools up`"
            ) from error
        if isinstance(error, EOFError | ValueError):
            raise ServerUnusable(
                "it is from another version of hybrid, or is ending; end it with `hybrid tools down`"
            ) from error
        raise


def _first_message(sock: socket.socket) -> ServerFacts:
    if not is_same_user(sock):
        raise ServerUnusable("it belongs to another user")
    facts = ThreadChannel(sock).first()
    if not isinstance(facts, ServerFacts):
        raise ServerUnusable("it is from another version of hybrid; end it with `hybrid tools down`")
    return facts


def is_same_user(sock: socket.socket) -> bool:
    """Return whether the other side is a process of this user; where that is unknown, the folder's mode decides."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    return _credentials(sock)[1] == os.getuid()


def _credentials(sock: socket.socket) -> tuple[int, int]:
    """Return process and user ids of the other side."""
    process, user, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return process, user


def listening_process() -> int | None:
    """Return the process that listens on the socket, even if it does not answer; None if there is none or unknown."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    with socket.socket(socket.AF_UNIX) as sock, suppress(OSError), _address() as address:
        sock.settimeout(ANSWER_S)
        sock.connect(address)
        process, user = _credentials(sock)
        return process if user == os.getuid() and process > 0 else None
    return None


def remove_stale() -> bool:
    """Remove a socket that no server holds; return whether there was one."""
    if not socket_path().exists():
        return False
    with suppress(UsageError), locked():
        socket_path().unlink(missing_ok=True)
        return True
    return False
