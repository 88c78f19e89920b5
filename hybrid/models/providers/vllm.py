"""`vllm:NAME`: a model whose server, vLLM, is started by this program."""

from __future__ import annotations

from hybrid.config import ModelSettings
from hybrid.core.images import ImageStore
from hybrid.models.base import ChatModel


def open_model(name: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    """Make the model; its server starts with the first request. Raises `UsageError` as `open_served`."""
    from hybrid.models.served.opening import open_served

    return open_served(name, settings, store)


MODEL = open_model
