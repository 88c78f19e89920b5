"""Which solver is better on the same questions?

Among the questions that both answered, helped counts those that b has right and a wrong, and harmed the reverse. none
a, none b: questions without a readable answer from a, from b. p tests the difference in the row; a single test has no
adjusted p. p (Holm, FAMILY) is adjusted within the family that the header names. p (Holm in family) is adjusted within
that of the column `family`.

n: questions that both have and neither failed
source: ours
values: 0 to n, in questions

- difference (-1 to 1, or in the metric's own unit) = value b - value a. The p value tests a true difference of 0.
  [source: docs/statistics.md; paired by question, resampled by cluster]
- value a (in the metric's own unit) = the metric of the first solver over the shared questions [source:
  docs/statistics.md; paired by question, resampled by cluster]
- value b (in the metric's own unit) = the metric of the second solver over the shared questions [source:
  docs/statistics.md; paired by question, resampled by cluster]
- both answered = questions with a readable answer from both
- helped = questions that both answered, a wrong, b right [source: one of the two cells of McNemar (Psychometrika 12
  (1947) 153-157)]
- harmed = questions that both answered, a right, b wrong [source: the other cell of McNemar (Psychometrika 12 (1947)
  153-157)]
- none a = questions without a readable answer from a
- none b = questions without a readable answer from b
- failed = questions that one of the two failed [n: questions that both have]

Two solvers are compared on the questions that both have and neither failed, by the benchmark's own metrics over just
these. A p value is adjusted (Holm) within one family per claim: by the headline metric the gain over the model alone,
the difference to the specialists, the parts of the gain, and all other pairs; other metrics; the tasks of each pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hybrid.core.types import Metric
from hybrid.display.tables import accuracy as printed
from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.definitions import statistic
from hybrid.scoring.families import OTHER_METRICS, adjusted_by_claim, family_of_pair, family_of_tasks
from hybrid.scoring.headline_pair import with_claim
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.result import FRACTION, LEVEL, QUESTIONS, Family, Result, contrasted, unit_of
from hybrid.scoring.score import answered

NAME = "differences"
# Maximum number of differences named in the text; the chart shows all.
NAMED = 4


def rows(comparison: Comparison) -> list[Result]:
    """Return each pair's difference, its solvers' values and question counts, by metric and within each task."""
    section_rows: list[Result] = []
    for pair in comparison.pairs:
        shared = comparison.overlap(comparison.named(pair.a), comparison.named(pair.b))
        metrics, tasks = shared.metrics(comparison.rule), shared.tasks_by_metric()
        head = next((name for name in comparison.benchmark.card.headline if name in metrics), None)
        shown_names = [name for name in metrics if comparison.is_shown(name) or name == head]
        for name in sorted(shown_names, key=lambda name: name != head):
            part = shared.at(np.flatnonzero(np.isin(shared.task, tasks[name]))) if name in tasks else shared
            section_rows += _compared(comparison, part, metrics[name], "", with_counts=name == head)
        for group, part in shared.by_group(comparison.options.by).items():
            section_rows += _compared(comparison, part, part.accuracy(comparison.rule), group, with_counts=True)
    heads = _headlines(section_rows)

    def family(row: Result) -> Family:
        if row.group:
            return family_of_tasks(row)
        is_headline = (row.a, row.b, row.metric) in heads
        return family_of_pair(comparison, row.a, row.b) if is_headline else OTHER_METRICS

    return _with_claims(comparison, adjusted_by_claim(comparison, section_rows, family))


def _with_claims(comparison: Comparison, section_rows: Sequence[Result]) -> list[Result]:
    """Return the rows; headline differences that the conclusion does not claim get the reason."""
    rows_of_pairs, heads = ConclusionRows(comparison, ("helped", "answered"), section_rows), _headlines(section_rows)

    def ready(row: Result) -> Result:
        if row.group or row.quantity != "difference" or (row.a, row.b, row.metric) not in heads:
            return row
        return with_claim(row, rows_of_pairs.pair(comparison.named(row.a), comparison.named(row.b)))

    return [ready(row) for row in section_rows]


def _headlines(section_rows: Sequence[Result]) -> frozenset[tuple[str, str, str]]:
    """Return the pairs with their common headline metric, which covers all tasks and has counts."""
    return frozenset((row.a, row.b, row.metric) for row in section_rows if row.quantity == "helped" and not row.group)


def _compared(
    comparison: Comparison, part: Overlap, metrics: Sequence[Metric], group: str, *, with_counts: bool
) -> Iterator[Result]:
    """Yield the rows of one pair for one metric; `part` holds the metric's questions."""
    names = (part.solvers[0].solver, part.solvers[1].solver)
    same_metric = (
        metric for name in names for metric in comparison.named(name).metrics if metric.name == metrics[0].name
    )
    unit = FRACTION if group else unit_of(same_metric)
    bare = Result(
        NAME,
        "difference",
        unit,
        None,
        a=names[0],
        b=names[1],
        metric=metrics[0].name,
        group=group,
        n=metrics[0].n,
        none=part.rule,
    )
    yield from contrasted(bare, metrics[0], metrics[1], part.untested(metrics))
    if with_counts:
        (a, b), (says_a, says_b) = part.correct(), (answered(answer) for answer in part.answer)
        answered_by_both = part.present & says_a & says_b
        counts = {
            "both answered": answered_by_both,
            "helped": answered_by_both & (a == 0) & (b == 1),
            "harmed": answered_by_both & (a == 1) & (b == 0),
            "none a": part.present & ~says_a,
            "none b": part.present & ~says_b,
            "failed": part.lost,
        }
        for name, flags in counts.items():
            ids = part.ids[flags]
            row_ids = tuple(sorted(ids) if name == "failed" else ids) if name in ("helped", "harmed", "failed") else ()
            yield replace(bare, quantity=name, unit=QUESTIONS, value=float(len(ids)), n=part.n, none="", ids=row_ids)


def lead(_: Comparison, section_rows: Sequence[Result]) -> str:
    """Name the pairs that differ by the headline metric after adjustment, and the number of tests."""
    headlines = _headlines(section_rows)
    heads = [row for row in section_rows if row.quantity == "difference" and (row.a, row.b, row.metric) in headlines]
    heads = [row for row in heads if not row.group and not row.detail]
    tested = [row for row in heads if row.p_holm is not None]
    if not heads:
        return ""
    if not tested:
        return "No pair was tested; the table's notes say why."
    seen = sorted((row for row in tested if row.holds), key=lambda row: -abs(row.value or 0.0))
    pairs = f"{len(tested)} pairs were" if len(tested) > 1 else "One pair was"
    opening = f"{pairs} tested by {tested[0].metric}, adjusted (Holm) within the family of each claim at {LEVEL}."
    if not seen:
        return f"{opening} No difference is significant, which does not mean that there is none."
    # A page states one verdict per pair: what the conclusion does not claim is not established here either.
    established = [_lead_of(row) for row in seen if not row.no_claim]
    unclaimed = [f"{_lead_of(row)}, {row.no_claim}" for row in seen if row.no_claim]
    kinds = {"Established": established, "Significant, but no claim": unclaimed}
    return " ".join([opening, *(f"{kind}: {_list_names(names)}." for kind, names in kinds.items() if names)])


def _lead_of(row: Result) -> str:
    """Return a difference with the better solver first, and the interval of its lead."""
    value, low, high = row.value or 0.0, row.low or 0.0, row.high or 0.0
    better, worse = (row.b, row.a) if value > 0 else (row.a, row.b)
    low, high = (low, high) if value > 0 else (-high, -low)
    return f"{better} over {worse} by {printed(abs(value))} [{low:.3f}, {high:.3f}]"


def _list_names(names: Sequence[str]) -> str:
    more = f", and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{'; '.join(names[:NAMED])}{more}"


SECTION = statistic(rows, lead, chart="intervals", charted=("difference",), order=20)
