"""Possible guesses: every answer that a prompt's form allows, with its probability.

list_answers(prompt)                     # (("A", 0.5), ("B", 0.5)) for a choice of two
draw(prompt, random.Random(0))           # one of them

`baselines/chance.py` answers with `draw`; its mean accuracy follows from `list_answers` without asking anything
(`hybrid/scoring/chance_baseline.py`). The answers contain no other words, so every parser can read them.
"""

from __future__ import annotations

import itertools
import json
import math
import random

from hybrid.core.types import LETTERS, Kind, Prompt

FIXATIONS = 6
MAX_OBJECTS = 10
VIEWS = (1, 2, 3, 4)
# Maximum number of listed answers to one prompt: the orders of seven letters.
MAX_LISTED = 5040

# Answers, each with its probability, 0..1; the probabilities add up to 1.
Offered = tuple[tuple[str, float], ...]


def list_answers(prompt: Prompt) -> Offered | None:
    """Return all answers that `draw` can give to a prompt of this form; None if there are too many to list.

    A choice is uniform over the letters, a count over 1 to `MAX_OBJECTS`, an order over all orders. Each view is named
    with probability 1/2; if no view is drawn, one of the four is named. For a number with a fraction, a text, a point
    or a box nothing is guessed, and the reply is empty. A scanpath is uniform over the image and not listed.
    """
    letters = LETTERS[: len(prompt.choices)]
    match prompt.kind:
        case Kind.CHOICE:
            return _even(tuple(letters) or ("",))
        case Kind.YES_NO | Kind.CONTINUE:
            return _even(("yes", "no"))
        case Kind.INTEGER:
            return _even(tuple(str(number) for number in range(1, MAX_OBJECTS + 1)))
        case Kind.ORDER:
            ordered = _to_order(prompt)
            few = math.factorial(len(ordered)) <= MAX_LISTED
            return _even(tuple(map("".join, itertools.permutations(ordered)))) if few else None
        case Kind.SCANPATH:
            return None
        case Kind.VIEWS:
            share = 0.5 ** len(VIEWS)
            alone = share + share / len(VIEWS)
            return tuple((", ".join(map(str, views)), alone if len(views) == 1 else share) for views in _some())
        case Kind.VIEW_PLAN:
            return _even(tuple(_plan(views) for views in ((), *_some())))
        case Kind.NUMBER | Kind.TEXT | Kind.POINT | Kind.BOX | Kind.FREE:
            return _even(("",))


def draw(prompt: Prompt, rng: random.Random) -> str:
    """Draw a uniform answer without other words; a scanpath is uniform over the image."""
    match prompt.kind:
        case Kind.ORDER:
            ordered = _to_order(prompt)
            return "".join(rng.sample(ordered, len(ordered)))
        case Kind.SCANPATH:
            fixations = range(prompt.given.fixations or FIXATIONS)
            x, y = ([round(rng.random(), 2) for _ in fixations] for _ in "XY")
            return f"X = {x}\nY = {y}\nT = {[rng.randint(100, 400) for _ in fixations]}"
        case Kind.VIEWS:
            return ", ".join(str(view) for view in VIEWS if rng.random() < 0.5) or str(rng.choice(VIEWS))
        case Kind.VIEW_PLAN:
            return _plan(tuple(view for view in VIEWS if rng.random() < 0.5))
        case _:
            answers = [answer for answer, _ in list_answers(prompt) or ()]
            # If nothing is guessed, no random number is drawn.
            return rng.choice(answers) if any(answers) else ""


def _even(answers: tuple[str, ...]) -> Offered:
    return tuple((answer, 1 / len(answers)) for answer in answers)


def _to_order(prompt: Prompt) -> str:
    return LETTERS[: len(prompt.choices)] or LETTERS[: max(2, len(prompt.given.boxes))]


def _some() -> tuple[tuple[int, ...], ...]:
    """Return every set of at least one view."""
    counts = range(1, len(VIEWS) + 1)
    return tuple(views for count in counts for views in itertools.combinations(VIEWS, count))


def _plan(views: tuple[int, ...]) -> str:
    return json.dumps({"part": views, "keep": views, "shift": [], "reason": ""})
