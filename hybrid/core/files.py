"""Atomic replacement of files, reads up to a limit, and redaction of secrets.

    write_atomic(path, data, durable=True)
    data = read_small(path)     # a file written by a person or a command

An endless device, a pipe or a huge file raises an ordinary error instead of exhausting memory.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hybrid.core.errors import UsageError
from hybrid.core.secrets import redact_bytes

# Largest input file in bytes; the largest known files have a few hundred thousand bytes.
MAX_BYTES = 64 * 2**20


def read_small(path: Path, most: int = MAX_BYTES) -> bytes:
    """Read a file, a pipe or a device of at most `most` bytes.

    Args:
        path: the file.
        most: limit in bytes, at least 0.

    Raises:
        OSError: the file cannot be read, or is larger than `most` (`errno` is then `EFBIG`).
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"more than {most:,} bytes, too many for a file of this kind", str(path))
    return data


def write_atomic(path: Path, data: bytes | Iterable[bytes], *, durable: bool = False) -> None:
    """Replace a file atomically: if the process crashes, the file has either all of its old or all of its new content.

    A device, a pipe or an open file of this process (`/dev/stdout`) is written to directly. Any other link is replaced,
    not followed, because another user may have linked it to a valuable target.

    Args:
        path: the file; missing parent folders are created. The umask sets its permissions.
        data: its content, in one piece or in parts.
        durable: sync file and folders to disk before returning, so that they survive a power cut. Data that can be
            computed again do not need this.

    Raises:
        OSError: it cannot be written (a full disk, a read-only folder); `path` is unchanged and no other file is left.
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
        # The error of a full disk names no file, or only the temporary file.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that a file that was renamed into it survives a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems do not support this for folders.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _replace(path: Path, parts: Iterable[bytes], *, durable: bool) -> None:
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    # Do not use tempfile.mkstemp, because only the owner can read its files, but a store may be shared with a group.
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
    """Replace a file atomically with its secrets redacted; `durable` as for `write_atomic`."""
    write_atomic(path, redact_bytes(data), durable=durable)


# Advice on a file that cannot be written, by the system's error code.
ADVICE: Final[Mapping[int, str]] = {
    errno.ENOSPC: "free some space and repeat the command",
    errno.EDQUOT: "free some space and repeat the command",
    errno.EROFS: "name another folder (HYBRID_HOME names that of pictures and tool outputs)",
}


def advice_on(error: OSError) -> str:
    """Return advice on a system error, preceded by a semicolon; empty if there is no advice."""
    advice = ADVICE.get(error.errno or 0)
    return f"; {advice}" if advice else ""


def first_of_tree(error: shutil.Error) -> OSError:
    """Return the error of the first file that could not be copied from a tree; it names the copy."""
    _, copy, text = error.args[0][0]
    # Take only the number and the reason: the rest of the text repeats the names of both files.
    matched = re.match(r"\[Errno (-?[0-9]+)\] ([^:]*)", str(text))
    number, reason = (int(matched[1]), matched[2]) if matched else (errno.EIO, str(text))
    return OSError(number, reason, os.fspath(copy))


@contextmanager
def complete_or_absent(path: Path) -> Iterator[None]:
    """Remove what was written at `path` if the `with` block fails, so that the same command can be repeated.

    Args:
        path: must be missing, or an empty folder, which is kept.

    Raises:
        OSError: the error of the `with` block; `filename` is `path` if a library named no file.
    """
    existed = os.path.lexists(path)
    try:
        yield
    except BaseException as error:
        for entry in list(path.iterdir()) if path.is_dir() else [path]:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        if path.is_dir() and not existed:
            path.rmdir()
        if isinstance(error, shutil.Error):
            raise first_of_tree(error) from error
        if isinstance(error, OSError) and error.filename is None:
            raise OSError(error.errno, _reason(error), os.fspath(path)) from error
        raise


def _reason(error: OSError) -> str:
    # C++ libraries wrap the system's message in their own.
    return os.strerror(error.errno) if error.errno else str(error)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an `OSError` in the `with` block into a `UsageError` that names the folder."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}{advice_on(error)}") from error
