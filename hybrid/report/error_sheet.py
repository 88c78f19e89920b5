"""The error sheet: some questions of each task that a solver did not get right, drawn by a seed, for people to tag.

questions = error_sheet(solvers, per_task=10, seed=0)
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from hybrid.scoring.groups import role
from hybrid.scoring.score import Scored


def error_sheet(solvers: Sequence[Scored], per_task: int, seed: int = 0) -> frozenset[str]:
    """Ids of at most so many questions a task that the first hybrid solver got wrong; all of them where there are few.

    The draw depends on seed, task and ids alone: another order of the questions gives the same sheet.
    """
    if not (solvers and per_task):
        return frozenset()
    wrong: dict[str, list[str]] = {}
    # Whose errors are looked at: the first hybrid solver's, else those of the first solver.
    subject = next((one for one in solvers if role(one) == "hybrid"), solvers[0])
    for score in subject.scores:
        # Wrong, partly right, or without a readable answer.
        if not score.outcome.failed and score.correct is not None and score.correct < 1:
            wrong.setdefault(score.task, []).append(score.id)
    return frozenset(
        identity
        for task, ids in wrong.items()
        for identity in random.Random(f"{seed} {task}").sample(sorted(ids), min(per_task, len(ids)))
    )
