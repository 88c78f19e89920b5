"""The events of a run as lines of `RUN/log.txt`: start and end, retries, tool faults, warnings.

    with run_log(folder / LOG):
        logging.getLogger("hybrid.anything").info("...")

Every command appends. Secrets are redacted. A failure to write a line is ignored.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hybrid.core.secrets import redact

# The project's root logger; from other loggers only warnings are kept.
OURS = "hybrid"
# Suffix of loggers that receive tracebacks.
TRACES = ".traces"
# The level from which Python prints to stderr if a program has not configured logging.
NO_HANDLER = logging.WARNING


class _Redacted(logging.Formatter):
    converter = time.gmtime  # type: ignore[assignment]  # as in the manual of `logging`

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class _Quietly(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the method name that `logging` calls
        """Ignore a line that cannot be written."""


class _OnStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Write the line to the current stderr."""
        if sys.stderr is not None:
            sys.stderr.write(f"{self.format(record)}\n")


@contextmanager
def run_log(path: Path) -> Iterator[None]:
    """Append the body's log events to the file. Raises `OSError` if it cannot be opened."""
    handler = _Quietly(path, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(_Redacted("%(asctime)sZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    handler.addFilter(lambda record: record.levelno >= logging.WARNING or record.name.startswith(OURS))
    try:
        with _logging_to(handler, logging.INFO):
            yield
    finally:
        with suppress(OSError):
            handler.close()


@contextmanager
def log_to_stderr(level: int = NO_HANDLER, *, traces: bool = False) -> Iterator[None]:
    """Print the body's log events from this level on to stderr; `traces` adds tool tracebacks at any level."""
    handler = _OnStderr()
    handler.addFilter(lambda record: record.levelno >= level or (traces and record.name.endswith(TRACES)))
    handler.setFormatter(_Redacted("%(message)s"))
    if level == NO_HANDLER and not traces and logging.getLogger().handlers:
        # Do nothing if the program has its own handlers.
        yield
        return
    with _logging_to(handler, logging.INFO):
        yield


@contextmanager
def _logging_to(handler: logging.Handler, level: int) -> Iterator[None]:
    root, hybrid_logger = logging.getLogger(), logging.getLogger(OURS)
    old_level = hybrid_logger.level
    hybrid_logger.setLevel(min(level, old_level or level))
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        hybrid_logger.setLevel(old_level)
