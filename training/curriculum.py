"""Order of the lessons: drills and vision lessons first, then conversations, in batches of similar length.

for batch in draw_batches(lessons, steps=2000, tokens=3500, seed=0): ...
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from typing import Final

from training.drills import drill
from training.lessons import Lesson, Lessons, lesson

# Shares of conversations without tools, with native calls and with calls as text.
WEIGHTS: Final[Mapping[str, float]] = {"plain": 0.4, "tools": 0.52, "text": 0.08}
FIRST: Final[Mapping[str, float]] = {"drill": 0.3, "scene": 0.5}
LAST: Final[Mapping[str, float]] = {"drill": 0.05, "scene": 0.08}
# Shares of drills and of vision lessons: `FIRST` falls linearly to 0 over this share of the steps, but not below
# `LAST`.
EARLY: Final = 0.15
# Tokens beyond which a conversation is left out.
MAX_LENGTH: Final = 1100
# Batches that are drawn together and sorted by length.
POOL: Final = 20


def share(kind: str, spent: float) -> float:
    """Return the share of drills or of vision lessons after a share of the steps (0..1)."""
    return max(LAST[kind], FIRST[kind] * (1 - spent / EARLY))


def draw_batches(lessons: Lessons, steps: int, tokens: int, seed: int) -> Iterator[list[Lesson]]:
    """Yield all batches of lessons; the lessons of a batch have similar lengths.

    Forms are drawn by weight, and the tasks of a form by the square root of their number of lessons. `tokens` is the
    size of a batch, including the padding of shorter lessons.
    """
    rng = random.Random(seed)
    forms = lessons.forms
    names = sorted(WEIGHTS.keys() & forms.keys())
    weights = [WEIGHTS[name] for name in names]
    options = 0
    while options < steps:
        pool: list[Lesson] = []
        spent = options / steps
        while sum(len(item.ids) for item in pool) < POOL * tokens:
            chance = rng.random() - share("drill", spent)
            if chance < 0:
                pool.append(lesson(drill(rng), lessons.words))
                continue
            form = "scene" if chance < share("scene", spent) and "scene" in forms else rng.choices(names, weights)[0]
            tasks = forms[form]
            # A task with many questions teaches more, but not in proportion to their number.
            task = rng.choices(list(tasks), [math.sqrt(len(entry)) for entry in tasks.values()])[0]
            selected = lessons[rng.choice(tasks[task])]
            if len(selected.ids) <= MAX_LENGTH:
                pool.append(selected)
        pool.sort(key=lambda value: len(value.ids))
        batches: list[list[Lesson]] = [[]]
        for other_item in pool:
            if batches[-1] and (len(batches[-1]) + 1) * len(other_item.ids) > tokens:
                batches.append([])
            batches[-1].append(other_item)
        rng.shuffle(batches)
        batches = batches[: steps - options]
        options += len(batches)
        yield from batches
