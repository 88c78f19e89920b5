"""Whole files: replaced so that a crash leaves the old or the new one, read up to a limit, and without secrets.

    write_atomic(path, data, durable=True)
    data = read_small(path)     # input that a person writes or a command made

A device that never ends, a pipe and a file of another kind are an error like others, not the end of memory.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hybrid.errors import UsageError
from hybrid.secrets import redact_bytes

# Bytes that are read of a file of this kind; the largest known ones have some hundred thousand.
MAX_BYTES = 64 * 2**20


def read_small(path: Path, most: int = MAX_BYTES) -> bytes:
    """All bytes of a file, a pipe or a device that has no more than so many.

    Args:
        path: what to read.
        most: bytes, at least 0.

    Raises:
        OSError: it cannot be read, or holds more; then `errno` is `EFBIG`.
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"more than {most:,} bytes, too many for a file of this kind", str(path))
    return data


def write_atomic(path: Path, data: bytes | Iterable[bytes], *, durable: bool = False) -> None:
    """Write a file so that a reader, or a crash of the process, never sees half of it.

    A device, a pipe or an open file of this process (`/dev/stdout`) is written to and stays what it is. Any other link
    is replaced: its target may be precious, and the user need not have made the link.

    Args:
        path: the file; folders above it are made. It is readable as the umask lets files be.
        data: all of its bytes, or parts of them in order.
        durable: whether it must also outlive a power cut: file and folders are on disk when this returns. Everything
            that can be computed again does without.

    Raises:
        OSError: it cannot be written (a full disk, a read-only folder); `path` is as it was and nothing else is left.
    """
    parts = [data] if isinstance(data, bytes) else data
    try:
        opened_here = path.is_symlink() and os.readlink(path).startswith("/proc/self/fd/")
        if opened_here or (path.exists() and not path.is_file() and not path.is_dir()):
            with path.open("wb") as file:
                file.writelines(parts)
            return
        folders: list[Path] = []
        if not path.parent.is_dir():
            folders = [place for place in (path.parent, *path.parent.parents) if not place.exists()]
            path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, parts, durable=durable)
        if durable:
            for folder in (path.parent, *(new.parent for new in folders)):
                sync_folder(folder)
    except OSError as error:
        # Writing to a full disk names no file, and the name of the temporary one says nothing.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk: a file that was renamed into it is there after a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems know no such thing for folders.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _replace(path: Path, parts: Iterable[bytes], *, durable: bool) -> None:
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    # Not tempfile.mkstemp: its files are for their owner alone, and a store is shared with a group.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_redacted(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Replace a file as a whole, without secrets; `durable` for what could not be made again after a power cut."""
    write_atomic(path, redact_bytes(data), durable=durable)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise `UsageError`, naming the folder, where what is done inside cannot be written."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
