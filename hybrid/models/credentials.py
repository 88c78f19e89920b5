"""Finds secrets in a model's settings and environment, and registers their values when the model is opened.

    keep_credentials(settings, base_url)     # from now on `hybrid.core.secrets.redact` removes all of them
    shown = redacted(facts)                  # the same for JSON

Keys come from the environment, but tokens also occur in addresses (user, path, query), in proxy addresses, and under
names such as `api_key` in options passed on to a server.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from hybrid.config import ModelSettings
from hybrid.core.secrets import keep_secret, redact

# Environment variables with the address of a proxy; their names may be in lower or upper case.
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "openai_proxy")
_NAME = re.compile(
    r"(?:^|[_\-.])(?:api|access|private|auth|signing)?_?(?:keys?|tokens?|secrets?|pass(?:word|wd|phrase)?|credentials?"
    r"|authorization|signature|bearer)(?=$|[_\-.])|apikey",
    re.IGNORECASE,
)
# Keys suggested in the manuals of local servers; they are not redacted, because these words occur in ordinary text.
_PLACEHOLDERS = frozenset(
    {"ollama", "openai", "lm-studio", "not-needed", "not-used", "no-key", "no-key-required", "placeholder", "unused"}
)
# Matches a token by its form: long, with letters and digits, but neither words nor the name of a model.
_TOKEN = re.compile(r"(?=[^A-Za-z]*[A-Za-z])(?=[^0-9]*[0-9])[A-Za-z0-9_.~+=%-]{20,}")


def keep_credentials(settings: ModelSettings, base_url: str | None, key: str | None = None) -> None:
    """Register all secrets with which a model is opened, and those of the environment."""
    secrets = [value for name, value in os.environ.items() if names_a_secret(name)]
    proxies = [os.environ.get(spelling, "") for name in PROXIES for spelling in (name, name.upper())]
    # A proxy address may have no scheme.
    secrets += [part for proxy in proxies for part in _of_user(proxy if "://" in proxy else f"http://{proxy}")]
    _keep([*secrets, *_of_address(base_url or ""), *_of_values(settings.extra), *([key] if key else [])])


def keep_words(words: Sequence[str]) -> None:
    """Register the secrets of a command line: values after a name that indicates a secret, and users of addresses."""
    secrets: list[str] = []
    for option, word in zip(("", *words), words, strict=False):
        name, equals, value = word.partition("=")
        # Convert to the form of settings: `max_tokens` for `--max-tokens`.
        option_name, field_name = (part.lstrip("-").replace("-", "_") for part in (option, name))
        if equals and names_a_secret(field_name):
            secrets += [value, value.rpartition(" ")[2]]
        elif not equals and option.startswith("--") and names_a_secret(option_name):
            secrets.append(word)
        if "://" in word:
            secrets += _of_user(value if equals else word)
    _keep(secrets)


def keep_address(address: str) -> None:
    """Register the secrets in a server's address: its user, token-like path segments, and values of its query."""
    _keep(_of_address(address))


def _keep(secrets: Iterable[str]) -> None:
    keep_secret(*(value for value in secrets if value.lower() not in _PLACEHOLDERS))


def names_a_secret(name: str) -> bool:
    """Return whether a name indicates a secret: `OPENAI_API_KEY`, `x-auth-token`, but not `max_tokens`."""
    return bool(_NAME.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))) and not re.search(
        r"(?:^|_)(?:max|min|num|total)\w*_tokens?$", name, re.IGNORECASE
    )


def _of_user(address: str) -> Iterator[str]:
    """Yield the password of an address, or the user if there is no password; also the base64 text of both together."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return
    pair = parts.netloc.rpartition("@")[0]
    user, colon, password = pair.partition(":")
    yield from (password, unquote(password)) if colon else (user, unquote(user))
    if pair:
        yield base64.b64encode(unquote(pair).encode()).decode()


def _of_address(address: str) -> Iterator[str]:
    """Yield the secrets in an address: user or password, path segments that look like tokens, values of the query."""
    yield from _of_user(address)
    try:
        parts = urlsplit(address)
    except ValueError:
        return
    for segment in parts.path.split("/"):
        if _TOKEN.fullmatch(segment):
            yield from (segment, unquote(segment))
    for pair in parts.query.split("&"):
        yield pair.partition("=")[2]
    yield from (value for _, value in parse_qsl(parts.query))


def _of_values(value: Any, *, secret: bool = False) -> Iterator[str]:
    """Yield texts under secret names, texts that look like tokens, and users of addresses, at any depth."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _of_values(inner, secret=secret or names_a_secret(str(name)))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _of_values(inner, secret=secret)
    elif isinstance(value, str):
        yield from _of_user(value) if "://" in value else ()
        if secret or _TOKEN.fullmatch(value):
            # "Bearer abc" and "abc" contain the same secret.
            yield from (value, value.rpartition(" ")[2])


def redacted(value: Any) -> Any:
    """Redact all secrets in a JSON value, in names and in texts."""
    if isinstance(value, Mapping):
        return {redact(str(name)): redacted(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(inner) for inner in value]
    return redact(value) if isinstance(value, str) else value
