"""How much does a solver vary when it is asked again?

An interval over questions says how far the value would move with other questions of the same kind, asked once. It
ignores that the same question may get another answer when it is asked again. The standard deviation here measures this
variation, and the interval here is about the mean over ever more repetitions of these questions. Tool output is the
same in every repetition, because it comes from the cache after the first.

n: questions that every repetition has and none failed on
source: docs/statistics.md, section Repeated runs
values: in the metric's own unit

- value = the metric of one repetition
- mean over repetitions = mean of the K repetitions [source: docs/statistics.md, section Repeated runs; interval:
  Student, Biometrika 6 (1908) 1-25]
- standard deviation over repetitions = root of (sum of (value - mean)^2 / (K - 1))
- share of changed verdicts (0 to 1) = questions whose verdict is not the same in all repetitions / questions with a
  verdict [n: questions with a verdict in every repetition]

Every number covers the questions that all repetitions have and none failed on, so that only the repetition differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hybrid.benchmarks.base import accuracy
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import repetition
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.result import FRACTION, Result
from hybrid.stats import ends_of
from hybrid.stats.spread import spread

NAME = "spread"
ACCURACY = "accuracy"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield the headline metric and the accuracy by task (or group) over the repetitions of each repeated solver."""
    repetition_sets = (comparison.repetitions(solver) for solver in comparison.solvers if repetition(solver) == 1)
    for members in (members for members in repetition_sets if len(members) > 1):
        shared, rule = comparison.overlap(*members), comparison.rule
        row = Result(NAME, "", FRACTION, None, members[0].solver)
        if head := shared.headline(rule):
            overall = replace(row, metric=head[0].name, n=head[0].n)
            yield from _varying(overall, shared, [metric.value for metric in head])
        for name, part in shared.groups(comparison.options.by).items():
            metrics = [accuracy(ACCURACY, part.scores(place, rule)) for place in range(len(members))]
            row_of_group = replace(row, metric=ACCURACY, group=name, n=metrics[0].n)
            yield from _varying(row_of_group, part, [metric.value for metric in metrics])


def _varying(row: Result, part: Overlap, values: Sequence[float | None]) -> Iterator[Result]:
    present = [value for value in values if value is not None]
    if len(present) < len(values):
        return
    measured, correct = spread(present), np.array(part.correct())
    for solver, value in zip(part.solvers, present, strict=True):
        yield replace(row, quantity="value", value=value, a=solver.solver)
    low, high = ends_of(measured.interval)
    yield replace(row, quantity="mean over repetitions", value=measured.mean, low=low, high=high)
    yield replace(row, quantity="standard deviation over repetitions", value=measured.sd)
    changed, judged = part.kept & (correct != correct[0]).any(0), int(part.kept.sum())
    share, ids = (float(changed.sum() / judged) if judged else None), tuple(part.ids[changed])
    yield replace(row, quantity="share of changed verdicts", value=share, n=judged or row.n, ids=ids)


def lead(_: Comparison, section_rows: Sequence[Result]) -> str:
    """State the standard deviation of the headline metric for each solver."""
    deviations = [row for row in section_rows if row.quantity.startswith("standard deviation") and not row.group]
    parts = [f"{row.a} varies by {row.value:.3f} (standard deviation of {row.metric})" for row in deviations]
    return f"Asked again, {'; '.join(parts)}." if parts else ""


SECTION = statistic(rows, lead, headings={"a": "solver"}, order=180)
