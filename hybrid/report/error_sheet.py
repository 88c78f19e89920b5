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
    subject = next((solver for solver in solvers if role(solver) == "hybrid"), solvers[0])
    judged = [score for score in subject.scores if not score.outcome.failed and score.correct is not None]
    # Wrong, partly right, or without a readable answer.
    wrong = [score for score in judged if (score.correct or 0.0) < 1]
    return frozenset(
        identity
        for task, members in grouped(wrong, lambda score: score.task).items()
        for identity in random.Random(f"{seed} {task}").sample(
            sorted(score.id for score in members), min(per_task, len(members))
        )
    )
