"""Stores the replies of a batch until their questions need them: in memory, or in an unnamed file if they are many.

A batch returns all its replies at once, each of up to 8 MiB, while only a few questions can continue at a time.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from functools import partial

from hybrid.models.batching.ticket import Said

MEMORY_BYTES = 64 * 2**20  # Total bytes of replies above which they are written to a file.


class ReplyStore:
    """Keeps replies until it is closed; may be used from several threads.

    The file is in the system's folder for temporary files and has no name, so nothing of it is left after a kill.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115 - closed by `close`
        self._lock = threading.Lock()

    def keep(self, reply: Said) -> Callable[[], Said]:
        """Store a reply; return the function that reads it. Raises `OSError` if the disk is full."""
        status, body = reply
        with self._lock:
            start = self._file.seek(0, 2)
            self._file.write(body)
        return partial(self._read, status, start, len(body))

    def _read(self, status: int, start: int, length: int) -> Said:
        with self._lock:
            self._file.seek(start)
            return status, self._file.read(length)

    def close(self) -> None:
        """Delete the replies."""
        self._file.close()
