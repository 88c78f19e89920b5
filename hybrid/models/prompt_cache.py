"""Providers' prompt caches: settings with which the common beginning of requests is processed only once.

Tools and system text come first in every request, with equal bytes for every question of a run; the opening message
with its images is the same in every call for a prompt. Providers use this in different ways:

- anthropic caches up to a mark: one after the system text (the tools precede it) and one after the opening message.
  Cache writes cost a quarter more there, so a request without tools, which has no second turn, has no marks.
- openai caches automatically, on the machine that a request reaches. `prompt_cache_key` routes all requests for one
  prompt to the same machine. A machine handles about 15 requests per minute with one key, so a run uses up to `LANES`
  keys. A key is sent only to the official service.
- google_genai caches automatically; ollama and vLLM keep the prefixes that they have processed.

`--model-arg prompt_cache=off` omits marks and keys. Tokens that a provider reports as cached are counted.
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
    """Return OpenAI's `prompt_cache_key`, equal for all calls for a prompt; None for a server that is not OpenAI's."""
    if base_url is not None and urlsplit(base_url).hostname != OFFICIAL_HOST:
        return None
    # The hash need not be secret, but must be equal in every process.
    return f"hybrid-{zlib.crc32(f'{call.solver}/{call.question}/{call.ask}'.encode()) % LANES}"


def marked(request: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Add anthropic's cache marks after the system text and the first user message."""
    first = {message.type: place for place, message in reversed(list(enumerate(request)))}
    out = list(request)
    for place in (first.get("system"), first.get("human")):
        if place is not None:
            content: Any = out[place].content
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            marks = [*blocks[:-1], {**blocks[-1], "cache_control": _MARK}]
            out[place] = out[place].model_copy(update={"content": marks})
    return out
