"""The providers, one file each, and of those with a client of LangChain's a row of quirks.

The file `NAME.py` exports `MODEL`, which opens the models `NAME:...` (`ModelOpener`), and is found by its name.
A provider that LangChain's `init_chat_model` knows needs no row: it is asked by the options of its class
(`langchain/chat_models.py`). A row adds the names of its keys, its own options, and connections that are its own
(`langchain/pools.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from hybrid.types import Json

PHOTO = frozenset({"image/jpeg", "image/png"})
WEB = PHOTO | {"image/webp", "image/gif"}  # Media types that every browser shows.


# From a model's name, the width and height of an image in pixels (each at least 1) and OpenAI's detail.
ImageTokens = Callable[[str, int, int, str | None], int | None]


# OpenAI: base tokens and tokens per 512-pixel tile. The longest matching prefix of the model's name decides; the
# models marked None count patches by a rule of their own.
_OPENAI_TILES: dict[str, tuple[int, int] | None] = {
    "gpt-4o": (85, 170),
    "gpt-4o-mini": (2833, 5667),
    "gpt-4.1": (85, 170),
    "gpt-4.1-mini": None,
    "gpt-4.1-nano": None,
}


# The formulas are those of the providers' documentation as it stood in 2025 (OpenAI "Images and vision", Anthropic
# "Vision", Google "Understand and count tokens"). Models whose rule is not among them give None, not a guess.


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
    seed_option: str | None = "seed"  # None where the provider takes no seed; OpenAI's responses API takes none either.
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
    image_tokens: ImageTokens | None = None  # Estimates what an image takes; None where no formula is published.

    @property
    def packages(self) -> tuple[str, str]:
        """LangChain's package and the client that it uses."""
        word = self.name.replace("_", "-")
        return f"langchain-{word}", word


_ROWS = (
    Provider(
        name="openai",
        key_env=("OPENAI_API_KEY",),
        begins=("gpt-", "o1", "o3", "o4", "chatgpt"),
        url_env=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        other_env=("OPENAI_ORG_ID", "OPENAI_ORGANIZATION", "OPENAI_PROJECT_ID"),
        apis=("chat", "responses"),
        images=WEB,
        details=("low", "high", "auto", "original"),
        efforts=("none", "minimal", "low", "medium", "high", "xhigh"),
        no_retries={"max_retries": 0},
        no_temperature=r"o\d|gpt-5(?!.*chat)",
        pool_option="http_async_client",
        cache="key",
        image_tokens=openai_image_tokens,
    ),
    Provider(
        name="anthropic",
        key_env=("ANTHROPIC_API_KEY",),
        begins=("claude",),
        url_env=("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL"),
        images=WEB,
        efforts=("low", "medium", "high", "xhigh", "max"),
        effort_excludes_temperature=True,
        seed_option=None,
        no_retries={"max_retries": 0},
        cache="marks",
        keeps_tools=True,
        no_temperature=r"claude-(fable-5|sonnet-5-5)",
        image_tokens=anthropic_image_tokens,
    ),
    Provider(
        name="google_genai",
        key_env=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        begins=("gemini", "gemma"),
        images=PHOTO | {"image/webp"},
        details=("low", "medium", "high"),
        detail_option="media_resolution",
        # langchain-google-genai 4.4.2 takes it as a field of the client and then does not send it.
        call_options=frozenset({"media_resolution"}),
        efforts=("minimal", "low", "medium", "high"),
        max_tokens_option="max_output_tokens",
        no_temperature=r"(models/)?gemini-(3\.5-flash-lite|3\.6-flash)(-\d{3})?$",
        # One attempt: 0 means the SDK's default of several.
        no_retries={"max_retries": 1},
        image_tokens=google_image_tokens,
    ),
    Provider(
        name="ollama",
        url_env=("OLLAMA_HOST",),
        efforts=("none", "low", "medium", "high"),
        effort_option="reasoning",
        effort_none=False,
        max_tokens_option="num_predict",
        timeout_option=None,
    ),
)
PROVIDERS: Mapping[str, Provider] = {row.name: row for row in _ROWS}


# Providers whose every call has a seed of its own, made of the run's and of what is asked.
IN_PROCESS = frozenset({"hf", "embedded"})


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
    row = PROVIDERS.get(provider)
    return row.image_tokens(model, width, height, detail) if row and row.image_tokens else None
