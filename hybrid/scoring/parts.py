"""The rows of a statistic over shared questions: one `Part` for all of them, then one for each group.

for part in parts(found, NAME, group.hybrid, group.alone):
    hybrid, alone = part.seen.right
    yield from part.gated(part.share("helped", hybrid * (1 - alone)))
for effect in tool_effects(comparison, group):
    effect.quantity, effect.a, effect.b, effect.metrics      # "gain", alone, hybrid, (Metric, Metric)

A study of tools measures three effects, each a difference of two solvers over its own questions. gain: with tools minus
alone. effect of offering: blank tools minus alone. effect of output: with tools minus blank tools. The last two share
the questions of all three solvers, so that they add up to the gain there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hybrid.benchmarks.base import UnansweredRule
from hybrid.core.types import Metric
from hybrid.scoring.compare import Comparison
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.result import FRACTION, QUESTIONS, UNTESTED, Result, contrasted, gated, unit_of, with_interval
from hybrid.scoring.score import Flags, Floats, Scored
from hybrid.stats import ratio_interval

if TYPE_CHECKING:
    from hybrid.scoring.compare import Comparison


# The solvers `a` and `b` of a row; None for the first two of the given solvers.
Sides = tuple[Scored, Scored] | None


@dataclass(frozen=True)
class Part:
    """The questions that several solvers share, and a template for the rows of a statistic about them."""

    shared: Overlap
    row: Result

    @cached_property
    def seen(self) -> Overlap:
        """The overlap restricted to the answered questions."""
        return self.shared.at(np.flatnonzero(self.shared.kept))

    def __len__(self) -> int:
        return len(self.seen)

    def noted(self, *notes: str) -> Part:
        """Return the part with these notes added to its rows."""
        return replace(self, row=self.row.noted(*notes))

    def only(self, flags: Flags) -> Part:
        """Return the part restricted to the flagged questions."""
        return replace(self, shared=self.seen.at(np.flatnonzero(flags)))

    def gated(self, *rows: Result) -> Iterator[Result]:
        """Yield the rows, without interval and p value if nothing is tested."""
        yield from gated(rows, self.shared.untested())

    def number(self, quantity: str, value: float | None, **fields: Any) -> Result:
        """Return a row with a number over these questions."""
        return replace(self.row, quantity=quantity, value=value, **{"n": len(self), **fields})

    def count(self, quantity: str, amount: Floats | Flags, **fields: Any) -> Result:
        """Return a row with the sum of `amount` over the questions, and the ids of questions where it is above 0."""
        ids = tuple(self.seen.ids[np.asarray(amount, float) > 0])
        return self.number(quantity, total(amount), **{"unit": QUESTIONS, "ids": ids, **fields})

    def share(self, quantity: str, above: Floats, below: Floats | None = None, **fields: Any) -> Result:
        """Return a row with a ratio of sums, or a mean, with interval; `n` counts positive denominators."""
        row = replace(self.row, quantity=quantity, unit=FRACTION)
        return replace(with_interval(row, self.shared.ratio(quantity, above, below)), **fields)

    def open_ratio(self, quantity: str, above: Floats, below: Floats, near_zero: str) -> Result:
        """Return a row with a ratio of sums that may be any number, with Fieller's interval.

        If the denominator does not differ from 0 (95 %), value and interval are missing and the note is `near_zero`.
        """
        row = replace(self.row, quantity=quantity, unit=FRACTION, n=len(self))
        estimate = ratio_interval(above, below, self.seen.unit.tolist())
        if estimate is None:
            return row.noted(near_zero)
        return replace(row, value=total(above) / total(below), low=estimate.low, high=estimate.high)


def total(amount: Floats | Flags) -> float:
    """Return the sum, correctly rounded."""
    return math.fsum(np.asarray(amount, float).tolist())


def parts(
    comparison: Comparison,
    section: str,
    *solvers: Scored,
    sides: Sides = None,
    repeated: bool = True,
    notes: bool = True,
) -> Iterator[Part]:
    """Yield the part of all shared questions, with a note on the questions left out, then each group's part.

    The rows name the two solvers `sides`, by default the first two.
    """
    overlap = comparison.overlap(*solvers, repeated=repeated)
    a, b = sides or solvers[:2]
    row = Result(section, "", FRACTION, None, a=a.solver, b=b.solver, none=comparison.rule)
    note = overlap.left_out if notes else ""
    yield Part(overlap, replace(row, note=note))
    for group, shared in overlap.by_group(comparison.options.by).items():
        yield Part(shared, replace(row, group=group))


def contrasts(
    comparison: Comparison,
    section: str,
    solvers: Sequence[Scored],
    of: Mapping[str, tuple[int, int]],
    only: frozenset[str] | None = None,
) -> Iterator[Result]:
    """Yield differences of these solvers: in the headline metric over all questions, and in accuracy for each group.

    With `only`, the differences are over the questions with these ids.
    """
    for part in parts(comparison, section, *solvers):
        shared = part.shared
        if only is not None:
            inside = np.array([name in only for name in shared.ids], bool)
            shared = shared.with_failed(inside)
        metrics = shared.accuracy(comparison.rule) if part.row.group else shared.headline(comparison.rule)
        if metrics is None:
            continue
        for quantity, (a, b) in of.items():
            untested = shared.untested((metrics[a], metrics[b]), (solvers[a], solvers[b]))
            sides = {"a": solvers[a].solver, "b": solvers[b].solver, "metric": metrics[a].name}
            row = part.number(quantity, None, n=metrics[a].n, **sides)
            yield contrasted(row, metrics[a], metrics[b], untested)[0]


GAIN: Final = "gain"
OFFERING: Final = "effect of offering"
OUTPUT: Final = "effect of output"
EFFECTS: Final = (GAIN, OFFERING, OUTPUT)


@dataclass(frozen=True)
class ToolEffect:
    """The difference b minus a of the headline metric over the `shared` questions."""

    quantity: str
    a: Scored
    b: Scored
    shared: Overlap
    # The positions of a and b among the solvers of `shared`.
    places: tuple[int, int]
    metrics: tuple[Metric, Metric]

    def by_rule(self, rule: UnansweredRule) -> tuple[Metric, Metric]:
        """Return the metrics of a and b if a question without an answer counts by this rule."""
        metrics = self.shared.headline(rule)
        if metrics is None:
            return self.metrics
        return metrics[self.places[0]], metrics[self.places[1]]

    @property
    def over_all(self) -> tuple[Metric, Metric]:
        """The accuracy of a and b over all questions, whatever the tasks weigh in the headline metric."""
        metrics = self.shared.accuracy(self.shared.rule)
        return metrics[self.places[0]], metrics[self.places[1]]

    @property
    def why_untested(self) -> str:
        """Reason why this effect is not tested; empty if it is tested."""
        reason = self.shared.untested(self.metrics, (self.a, self.b))
        return "" if reason is None else UNTESTED[reason]

    @property
    def is_share(self) -> bool:
        """Whether the metric is a share, whose differences are points."""
        return unit_of(self.metrics) == FRACTION

    def row(self, section: str, quantity: str = "") -> Result:
        """Return a row about this effect, without a value."""
        metric, unit = self.metrics[0], unit_of(self.metrics)
        row = Result(
            section, quantity or self.quantity, unit, None, a=self.a.solver, b=self.b.solver, metric=metric.name
        )
        return replace(row, n=metric.n, none=self.shared.rule)


def tool_effects(comparison: Comparison, group: ComparisonGroup) -> Iterator[ToolEffect]:
    """Yield the effects that the group's solvers allow, if both compared solvers have the headline metric."""
    alone, blank, hybrid = group.alone, group.blank, group.hybrid
    if alone is not None:
        yield from _effects(comparison, (alone, hybrid), {GAIN: (0, 1)})
    if alone is not None and blank is not None:
        yield from _effects(comparison, (alone, blank, hybrid), {OFFERING: (0, 1), OUTPUT: (1, 2)})
    elif blank is not None:
        yield from _effects(comparison, (blank, hybrid), {OUTPUT: (0, 1)})


def _effects(
    comparison: Comparison, solvers: tuple[Scored, ...], of: dict[str, tuple[int, int]]
) -> Iterator[ToolEffect]:
    shared = comparison.overlap(*solvers)
    metrics = shared.headline(comparison.rule)
    if metrics is None:
        return
    for quantity, (a, b) in of.items():
        yield ToolEffect(
            quantity, solvers[a], b=solvers[b], shared=shared, places=(a, b), metrics=(metrics[a], metrics[b])
        )
