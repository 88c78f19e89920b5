"""Input files that a person writes or a command made, and that fit in memory many times: read up to a limit.

    data = read_small(path)

A device that never ends, a pipe and a file of another kind are an error like others, not the end of memory.
"""

from __future__ import annotations

import errno
from pathlib import Path

MOST_BYTES = 64 * 2**20
"""Bytes that are read of a file of this kind; the largest known ones have some hundred thousand."""


def read_small(path: Path, most: int = MOST_BYTES) -> bytes:
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
