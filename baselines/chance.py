"""Chance: a seeded uniform answer of the form that is asked for. The floor under every other number.

hybrid run blink --solver chance
"""

from __future__ import annotations

import json
import random

from hybrid.solving.kit import Kit, Solver
from hybrid.types import LETTERS, Kind, Prompt, Reply

FIXATIONS = 6
MOST_OBJECTS = 10


class Chance(Solver):
    """Draws one answer; the seed is that of the ask, so a run repeats exactly."""

    role = "chance"
    seeded = True

    async def ask(self, prompt: Prompt, kit: Kit) -> Reply:
        """An answer drawn at random from those that the prompt allows."""
        return Reply(draw(prompt, random.Random(kit.seed)))


def draw(prompt: Prompt, rng: random.Random) -> str:
    """A uniform answer, bare, so that every parse reads it; a scanpath is uniform over the image."""
    offered = LETTERS[: len(prompt.choices)]
    match prompt.kind:
        case Kind.CHOICE:
            return rng.choice(offered) if offered else ""
        case Kind.YES_NO | Kind.CONTINUE:
            return rng.choice(("yes", "no"))
        case Kind.INTEGER:
            return str(rng.randint(1, MOST_OBJECTS))
        case Kind.ORDER:
            letters = offered or LETTERS[: max(2, len(prompt.given.boxes))]
            return "".join(rng.sample(letters, len(letters)))
        case Kind.SCANPATH:
            return _scanpath(prompt.given.fixations or FIXATIONS, rng)
        case Kind.VIEWS:
            return ", ".join(str(view) for view in range(1, 5) if rng.random() < 0.5) or str(rng.randint(1, 4))
        case Kind.VIEW_PLAN:
            views = [view for view in range(1, 5) if rng.random() < 0.5]
            return json.dumps({"part": views, "keep": views, "shift": [], "reason": ""})
        case Kind.FREE:
            return ""


def _scanpath(fixations: int, rng: random.Random) -> str:
    x = [round(rng.random(), 2) for _ in range(fixations)]
    y = [round(rng.random(), 2) for _ in range(fixations)]
    t = [rng.randint(100, 400) for _ in range(fixations)]
    return f"X = {x}\nY = {y}\nT = {t}"


SOLVER = Chance()
