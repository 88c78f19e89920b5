"""The rows of a statistic over shared questions: one `Part` for all of them, then one for each group.

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
    """The questions that all of some solvers answered, and a template for a statistic's rows."""

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
        """Return a row with the sum of `amount` over the questions, and the ids of those above 0."""
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
    """Yield the part of all shared questions, with a note on those left out, then each group's part.

    The rows name the two solvers `sides`, by default the first two.
    """
    overlap = comparison.overlap(*solvers, repeated=repeated)
    a, b = sides or solvers[:2]
    row = Result(section, "", FRACTION, None, a.solver, b.solver, none=comparison.rule)
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
    """Yield differences of these solvers: in the headline metric over all questions, in accuracy for each group.

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
        untested = shared.untested(metrics)
        for quantity, (a, b) in of.items():
            sides = {"a": solvers[a].solver, "b": solvers[b].solver, "metric": metrics[a].name}
            row = part.number(quantity, None, n=metrics[a].n, **sides)
            yield contrasted(row, metrics[a], metrics[b], untested)[0]
