"""`embedded`: a small vision language model in this project, for demonstration and tests.

    hybrid run blink --data sample --model embedded

A LLaVA of under three million parameters in the folder `hybrid/models/embedded/checkpoint`, trained from scratch on
generated questions and on conversations of the real controller (`training/` of a clone). It sees pixels, calls tools,
reads their output and answers, so that everything runs offline; its scores test the machinery and say nothing about
MLLMs. `CARD.md` lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.core.types import Json
from hybrid.models.base import ChatModel
from hybrid.models.in_process.chat import HuggingFaceChat, refuse_without_local

CHECKPOINT: Final = Path(__file__).parents[1] / "embedded" / "checkpoint"


class EmbeddedModel(HuggingFaceChat):
    """The `ChatModel` named `embedded`: the project's checkpoint, opened like any directory."""

    provider = "embedded"

    def __init__(self, settings: ModelSettings, store: ImageStore) -> None:
        super().__init__(f"hf:{CHECKPOINT}", settings, store)
        self.name = "embedded"

    def metadata(self) -> Mapping[str, Json]:
        """Return the metadata of the checkpoint, marked as a demonstration."""
        return {**super().metadata(), "model": self.name, "demonstration": True}


def open_model(name: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    """Create the model without loading it. Raises `UsageError` for a name with a suffix, or without torch."""
    if ":" in name:
        raise UsageError(f"--model {name!r}: the embedded model has no variants; write embedded")
    refuse_without_local(name)
    return EmbeddedModel(settings, store)


MODEL = open_model
