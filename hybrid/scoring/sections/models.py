"""How right is each model on each task?

n: questions of the task that did not fail
source: ours: the mean score, so that --unanswered decides what an unanswered question is worth

- <task> = right answers / questions of the task, or the headline metric
"""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.benchmarks.base import accuracy
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import model_of
from hybrid.scoring.result import FRACTION, Result, unit_of
from hybrid.scoring.score import group_of

NAME = "models"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield a row for each solver that asks a model and each task, headline metric first; no rows for a single model.

    The quantity is the task, so that a table has a line for each solver and a column for each task.
    """
    asking = [solver for solver in comparison.solvers if model_of(solver) is not None]
    if len({model_of(solver) for solver in asking}) < 2:
        return
    by, rule = comparison.options.by, comparison.solvers[0].unanswered
    groups = sorted({group_of(score, by) for solver in asking for score in solver.scores if score.correct is not None})
    for solver in asking:
        for metric in solver.metrics:
            if metric.name == comparison.headline:
                value = metric.value
                yield Result(NAME, metric.name, unit_of((metric,)), value, solver.solver, n=metric.n, none=rule)
        for group in groups:
            metric = accuracy("", [score for score in solver.scores if group_of(score, by) == group])
            yield Result(NAME, group, FRACTION, metric.value, solver.solver, n=metric.n, none=rule)


SECTION = statistic(rows, headings={"a": "solver and model"}, order=5)
