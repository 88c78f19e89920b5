"""The error sheet: for each task, a seeded sample of questions that a solver did not get right, for people to tag.

questions = error_sheet(solvers, per_task=10, seed=0)
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from hybrid.scoring.groups import role
from hybrid.scoring.score import Scored, grouped


def error_sheet(solvers: Sequence[Scored], per_task: int, seed: int = 0) -> frozenset[str]:
    """Return ids of up to `per_task` questions per task that the first hybrid solver got wrong.

    The sample depends only on seed, task and ids, not on the order of the questions.
    """
    if not (solvers and per_task):
        return frozenset()
    # Use the errors of the first hybrid solver, else of the first solver.
    subject = next((solver for solver in solvers if role(solver) == "hybrid"), solvers[0])
    judged = [score for score in subject.scores if not score.outcome.failed and score.correct is not None]
    # Include wrong, partly right and unreadable answers.
    wrong = [score for score in judged if (score.correct or 0.0) < 1]
    return frozenset(
        identity
        for task, members in grouped(wrong, lambda score: score.task).items()
        for identity in random.Random(f"{seed} {task}").sample(
            sorted(score.id for score in members), min(per_task, len(members))
        )
    )
