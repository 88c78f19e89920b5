"""The error sheet: some questions of each task that a solver did not get right, drawn by a seed, for people to tag.

questions = error_sheet(solvers, per_task=10, seed=0)
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from hybrid.scoring.groups import role
from hybrid.scoring.score import Scored, grouped


def error_sheet(solvers: Sequence[Scored], per_task: int, seed: int = 0) -> frozenset[str]:
    """Ids of at most so many questions a task that the first hybrid solver got wrong; all of them where there are few.

    The draw depends on seed, task and ids alone: another order of the questions gives the same sheet.
    """
    if not (solvers and per_task):
        return frozenset()
    # Whose errors are looked at: the first hybrid solver's, else those of the first solver.
    subject = next((one for one in solvers if role(one) == "hybrid"), solvers[0])
    judged = [one for one in subject.scores if not one.outcome.failed and one.correct is not None]
    # Wrong, partly right, or without a readable answer.
    wrong = [one for one in judged if (one.correct or 0.0) < 1]
    return frozenset(
        identity
        for task, own in grouped(wrong, lambda one: one.task).items()
        for identity in random.Random(f"{seed} {task}").sample(sorted(one.id for one in own), min(per_task, len(own)))
    )
