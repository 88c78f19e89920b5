"""Rough token counts for `--dry-run`: estimates from published formulas, never what a provider will bill.

A library module without a command of its own. The formulas were taken from the providers' documentation as it stood
in 2025 (OpenAI "Images and vision", Anthropic "Vision", Google "Understand and count tokens"); models whose rule is not
among them give None, not a guess.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

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


def menu_tokens(tools: Sequence[Tool]) -> int:
    """Tokens of the tools' schemas as JSON, the form in which native tool calling sends them; 0 without tools."""
    return text_tokens(json.dumps([spec(tool) for tool in tools])) if tools else 0


def image_tokens(provider: str, model: str, width: int, height: int, detail: str | None = None) -> int | None:
    """Estimated tokens of one image of width x height pixels as sent, or None where no formula is known.

    Args:
        provider: the word before the colon of a model name.
        model: what follows it.
        width: pixels, at least 1.
        height: pixels, at least 1.
        detail: OpenAI's `low`, `high` or `auto` (counted as `high`).

    Raises:
        ValueError: a width or height below 1.
    """
    if width < 1 or height < 1:
        raise ValueError(f"an image of {width} x {height} pixels")
    if provider == "embedded":
        # It never sees one.
        return 0
    if provider == "openai":
        return _openai(model, width, height, detail)
    if provider == "anthropic":
        return _anthropic(width, height)
    if provider == "google_genai":
        return _google(width, height)
    return None


def _openai(model: str, width: int, height: int, detail: str | None) -> int | None:
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


def _anthropic(width: int, height: int) -> int:
    fit = min(1.0, 1568 / max(width, height), math.sqrt(1_150_000 / (width * height)))
    return math.ceil(width * fit * height * fit / 750)


def _google(width: int, height: int) -> int:
    if max(width, height) <= 384:
        return 258
    return 258 * math.ceil(width / 768) * math.ceil(height / 768)
