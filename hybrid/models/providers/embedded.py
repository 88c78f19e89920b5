"""`embedded`: the project's small demonstration model."""

from __future__ import annotations

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.models.base import ChatModel
from hybrid.models.in_process import refuse_without_local


def open_model(name: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    """Create the model without loading it. Raises `UsageError` for a name with a suffix, or without torch."""
    if ":" in name:
        raise UsageError(f"--model {name!r}: the embedded model has no variants; write embedded")
    refuse_without_local(name)
    from hybrid.models.embedded import EmbeddedModel

    return EmbeddedModel(settings, store)


MODEL = open_model
