"""LangChain's chat models: made from `provider:name`, or passed in by Python code.

    chat_model = chat_model_named("mistralai", "pixtral-12b")    # None if LangChain does not know the provider
    row = row_of(chat_model, "mistralai")                        # its options, from the fields of its class

Errors name a missing package as pip does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.secrets import keep_secret
from hybrid.core.types import Json
from hybrid.models.credentials import keep_credentials, names_a_secret, redacted
from hybrid.models.failures import summary
from hybrid.models.providers import Provider

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

WORD = "langchain"  # Provider name of a model that Python code passes in.
_ADDRESS = ("base_url", "api_base", "endpoint", "host", "proxy")
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def chat_model_named(word: str, model: str, options: Mapping[str, Any] | None = None) -> BaseChatModel | None:
    """Return the chat model that `init_chat_model` makes, or None for a provider that it does not know.

    Raises:
        UsageError: the provider's package is not installed, or the model cannot be created (no key, or an unsupported
            option).
    """
    # LangChain would accept other spellings, but here each provider has one name.
    if not word.isidentifier() or word != word.lower():
        return None
    from langchain.chat_models import init_chat_model

    try:
        chat_model: BaseChatModel = init_chat_model(model, model_provider=word, **(options or {}))
    except ImportError as error:
        raise UsageError(f"--model {word}:{model}: {error}") from error
    # Every chat model has its own exceptions for a missing key.
    except Exception as error:
        if str(error).startswith("Unsupported provider"):
            return None
        raise UsageError(f"--model {word}:{model}: {summary(error)}") from error
    return chat_model


def is_streaming(chat_model: BaseChatModel) -> bool:
    """Return whether a chat model was created with `streaming=True`, which some servers require."""
    return getattr(chat_model, "streaming", None) is True


def without_streaming(chat_model: BaseChatModel) -> BaseChatModel:
    """Return a chat model that streams only if it was created with `streaming=True`.

    LangChain would also stream when a program watches the messages of the graph around it. If a stream is cut in the
    middle of a call, LangChain completes the arguments and reports the call as valid.
    """
    return chat_model if is_streaming(chat_model) else chat_model.model_copy(update={"disable_streaming": True})


def row_of(chat_model: BaseChatModel, word: str) -> Provider:
    """Return the quirks of a chat model, from the options of its class."""
    known_options = options_known(chat_model)

    def find_option(*names: str) -> str | None:
        return next((name for name in names if name in known_options), None)

    return Provider(
        name=word,
        efforts=_EFFORTS if "reasoning_effort" in known_options else (),
        seed_option=find_option("seed"),
        max_tokens_option=find_option("max_tokens", "max_output_tokens", "max_completion_tokens") or "max_tokens",
        timeout_option=find_option("timeout", "request_timeout"),
        no_retries={"max_retries": 0} if "max_retries" in known_options else None,
        no_temperature=None if "temperature" in known_options else ".",
        pool_option=find_option("http_async_client"),
        images_as_urls=True,
    )


def options_known(chat_model: BaseChatModel) -> frozenset[str]:
    """Return the option names of a chat model's class."""
    fields = type(chat_model).model_fields
    return frozenset(fields) | {field.alias for field in fields.values() if field.alias}


def package_of(chat_model: BaseChatModel) -> tuple[str, ...]:
    """Return the distribution that contains a chat model's class; empty for a class that a script defines."""
    top = type(chat_model).__module__.partition(".")[0]
    return tuple(packages_distributions().get(top, ())[:1])


def model_name(chat_model: BaseChatModel) -> str:
    """Return the name of a passed-in model: `langchain:` followed by its model name, or else by its class name."""
    fields = (getattr(chat_model, field, None) for field in ("model_name", "model", "model_id"))
    model = next((name for name in fields if isinstance(name, str) and name), type(chat_model).__name__)
    return f"{WORD}:{model}"


def chat_model_metadata(chat_model: BaseChatModel) -> dict[str, Json]:
    """Return the class of a passed-in model, and those settings that are JSON and neither a secret nor an address."""
    keep_secrets_of(chat_model)
    kind = type(chat_model)
    options: dict[str, Json] = {}
    for name in sorted(chat_model.model_fields_set):
        field, value = kind.model_fields.get(name), getattr(chat_model, name, None)
        hidden = names_a_secret(name) or "header" in name or any(word in name for word in _ADDRESS)
        if field is not None and not field.exclude and not hidden and _is_json(value):
            options[name] = _without_secrets(value)
    metadata: dict[str, Json] = redacted({"class": f"{kind.__module__}.{kind.__qualname__}", "options": options})
    return metadata


def keep_secrets_of(chat_model: BaseChatModel) -> None:
    """Register every secret in the settings of a chat model."""
    values = {name: getattr(chat_model, name, None) for name in type(chat_model).model_fields}
    keep_secret(*(value.get_secret_value() for value in values.values() if isinstance(value, SecretStr)))
    readable: dict[str, Json] = {name: value for name, value in values.items() if _is_json(value)}
    keep_credentials(ModelSettings(extra=readable), None)


def refuse_settings(settings: ModelSettings) -> None:
    """Raise `UsageError` for options that must be set on a passed-in model itself."""
    plain = ModelSettings()
    for name in ("base_url", "image_detail", "reasoning_effort", "max_tokens", "extra", "batch"):
        if getattr(settings, name) != getattr(plain, name):
            raise UsageError(f"{name}={getattr(settings, name)}: set it on the model object that you pass in")


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return value is not None


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_secrets(inner) for key, inner in value.items() if not names_a_secret(str(key))}
    return [_without_secrets(inner) for inner in value] if isinstance(value, list | tuple) else value
