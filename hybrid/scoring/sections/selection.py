"""Does the model call tools where it needs them?

selection: above 0, the model calls tools more often on questions that it gets wrong alone than on those that it gets
right alone. A call that ended in a fault does not count. effect of output where called: the model decides to call a
tool before the tool answers, so blank tools on the same questions are a fair control. p (Holm) is adjusted over all
rows of the same quantity.

n: questions that both have and neither failed
source: ours; docs/statistics.md; paired by question, resampled by cluster

- called where wrong alone = P(call | wrong alone), over questions [n: questions that are wrong alone]
- called where right alone = P(call | right alone), over questions [n: questions that are right alone]
- selection (-1 to 1) = called where wrong alone - called where right alone
- effect of output where called (-1 to 1) = with tools - with blank tools, on questions with a call with tools [n: such
  questions that both have and neither failed]
- effect of output where not called (-1 to 1) = with tools - with blank tools, on questions without a call with tools.
  The model saw no output there, so that a difference is chance or another difference between the runs. [n: such
  questions that both have and neither failed]

Let c = 1 if a tool answered a call, and a in 0..1 be the correctness of the MLLM alone. Then called where wrong alone =
sum(c (1 - a)) / sum(1 - a), and called where right alone = sum(c a) / sum(a); for repetitions, c is a mean. All
questions weigh the same, even if the headline metric is a mean over tasks. The difference of the two shares is
linearised over clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.parts import Part, parts
from hybrid.scoring.result import Family, Result, adjusted, contrasted
from hybrid.scoring.score import Floats
from hybrid.scoring.sections.called import call_share
from hybrid.stats import difference_apart, ends_of

NAME: Final = "selection"
WHERE_WRONG, WHERE_RIGHT = "called where wrong alone", "called where right alone"
SELECTION: Final = "selection"
CALLED, NOT_CALLED = "effect of output where called", "effect of output where not called"


def rows(comparison: Comparison) -> list[Result]:
    """Return rows, in total and by group, for traced hybrid solvers whose MLLM alone or blank control was run too."""
    results = [
        row
        for group in comparison.groups
        if group.hybrid.folder is not None
        for row in (*_calls(comparison, group), *_effects(comparison, group))
    ]
    return adjusted(results, lambda row: Family(row.quantity, ("task",) if row.group else ()))


def _calls(comparison: Comparison, group: ComparisonGroup) -> Iterator[Result]:
    if group.alone is None:
        return
    for part in parts(comparison, NAME, group.alone, group.hybrid):
        calls = call_share(comparison, group.hybrid, part.seen.ids)
        traced = part.only(~np.isnan(calls))
        if not len(traced):
            continue
        calls, alone = calls[~np.isnan(calls)], np.nan_to_num(traced.seen.correct()[0])
        if not part.row.group and not calls.any():
            return
        test = difference_apart(calls, alone, 1 - alone, traced.seen.unit.tolist())
        low, high = ends_of(test.interval)
        if test.difference is not None:
            row = traced.number(SELECTION, test.difference, low=low, high=high, p=test.p_value)
            yield from part.gated(row)
        for quantity, inside in ((WHERE_WRONG, 1 - alone), (WHERE_RIGHT, alone)):
            if inside.any():
                yield from part.gated(traced.share(quantity, calls * inside, inside))


def _effects(comparison: Comparison, group: ComparisonGroup) -> Iterator[Result]:
    if group.blank is None:
        return
    # Use all questions, because a single task has too few questions with a call.
    part = next(parts(comparison, NAME, group.blank, group.hybrid))
    calls = call_share(comparison, group.hybrid, part.seen.ids)
    for quantity, inside in ((CALLED, np.nan_to_num(calls)), (NOT_CALLED, np.nan_to_num(1 - calls))):
        if inside.any():
            yield _weighted_difference(part, quantity, inside)


def _weighted_difference(part: Part, quantity: str, inside: Floats) -> Result:
    """Return the difference of two solvers on the questions that have a weight."""
    a, b = (
        part.seen.ratio("accuracy", correct * inside, inside) for correct in map(np.nan_to_num, part.seen.correct())
    )
    ids = tuple(part.seen.ids[inside > 0])
    return contrasted(part.number(quantity, None, n=a.n, ids=ids), a, b, part.shared.untested())[0]


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """State how often each hybrid solver calls tools where its MLLM alone is wrong or right, and what calls change."""
    sentences = []
    for group in comparison.groups:
        of = {row.quantity: row for row in section_rows if row.b == group.hybrid.solver and not row.group}
        if SELECTION in of:
            shares = (f"{100 * (of[name].value or 0):.0f} %" for name in (WHERE_WRONG, WHERE_RIGHT))
            sentences.append(
                "{} calls tools on {} of what it gets wrong alone and on {} of what it gets right.".format(
                    group.hybrid.solver, *shares
                )
            )
    return " ".join(sentences)


SECTION = statistic(rows, lead, headings={"a": "measured against", "b": "with tools"}, order=116)
