"""`embedded`: a small vision language model that ships with the project, a demonstration and a test instrument.

    hybrid run blink --data sample --model embedded

A LLaVA of under three million parameters in the folder `checkpoint`, trained from nothing on generated questions and on
conversations of the true controller (`training/` of a clone). It sees pixels, calls tools, reads what they say and
answers, so that everything runs offline; its numbers say what the machinery does and nothing about MLLMs. `CARD.md`
has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hybrid.config import ModelSettings
from hybrid.core.images import ImageStore
from hybrid.core.types import Json
from hybrid.models.in_process.chat import HuggingFaceChat

CHECKPOINT: Final = Path(__file__).parent / "checkpoint"


class EmbeddedModel(HuggingFaceChat):
    """The `ChatModel` of the name `embedded`: the checkpoint of the project, opened as any directory is."""

    provider = "embedded"

    def __init__(self, settings: ModelSettings, store: ImageStore) -> None:
        super().__init__(f"hf:{CHECKPOINT}", settings, store)
        self.name = "embedded"

    def metadata(self) -> Mapping[str, Json]:
        """Those of the checkpoint, and that it is a demonstration."""
        return {**super().metadata(), "model": self.name, "demonstration": True}
