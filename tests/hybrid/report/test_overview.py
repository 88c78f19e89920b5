"""The first page of a benchmark: charts hold the rows that they are made of, marks the printed cells, ids lead on.

The numbers of the rows are recomputed in `tests/hybrid/scoring/test_recomputed.py`.
"""

import csv
import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from click.testing import CliRunner

from hybrid.benchmarks.base import MetricCard
from hybrid.cli import cli
from hybrid.report.charts import charts_of
from hybrid.report.collect import collect_paths
from hybrid.report.payload import Bars, BenchmarkPages, Chart, Forest, Matrix, Scatter, Stack
from hybrid.scoring.compare import Comparison
from hybrid.scoring.reference import ReferenceLine
from hybrid.scoring.reports import ComparisonReport, compare_paths
from hybrid.scoring.result import FRACTION, QUESTIONS, ChartKind, Result, Section, SectionResult
from hybrid.tables import as_text

PUBLISHED = Path(__file__).parents[3] / "hybrid" / "benchmarks" / "blink" / "published.csv"


@pytest.fixture(scope="module")
def made(made_up_runs: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[BenchmarkPages, ComparisonReport]:
    """The report of a run with controls, repetitions, samples and a failed question, next to its comparison."""
    paths = made_up_runs.write(tmp_path_factory.mktemp("runs"), "blink", size=12, failed=1, repeats=2, samples=3).paths
    (pages,) = collect_paths(paths).benchmarks
    return pages, compare_paths(paths)


@pytest.fixture(scope="module")
def found(made: tuple[BenchmarkPages, ComparisonReport]) -> Comparison:
    return made[1].comparison


# A chart from rows by hand.


def charts(
    found: Comparison,
    kind: ChartKind | None,
    rows: Sequence[Result],
    *charted: str,
    marks: Sequence[ReferenceLine] = (),
) -> list[Any]:
    cards = tuple(MetricCard(name, "", "", "") for name in ("x", "y"))
    section = Section("s", "S?", cards, lambda _: (), chart=kind, charted=charted)
    return list(charts_of(found, SectionResult(section, tuple(rows)), marks))


def row(quantity: str, value: float | None, a: str, unit: str = FRACTION, **fields: Any) -> Result:
    return Result("s", quantity, unit, value, a, **fields)


def test_differences_are_one_chart_over_all_and_one_of_the_main_pairs_by_task(found: Comparison) -> None:
    ends = {"low": -0.1, "high": 0.3, "p_holm": 0.5, "n": 9}
    rows = [
        row("x", 0.1, "mllm", b="controller", metric="accuracy_macro", none="chance", **ends),
        row("x", 0.2, "mllm", b="specialist", metric="accuracy_macro"),
        row("x", 0.3, "mllm", b="controller", metric="accuracy_micro"),
        row("x", 0.4, "mllm", b="controller", metric="accuracy", group="Jigsaw"),
        row("x", 0.5, "mllm", b="specialist", metric="accuracy", group="Jigsaw"),
        row("x", 0.6, "mllm", b="controller", metric="accuracy_macro", none="wrong"),
        row("x", 0.7, "mllm", b="controller", detail=True),
        row("x", None, "mllm", b="controller"),
        row("y", 0.8, "mllm", b="controller"),
    ]
    whole, by_task = charts(found, "intervals", rows, "x")
    assert isinstance(whole, Forest)
    assert [(one.b, one.value) for one in whole.rows] == [("controller", 0.1), ("specialist", 0.2)]
    first = whole.rows[0]
    assert (first.group, first.low, first.high, first.p_holm, first.n) == ("accuracy_macro", -0.1, 0.3, 0.5, 9)
    assert [(one.group, one.b, one.value) for one in by_task.rows] == [("Jigsaw", "controller", 0.4)]
    # Of several quantities each line says which.
    (both,) = charts(found, "intervals", [rows[-1], replace(rows[-1], quantity="x")])
    assert [one.group for one in both.rows] == [": y", ": x"]


def test_bars_are_shares_of_the_headline_metric_and_of_tasks_with_their_marks(found: Comparison) -> None:
    rows = [
        row("x", 0.5, "mllm", metric="accuracy_macro", low=0.4, high=0.6, n=9),
        row("x", 0.25, "mllm", metric="accuracy", group="Jigsaw"),
        row("x", 0.75, "mllm", metric="accuracy_micro"),
        row("x", 31.5, "mllm", metric="accuracy_macro"),
    ]
    marks = [ReferenceLine(task, "Human", "human", 0.95, "a note") for task in ("Jigsaw", "Counting")]
    (bars,) = charts(found, "bars", rows, marks=marks)
    assert isinstance(bars, Bars)
    told = [(one.task, one.solver, one.value, one.low, one.high, one.n) for one in bars.rows]
    assert told == [("accuracy_macro", "mllm", 0.5, 0.4, 0.6, 9), ("Jigsaw", "mllm", 0.25, None, None, 0)]
    assert [asdict(mark) for mark in bars.marks] == [
        {"task": "Jigsaw", "label": "Human", "kind": "human", "value": 0.95, "note": "a note"}
    ]


def test_counts_are_a_grid_of_lines_and_quantities_with_ids(found: Comparison) -> None:
    rows = [
        row("x", 2.0, "mllm", QUESTIONS, b="controller", ids=("q1", "q2")),
        row("y", 1.0, "mllm", QUESTIONS),
        row("x", 1.0, "mllm", QUESTIONS, group="Jigsaw"),
    ]
    (matrix,) = charts(found, "counts", rows)
    assert isinstance(matrix, Matrix)
    told = [(cell.row, cell.column, cell.n, cell.ids) for cell in matrix.cells]
    assert told == [("mllm -> controller", "x", 2, ("q1", "q2")), ("mllm", "y", 1, ())]


def test_a_stack_is_of_metrics_else_of_quantities(found: Comparison) -> None:
    tools = [row("x", 5.0, "mllm", "calls"), row("x", 3.0, "mllm", "calls", metric="depth")]
    tools.append(row("x", 3.0, "mllm", "calls", metric="depth", group="Jigsaw"))
    (stack,) = charts(found, "stack", tools)
    assert isinstance(stack, Stack)
    assert (stack.x_label, [(part.solver, part.part, part.n) for part in stack.parts]) == (
        "calls",
        [("mllm", "depth", 3)],
    )
    ends = [row("x", 4.0, "mllm", QUESTIONS), row("y", 0.0, "mllm", QUESTIONS)]
    # A part of nothing is not drawn, and one kind of part is a stack too.
    for some in (ends, ends[:1]):
        (stack,) = charts(found, "stack", some)
        assert [(part.part, part.n) for part in stack.parts] == [("x", 4)]


def test_a_dot_has_the_metric_above_the_other_quantity(found: Comparison) -> None:
    rows = [row("USD", 0.5, "mllm"), row("value", 0.75, "mllm", low=0.5, high=1.0), row("USD", 0.1, "specialist")]
    (scatter,) = charts(found, "scatter", rows)
    assert isinstance(scatter, Scatter)
    assert (scatter.x_label, scatter.y_label) == ("USD", "accuracy_macro")
    assert [asdict(dot) for dot in scatter.dots] == [{"solver": "mllm", "x": 0.5, "y": 0.75, "low": 0.5, "high": 1.0}]


@pytest.mark.parametrize("kind", [None, "intervals", "bars", "counts", "stack", "scatter"])
def test_without_a_number_there_is_no_chart(found: Comparison, kind: ChartKind | None) -> None:
    assert charts(found, kind, [row("x", None, "mllm")]) == []


# Real runs.


def test_every_section_is_on_the_page_with_its_tables_and_charts(
    made: tuple[BenchmarkPages, ComparisonReport],
) -> None:
    pages, report = made
    shown = {one.id: one for one in pages.overview.sections}
    kinds: dict[str, type[Chart]] = dict(zip(get_args(ChartKind), (Forest, Bars, Matrix, Stack, Scatter), strict=True))
    blocks = {block.name: block for block in report.blocks()}
    assert list(shown) == [*(name.replace("_", "-") for name in blocks), "published"]
    for section in report.sections:
        one = shown[section.name.replace("_", "-")]
        assert (one.title, one.lead, one.tables) == (
            *(section.section.title, section.lead),
            blocks[section.name].tables,
        )
        kind = section.section.chart
        assert {type(chart) for chart in one.charts} == ({kinds[kind]} if kind else set()), section.name


def test_cards_and_warnings(made: tuple[BenchmarkPages, ComparisonReport]) -> None:
    pages, report = made
    told = {card.name: (card.n, card.failed) for card in pages.overview.solvers}
    assert told == {one.solver: (36, int(one.solver == "controller")) for one in report.solvers}
    assert any(line.startswith("controller: 1 of 36 questions failed") for line in pages.overview.warnings)


def test_ids_of_cells_are_questions_of_the_list(made: tuple[BenchmarkPages, ComparisonReport]) -> None:
    pages, report = made
    listed = {one.id for one in pages.rows}
    matrices = [chart for one in pages.overview.sections for chart in one.charts if isinstance(chart, Matrix)]
    cells = [cell for matrix in matrices for cell in matrix.cells]
    assert len(matrices) == 2
    assert all(cell.n == len(cell.ids) and set(cell.ids) <= listed for cell in cells)
    assert {cell.ids for cell in cells} <= {made_row.ids for made_row in report.results}


def test_marks_are_chance_and_the_printed_cells_of_what_is_shown(
    made: tuple[BenchmarkPages, ComparisonReport],
) -> None:
    pages, report = made
    labels = {"guess": "uniform guess", "most frequent answer": "most frequent answer"}
    shown = ("accuracy_macro", "Counting", "Jigsaw", "Relative_Depth")
    expected = {
        (row.group or row.metric, labels[row.quantity], "chance", row.value)
        for row in report.results
        if row.section == "chance" and row.quantity in labels and (row.group or row.metric) in shown
    }
    with PUBLISHED.open(newline="") as file:
        for cell in csv.DictReader(file):
            task = cell["metric"].removeprefix("accuracy.")
            if cell["split"] == "val" and task in shown:
                worth = float(cell["value"]) / (1 if cell["note"].startswith("fraction") else 100)
                kind = "human" if cell["kind"] == "human" else "published"
                expected.add((task, cell["who"], kind, worth))
    bars = [chart for one in pages.overview.sections for chart in one.charts if isinstance(chart, Bars)]
    told = [(mark.task, mark.label, mark.kind, mark.value) for chart in bars for mark in chart.marks]
    assert len(told) == len(expected)
    assert set(told) == expected


def test_the_commands_of_a_section_print_what_it_shows(made: tuple[BenchmarkPages, ComparisonReport]) -> None:
    pages, report = made
    printed: dict[str, str] = {}
    for one in pages.overview.sections:
        program, name, *words = shlex.split(one.command)
        known = cli.get_command(click.Context(cli), name)
        assert program == "hybrid"
        assert known is not None
        known.make_context(name, list(words))
        if one.command not in printed:
            done = CliRunner().invoke(cli, [name, *words], catch_exceptions=False)
            assert done.exit_code == 0, done.output
            printed[one.command] = done.stdout
        if "--json" in words:
            told = [
                row for row in json.loads(printed[one.command])["results"] if row["section"].replace("_", "-") == one.id
            ]
            assert len(told) == sum(row.section.replace("_", "-") == one.id for row in report.results)
        else:
            assert all(as_text(table) in printed[one.command] for table in one.tables)
    assert len(printed) == 3
