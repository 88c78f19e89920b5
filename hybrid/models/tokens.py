"""Rough token counts for `--dry-run`: estimates from published formulas, never what a provider will bill.

The formulas were taken from the providers' documentation as it stood
in 2025 (OpenAI "Images and vision", Anthropic "Vision", Google "Understand and count tokens"); models whose rule is not
among them give None, not a guess.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

from hybrid.models.toolspec import spec
from hybrid.tool import Tool

CHARACTERS_PER_TOKEN = 4

# OpenAI: base tokens and tokens per 512-pixel tile. The longest matching prefix of the model's name decides; the
# models marked None count patches by a rule of their own.
_OPENAI_TILES: dict[str, tuple[int, int] | None] = {
    "gpt-4o": (85, 170),
    "gpt-4o-mini": (2833, 5667),
    "gpt-4.1": (85, 170),
    "gpt-4.1-mini": None,
    "gpt-4.1-nano": None,
}


def text_tokens(text: str) -> int:
    """About one token in four characters; English prose is near it, other languages and code are not."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def tools_tokens(tools: Sequence[Tool]) -> int:
    """Tokens of the tools' schemas as JSON, the form in which native tool calling sends them; 0 without tools."""
    return text_tokens(tools_json(tools)) if tools else 0


def tools_json(tools: Sequence[Tool]) -> str:
    """The tools' schemas as they go over the wire: a JSON array without spaces."""
    return json.dumps([spec(tool) for tool in tools], ensure_ascii=False, separators=(",", ":"))


ImageTokens = Callable[[str, int, int, str | None], int | None]
"""From a model's name, the width and height of an image in pixels (each at least 1) and OpenAI's detail."""


def openai_image_tokens(model: str, width: int, height: int, detail: str | None) -> int | None:
    """Base tokens, and tokens for each tile of 512 pixels after scaling; the base alone at detail `low`."""
    matching = [prefix for prefix in _OPENAI_TILES if model == prefix or model.startswith(prefix + "-")]
    cost = _OPENAI_TILES[max(matching, key=len)] if matching else None
    if cost is None:
        return None
    base, per_tile = cost
    if detail == "low":
        return base
    fit = min(1.0, 2048 / max(width, height))
    fit *= min(1.0, 768 / (min(width, height) * fit))
    return base + per_tile * math.ceil(width * fit / 512) * math.ceil(height * fit / 512)


def anthropic_image_tokens(model: str, width: int, height: int, detail: str | None) -> int:
    """One token in 750 pixels after scaling."""
    fit = min(1.0, 1568 / max(width, height), math.sqrt(1_150_000 / (width * height)))
    return math.ceil(width * fit * height * fit / 750)


def google_image_tokens(model: str, width: int, height: int, detail: str | None) -> int:
    """258 where both sides are at most 384 pixels, else for each tile of 768."""
    if max(width, height) <= 384:
        return 258
    return 258 * math.ceil(width / 768) * math.ceil(height / 768)
