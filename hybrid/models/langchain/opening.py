"""Opens models through LangChain's clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.models.base import ChatModel

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def open_model(name: str, settings: ModelSettings, store: ImageStore, client: BaseChatModel | None = None) -> ChatModel:
    """Make the model, not connected, or wrap the given `client`. Raises `UsageError` for a name without a model."""
    word, _, model = name.partition(":")
    if not model and client is None:
        raise UsageError(f"--model {name!r}: write {word}:MODEL")
    from hybrid.models.caller import Caller
    from hybrid.models.langchain.client import LangChainClient

    return Caller(LangChainClient(name, settings, store, client), settings)
