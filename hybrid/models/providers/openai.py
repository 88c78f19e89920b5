"""`openai:MODEL`: OpenAI, and compatible servers, through hybrid's own client if it supports the options."""

from __future__ import annotations

from hybrid.config import ModelSettings
from hybrid.core.images import ImageStore
from hybrid.models.base import ChatModel
from hybrid.models.langchain import opening


def open_model(name: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    """Make the model, not connected. Raises `UsageError` for a name without a model."""
    from hybrid.models.caller import Caller
    from hybrid.models.chat_completions.client import ChatCompletionsClient, speaks

    if not name.partition(":")[2] or not speaks(settings, name):
        return opening.open_model(name, settings, store)
    return Caller(ChatCompletionsClient(name, settings, store), settings)


MODEL = open_model
