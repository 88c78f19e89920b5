"""Chance: a seeded uniform answer in the requested form, the lower bound for every other number.

hybrid run blink --solver chance
"""

from __future__ import annotations

import random

from hybrid.answers.offered import draw
from hybrid.core.types import Prompt, Reply
from hybrid.solving.solver import Solver, SolverContext


class Chance(Solver):
    """Draws one answer with the prompt's seed, so that a run is reproducible."""

    role = "chance"
    seeded = True

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        """Return an answer drawn at random from those that the prompt allows."""
        return Reply(draw(prompt, random.Random(ctx.seed)))


SOLVER = Chance()
