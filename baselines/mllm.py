"""The pure MLLM: the same model and the same words as the controller, and no tools.

hybrid run blink --solver mllm --model openai:gpt-4o
"""

from __future__ import annotations

from hybrid.messages import text_of
from hybrid.solving.kit import ImageForm, Kit, Solver
from hybrid.types import Prompt, Reply


class Mllm(Solver):
    """One model call; its text is the reply. `images` is a form of its own instead of that of `--images`."""

    needs_model = True

    def __init__(self, images: ImageForm | None = None) -> None:
        self.images = images
        # A recorded reply was given to the images themselves.
        self.needs_live = images is not None

    async def ask(self, prompt: Prompt, kit: Kit) -> Reply:
        """The model's own words."""
        return Reply(text_of(await kit.model([kit.message(prompt)])))


SOLVER = Mllm()
