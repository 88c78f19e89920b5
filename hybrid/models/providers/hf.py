"""`hf:DIR_OR_ID`: weights in this process."""

from __future__ import annotations

from hybrid.config import ModelSettings
from hybrid.errors import UsageError
from hybrid.images import ImageStore
from hybrid.models.base import ChatModel
from hybrid.models.in_process import refuse_without_local


def open_model(name: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    """The model, not loaded. Raises `UsageError` for a name without a folder or id, or without torch."""
    if not name.partition(":")[2]:
        raise UsageError(f"--model {name!r}: write hf:DIR")
    refuse_without_local(name)
    from hybrid.models.in_process.chat import HuggingFaceChat

    return HuggingFaceChat(name, settings, store)


MODEL = open_model
