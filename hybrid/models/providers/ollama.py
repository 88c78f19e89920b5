"""`ollama:MODEL`: models of an Ollama server, through hybrid's client of its native interface."""

from __future__ import annotations

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.models.base import ChatModel


def open_model(name: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    """Make the model, not connected. Raises `UsageError` for a name without a model, or an unsupported option."""
    if not name.partition(":")[2]:
        raise UsageError(f"--model {name!r}: write ollama:MODEL")
    from hybrid.models.caller import Caller
    from hybrid.models.ollama.client import OllamaClient

    return Caller(OllamaClient(name, settings, store), settings)


MODEL = open_model
