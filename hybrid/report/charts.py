"""Selects the rows for the charts of a section, which the pages draw; the choice does not depend on a section's name.

    charts_of(comparison, section_result, reference_lines(comparison, chance_rows))

If solvers are compared in pairs, rows of single tasks have a separate chart with only the main pairs. A chart without
a number is omitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from hybrid.report.payload import Chart
from hybrid.scoring.compare import Comparison
from hybrid.scoring.reference import ReferenceLine
from hybrid.scoring.result import Result, Section, SectionResult


def charts_of(comparison: Comparison, result: SectionResult, marks: Sequence[ReferenceLine] = ()) -> tuple[Chart, ...]:
    """Return the charts of one section; none if the section defines none or has no number to show."""
    made_of = _charts(comparison, result.section, rows_to_chart(result), marks)
    return tuple(chart for chart in made_of if chart.rows)


def rows_to_chart(result: SectionResult) -> list[Result]:
    """Return the rows with a value that a section's chart may show; detail rows are included only for a waterfall."""
    section = result.section
    rows = [row for row in result.rows if not section.charted or row.quantity in section.charted]
    return [row for row in rows if row.value is not None and (section.signs or not row.detail)]


def _charts(
    comparison: Comparison, section: Section, rows: Sequence[Result], marks: Sequence[ReferenceLine]
) -> Iterator[Chart]:
    overall = [row for row in rows if not row.group]
    match kind := section.chart:
        case None:
            return
        case "intervals":
            yield Chart(kind, "Paired differences, 95 % intervals", headlines(comparison, overall))
            grouped = of_main_pairs(comparison, rows)
            yield Chart(kind, f"Paired differences by {comparison.grouping}, 95 % intervals", grouped)
        case "bars":
            headline_rows = headlines(comparison, overall)
            # Numbers that are not fractions (an error in pixels) do not fit an axis of accuracies.
            fractions = tuple(
                row for row in rows if (row.group or row in headline_rows) and 0 <= (row.value or 0.0) <= 1
            )
            tasks = {row.group or row.metric for row in fractions}
            yield Chart(kind, "Values, 95 % intervals", fractions, tuple(m for m in marks if m.task in tasks))
        case "counts":
            yield Chart(kind, "Counts of questions", tuple(overall))
        case "stack":
            # If parts with a metric exist, the row without a metric is their sum.
            by_metric = any(row.metric for row in rows)
            if parts := tuple(row for row in overall if bool(row.metric) is by_metric and row.value):
                yield Chart(kind, f"Parts, in {parts[0].unit}", parts)
        case "scatter":
            valued = {row.a for row in rows if row.quantity == "value"}
            dots = tuple(row for row in rows if row.a in valued)
            yield Chart(kind, f"{comparison.headline or 'value'} by what it cost", dots)
        case "waterfall":
            yield from _waterfalls(comparison, section, rows)
        case _:
            assert_never(kind)


def _waterfalls(comparison: Comparison, section: Section, rows: Sequence[Result]) -> Iterator[Chart]:
    """Yield a chart for each pair of solvers over all questions, then one for each pair by task."""
    signs = dict(zip(section.charted, section.signs, strict=True))
    # Rows with a metric are parts of a step.
    steps = sorted((row for row in rows if not row.metric), key=lambda row: section.charted.index(row.quantity))
    for by in ("", f" by {comparison.grouping}"):
        for a, b in dict.fromkeys((row.a, row.b) for row in rows):
            pair_steps = tuple(row for row in steps if (row.a, row.b) == (a, b) and bool(row.group) is bool(by))
            yield Chart(
                "waterfall", f"From {a} to {b}{by}", pair_steps, signs=tuple(signs[row.quantity] for row in pair_steps)
            )


def headlines(comparison: Comparison, rows: Sequence[Result]) -> tuple[Result, ...]:
    """Return the rows of the headline metric over all questions, and the rows without a metric."""
    return tuple(row for row in rows if not row.group and row.metric in ("", comparison.headline))


def of_main_pairs(comparison: Comparison, rows: Sequence[Result]) -> tuple[Result, ...]:
    """Return the rows of single tasks for the main pairs."""
    pairs = {frozenset(pair) for pair in comparison.main_pairs}
    return tuple(row for row in rows if row.group and frozenset((row.a, row.b)) in pairs)
