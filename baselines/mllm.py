"""The pure MLLM: the same model and the same words as the controller, and no tools.

hybrid run blink --solver mllm --model openai:gpt-4o
"""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.kit import Kit, Limits
from hybrid.messages import text_of
from hybrid.types import Prompt, Reply


class Mllm:
    """One model call; its text is the reply."""

    needs_model = True
    needs_live = False
    texts: Mapping[str, str] = {}

    def calls(self, limits: Limits) -> tuple[int, int]:
        """One call."""
        return (1, 1)

    async def ask(self, prompt: Prompt, kit: Kit) -> Reply:
        """The model's own words."""
        return Reply(text_of(await kit.model([kit.message(prompt)])))


SOLVER = Mllm()
