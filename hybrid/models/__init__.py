"""Chat models by name: `open_model("openai:gpt-4o", settings, store)`.

A name is `provider:model` as for LangChain's `init_chat_model`, `hf:DIR_OR_ID` for weights in this process,
`replay:DIR` for recordings, or `embedded` for the small demonstration model in this project. The word before the colon
names a file of `hybrid/models/providers`, a plug-in, or a provider that LangChain knows. Nothing is connected or loaded
before it is needed, and no package of OpenAI, Anthropic, Google or Ollama is imported.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config import ModelSettings
from hybrid.config.words import STARTED
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.models.base import CallKey, ChatModel, ModelOpener, ModelRefused
from hybrid.models.langchain.opening import open_model as by_langchain
from hybrid.models.providers import PROVIDERS
from hybrid.models.remembered import remembering
from hybrid.plugins.discovery import left_out
from hybrid.plugins.registry import is_outside, load, names, place_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = ["OPENED", "CallKey", "ChatModel", "ModelRefused", "has_known_provider", "open_model", "remembering"]

# Package with a module for each provider; the module's name is the word before the colon.
OPENED = "hybrid.models.providers"


def has_known_provider(name: str) -> bool:
    """Return whether the word before the colon names a file of `providers`, a plug-in, or a provider of LangChain."""
    word, _, rest = name.partition(":")
    if word in names(OPENED):
        return True
    from hybrid.models.langchain.chat_models import chat_model_named

    return bool(rest) and chat_model_named(word, rest) is not None


def open_model(name: str, settings: ModelSettings, store: ImageStore, client: BaseChatModel | None = None) -> ChatModel:
    """Make the model called `name`, not yet connected or loaded.

    Args:
        name: `provider:model`, `hf:DIR_OR_ID`, `replay:DIR` or `embedded`.
        settings: settings of the model's calls.
        store: store of the images in messages.
        client: a LangChain model passed in from Python; `name` is then a label.

    Raises:
        UsageError: an unknown provider, an unsupported option, a missing key, package or folder.
        DataError: recordings that cannot be used.
    """
    word = name.partition(":")[0]
    if client is not None:
        return by_langchain(name, settings, store, client)
    if settings.server_args and word not in STARTED:
        kinds = " or ".join(f"{kind}:" for kind in STARTED)
        raise UsageError(
            f"--server-arg does not apply to {name}: hybrid only starts a server for models that begin with {kinds}"
        )
    if word not in names(OPENED):
        if reason := left_out(OPENED).get(word):
            raise UsageError(f"--model {name!r}: {reason}")
        if not has_known_provider(name):
            raise _unknown(name)
        return by_langchain(name, settings, store)
    opener: ModelOpener = load(OPENED, word)
    model = opener(name, settings, store)
    if is_outside(OPENED, word) and not isinstance(model, ChatModel):
        raise UsageError(
            f"--model {name!r}: {place_of(OPENED, word)} returns a {type(model).__name__}, not a ChatModel"
        )
    return model


def _unknown(name: str) -> UsageError:
    """Return the error for a name without a known provider, suggesting the name that was probably meant."""
    word, _, rest = name.partition(":")
    lower_word = word.lower()
    front, slash, back = name.partition("/")
    words = (*PROVIDERS, *(name for name in names(OPENED) if name not in PROVIDERS))
    near = [candidate for candidate in words if candidate.startswith(f"{lower_word}_")]
    # The cutoff is 0.75: with the default of 0.6, "vllm" and "ollama" would match each other.
    near = near or difflib.get_close_matches(lower_word, words, n=1, cutoff=0.75)
    # The beginning of a model's name suggests its provider; "gpt4o" counts like "gpt-4o".
    begins = {row.name: row.begins for row in PROVIDERS.values() if row.begins}
    suggestions = [
        f"{provider}:{rest or word}"
        for provider, starts in begins.items()
        if word.startswith((*starts, *(start.replace("-", "") for start in starts)))
    ]
    if near:
        suggestions = [f"{near[0]}:{rest}" if rest else near[0]]
    elif slash and front in PROVIDERS:
        suggestions = [f"{front}:{back}"]
    elif not suggestions and Path(name).expanduser().is_dir():
        suggestions = [f"hf:{name}"]
    hint = f" (did you mean {suggestions[0]!r}?)" if suggestions else ""
    message = f"--model {name!r}: no provider {word!r}{hint}; available: {', '.join(words)}"
    return UsageError(
        f"{message} (provider:model), and LangChain's others, such as azure_openai and mistralai; other servers that "
        "speak OpenAI's API: openai:MODEL with --base-url"
    )
