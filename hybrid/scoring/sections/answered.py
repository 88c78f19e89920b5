"""Does a difference come from better answers, or from answering at all?

There are rows for the questions that both answered and, for a specialist, for those that it answers and for the rest.
Over all questions, the difference is the sum of two parts. p tests the difference in the row; a single test has no
adjusted p. p (Holm, FAMILY) is adjusted within the family that the header names. p (Holm in family) is adjusted within
that of the column `family`.

n: questions of the row that both have and neither failed
source: ours
values: -1 to 1

- difference = value b - value a. Not given where the specialists give no answer, because it would compare with a guess.
  [source: ours; docs/statistics.md; paired by question, resampled by cluster]
- difference from better answers = part of the difference over all questions from those that both answered. [source:
  ours; docs/statistics.md; paired by question, resampled by cluster]
- difference from answering = the rest of the difference, from questions that a or b left unanswered. [source: ours;
  docs/statistics.md; paired by question, resampled by cluster]
- value <a|b> (0 to 1) = the headline metric over the questions of the row
- right <a|b> (0 to n, in questions) = right answers to the questions of the headline metric
- unanswered <a|b> (0 to n, in questions) = questions of the headline metric that the solver left unanswered in at
  least one repetition

A solver that leaves more questions unanswered loses on these, however well it sees. With the scores v of two solvers,

    v_b - v_a = (v_b - v_a as if nobody had answered what one of them left unanswered) + the rest

exactly; the first part is the difference from better answers. With repetitions, every repetition of a is compared with
every repetition of b, and both parts are means over these pairs. On the questions that both answered at least once,
unanswered repetitions are left out. If the metric counts groups of several questions, only the questions answered in
every repetition are compared. For a specialist, which abstains by design, the difference is tested on the questions
that it answers; for the others the section only gives values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hybrid.core.types import Metric
from hybrid.scoring.compare import Comparison, SolverPair
from hybrid.scoring.definitions import statistic
from hybrid.scoring.families import family_of_pair
from hybrid.scoring.groups import role
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.result import QUESTIONS, Family, Result, adjusted, contrasted, unit_of
from hybrid.scoring.score import answered

NAME = "answered"
SPOKEN, SILENT, BOTH = "the specialists answer", "they give no answer", "both answer"
RIGHT_A = "right a"
BETTER, ANSWERING = "difference from better answers", "difference from answering"


def rows(comparison: Comparison) -> list[Result]:
    """Return the parts of each difference and, for a specialist, rows on the questions that it answers and the rest."""
    section_rows: list[Result] = []
    for pair in comparison.pairs:
        section_rows += _specialist_rows(comparison, pair)
        overlap = comparison.overlap(*map(comparison.named, pair))
        split_rows = list(_split_rows(overlap))
        if split_rows:
            section_rows += _rows_of(overlap.with_answers(), BOTH, tested=True, metric=split_rows[0].metric)
        section_rows += split_rows

    def family(row: Result) -> Family:
        of_pair = family_of_pair(comparison, row.a, row.b)
        return Family(of_pair.name, (row.quantity, row.group))

    return adjusted(section_rows, family)


def _specialist_rows(comparison: Comparison, pair: SolverPair) -> Iterator[Result]:
    """Yield rows on the questions that a specialist answers, and on the others, if it answers some but not all."""
    solvers = sorted(map(comparison.named, pair), key=lambda solver: role(solver) != "specialist")
    if [role(solver) == "specialist" for solver in solvers] != [True, False]:
        return
    overlap = comparison.overlap(*solvers)
    answering = overlap.present & answered(overlap.answer[0])
    silent = overlap.present & ~answering
    metrics = overlap.headline(overlap.rule)
    if metrics is not None and answering.any() and silent.any():
        metric = metrics[0].name
        spoken, rest = map(overlap.with_failed, (answering, silent))
        of_spoken = list(_rows_of(spoken, SPOKEN, tested=True, metric=metric))
        yield from of_spoken
        # The other solver may leave some of these questions unanswered, too.
        yield from _split_rows(spoken, SPOKEN) if of_spoken else ()
        yield from _rows_of(rest, SILENT, tested=False, metric=metric)


def _rows_of(part: Overlap, group: str, *, tested: bool, metric: str) -> Iterator[Result]:
    """Yield difference, values and right answers on some questions; unless `tested`, omit difference and value a.

    There are no rows if the part has no value of this metric, which the conclusion compares with that of all questions.
    """
    metrics = part.headline(part.rule)
    if metrics is None or metrics[0].name != metric:
        return
    a, b = metrics
    row = _row_of(part, "difference", metrics, group)
    if tested:
        yield contrasted(row, a, b, part.untested(metrics))[0]
        yield replace(row, quantity="value a", value=a.value)
    yield replace(row, quantity="value b", value=b.value)
    counted = part.counted
    for side, right in zip("ab", part.right, strict=True) if part.kept.any() else ():
        ids = tuple(part.ids[counted & part.kept & (right == 1)])
        count_row = replace(row, quantity=f"right {side}", unit=QUESTIONS, n=int(counted.sum()), none="", ids=ids)
        yield replace(count_row, value=float(len(ids)))


def _row_of(part: Overlap, quantity: str, metrics: Sequence[Metric], group: str) -> Result:
    """Return a row about two solvers on some questions; the row has no value yet."""
    first, second = part.solvers[0], part.solvers[1]
    return Result(
        NAME,
        quantity,
        unit_of(metrics),
        None,
        a=first.solver,
        b=second.solver,
        metric=metrics[0].name,
        group=group,
        n=metrics[0].n,
        none=part.rule,
    )


def _split_rows(overlap: Overlap, group: str = "") -> Iterator[Result]:
    """Yield the two parts of the difference, if either solver left a question unanswered."""
    metrics = overlap.headline(overlap.rule)
    unanswered = [solver & overlap.counted for solver in overlap.unanswered]
    parts = overlap.split_by_answering(overlap.rule) if metrics and np.any(unanswered) else None
    if metrics is None or parts is None:
        return
    row = _row_of(overlap, ANSWERING, metrics, group)
    untested = overlap.untested(metrics)
    for quantity, (a, b) in zip((BETTER, ANSWERING), parts, strict=True):
        yield contrasted(replace(row, quantity=quantity), a, b, untested)[0]
    for side, solver in zip("ab", unanswered, strict=True):
        ids, n = tuple(overlap.ids[solver]), int(overlap.counted.sum())
        count_row = replace(row, quantity=f"unanswered {side}", unit=QUESTIONS, n=n, none="", ids=ids)
        yield replace(count_row, value=float(len(ids)))


SECTION = statistic(rows, headings={"group": "questions where"}, order=25)
