"""The models and tools that are loading before the first answer, for progress bars.

with loading("the model hf:DIR"): ...       # where it is loaded
loads(worker, ("depth", "detection"))       # all that an owner loads now; () when it is done
with loading_shown_by(bars.show): ...       # called with all of it at each change, in whatever thread that happens
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

# The variable by which a person decides about the progress bars of huggingface_hub and transformers.
OTHER_BARS = "HF_HUB_DISABLE_PROGRESS_BARS"

Show = Callable[[Sequence[str]], None]

_now: dict[Hashable, tuple[str, ...]] = {}
_shows: list[Show] = []


def loads(owner: Hashable, what: Sequence[str]) -> None:
    """An owner loads these things now, and nothing else."""
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
    """Something is loaded inside; where that is shown, transformers and the hub draw no bars of their own."""
    owner, hidden = object(), None
    loads(owner, (what,))
    try:
        if _shows and OTHER_BARS not in os.environ:
            # Their import takes long as well.
            from transformers.utils import logging

            # Those of the hub as well.
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
    """Inside, what is being loaded is shown by this."""
    _shows.append(show)
    try:
        yield
    finally:
        _shows.remove(show)
