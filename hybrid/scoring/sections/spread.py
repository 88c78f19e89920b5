"""How much does a solver vary when it is asked again?

An interval over questions says how far the value would move with other questions of the same kind, asked once as they
were here. It does not cover that the same question, asked again, is answered otherwise: that is the standard
deviation here, and the interval here is of the mean over ever more repetitions of these questions. Tools tell every
repetition the same: their findings come from the cache the second time.

n: questions that every repetition has and none failed
source: docs/statistics.md, section Repeated runs
values: in the metric's own unit

- value = the metric of one repetition
- mean over repetitions = mean of the K repetitions [source: docs/statistics.md, section Repeated runs; interval:
  Student, Biometrika 6 (1908) 1-25]
- standard deviation over repetitions = root of (sum of (value - mean)^2 / (K - 1))
- share of changed verdicts (0 to 1) = questions whose verdict is not the same in all repetitions / questions with a
  verdict [n: questions with a verdict in every repetition]

Every number is over the questions that all repetitions have and none failed, so that only the asking differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hybrid.benchmarks.base import accuracy
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import repetition, repetitions
from hybrid.scoring.result import FRACTION, Result
from hybrid.scoring.score import Scored, group_of, summary
from hybrid.stats import ends_of
from hybrid.stats.spread import spread
from hybrid.types import Outcome, Score

NAME = "spread"
ACCURACY = "accuracy"


def rows(comparison: Comparison) -> Iterator[Result]:
    """The headline metric and the accuracy of each task (or group) over the repetitions of each repeated solver."""
    for members in repeated_solvers(comparison.solvers):
        yield from _of_solver(comparison, members)


def repeated_solvers(solvers: Sequence[Scored]) -> tuple[tuple[Scored, ...], ...]:
    """The solvers that were asked more than once, each with its repetitions in order."""
    groups = (repetitions(solvers, one) for one in solvers if repetition(one) == 1)
    return tuple(members for members in groups if len(members) > 1)


def _aligned(members: Sequence[Scored]) -> tuple[tuple[Score, ...], ...]:
    """The scores of each repetition over the questions that all have; those that one failed are failed in all."""
    tables: list[Mapping[str, Score]] = [{score.id: score for score in one.scores} for one in members]
    shared = [identity for identity in tables[0] if all(identity in table for table in tables)]
    lost = {identity for identity in shared if any(table[identity].outcome.failed for table in tables)}
    return tuple(
        tuple(replace(table[i], outcome=Outcome.OUTAGE) if i in lost else table[i] for i in shared) for table in tables
    )


def _of_solver(comparison: Comparison, members: Sequence[Scored]) -> Iterator[Result]:
    aligned, names = _aligned(members), [one.solver for one in members]
    tables = [
        {metric.name: metric for metric in summary(comparison.benchmark, members[0].questions, scores) if metric.cells}
        for scores in aligned
    ]
    head = next((name for name in comparison.benchmark.card.headline if all(name in table for table in tables)), None)
    row = Result(NAME, "", FRACTION, None, names[0])
    if head is not None:
        row_of_metric = replace(row, metric=head, n=tables[0][head].n)
        yield from _varying(row_of_metric, names, [table[head].value for table in tables], aligned)
    groups: dict[str, list[int]] = {}
    for place, score in enumerate(aligned[0]):
        groups.setdefault(group_of(score, comparison.options.by), []).append(place)
    for name, places in sorted(groups.items()):
        parts = [[scores[place] for place in places] for scores in aligned]
        metrics = [accuracy(ACCURACY, part) for part in parts]
        row_of_metric = replace(row, metric=ACCURACY, group=name, n=metrics[0].n)
        yield from _varying(row_of_metric, names, [metric.value for metric in metrics], parts)


def _varying(
    row: Result, names: Sequence[str], values: Sequence[float | None], scores: Sequence[Sequence[Score]]
) -> Iterator[Result]:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return
    measured = spread(known)
    for name, value in zip(names, known, strict=True):
        yield replace(row, quantity="value", value=value, a=name)
    low, high = ends_of(measured.interval)
    yield replace(row, quantity="mean over repetitions", value=measured.mean, low=low, high=high)
    yield replace(row, quantity="standard deviation over repetitions", value=measured.sd)
    judged = {
        each[0].id: {score.correct for score in each}
        for each in zip(*scores, strict=True)
        if not any(score.outcome.failed or score.correct is None for score in each)
    }
    changed = tuple(identity for identity, verdicts in judged.items() if len(verdicts) > 1)
    share = len(changed) / len(judged) if judged else None
    yield replace(row, quantity="share of changed verdicts", value=share, n=len(judged) or row.n, ids=changed)


def lead(comparison: Comparison, made: Sequence[Result]) -> str:
    """The standard deviation of the headline metric of each solver."""
    del comparison
    deviations = [row for row in made if row.quantity.startswith("standard deviation") and not row.group]
    parts = [f"{row.a} varies by {row.value:.3f} (standard deviation of {row.metric})" for row in deviations]
    return f"Asked again, {'; '.join(parts)}." if parts else ""


SECTION = statistic(rows, lead, headings={"a": "solver"}, order=180)
