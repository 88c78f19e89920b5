"""Names of models and tools that are being loaded, for progress bars.

with loading("the model hf:DIR"): ...       # around the code that loads it
loads(worker, ("depth", "detection"))       # everything that this owner is loading now; () when it has finished
with loading_shown_by(bars.show): ...       # `bars.show` gets all names at each change, in any thread
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

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
    """Report `what` as loading in the `with` block; if that is shown, turn off the bars of transformers and the hub."""
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
