"""Models of the clients that LangChain has."""

from __future__ import annotations

from hybrid.config import ModelSettings
from hybrid.errors import UsageError
from hybrid.images import ImageStore
from hybrid.models.base import ChatModel


def open_model(name: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    """The model, not connected. Raises `UsageError` for a name without a model."""
    word, _, model = name.partition(":")
    if not model:
        raise UsageError(f"--model {name!r}: write {word}:MODEL")
    from hybrid.models.caller import Caller
    from hybrid.models.langchain.client import LangChainClient

    return Caller(LangChainClient(name, settings, store), settings)
