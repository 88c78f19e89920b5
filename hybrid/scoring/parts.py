"""The rows of a statistic over questions that solvers share: one `Part` for all of them, then one for each group.

for part in parts(found, NAME, group.hybrid, group.alone):
    hybrid, alone = part.seen.right
    yield from part.gated(part.share("helped", hybrid * (1 - alone)))
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid.scoring.overlap import Overlap
from hybrid.scoring.result import FRACTION, QUESTIONS, Result, contrasted, gated, with_interval
from hybrid.scoring.score import Scored
from hybrid.scoring.table import Flags, Floats
from hybrid.stats import ratio_interval

if TYPE_CHECKING:
    from hybrid.scoring.compare import Comparison


# The solvers `a` and `b` of a row; None for the first two.
Sides = tuple[Scored, Scored] | None


@dataclass(frozen=True)
class Part:
    """Some questions that all of some solvers answered, and the row that those of a statistic are made from."""

    shared: Overlap
    row: Result

    @cached_property
    def seen(self) -> Overlap:
        """The answered questions alone."""
        return self.shared.at(np.flatnonzero(self.shared.kept))

    def __len__(self) -> int:
        return len(self.seen)

    def noted(self, *notes: str) -> Part:
        """The part whose rows have these notes besides."""
        return replace(self, row=self.row.noted(*notes))

    def only(self, flags: Flags) -> Part:
        """The answered questions that a flag is of."""
        return replace(self, shared=self.seen.at(np.flatnonzero(flags)))

    def gated(self, *rows: Result) -> Iterator[Result]:
        """The rows, without interval and p value where nothing is tested."""
        yield from gated(rows, self.shared.untested())

    def number(self, quantity: str, value: float | None, **fields: Any) -> Result:
        """A number over these questions."""
        return replace(self.row, quantity=quantity, value=value, **{"n": len(self), **fields})

    def count(self, quantity: str, amount: Floats | Flags, **fields: Any) -> Result:
        """How many questions, each by how much of it counts, with the ids of those that do."""
        ids = tuple(self.seen.ids[np.asarray(amount, float) > 0])
        return self.number(quantity, total(amount), **{"unit": QUESTIONS, "ids": ids, **fields})

    def share(self, quantity: str, above: Floats, below: Floats | None = None, **fields: Any) -> Result:
        """A ratio of sums, or a mean, with interval; `n` counts the questions with anything below the line."""
        row = replace(self.row, quantity=quantity, unit=FRACTION)
        return replace(with_interval(row, self.shared.ratio(quantity, above, below)), **fields)

    def open_ratio(self, quantity: str, above: Floats, below: Floats, near_zero: str) -> Result:
        """A ratio of sums that may be any number, with Fieller's interval.

        Neither is given where the denominator does not differ from 0 (95 %): `near_zero` is the note that says so.
        """
        row = replace(self.row, quantity=quantity, unit=FRACTION, n=len(self))
        estimate = ratio_interval(above, below, self.seen.unit.tolist())
        if estimate is None:
            return row.noted(near_zero)
        return replace(row, value=total(above) / total(below), low=estimate.low, high=estimate.high)


def total(amount: Floats | Flags) -> float:
    """The sum, correctly rounded."""
    return math.fsum(np.asarray(amount, float).tolist())


def parts(
    comparison: Comparison,
    section: str,
    *solvers: Scored,
    sides: Sides = None,
    repeated: bool = True,
    notes: bool = True,
) -> Iterator[Part]:
    """All questions that the solvers share, noting what is left out, then each group with a question that counts.

    The rows name `sides`, by default the first two solvers.
    """
    overlap = comparison.overlap(*solvers, repeated=repeated)
    a, b = sides or solvers[:2]
    row = Result(section, "", FRACTION, None, a.solver, b.solver, none=comparison.rule)
    note = overlap.left_out if notes else ""
    yield Part(overlap, replace(row, note=note))
    for group, shared in overlap.by_group(comparison.options.by).items():
        yield Part(shared, replace(row, group=group))


def contrasts(
    comparison: Comparison, section: str, solvers: Sequence[Scored], of: Mapping[str, tuple[int, int]]
) -> Iterator[Result]:
    """Differences of these solvers by quantity: of the headline metric over all, and of accuracy in each group."""
    for part in parts(comparison, section, *solvers):
        metrics = part.shared.accuracy(comparison.rule) if part.row.group else part.shared.headline(comparison.rule)
        if metrics is None:
            continue
        untested = part.shared.untested(metrics)
        for quantity, (a, b) in of.items():
            sides = {"a": solvers[a].solver, "b": solvers[b].solver, "metric": metrics[a].name}
            row = part.number(quantity, None, n=metrics[a].n, **sides)
            yield contrasted(row, metrics[a], metrics[b], untested)[0]
