"""An append-only file of JSON lines that survives crashes of the process and full disks.

    journal = Journal(path)
    journal.append(b'{"id": "q1"}', b'{"id": "q2"}')    # both on disk when it returns
    journal.close()

An incomplete last line, left by a crash, is removed when the file is opened; a partly written line is rolled back.
Secrets are never written. Thread-safe.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock

from hybrid.core.files import sync_folder
from hybrid.core.secrets import redact_bytes

# Stands for no file descriptor.
CLOSED = -1
# Bytes per read in the backward search for the end of the last complete line.
BLOCK = 1 << 16


class Journal:
    """A file of lines, open for appending.

    Args:
        path: the file; it and its folder are created if missing.
        durable: whether `append` syncs to disk. If not, a killed process still loses nothing, but a crash of the
            machine may lose lines.

    Raises:
        OSError: the file cannot be opened or created.
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
        """Append lines together. Returns the bytes as written, with secrets redacted.

        Raises:
            OSError: they could not be written; none of them is in the file.
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
        """Sync to disk. Raises `OSError`."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file; further appends raise `OSError`."""
        with self._lock:
            os.close(self._file)
            # Forget the descriptor, because its number may be reused, and other threads must not write to that file.
            self._file = CLOSED


def end_of_lines(file: int) -> int:
    """Return the byte offset of the end of the last complete line of an open file; reads backwards from the end."""
    end = os.fstat(file).st_size
    while end > 0:
        start = max(0, end - BLOCK)
        if (newline := os.pread(file, end - start, start).rfind(b"\n")) >= 0:
            return start + newline + 1
        end = start
    return 0
