"""Notes on stderr: what is neither a result nor an error, and what `--quiet` leaves out.

tell("note: the scores are not kept")
with quietly():
...                                  # notes inside are not shown
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hybrid.core.secrets import redact

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


# Warnings that the log has shown on stderr.
_warnings: set[str] = set()


def remember_warning(line: str) -> None:
    """Remember that the log shows this line, so that it is not shown again as a note."""
    _warnings.add(line)


def is_shown(line: str) -> bool:
    """Whether the log has shown this line already."""
    return line in _warnings


def tell(line: str) -> None:
    """Print a line, without secrets."""
    if sys.stderr is not None and not is_quiet():
        sys.stderr.write(f"{redact(line)}\n")


def is_quiet() -> bool:
    """Whether notes are left out."""
    return _quiet.get()


@contextmanager
def quietly(*, quiet: bool = True) -> Iterator[None]:
    """Leave out the notes of what runs inside."""
    token = _quiet.set(quiet)
    try:
        yield
    finally:
        _quiet.reset(token)
