"""Rough token counts of texts and tools for `--dry-run`; for images see `providers.image_tokens`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from hybrid.models.toolspec import spec
from hybrid.tool import Tool

CHARACTERS_PER_TOKEN = 4


def text_tokens(text: str) -> int:
    """Estimate one token per four characters, which fits English prose but not other languages or code."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def tools_tokens(tools: Sequence[Tool]) -> int:
    """Estimate the tokens of the tools' schemas as JSON, the form of native tool calling; 0 without tools."""
    return text_tokens(tools_json(tools)) if tools else 0


def tools_json(tools: Sequence[Tool]) -> str:
    """Return the tools' schemas as sent: a JSON array without spaces."""
    return json.dumps([spec(tool) for tool in tools], ensure_ascii=False, separators=(",", ":"))
