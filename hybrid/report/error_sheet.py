"""The error sheet: some questions of each task that a solver did not get right, drawn by a seed, for people to tag.

questions = error_sheet(solvers, per_task=10, seed=0)
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from hybrid.scoring.groups import role
from hybrid.scoring.score import Scored
from hybrid.types import Score


def subject(solvers: Sequence[Scored]) -> Scored:
    """Whose errors are looked at: the first hybrid solver's, else those of the first solver."""
    return next((one for one in solvers if role(one) == "hybrid"), solvers[0])


def error_sheet(solvers: Sequence[Scored], per_task: int, seed: int = 0) -> frozenset[str]:
    """Ids of at most so many questions a task that the first hybrid solver got wrong; all of them where there are few.

    The draw depends on seed, task and ids alone: another order of the questions gives the same sheet.
    """
    if not (solvers and per_task):
        return frozenset()
    wrong: dict[str, list[str]] = {}
    for score in subject(solvers).scores:
        if is_error(score):
            wrong.setdefault(score.task, []).append(score.id)
    return frozenset(
        identity
        for task, ids in wrong.items()
        for identity in random.Random(f"{seed} {task}").sample(sorted(ids), min(per_task, len(ids)))
    )


def is_error(score: Score) -> bool:
    """Whether a question was asked and not answered right: wrong, partly right, or without a readable answer."""
    return not score.outcome.failed and score.correct is not None and score.correct < 1
