"""The options of a run in the terms of a provider's client, and the address of its requests.

    options(PROVIDERS["ollama"], "qwen-vl", settings)      # {"temperature": 0.0, "num_predict": 50}
    connection(PROVIDERS["openai"], settings)              # address and key, from the options or the environment

An option that a provider does not have is rejected with a `UsageError` that names both; it is never dropped. There are
two exceptions, which are then missing in the manifest: the default temperature 0, if the model has no temperature, and
the run's seed, because it does not only affect the model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from urllib.parse import urlsplit, urlunsplit

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.repetitions import seed_of_repetition
from hybrid.core.secrets import redact
from hybrid.core.types import Json
from hybrid.models.chat_completions.wire import refuse_socks
from hybrid.models.credentials import keep_credentials, redacted
from hybrid.models.images import ImageRules
from hybrid.models.picture_limits import limits_of
from hybrid.models.providers import IN_PROCESS, PHOTO, PROVIDERS, Provider

_SECRET = re.compile(r"key|token$|secret|password|credential|header", re.IGNORECASE)
_RESERVED = frozenset({"model", "model_name", "base_url", "seed", "timeout", "max_retries", "max_tokens", "tools"})


@dataclass(frozen=True, slots=True)
class Connection:
    """Destination of requests. `key` is None if none is needed; it is never shown or written."""

    base_url: str | None
    key: str | None

    def __repr__(self) -> str:
        """Represent the connection without the key, because representations end up in logs."""
        return f"Connection(base_url={self.redacted_url!r})"

    @property
    def redacted_url(self) -> str | None:
        """The address without user, password, query and tokens in its path, as written to the manifest."""
        if self.base_url is None:
            return None
        parts = urlsplit(self.base_url)
        return redact(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")))

    def metadata(self, settings: ModelSettings, terms: Sequence[str]) -> dict[str, Json]:
        """Return how a server is reached, and the API variant that it needs. A run may resume with another server."""
        reached = {"base_url": self.redacted_url, "timeout_s": settings.timeout_s, "retries": settings.retries}
        return {**reached, **({"terms": [*terms]} if terms else {})}


def connection(provider: Provider, settings: ModelSettings, model: str = "") -> Connection:
    """Return the address and the key from the options and the environment; register the secrets in both.

    `model` is the model's full name (`openai:gpt-4o`), for the error message.

    Raises:
        UsageError: no key in the environment, for the provider's own service.
    """
    # For the address and for the key, take the first environment variable that is set.
    url, key = (next(filter(None, map(os.environ.get, names)), None) for names in (provider.url_env, provider.key_env))
    base_url = settings.base_url or url
    keep_credentials(settings, base_url, key)
    refuse_socks(base_url or "https://api.invalid")
    if provider.key_env and key is None:
        if base_url is None:
            names = " or ".join(provider.key_env)
            label = model or f"{provider.name}:NAME"
            raise UsageError(f"--model {label}: set {names} in the environment, or give --base-url")
        # Local servers ignore the key, but the clients require one.
        key = "EMPTY"
    return Connection(base_url, key)


def image_rules(provider: Provider, reached: Connection, settings: ModelSettings, name: str) -> ImageRules:
    """Return the rules for image files sent to the model `provider:name`.

    A server other than the provider's own is only known to accept JPEG and PNG.
    """
    media_types = provider.images if reached.base_url is None else PHOTO
    return ImageRules(media_types, settings.max_pixels, limits_of(name, settings).most_bytes)


def server_metadata(
    name: str, settings: ModelSettings, sent: Mapping[str, Json], packages: Sequence[str], *, caches: bool
) -> Mapping[str, Json]:
    """Return the identity of a model on a server: name, options as sent, image rules and versions; no key or address.

    `caches` says whether its provider lets requests control caching.
    """
    metadata: dict[str, Json] = redacted(
        {
            "model": name,
            "options": dict(sent),
            "image_detail": settings.image_detail,
            "max_pixels": settings.max_pixels,
            "keep_images": settings.keep_images,
            **({"keep_pictures": settings.keep_pictures} if settings.keep_pictures else {}),
            **({"tool_pictures": settings.tool_pictures} if settings.tool_pictures != "auto" else {}),
            **({"image_limits": settings.image_limits} if settings.image_limits else {}),
            **({"prompt_cache": settings.prompt_cache} if caches else {}),
            "tool_calling": "native",
            # Record this only if thoughts are dropped, so that other runs keep their identity from before this option
            # existed.
            **({"reasoning": "drop"} if settings.thoughts == "drop" else {}),
            "versions": {package: version(package) for package in packages},
        }
    )
    return metadata


def options(provider: Provider, model: str, settings: ModelSettings) -> dict[str, Json]:
    """Return the client's keyword arguments, as sent and as in the manifest, except address, key and limits.

    Raises:
        UsageError: an option or value that this provider (or this model) does not support.
    """
    if provider.cache is None and not settings.prompt_cache:
        raise UsageError(f"--model-arg prompt_cache=off: {provider.name} itself decides what to cache")
    values: dict[str, Json] = {}
    if settings.max_tokens is not None:
        values[provider.max_tokens_option] = settings.max_tokens
    responses = _api(provider, settings) == "responses"
    if settings.seed is not None and provider.seed_option and not responses:
        values[provider.seed_option] = settings.seed
    values |= _temperature(provider, model, settings)
    if (effort := settings.reasoning_effort) is not None:
        if effort not in provider.efforts:
            raise UsageError(f"--reasoning-effort {effort}: {provider.name} takes {', '.join(provider.efforts)}")
        values[provider.effort_option] = provider.effort_none if effort == "none" else effort
    if (detail := settings.image_detail) is not None:
        start = f"--image-detail {detail}: {provider.name}"
        if not provider.details:
            raise UsageError(f"{start} has no such option; use --max-pixels to limit the size")
        if detail not in provider.details:
            raise UsageError(f"{start} takes {', '.join(provider.details)}")
        if provider.detail_option is not None:
            values[provider.detail_option] = f"MEDIA_RESOLUTION_{detail.upper()}"
    if provider.apis:
        values["use_responses_api"] = responses
    return values | _extra(provider, settings)


def options_of_repetition(request_options: Mapping[str, Json], number: int) -> Mapping[str, Json]:
    """Return the options with the seed of a solver's repetition: with one seed, a server would repeat its replies."""
    seed = request_options.get("seed")
    if number == 1 or not isinstance(seed, int):
        return request_options
    return {**request_options, "seed": seed_of_repetition(seed, number)}


def _api(provider: Provider, settings: ModelSettings) -> str:
    api = settings.extra.get("api")
    if api is None:
        return provider.apis[0] if provider.apis else ""
    if not provider.apis:
        raise UsageError(f"--model-arg api={api}: {provider.name} has only one API")
    if api not in provider.apis:
        raise UsageError(f"--model-arg api={api}: choose {' or '.join(provider.apis)}")
    return str(api)


SAMPLING_TEMPERATURE = 1.0  # Temperature that samples from the model's own distribution.


def for_samples(settings: ModelSettings, name: str, *, temperature_told: bool) -> ModelSettings:
    """Return settings for asking a model `provider:name` several times for independent replies.

    The temperature is 1 if the user gave none and the model has this option. The run's seed is not sent to a server,
    which would return the same reply to each request with that seed.
    """
    spec, _, model = name.partition(":")
    provider = PROVIDERS.get(spec)
    seed = settings.seed if spec in IN_PROCESS else None
    if temperature_told:
        return replace(settings, seed=seed)
    sampling_settings = replace(settings, seed=seed, temperature=SAMPLING_TEMPERATURE)
    if provider is None:
        return sampling_settings
    try:
        _temperature(provider, model, sampling_settings)
    except UsageError:
        return replace(sampling_settings, temperature=None)
    return sampling_settings


def _temperature(provider: Provider, model: str, settings: ModelSettings) -> dict[str, Json]:
    if settings.temperature is None:
        return {}
    if provider.no_temperature and re.match(provider.no_temperature, model):
        reason = f"={settings.temperature}: {model} does not accept a temperature"
    elif provider.effort_excludes_temperature and settings.reasoning_effort is not None:
        reason = f": {provider.name} does not accept it together with --reasoning-effort"
    else:
        return {"temperature": settings.temperature}
    if settings.temperature:
        raise UsageError(f"--model-arg temperature{reason}")
    return {}


def _extra(provider: Provider, settings: ModelSettings) -> dict[str, Json]:
    extra = {key: value for key, value in settings.extra.items() if key != "api"}
    for key in extra:
        if key in _RESERVED:
            raise UsageError(f"--model-arg {key}: use the separate option for this")
        if _SECRET.search(key):
            raise UsageError(f"--model-arg {key}: secrets belong in the environment; options are saved in the run")
    return extra
