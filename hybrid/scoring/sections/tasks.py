"""How accurate is each solver on each task?

n: questions of the task that did not fail
source: ours: the mean score, so that --unanswered decides what an unanswered question is worth

- accuracy = right answers / questions of the task (or of the group of --by)
- accuracy where answered = right answers / questions of the task that a specialist, which abstains by design, answers
- none (0 to n, in questions) = questions of the task without a readable answer [n: questions of the task; source:
  ours]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hybrid.benchmarks.base import accuracy
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import role
from hybrid.scoring.result import FRACTION, QUESTIONS, Result, with_interval
from hybrid.scoring.score import group_of, grouped, nothing_answered

NAME = "tasks"
WHERE_ANSWERED = "accuracy where answered"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield the accuracy of each task, and its number of questions without a readable answer."""
    by = comparison.options.by
    for solver in comparison.solvers:
        # Scores whose `correct` is None (a scanpath) are neither right nor wrong.
        scores = [score for score in solver.scores if score.correct is not None]
        for group, members in grouped(scores, lambda score: group_of(score, by)).items():
            row = Result(NAME, "accuracy", FRACTION, None, solver.solver, group=group, none=solver.unanswered)
            row = with_interval(row, accuracy("accuracy", members))
            # If nothing was answered, nothing was measured, so leave out the interval.
            yield replace(row, low=None, high=None) if nothing_answered(members) else row
            answered = [score for score in members if score.answer is not None and not score.outcome.failed]
            if role(solver) == "specialist" and 0 < len(answered) < (row.n or 0):
                row_where = replace(row, quantity=WHERE_ANSWERED, none="", n=len(answered))
                yield with_interval(row_where, accuracy("accuracy", answered))
            none = sum(score.answer is None and not score.outcome.failed for score in members)
            yield Result(NAME, "none", QUESTIONS, float(none), solver.solver, group=group, n=row.n)


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """State on how many tasks each hybrid solver is above and below its parts."""
    by = comparison.grouping
    # A row without an interval has no answers, so being above it only means being above a guess.
    answered = (row for row in section_rows if row.quantity == "accuracy" and row.low is not None)
    value = {(row.a, row.group): row.value for row in answered}
    parts = []
    for group in comparison.groups:
        for part in group.parts:
            pairs = [
                (mine, other)
                for (solver, task), mine in value.items()
                if solver == group.hybrid.solver
                and mine is not None
                and (other := value.get((part.solver, task))) is not None
            ]
            if pairs:
                above, below = (sum(sign * (x - y) > 0 for x, y in pairs) for sign in (1, -1))
                hybrid = group.hybrid.solver
                parts.append(f"{hybrid} is above {part.solver} on {above} of {len(pairs)} {by}s and below on {below}")
    return f"{'; '.join(parts)}, before any test." if parts else ""


SECTION = statistic(rows, lead, headings={"a": "solver"}, chart="bars", charted=("accuracy",), order=30)
