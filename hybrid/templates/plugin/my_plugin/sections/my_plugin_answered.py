"""The share of questions that each solver answered: an example to be changed.

`hybrid compare RUN --only my_plugin_answered`
"""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.benchmark import MetricCard, Outcome
from hybrid.scoring.compare import Comparison
from hybrid.scoring.result import FRACTION, Result, Section

NAME = "my_plugin_answered"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield one row per solver."""
    for solver in comparison.solvers:
        answered = sum(score.outcome is Outcome.ANSWERED for score in solver.scores)
        if solver.scores:
            yield Result(
                NAME, "answered", FRACTION, answered / len(solver.scores), a=solver.solver, n=len(solver.scores)
            )


SECTION = Section(
    NAME,
    "Which share of the questions has each solver answered?",
    (MetricCard("answered", "questions with an answer / all questions", "questions", "ours"),),
    rows,
    headings={"a": "solver"},
)
