"""How much of what its parts know does the hybrid reach?

reached: the hybrid's share of the way from its better part to what a solver reaches that always knew whom to believe;
below 0 it is behind that part. only hybrid: right where neither part is. missed: wrong where one part is right. The
interval takes the part that is better here for the better one.

n: questions that the hybrid solver, its MLLM alone and the specialist have and none failed
source: ours
values: 0 to n, in questions

- right in either part = questions that the MLLM alone or the specialist gets right [source: ours: a solver that
  always knew whom to believe]
- right in the better part = the greater number of right answers of the two parts
- right = questions that the hybrid solver gets right
- only hybrid = questions that the hybrid solver gets right and neither part does
- missed = questions that one part gets right and the hybrid solver does not
- neither = questions that none of the three gets right
- reached (no bounds) = (right - right in the better part) / (right in either part - right in the better part). Below
  0 it is behind its better part, above 1 it is right where neither part is. [source: ours; the interval of a ratio of
  means: Cochran, Sampling Techniques (1977), section 6.3, equation 6.9]

A solver that always knew which of its two parts to believe would be right on every question that either of them gets
right. The better part is right on fewer; the share of the way from there to the ceiling is

    (right of the hybrid - right of the better part) / (right of either - right of the better part)

It is negative where the hybrid is behind its better part, above 1 where it is right on questions that neither part gets
right, and undefined where the better part reaches the ceiling. Where no answer counts as a guess, a question adds the
chance that it is right: of two parts, 1 - (1 - a)(1 - s).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.overlap import Overlap, SharedQuestion
from hybrid.scoring.result import FRACTION, QUESTIONS, Result, gated, with_interval
from hybrid.types import Cell, Metric

NAME = "ceiling"
HYBRID, ALONE, SPECIALIST = 0, 1, 2


def rows(comparison: Comparison) -> Iterator[Result]:
    """Counts and the share of the way for each hybrid solver that has both parts, over all and within each task."""
    for group in comparison.groups:
        if group.alone is not None and group.specialist is not None:
            whole = comparison.overlap(group.hybrid, group.alone, group.specialist)
            for name, shared in {"": whole, **whole.by_group(comparison.options.by)}.items():
                if shared.kept:
                    yield from _of_group(comparison, group, name, shared, whole)


def _of_group(
    comparison: Comparison, group: ComparisonGroup, name: str, shared: Overlap, whole: Overlap
) -> Iterator[Result]:
    kept = shared.kept
    right = [math.fsum(row.right[place] for row in kept) for place in (HYBRID, ALONE, SPECIALIST)]
    better = ALONE if right[ALONE] >= right[SPECIALIST] else SPECIALIST
    parts = [one.solver for one in shared.solvers[1:]]
    count = Result(NAME, "", QUESTIONS, None, group.hybrid.solver, group=name, n=len(kept), none=comparison.rule)

    def counted(quantity: str, value: float, of: str = group.hybrid.solver) -> Result:
        return replace(count, quantity=quantity, value=value, a=of)

    either = math.fsum(map(_either, kept))
    # Of two equal parts the MLLM alone counts as the better one.
    yield counted("right in either part", either, " | ".join(parts))
    yield counted("right in the better part", right[better], parts[better - 1])
    yield counted("right", right[HYBRID])
    for quantity, share in SHARES.items():
        each = [(row.first.id, share(row.right[HYBRID], _either(row))) for row in kept]
        made = counted(quantity, math.fsum(part for _, part in each))
        yield replace(made, ids=tuple(i for i, part in each if part), detail=quantity == "neither")
    reached = replace(with_interval(count, _reached(kept, better)), quantity="reached", unit=FRACTION)
    untested = shared.untested(allow_failed=comparison.options.allow_failed, whole=whole)
    yield from gated([reached], untested)


SHARES: Final[Mapping[str, Callable[[float, float], float]]] = {
    "only hybrid": lambda hybrid, either: hybrid * (1 - either),
    "missed": lambda hybrid, either: (1 - hybrid) * either,
    "neither": lambda hybrid, either: (1 - hybrid) * (1 - either),
}
"""How much of a question counts, by how right the hybrid is and how surely one of its parts."""


def _either(row: SharedQuestion) -> float:
    return 1 - (1 - row.right[ALONE]) * (1 - row.right[SPECIALIST])


def _reached(kept: Sequence[SharedQuestion], better: int) -> Metric:
    """The share of the way: a ratio of sums over the questions, with the clusters that it is resampled by.

    A question adds right(hybrid) - right(better part) above, and below 1 where only the other part is right. The
    interval is that of a ratio of two means of the same questions: Cochran, Sampling Techniques (1977), section 6.3,
    equation 6.9, by clusters as in Binder (1983); it takes the part that is better here for the better one.
    """
    cells = tuple(
        Cell(
            "",
            row.first.unit,
            row.right[HYBRID] - row.right[better],
            _either(row) - row.right[better],
        )
        for row in kept
    )
    below = sum(cell.denominator for cell in cells)
    value = sum(cell.numerator for cell in cells) / below if below else None
    return Metric("reached", value, len(cells), "ratio", cells, share=False)


SECTION = statistic(rows, headings={"a": "of"}, order=130)
