"""`embedded`: the small demonstration model that ships with the project."""

from __future__ import annotations

from hybrid.config import ModelSettings
from hybrid.errors import UsageError
from hybrid.images import ImageStore
from hybrid.models.base import ChatModel


def open_model(name: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    """The model, not loaded. Raises `UsageError` for a name that goes on after the word."""
    if ":" in name:
        raise UsageError(f"--model {name!r}: the embedded model has no variants; write embedded")
    from hybrid.models.embedded import EmbeddedModel

    return EmbeddedModel(settings, store)


MODEL = open_model
