"""Chat models by name: `open_model("openai:gpt-4o", settings, store)`.

A name is `provider:model` as LangChain's `init_chat_model` takes it, `hf:DIR_OR_ID` for weights in this process,
`replay:DIR` for recordings, or `embedded` for the small demonstration model that ships with the project. Nothing is
connected or loaded before it is needed, nor is a package of openai, anthropic, google_genai and ollama imported.
"""

from __future__ import annotations

import difflib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config import ModelSettings
from hybrid.errors import UsageError, needs_local
from hybrid.images import ImageStore
from hybrid.models.base import CallKey, ChatModel, ModelRefused
from hybrid.models.providers import IN_PROCESS, PROVIDERS
from hybrid.models.remembered import remembering

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = [
    "CallKey",
    "ChatModel",
    "ModelRefused",
    "open_model",
    "remembering",
]

WORDS = (*PROVIDERS, "hf", "replay", "embedded")


def open_model(name: str, settings: ModelSettings, store: ImageStore, client: BaseChatModel | None = None) -> ChatModel:
    """The model of that name, not yet connected or loaded.

    Args:
        name: `provider:model`, `hf:DIR_OR_ID`, `replay:DIR` or `embedded`.
        settings: how it is called.
        store: where the images lie that messages refer to.
        client: the LangChain model itself, where Python code hands one in; `name` is then a label.

    Raises:
        UsageError: an unknown provider, an option it does not take, a missing key, package or folder.
        DataError: recordings that cannot be used.
    """
    word, colon, rest = name.partition(":")
    if client is None and word not in WORDS and not (rest and _langchain_knows(word, rest)):
        raise _unknown(name)
    if word != "embedded" and not rest:
        raise UsageError(f"--model {name!r}: write {word}:{'DIR' if word in ('hf', 'replay') else 'MODEL'}")
    if word == "embedded" and colon:
        raise UsageError(f"--model {name!r}: the embedded model has no variants; write embedded")
    if client is not None:
        from hybrid.models.caller import Caller
        from hybrid.models.langchain.client import LangChainClient

        return Caller(LangChainClient(name, settings, store, client), settings)
    return _make(word, name, rest, settings, store)


def _langchain_knows(word: str, model: str) -> bool:
    from hybrid.models.langchain.chat_models import chat_model_named

    return chat_model_named(word, model) is not None


def _unknown(name: str) -> UsageError:
    """The error for a name without a known provider, with the name that was probably meant."""
    word, _, rest = name.partition(":")
    said = word.lower()
    front, slash, back = name.partition("/")
    near = [known for known in WORDS if known.startswith(f"{said}_")]
    # From three quarters alike on: vllm is nearer to ollama than it should be.
    near = near or difflib.get_close_matches(said, WORDS, n=1, cutoff=0.75)
    meant = [f"{row.name}:{rest or word}" for row in PROVIDERS.values() if row.begins and word.startswith(row.begins)]
    if near:
        meant = [f"{near[0]}:{rest}" if rest else near[0]]
    elif slash and front in PROVIDERS:
        meant = [f"{front}:{back}"]
    elif not meant and Path(name).expanduser().is_dir():
        meant = [f"hf:{name}"]
    hint = f" (did you mean {meant[0]!r}?)" if meant else ""
    known = f"--model {name!r}: no provider {word!r}{hint}; there are: {', '.join(WORDS)}"
    return UsageError(
        f"{known} (provider:model), and LangChain's others, such as azure_openai and mistralai; other servers that "
        "speak OpenAI's API: openai:MODEL with --base-url"
    )


def _refuse_without_local(name: str) -> None:
    """Raise `UsageError` for a model in this process where what loads its weights is not installed."""
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            raise UsageError(needs_local(f"--model {name}", package))


def _make(word: str, name: str, rest: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    if word in IN_PROCESS:
        _refuse_without_local(name)
    if word == "replay":
        _refuse_options(word, settings)
        from hybrid.models.replay import ReplayModel

        return ReplayModel(name, Path(rest))
    if word == "embedded":
        from hybrid.models.embedded import EmbeddedModel

        return EmbeddedModel(settings, store)
    if word == "hf":
        from hybrid.models.in_process.chat import HuggingFaceChat

        return HuggingFaceChat(name, settings, store)
    from hybrid.models.caller import Caller

    if word == "openai":
        from hybrid.models.chat_completions.client import ChatCompletionsClient, speaks

        if speaks(settings):
            return Caller(ChatCompletionsClient(name, settings, store), settings)
    from hybrid.models.langchain.client import LangChainClient

    return Caller(LangChainClient(name, settings, store), settings)


def _refuse_options(word: str, settings: ModelSettings) -> None:
    """Options that would change nothing are refused: a manifest must not claim them."""
    given = {
        "--base-url": settings.base_url,
        "--image-detail": settings.image_detail,
        "--max-pixels": settings.max_pixels,
        "--reasoning-effort": settings.reasoning_effort,
        "--tool-calling": settings.tool_calling if settings.tool_calling != "auto" else None,
        **{f"--model-arg {key}": value for key, value in settings.extra.items()},
    }
    useless = [option for option, value in given.items() if value is not None]
    if useless:
        raise UsageError(f"{', '.join(useless)}: the model {word!r} has no such option")
