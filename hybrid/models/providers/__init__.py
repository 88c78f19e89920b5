"""The providers, one file each; those with a client of LangChain also have a row of quirks.

The file `NAME.py` exports `MODEL`, which opens the models `NAME:...` (`ModelOpener`), and is found by its name. A
provider that LangChain's `init_chat_model` knows needs no row: its options are those of its class
(`langchain/chat_models.py`). A row adds the names of the provider's keys, its special options, and separate connections
(`langchain/pools.py`).
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hybrid.config import ModelSettings
from hybrid.core.types import Json

PHOTO = frozenset({"image/jpeg", "image/png"})


# OpenAI: base tokens and tokens per 512-pixel tile, by the longest matching prefix of the model's name. Both are 0 for
# models that count patches by another rule, whose tokens are not estimated.
_OPENAI_TILES = {"gpt-4o": (85, 170), "gpt-4o-mini": (2833, 5667), "gpt-4.1": (85, 170)}
_OPENAI_TILES |= dict.fromkeys(("gpt-4.1-mini", "gpt-4.1-nano"), (0, 0))


@dataclass(frozen=True, slots=True)
class Provider:
    """The quirks of a provider and of its client in LangChain: one row of the table."""

    # The prefix of a model's name (`openai` in `openai:gpt-4o`), the same as for LangChain's `init_chat_model`.
    name: str
    # Environment variables for the key; the first one set is used. Empty if no key is needed.
    key_env: tuple[str, ...] = ()
    # Prefixes of its models' names, to suggest this provider for a name without a provider.
    begins: tuple[str, ...] = ()
    url_env: tuple[str, ...] = ()
    other_env: tuple[str, ...] = ()  # Other environment variables that its client reads.
    apis: tuple[str, ...] = ()  # Values of `--model-arg api`, the default first; empty if there is only one API.
    images: frozenset[str] = PHOTO  # Media types sent unchanged; others are converted.
    # Whether images are sent as data URLs in OpenAI's form, which every client of LangChain accepts.
    images_as_urls: bool = False
    details: tuple[str, ...] = ()  # Values of `--image-detail`.
    detail_option: str | None = None  # The option for the detail; None if each image part contains it.
    # Options that the client passes on only if given with a call, not at construction.
    call_options: frozenset[str] = frozenset()
    efforts: tuple[str, ...] = ()
    effort_option: str = "reasoning_effort"
    effort_none: Json = "none"  # Value of the option for the effort `none`.
    effort_excludes_temperature: bool = False
    seed_option: str | None = "seed"  # None if unsupported; OpenAI's Responses API has no such option in any case.
    max_tokens_option: str = "max_tokens"
    timeout_option: str | None = "timeout"
    # Options that disable the client's own retries, because `hybrid.models.caller` retries.
    no_retries: Mapping[str, Json] | None = None
    # The option that accepts an httpx client; None if there is no such option, or if the package accepts connections in
    # another way (`langchain/pools.py`).
    pool_option: str | None = None
    # How a request marks its cacheable parts (`prompt_cache.py`); None if the provider decides.
    cache: Literal["marks", "key"] | None = None
    # Whether a history with tool calls requires that tools are declared; the tool choice is then "none".
    keeps_tools: bool = False
    no_temperature: str | None = None  # Pattern of the names of models without a temperature.

    @property
    def packages(self) -> tuple[str, str]:
        """The names of LangChain's package for the provider, and of the client package that it uses."""
        word = self.name.replace("_", "-")
        return f"langchain-{word}", word


def _rows() -> Iterator[Provider]:
    """Yield the rows of `providers.toml`."""
    for word, row in tomllib.loads(Path(__file__).parent.with_suffix(".toml").read_text("utf-8")).items():
        kinds = {key: frozenset if key in ("images", "call_options") else tuple for key in row}
        lists: dict[str, Any] = {key: kinds[key](value) for key, value in row.items() if isinstance(value, list)}
        yield Provider(word, **{**row, **lists})


PROVIDERS: Mapping[str, Provider] = {row.name: row for row in _rows()}


_OPTIONS = {"thoughts": "reasoning"}  # Fields of `ModelSettings` whose option has another name.
# Providers that get a separate seed for every call, derived from the run's seed and the call.
IN_PROCESS = frozenset({"hf", "embedded"})


def given_options(settings: ModelSettings, *fields: str) -> dict[str, Any]:
    """Return the fields that differ from their defaults, by the names of their options."""
    plain = ModelSettings()
    changes = {field: getattr(settings, field) for field in fields if getattr(settings, field) != getattr(plain, field)}
    return {"--" + _OPTIONS.get(field, field.replace("_", "-")): value for field, value in changes.items()}


def image_tokens(provider: str, model: str, width: int, height: int, detail: str | None = None) -> int | None:
    """Estimate the tokens of an image of width x height pixels as sent; None if no formula is known.

    Args:
        provider: the word before the colon of a model name.
        model: the part after the colon.
        width: pixels, at least 1.
        height: pixels, at least 1.
        detail: OpenAI's `low`, `high` or `auto` (counted as `high`).

    Raises:
        ValueError: a width or height below 1.
    """
    if width < 1 or height < 1:
        raise ValueError(f"an image of {width} x {height} pixels")
    # The formulas are those of the providers' documentation of 2025 (OpenAI "Images and vision", Anthropic "Vision",
    # Google "Understand and count tokens"). Other models return None instead of a guess.
    long, short = max(width, height), min(width, height)
    if provider == "openai":
        matching = [prefix for prefix in _OPENAI_TILES if model == prefix or model.startswith(prefix + "-")]
        base, per_tile = _OPENAI_TILES[max(matching, key=len)] if matching else (0, 0)
        fit = min(1.0, 2048 / long)
        fit *= min(1.0, 768 / (short * fit))
        tiles = math.ceil(width * fit / 512) * math.ceil(height * fit / 512)
        return (base if detail == "low" else base + per_tile * tiles) or None
    if provider == "anthropic":
        # One token per 750 pixels after scaling.
        fit = min(1.0, 1568 / long, math.sqrt(1_150_000 / (width * height)))
        return math.ceil(width * fit * height * fit / 750)
    if provider == "google_genai":
        return 258 if long <= 384 else 258 * math.ceil(width / 768) * math.ceil(height / 768)
    return None
