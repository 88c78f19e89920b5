"""A file of JSON lines that only grows, whatever happens to the process or the disk.

    journal = Journal(path)
    journal.append(b'{"id": "q1"}', b'{"id": "q2"}')    # both on disk when it returns
    journal.close()

A last line without its end, left by a crash, is cut off when the file is opened; a line that could not be written as a
whole is taken back. Secrets are never written. Safe in any thread.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock

from hybrid.log.files import sync_folder
from hybrid.secrets import redact_bytes

# No descriptor.
CLOSED = -1
# Bytes that are read at a time while the end of the last whole line is looked for.
BLOCK = 1 << 16


class Journal:
    """A file of lines, open for appending.

    Args:
        path: the file; it and its folder are made where they are not there.
        durable: whether `append` waits for the disk. Without it a kill of the process loses nothing that was appended,
            but a crash of the machine may.

    Raises:
        OSError: the file cannot be opened or made.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        self._durable = durable
        self._lock = Lock()
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._size = end_of_lines(self._file)
            if self._size != os.fstat(self._file).st_size:
                os.ftruncate(self._file, self._size)
            if new and durable:
                sync_folder(path.parent)
        except BaseException:
            os.close(self._file)
            raise

    def append(self, *lines: bytes) -> bytes:
        """Write lines together. Returns the bytes as written: they may have held secrets.

        Raises:
            OSError: they cannot be written; then none of them is in the file.
        """
        data = redact_bytes(b"".join(line + b"\n" for line in lines))
        with self._lock:
            try:
                remaining = memoryview(data)
                while remaining:
                    remaining = remaining[os.write(self._file, remaining) :]
                if self._durable:
                    os.fsync(self._file)
            except OSError:
                if self._file != CLOSED:
                    os.ftruncate(self._file, self._size)
                raise
            self._size += len(data)
        return data

    def sync(self) -> None:
        """Wait until all that was appended is on disk. Raises `OSError`."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file; to append to it is an `OSError` from now on."""
        with self._lock:
            os.close(self._file)
            # Another file may get the number, and threads that still hold a line must not write there.
            self._file = CLOSED


def end_of_lines(file: int) -> int:
    """Where the last whole line of an open file ends, in bytes; only its end is read."""
    end = os.fstat(file).st_size
    while end > 0:
        start = max(0, end - BLOCK)
        if (newline := os.pread(file, end - start, start).rfind(b"\n")) >= 0:
            return start + newline + 1
        end = start
    return 0
