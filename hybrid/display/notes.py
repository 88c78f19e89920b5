"""Notes on stderr, which are neither results nor errors; `--quiet` turns them off.

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


# Lines that the log has already shown on stderr as warnings.
_warnings: set[str] = set()


def remember_warning(line: str) -> None:
    """Remember that the log has shown this line, so that it is not shown again as a note."""
    _warnings.add(line)


def is_shown(line: str) -> bool:
    """Return whether the log has already shown this line."""
    return line in _warnings


def tell(line: str) -> None:
    """Print a note, without secrets."""
    if sys.stderr is not None and not is_quiet():
        sys.stderr.write(f"{redact(line)}\n")


def is_quiet() -> bool:
    """Return whether notes are turned off."""
    return _quiet.get()


@contextmanager
def quietly(*, quiet: bool = True) -> Iterator[None]:
    """Turn off notes in the `with` block."""
    token = _quiet.set(quiet)
    try:
        yield
    finally:
        _quiet.reset(token)
