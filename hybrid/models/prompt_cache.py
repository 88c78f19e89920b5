"""Providers' caches of prompts: what is said so that the part that requests share is read once.

Tools and system text come first in every request, the same bytes for every question of a run; the opening message with
its images is the same for every turn of an ask. What is done with that differs:

- anthropic caches up to a mark: one behind the system text (the tools stand before it) and one behind the opening
  message. Written tokens cost a quarter more there, so a request without tools, which has no second turn, has none.
- openai caches by itself, on the machine that a request reaches: `prompt_cache_key` sends those of one ask to the same
  one, and those of a run to no more than `LANES`, as a machine takes about 15 requests a minute under one key. Only the
  official service is sent it.
- google_genai caches by itself; ollama and vLLM keep the prefixes that they have read.

`--model-arg prompt_cache=off` leaves marks and keys out. Tokens that a provider says it had already are counted.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hybrid.models.base import CallKey

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

OFFICIAL_HOST = "api.openai.com"
LANES = 64
_MARK = {"type": "ephemeral"}


def lane(base_url: str | None, call: CallKey) -> str | None:
    """OpenAI's `prompt_cache_key` of a call, or None for another server's address. The same for all calls of an ask."""
    if base_url is not None and urlsplit(base_url).hostname != OFFICIAL_HOST:
        return None
    # Not a secret, and the same in every process.
    return f"hybrid-{zlib.crc32(f'{call.solver}/{call.question}/{call.ask}'.encode()) % LANES}"


def marked(request: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The request with anthropic's marks behind its system text and its first message of the user."""
    first = {message.type: place for place, message in reversed(list(enumerate(request)))}
    out = list(request)
    for place in (first.get("system"), first.get("human")):
        if place is not None:
            content: Any = out[place].content
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            marks = [*blocks[:-1], {**blocks[-1], "cache_control": _MARK}]
            out[place] = out[place].model_copy(update={"content": marks})
    return out
