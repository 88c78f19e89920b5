"""Notes on stderr, which are neither results nor errors, and the names of models and tools that are being loaded.

tell("note: the scores are not kept")
with quietly():
    ...                                     # notes inside are not shown; `--quiet` does the same
with loading("the model hf:DIR"): ...       # around the code that loads it
loads(worker, ("depth", "detection"))       # everything that this owner is loading now; () when it has finished
with loading_shown_by(bars.show): ...       # `bars.show` gets all names at each change, in any thread
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
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


# The environment variable by which users control the progress bars of huggingface_hub and transformers.
OTHER_BARS = "HF_HUB_DISABLE_PROGRESS_BARS"

Show = Callable[[Sequence[str]], None]

_now: dict[Hashable, tuple[str, ...]] = {}
_shows: list[Show] = []


def loads(owner: Hashable, what: Sequence[str]) -> None:
    """Set the names of everything that this owner is loading now."""
    if tuple(what) == _now.get(owner, ()):
        return
    if what:
        _now[owner] = tuple(what)
    else:
        del _now[owner]
    for show in tuple(_shows):
        show([entry for entries in tuple(_now.values()) for entry in entries])


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Report `what` as loading in the `with` block.

    If the report is displayed, the progress bars of transformers and the hub are turned off.
    """
    owner, hidden = object(), None
    loads(owner, (what,))
    try:
        if _shows and OTHER_BARS not in os.environ:
            # The import takes long as well, so it happens after `loads` has reported the start.
            from transformers.utils import logging

            # This also turns off the hub's bars.
            if logging.is_progress_bar_enabled():
                logging.disable_progress_bar()
                hidden = logging
        yield
    finally:
        if hidden is not None:
            hidden.enable_progress_bar()
        loads(owner, ())


@contextmanager
def loading_shown_by(show: Show) -> Iterator[None]:
    """In the `with` block, call `show` whenever the set of things being loaded changes."""
    _shows.append(show)
    try:
        yield
    finally:
        _shows.remove(show)
