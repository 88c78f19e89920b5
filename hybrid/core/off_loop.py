"""Runs work on long texts in a thread, so that it does not block the event loop.

reading = await work_on_text(reply.text, with_calls, reply, tools, messages)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Length in characters that every parser handles in well under 50 ms. In the worst case the slowest parser takes 15
# microseconds per character, and stops after 25,000 characters (`hybrid.answers.base.within_reach`).
SHORT_TEXT = 2_000


async def work_on_text(text: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work`, in a thread if `text` is longer than `SHORT_TEXT` characters. Raises what `work` raises.

    The thread shares the interpreter with the event loop, which still runs every few milliseconds.
    """
    if len(text) <= SHORT_TEXT:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
