"""The MLLM alone: the same model and the same prompts as the controller, without tools.

hybrid run blink --solver mllm --model openai:gpt-4o
"""

from __future__ import annotations

from types import MappingProxyType

from hybrid.config import ImageForm
from hybrid.core.types import Prompt, Reply
from hybrid.solving.empty_replies import EMPTY, words_of
from hybrid.solving.solver import Solver, SolverContext


class Mllm(Solver):
    """One model call, or two if the first reply is empty. `images` overrides the form that `--images` sets."""

    role = "mllm"
    needs_model = True
    texts = MappingProxyType({"empty": EMPTY})

    def __init__(self, images: ImageForm | None = None) -> None:
        self.images = images
        # Recorded replies were given to the images themselves, so another form of the images needs a live model.
        self.needs_live = images is not None

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        """Return the model's own text."""
        return Reply(await words_of(ctx.model, [ctx.message(prompt)], ctx.log))


SOLVER = Mllm()
