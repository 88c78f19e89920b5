"""The providers' quirks in one table, and the options of a run in the words of each client.

An option that a provider does not have is refused with `UsageError`
naming both, never dropped, with two exceptions that the manifest shows by their absence: the default temperature 0,
which models that take none go without, and the seed of the run, which is about more than the model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from hybrid.config import ModelSettings
from hybrid.errors import UsageError
from hybrid.models.credentials import keep_credentials, redacted
from hybrid.models.tokens import ImageTokens, anthropic_image_tokens, google_image_tokens, openai_image_tokens
from hybrid.repeats import seed_of_repetition
from hybrid.secrets import redact
from hybrid.types import Json

_PHOTO = frozenset({"image/jpeg", "image/png"})
WEB = _PHOTO | {"image/webp", "image/gif"}
"""Media types that every browser shows."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One row of the table: how LangChain's client of this provider wants to be spoken to."""

    name: str
    """The word before the colon, here and in `init_chat_model`."""
    key_env: tuple[str, ...] = ()
    """Environment variables that may hold the key, first found first used; none where no key is needed."""
    begins: tuple[str, ...] = ()
    """How names of its models begin: where a name is given without a provider, this one is meant."""
    url_env: tuple[str, ...] = ()
    images: frozenset[str] = _PHOTO
    """Media types sent as they are; others are converted."""
    images_as_urls: bool = False
    """Whether images go as data URLs in OpenAI's form, which every client of LangChain's reads."""
    details: tuple[str, ...] = ()
    """Values of `--image-detail`."""
    detail_option: str | None = None
    """The option that takes the detail; None when each image part carries it."""
    call_options: frozenset[str] = frozenset()
    """Options that the client passes on only when they come with a call, not with its construction."""
    efforts: tuple[str, ...] = ()
    effort_option: str = "reasoning_effort"
    seed_option: str | None = "seed"
    """None where the provider takes no seed; OpenAI's responses API takes none either."""
    max_tokens_option: str = "max_tokens"
    timeout_option: str | None = "timeout"
    no_retries: Mapping[str, Json] | None = None
    """What turns the client's own retries off: `hybrid.models.sending` alone retries."""
    pool_option: str | None = None
    """The option that takes a client of httpx; None where there is none, or the package has another way."""
    cache: Literal["marks", "key"] | None = None
    """What a request says of what may be cached; None where the provider does all by itself."""
    keeps_tools: bool = False
    """Whether a history with tool calls is only taken with tools declared (then with the choice "none")."""
    no_temperature: str | None = None
    """Pattern of model names that take no temperature."""
    image_tokens: ImageTokens | None = None
    """Estimates what an image takes; None where no formula is published."""

    @property
    def packages(self) -> tuple[str, str]:
        """LangChain's package and the client that it uses."""
        word = self.name.replace("_", "-")
        return f"langchain-{word}", word


_OPENAI = Provider(
    name="openai",
    key_env=("OPENAI_API_KEY",),
    begins=("gpt-", "o1", "o3", "o4", "chatgpt"),
    url_env=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    images=WEB,
    details=("low", "high", "auto", "original"),
    efforts=("none", "minimal", "low", "medium", "high", "xhigh"),
    no_retries={"max_retries": 0},
    no_temperature=r"o\d|gpt-5(?!.*chat)",
    pool_option="http_async_client",
    cache="key",
    image_tokens=openai_image_tokens,
)

_ROWS = (
    _OPENAI,
    Provider(
        name="anthropic",
        key_env=("ANTHROPIC_API_KEY",),
        begins=("claude",),
        url_env=("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL"),
        images=WEB,
        efforts=("low", "medium", "high", "xhigh", "max"),
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
        images=_PHOTO | {"image/webp"},
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
        max_tokens_option="num_predict",
        timeout_option=None,
    ),
)
PROVIDERS: Mapping[str, Provider] = {row.name: row for row in _ROWS}

_SECRET = re.compile(r"key|token$|secret|password|credential|header", re.IGNORECASE)
_RESERVED = frozenset({"model", "model_name", "base_url", "seed", "timeout", "max_retries", "max_tokens", "tools"})


@dataclass(frozen=True, slots=True)
class Connection:
    """Where requests go. `key` is None where none is needed; it is never shown or written."""

    base_url: str | None
    key: str | None

    def __repr__(self) -> str:
        """Without the key: a representation ends in logs."""
        return f"Connection(base_url={self.shown!r})"

    @property
    def shown(self) -> str | None:
        """The address without user, password, query and tokens in its path, as it goes into the manifest."""
        if self.base_url is None:
            return None
        parts = urlsplit(self.base_url)
        return redact(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")))

    def metadata(self, settings: ModelSettings) -> dict[str, Json]:
        """How a server is reached: nothing of it belongs to what a model is, and a run may go on with another."""
        return {"base_url": self.shown, "timeout_s": settings.timeout_s, "retries": settings.retries}


def connection(provider: Provider, settings: ModelSettings) -> Connection:
    """Address and key from the options and the environment; whatever is secret among them is registered as such.

    Raises:
        UsageError: no key in the environment, for the provider's own service.
    """
    base_url = settings.base_url or _first(provider.url_env)
    key = _first(provider.key_env)
    keep_credentials(settings, base_url, key)
    if provider.key_env and key is None:
        if base_url is None:
            names = " or ".join(provider.key_env)
            raise UsageError(f"--model {provider.name}:...: set {names} in the environment, or give --base-url")
        # Local servers look at no key, but the clients insist on one.
        key = "EMPTY"
    return Connection(base_url, key)


def facts_of(
    name: str, settings: ModelSettings, sent: Mapping[str, Json], packages: Sequence[str], *, caches: bool
) -> Mapping[str, Json]:
    """What a model behind a server is: name, options as sent, image rules and versions; neither key nor address.

    `caches` says whether its provider lets requests say what it keeps.
    """
    facts: dict[str, Json] = redacted(
        {
            "model": name,
            "options": dict(sent),
            "image_detail": settings.image_detail,
            "max_pixels": settings.max_pixels,
            "keep_images": settings.keep_images,
            **({"prompt_cache": settings.prompt_cache} if caches else {}),
            "tool_calling": "native",
            "versions": {package: version(package) for package in packages},
        }
    )
    return facts


def _first(names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)


def options(provider: Provider, model: str, settings: ModelSettings) -> dict[str, Json]:
    """The client's keyword arguments without address, key and limits: what is sent, as it is in the manifest.

    Raises:
        UsageError: an option or value that this provider (or this model) does not take.
    """
    if provider.cache is None and not settings.prompt_cache:
        raise UsageError(f"--model-arg prompt_cache=off: {provider.name} decides itself what it keeps")
    chosen: dict[str, Json] = {}
    if settings.max_tokens is not None:
        chosen[provider.max_tokens_option] = settings.max_tokens
    responses = _api(provider, settings) == "responses"
    if settings.seed is not None and provider.seed_option and not responses:
        chosen[provider.seed_option] = settings.seed
    chosen |= _temperature(provider, model, settings)
    chosen |= _effort(provider, settings)
    chosen |= _detail(provider, settings)
    if provider is _OPENAI:
        chosen["use_responses_api"] = responses
    return chosen | _extra(provider, settings)


def options_of_repetition(given: Mapping[str, Json], number: int) -> Mapping[str, Json]:
    """The options of `options` for the calls of a solver's repetition: a server says the same to one seed again."""
    seed = given.get("seed")
    if number == 1 or not isinstance(seed, int):
        return given
    return {**given, "seed": seed_of_repetition(seed, number)}


def client_limits(provider: Provider, settings: ModelSettings) -> dict[str, Json]:
    """The client's keyword arguments that limit one request: its timeout, and no retries of its own."""
    timeout = {provider.timeout_option: settings.timeout_s} if provider.timeout_option else {}
    return {**(provider.no_retries or {}), **timeout}


def _api(provider: Provider, settings: ModelSettings) -> str:
    api = settings.extra.get("api", "chat")
    if provider is not _OPENAI and "api" in settings.extra:
        raise UsageError(f"--model-arg api={api}: {provider.name} has one API only")
    if api not in ("chat", "responses"):
        raise UsageError(f"--model-arg api={api}: choose chat or responses")
    return str(api)


SAMPLING_TEMPERATURE = 1.0
"""At which a model is asked several times: its own distribution."""
IN_PROCESS = frozenset({"hf", "embedded"})
"""Providers whose every call has a seed of its own, made of the run's and of what is asked."""


def for_samples(settings: ModelSettings, name: str, *, temperature_told: bool) -> ModelSettings:
    """The settings with which a model `provider:name` is asked several times for independent replies.

    The temperature is 1 where none was told and the model takes one; a model that takes none is asked without. The
    run's seed is not sent to a server, which would say the same to each request with one seed.
    """
    spec, _, model = name.partition(":")
    provider = PROVIDERS.get(spec)
    seed = settings.seed if spec in IN_PROCESS else None
    if temperature_told:
        return replace(settings, seed=seed)
    asked = replace(settings, seed=seed, temperature=SAMPLING_TEMPERATURE)
    if provider is None:
        return asked
    try:
        _temperature(provider, model, asked)
    except UsageError:
        return replace(asked, temperature=None)
    return asked


def _temperature(provider: Provider, model: str, settings: ModelSettings) -> dict[str, Json]:
    if settings.temperature is None:
        return {}
    if provider.no_temperature and re.match(provider.no_temperature, model):
        if settings.temperature:
            raise UsageError(f"--model-arg temperature={settings.temperature}: {model} takes no temperature")
        return {}
    if provider.name == "anthropic" and settings.reasoning_effort is not None:
        if settings.temperature:
            raise UsageError("--model-arg temperature: anthropic takes none together with --reasoning-effort")
        return {}
    return {"temperature": settings.temperature}


def _effort(provider: Provider, settings: ModelSettings) -> dict[str, Json]:
    effort = settings.reasoning_effort
    if effort is None:
        return {}
    if effort not in provider.efforts:
        raise UsageError(f"--reasoning-effort {effort}: {provider.name} takes {', '.join(provider.efforts)}")
    if provider.name == "ollama" and effort == "none":
        return {provider.effort_option: False}
    return {provider.effort_option: effort}


def _detail(provider: Provider, settings: ModelSettings) -> dict[str, Json]:
    detail = settings.image_detail
    if detail is None:
        return {}
    if not provider.details:
        raise UsageError(f"--image-detail {detail}: {provider.name} has no such option; --max-pixels limits the size")
    if detail not in provider.details:
        raise UsageError(f"--image-detail {detail}: {provider.name} takes {', '.join(provider.details)}")
    if provider.detail_option is None:
        return {}
    return {provider.detail_option: f"MEDIA_RESOLUTION_{detail.upper()}"}


def _extra(provider: Provider, settings: ModelSettings) -> dict[str, Json]:
    extra = {key: value for key, value in settings.extra.items() if key != "api"}
    for key in extra:
        if key in _RESERVED:
            raise UsageError(f"--model-arg {key}: this has an option of its own")
        if _SECRET.search(key):
            raise UsageError(f"--model-arg {key}: secrets belong in the environment, this would be written down")
    return extra


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
