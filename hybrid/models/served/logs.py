"""The folder for logs of started servers: the folder of the run that starts them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

SERVER_LOG: Final = "server.log"
# The folder in which servers of the current run write their logs; None outside a run.
LOG_FOLDER: Final[ContextVar[Path | None]] = ContextVar("LOG_FOLDER", default=None)


@contextmanager
def server_logs_in(folder: Path) -> Iterator[None]:
    """Return a context manager: servers that start inside it write their logs into this folder."""
    token = LOG_FOLDER.set(folder)
    try:
        yield
    finally:
        LOG_FOLDER.reset(token)
