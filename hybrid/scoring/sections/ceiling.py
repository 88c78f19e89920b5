"""How close does the hybrid come to the best combination of its parts?

reached: the hybrid's share of the way from its better part to a solver that always knows which part to believe; below 0
it is behind its better part. only hybrid: the hybrid is right and neither part is. missed: the hybrid is wrong and
one part is right. The interval treats the part that is better here as the better one.

n: questions that the hybrid solver, its MLLM alone and the specialist have and none of them failed
source: ours
values: 0 to n, in questions

- right in either part = questions that the MLLM alone or the specialist gets right [source: ours: a solver that
  always knows which part to believe]
- right in the better part = the larger number of right answers of the two parts
- right = questions that the hybrid solver gets right
- only hybrid = questions that the hybrid solver gets right and neither part does
- missed = questions that one part gets right and the hybrid solver does not
- neither = questions that none of the three gets right
- reached (no bounds) = (right - right in the better part) / (right in either part - right in the better part). Below 0
  the hybrid is behind its better part, above 1 it is right on questions that neither part gets right. Not
  given if the denominator does not differ from 0. Interval: Fieller. [source: ours; Fieller, Journal of the Royal
  Statistical Society B 16 (1954) 175-185, over clusters]

A solver that always knew which of its two parts to believe would be right on every question that either of them gets
right. The better part is right on fewer; the share of the way from there to the ceiling is

    (right of the hybrid - right of the better part) / (right of either - right of the better part)

It is negative if the hybrid is behind its better part, above 1 if it is right on questions that neither part gets
right, and undefined if the better part reaches the ceiling. If unanswered questions count as a guess, such a question
adds the probability that at least one part is right, 1 - (1 - a)(1 - s).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.parts import parts, total
from hybrid.scoring.result import Result

NAME = "ceiling"
NEAR_ZERO = "not given: the way from the better part to the ceiling does not differ from 0 (95 %)"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield the rows, in total and by task, of each hybrid solver whose MLLM alone and specialist were run too."""
    for group in comparison.groups:
        if group.alone is None or group.specialist is None:
            continue
        all_parts = parts(comparison, NAME, group.hybrid, group.alone, group.specialist, notes=False)
        for part in (replace(part, row=replace(part.row, b="")) for part in all_parts if len(part)):
            hybrid, alone, specialist = part.seen.right
            # If both parts are equally good, the MLLM alone counts as the better one.
            alone_better = total(alone) >= total(specialist)
            place, better, other = (1, alone, specialist) if alone_better else (2, specialist, alone)
            # Use this product instead of a difference of sums, which rounding could make negative if nothing is gained.
            gained = (1 - better) * other
            either = better + gained
            names = [solver.solver for solver in part.shared.solvers]
            yield part.count("right in either part", either, a=" | ".join(names[1:]), ids=())
            yield part.count("right in the better part", better, a=names[place], ids=())
            yield part.count("right", hybrid, ids=())
            yield part.count("only hybrid", hybrid * (1 - either))
            yield part.count("missed", (1 - hybrid) * either)
            yield part.count("neither", (1 - hybrid) * (1 - either), detail=True)
            # The interval takes as given which of the two parts is the better one.
            yield from part.gated(part.open_ratio("reached", hybrid - better, gained, NEAR_ZERO))


SECTION = statistic(rows, headings={"a": "of"}, order=130)
