"""Work on a text of any length, kept off the event loop where it could hold up every other call in flight.

found = await work_on_text(reply.text, with_calls, reply, tools, messages)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Characters of a text that every reader gets through in well under 50 ms. The slowest takes 15 microseconds a character
# of the least friendly text, and stops after 25,000 (`hybrid.answers.base.within_reach`).
SHORT_TEXT = 2_000


async def work_on_text(text: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `work`, done in a thread for a `text` of more than `SHORT_TEXT` characters. Raises what it raises.

    A thread shares the interpreter with the loop, which gets its turn every few milliseconds.
    """
    if len(text) <= SHORT_TEXT:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
