"""The charts of a section, made of its rows: what the section says of its chart decides the form.

    charts_of(found, made, reference_lines(found, chance_rows))

Rows of single tasks have a chart of their own, of the main pairs only where solvers are compared in pairs. A chart
without a number is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from hybrid.report.payload import (
    BarRow,
    Bars,
    Chart,
    Forest,
    ForestRow,
    Mark,
    Matrix,
    MatrixCell,
    Scatter,
    ScatterDot,
    Stack,
    StackPart,
)
from hybrid.scoring.compare import Comparison
from hybrid.scoring.reference import ReferenceLine
from hybrid.scoring.result import ChartKind, Result, SectionResult


def charts_of(found: Comparison, made: SectionResult, marks: Sequence[ReferenceLine] = ()) -> tuple[Chart, ...]:
    """The charts of one section; none where it asks for none or has no number to show."""
    section = made.section
    if section.chart is None:
        return ()
    rule = found.solvers[0].abstain
    rows = [
        row
        for row in made.rows
        if not row.detail
        and row.value is not None
        and row.none in ("", rule)
        and (not section.charted or row.quantity in section.charted)
    ]
    charts = DRAWERS[section.chart](found, rows)
    return tuple(_with_marks(chart, marks) for chart in charts)


def _forests(found: Comparison, rows: Sequence[Result]) -> Iterator[Chart]:
    pairs = {frozenset(pair) for pair in found.main_pairs}
    for grouped in (False, True):
        own = [
            ForestRow(row.a, row.b, _line(row, rows), row.value or 0.0, row.low, row.high, row.p_holm, row.n or 0)
            for row in rows
            if bool(row.group) is grouped
            and (_is_headline(found, row) if not grouped else frozenset((row.a, row.b)) in pairs)
        ]
        if own:
            yield Forest(tuple(own))


def _line(row: Result, rows: Sequence[Result]) -> str:
    """What a line of a chart is called: its task, else its metric; with its quantity where there are several."""
    name = row.group or row.metric
    return name if len({one.quantity for one in rows}) == 1 else f"{name}: {row.quantity}"


def _is_headline(found: Comparison, row: Result) -> bool:
    return row.metric in ("", found.headline)


def _bars(found: Comparison, rows: Sequence[Result]) -> Iterator[Chart]:
    own = [
        BarRow(row.group or row.metric, row.a, row.value, row.low, row.high, row.n or 0)
        for row in rows
        # What is no fraction (an error in pixels) has no place on an axis of accuracies.
        if row.value is not None and 0 <= row.value <= 1 and (row.group or _is_headline(found, row))
    ]
    if own:
        yield Bars(tuple(own), ())


def _with_marks(chart: Chart, marks: Sequence[ReferenceLine]) -> Chart:
    if not isinstance(chart, Bars):
        return chart
    shown = {row.task for row in chart.rows}
    own = (Mark(one.task, one.label, one.kind, one.value, one.note) for one in marks if one.task in shown)
    return Bars(chart.rows, tuple(own))


def _matrices(found: Comparison, rows: Sequence[Result]) -> Iterator[Chart]:
    """Counts over all tasks: a line for each pair or solver, a column for each quantity."""
    del found
    cells = tuple(
        MatrixCell("", " -> ".join(filter(None, (row.a, row.b))), row.quantity, round(row.value or 0), row.ids)
        for row in rows
        if not row.group
    )
    if cells:
        yield Matrix(cells)


def _stacks(found: Comparison, rows: Sequence[Result]) -> Iterator[Chart]:
    """Parts over all tasks: what was counted, or the quantities themselves."""
    del found
    # Next to the parts, a row without a metric is their sum.
    by_metric = any(row.metric for row in rows)
    own = [row for row in rows if not row.group and bool(row.metric) is by_metric]
    parts = tuple(StackPart(row.a, row.metric or row.quantity, round(row.value or 0)) for row in own if row.value)
    if parts:
        yield Stack(parts, own[0].unit)


def _scatters(found: Comparison, rows: Sequence[Result]) -> Iterator[Chart]:
    """The quantity without an interval on the x axis, the metric on the y axis."""
    y = {row.a: row for row in rows if row.quantity == "value"}
    x = [row for row in rows if row.quantity != "value" and row.a in y]
    dots = tuple(ScatterDot(row.a, row.value or 0.0, y[row.a].value or 0.0, y[row.a].low, y[row.a].high) for row in x)
    if dots:
        yield Scatter(dots, x[0].quantity, found.headline or "")


DRAWERS: Mapping[ChartKind, Callable[[Comparison, Sequence[Result]], Iterator[Chart]]] = {
    "intervals": _forests,
    "bars": _bars,
    "counts": _matrices,
    "stack": _stacks,
    "scatter": _scatters,
}
