"""The providers, one file each, and of those with a client of LangChain's a row of quirks.

The file `NAME.py` exports `MODEL`, which opens the models `NAME:...` (`ModelOpener`), and is found by its name.
A provider that LangChain's `init_chat_model` knows needs no row: it is asked by the options of its class
(`langchain/chat_models.py`). A row adds the names of its keys, its own options, and connections that are its own
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


# OpenAI: base tokens and tokens per 512-pixel tile. The longest matching prefix of the model's name decides; the
# models that count patches by a rule of their own have none.
_OPENAI_TILES = {"gpt-4o": (85, 170), "gpt-4o-mini": (2833, 5667), "gpt-4.1": (85, 170)}
_OPENAI_TILES |= dict.fromkeys(("gpt-4.1-mini", "gpt-4.1-nano"), (0, 0))


@dataclass(frozen=True, slots=True)
class Provider:
    """One row: the quirks of a provider and of its client in LangChain."""

    name: str  # The word before the colon, here and in `init_chat_model`.
    # Environment variables that may hold the key, first found first used; none where no key is needed.
    key_env: tuple[str, ...] = ()
    # How names of its models begin: where a name is given without a provider, this one is meant.
    begins: tuple[str, ...] = ()
    url_env: tuple[str, ...] = ()
    other_env: tuple[str, ...] = ()  # Environment variables that its client reads besides.
    apis: tuple[str, ...] = ()  # Values of `--model-arg api`, the first by default; none where there is one API only.
    images: frozenset[str] = PHOTO  # Media types sent as they are; others are converted.
    # Whether images go as data URLs in OpenAI's form, which every client of LangChain's reads.
    images_as_urls: bool = False
    details: tuple[str, ...] = ()  # Values of `--image-detail`.
    detail_option: str | None = None  # The option that takes the detail; None when each image part carries it.
    # Options that the client passes on only when they come with a call, not with its construction.
    call_options: frozenset[str] = frozenset()
    efforts: tuple[str, ...] = ()
    effort_option: str = "reasoning_effort"
    effort_none: Json = "none"  # The value of the option that stands for the effort `none`.
    effort_excludes_temperature: bool = False
    seed_option: str | None = "seed"  # Empty where there is none; OpenAI's responses API takes none either.
    max_tokens_option: str = "max_tokens"
    timeout_option: str | None = "timeout"
    # Options that turn the client's own retries off: `hybrid.models.caller` alone retries.
    no_retries: Mapping[str, Json] | None = None
    # The option that takes a client of httpx; None where there is none, or the package has another way
    # (`langchain/pools.py`).
    pool_option: str | None = None
    # How a request says which of its parts may be cached (`prompt_cache.py`); None where the provider decides.
    cache: Literal["marks", "key"] | None = None
    # Whether a history with tool calls is only taken with tools declared (then with the choice "none").
    keeps_tools: bool = False
    no_temperature: str | None = None  # Pattern of model names that take no temperature.

    @property
    def packages(self) -> tuple[str, str]:
        """LangChain's package and the client that it uses."""
        word = self.name.replace("_", "-")
        return f"langchain-{word}", word


def _rows() -> Iterator[Provider]:
    """The rows of `providers.toml`."""
    for word, row in tomllib.loads(Path(__file__).parent.with_suffix(".toml").read_text("utf-8")).items():
        kinds = {key: frozenset if key in ("images", "call_options") else tuple for key in row}
        lists: dict[str, Any] = {key: kinds[key](value) for key, value in row.items() if isinstance(value, list)}
        yield Provider(word, **{**row, **lists})


PROVIDERS: Mapping[str, Provider] = {row.name: row for row in _rows()}


_OPTIONS = {"thoughts": "reasoning"}  # Fields of `ModelSettings` whose option has another name.
# Providers whose every call has a seed of its own, made of the run's and of what is asked.
IN_PROCESS = frozenset({"hf", "embedded"})


def given_options(settings: ModelSettings, *fields: str) -> dict[str, Any]:
    """Those of the fields that are not as they are by default, by the names of their options."""
    plain = ModelSettings()
    changes = {field: getattr(settings, field) for field in fields if getattr(settings, field) != getattr(plain, field)}
    return {"--" + _OPTIONS.get(field, field.replace("_", "-")): value for field, value in changes.items()}


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
    # The formulas are those of the providers' documentation as it stood in 2025 (OpenAI "Images and vision", Anthropic
    # "Vision", Google "Understand and count tokens"). Models whose rule is not among them give None, not a guess.
    long, short = max(width, height), min(width, height)
    if provider == "openai":
        matching = [prefix for prefix in _OPENAI_TILES if model == prefix or model.startswith(prefix + "-")]
        base, per_tile = _OPENAI_TILES[max(matching, key=len)] if matching else (0, 0)
        fit = min(1.0, 2048 / long)
        fit *= min(1.0, 768 / (short * fit))
        tiles = math.ceil(width * fit / 512) * math.ceil(height * fit / 512)
        return (base if detail == "low" else base + per_tile * tiles) or None
    if provider == "anthropic":
        # One token in 750 pixels after scaling.
        fit = min(1.0, 1568 / long, math.sqrt(1_150_000 / (width * height)))
        return math.ceil(width * fit * height * fit / 750)
    if provider == "google_genai":
        return 258 if long <= 384 else 258 * math.ceil(width / 768) * math.ceil(height / 768)
    return None
