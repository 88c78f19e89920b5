"""The first page of a benchmark: charts hold the rows that they are made of, marks the printed cells, ids lead on.

The numbers of the rows are recomputed in `tests/hybrid/scoring/test_recomputed.py`.
"""

import csv
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import pytest
from click.testing import CliRunner

from hybrid.benchmarks.card import MetricCard
from hybrid.cli import cli
from hybrid.display.tables import as_text
from hybrid.report.charts import charts_of
from hybrid.report.collect import collect_paths
from hybrid.report.overview import GAIN
from hybrid.report.payload import BenchmarkPages, Chart
from hybrid.scoring.compare import Comparison
from hybrid.scoring.reference import ReferenceLine
from hybrid.scoring.reports import ComparisonReport, compare_paths
from hybrid.scoring.result import FRACTION, QUESTIONS, ChartKind, Result, Section, SectionResult

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
    signs: tuple[int, ...] = (),
) -> list[Chart]:
    cards = tuple(MetricCard(name, "", "", "") for name in ("x", "y"))
    section = Section("s", "S?", cards, lambda _: (), chart=kind, charted=charted, signs=signs)
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
        row("x", 0.7, "mllm", b="controller", detail=True),
        row("x", None, "mllm", b="controller"),
        row("y", 0.8, "mllm", b="controller"),
    ]
    whole, by_task = charts(found, "intervals", rows, "x")
    assert whole.rows == (rows[0], rows[1])
    assert by_task.rows == (rows[3],)
    # Without a choice of quantities all are drawn.
    (both,) = charts(found, "intervals", [rows[-1], replace(rows[-1], quantity="x")])
    assert [one.quantity for one in both.rows] == ["y", "x"]


def test_bars_are_shares_of_the_headline_metric_and_of_tasks_with_their_marks(found: Comparison) -> None:
    rows = [
        row("x", 0.5, "mllm", metric="accuracy_macro", low=0.4, high=0.6, n=9),
        row("x", 0.25, "mllm", metric="accuracy", group="Jigsaw"),
        row("x", 0.75, "mllm", metric="accuracy_micro"),
        row("x", 31.5, "mllm", metric="accuracy_macro"),
    ]
    marks = [ReferenceLine(task, "Human", "human", 0.95, "a note") for task in ("Jigsaw", "Counting")]
    (bars,) = charts(found, "bars", rows, marks=marks)
    assert bars.rows == tuple(rows[:2])
    assert bars.marks == (marks[0],)


def test_counts_and_stacks_are_over_all_tasks(found: Comparison) -> None:
    rows = [
        row("x", 2.0, "mllm", QUESTIONS, b="controller", ids=("q1", "q2")),
        row("y", 1.0, "mllm", QUESTIONS),
        row("x", 1.0, "mllm", QUESTIONS, group="Jigsaw"),
    ]
    (counts,) = charts(found, "counts", rows)
    assert (counts.kind, counts.rows) == ("counts", tuple(rows[:2]))


def test_a_stack_is_of_metrics_else_of_quantities(found: Comparison) -> None:
    tools = [row("x", 5.0, "mllm", "calls"), row("x", 3.0, "mllm", "calls", metric="depth")]
    tools.append(row("x", 3.0, "mllm", "calls", metric="depth", group="Jigsaw"))
    (stack,) = charts(found, "stack", tools)
    assert stack.rows == (tools[1],)
    ends = [row("x", 4.0, "mllm", QUESTIONS), row("y", 0.0, "mllm", QUESTIONS)]
    # A part of nothing is not drawn, and one kind of part is a stack too.
    for some in (ends, ends[:1]):
        assert charts(found, "stack", some)[0].rows == (ends[0],)


def test_a_dot_has_the_metric_and_the_other_quantity(found: Comparison) -> None:
    rows = [row("USD", 0.5, "mllm"), row("value", 0.75, "mllm", low=0.5, high=1.0), row("USD", 0.1, "specialist")]
    (scatter,) = charts(found, "scatter", rows)
    assert (scatter.title, scatter.rows) == ("accuracy_macro by what it cost", tuple(rows[:2]))


def test_a_waterfall_is_of_one_pair_in_the_order_of_its_steps(found: Comparison) -> None:
    def steps(b: str, **fields: Any) -> list[Result]:
        start = row("start", 0.5, "mllm", b=b, detail=True, none="wrong", **fields)
        return [replace(start, quantity="down", value=0.1, detail=False), start]

    one, other, by_task = steps("controller"), steps("specialist"), steps("controller", group="Jigsaw")
    rows = [*one, *other, *by_task, *steps("controller", metric="a tool")]
    made = charts(found, "waterfall", rows, "start", "down", signs=(0, -1))
    assert [chart.title for chart in made] == [
        "From mllm to controller",
        "From mllm to specialist",
        f"From mllm to controller by {found.grouping}",
    ]
    assert [chart.rows for chart in made] == [tuple(own[::-1]) for own in (one, other, by_task)]
    assert {chart.signs for chart in made} == {(0, -1)}


@pytest.mark.parametrize("kind", [None, "intervals", "bars", "counts", "stack", "scatter", "waterfall"])
def test_without_a_number_there_is_no_chart(found: Comparison, kind: ChartKind | None) -> None:
    assert charts(found, kind, [row("x", None, "mllm")]) == []


# Real runs.


def test_every_section_is_on_the_page_with_its_tables_and_charts(
    made: tuple[BenchmarkPages, ComparisonReport],
) -> None:
    pages, report = made
    shown = {one.id: one for one in pages.overview.sections}
    blocks = {block.name: block for block in report.blocks()}
    assert list(shown) == [*(name.replace("_", "-") for name in blocks), "published"]
    for section in report.sections:
        one = shown[section.name.replace("_", "-")]
        assert (one.title, one.lead, one.tables) == (
            *(section.section.title, section.lead),
            blocks[section.name].tables,
        )
        kind = section.section.chart
        assert {chart.kind for chart in one.charts} == ({kind} if kind else set()), section.name


def test_cards_and_warnings(made: tuple[BenchmarkPages, ComparisonReport]) -> None:
    pages, report = made
    told = {card.name: (card.n, card.failed) for card in pages.overview.solvers}
    assert told == {one.solver: (36, int(one.solver == "controller")) for one in report.solvers}
    assert any(line.startswith("controller: 1 of 36 questions failed") for line in pages.overview.warnings)


def test_of_several_first_pictures_the_menu_alone_has_the_names(made_up_runs: Any, tmp_path: Path) -> None:
    models = {"openai:gpt-4o": tmp_path / "a", "openai:gpt-4.1": tmp_path / "b"}
    runs = [made_up_runs.write(folder, "blink", size=4, model=model).real for model, folder in models.items()]
    (pages,) = collect_paths(runs).benchmarks
    steps = [chart for chart in pages.overview.front if chart.kind == "waterfall"]
    assert len({(chart.rows[0].a, chart.rows[0].b) for chart in steps}) == len(steps) == 2
    assert {chart.title for chart in steps} == {GAIN}


def test_the_first_picture_leads_from_alone_to_with_tools(made: tuple[BenchmarkPages, ComparisonReport]) -> None:
    pages, report = made
    first, *_ = pages.overview.front
    (section,) = (one for one in pages.overview.sections if one.id == "decomposition")
    assert first == section.charts[0]
    gain = next(
        row for row in report.results if (row.section, row.quantity, row.group) == ("decomposition", "gain", "")
    )
    start, *steps = first.rows
    assert first.signs == (0, 1, 1, -1, -1)
    assert all(set(row.ids) for row in steps if row.value)
    # The end is what the pair's own right answers are worth, over the questions that both answered.
    moved = sum(sign * (row.value or 0.0) for sign, row in zip(first.signs[1:], steps, strict=True))
    assert moved == pytest.approx(gain.value)
    asked = {
        one.solver: {score.id: None if score.outcome.failed else score.correct for score in one.scores}
        for one in report.solvers
    }
    again, with_tools = [own for name, own in asked.items() if name.partition("@")[0] == start.a], asked[start.b]
    alone = {name: None if None in (own := [one[name] for one in again]) else fmean(own) for name in again[0]}
    both = [name for name in alone if alone[name] is not None and with_tools.get(name) is not None]
    by_part = {name for row in steps for name in row.ids}
    assert by_part == {name for name in both if alone[name] != with_tools[name]}


def test_ids_of_counts_are_questions_of_the_list(made: tuple[BenchmarkPages, ComparisonReport]) -> None:
    pages, report = made
    asked = {name for one in report.solvers for name in one.questions}
    counts = [chart for one in pages.overview.sections for chart in one.charts if chart.kind == "counts"]
    rows = [row for chart in counts for row in chart.rows]
    assert len(counts) == 3
    # No answer that counts as a guess is a part of a question.
    assert all((row.value or 0) <= len(row.ids) and set(row.ids) <= asked for row in rows)
    assert set(rows) <= set(report.results)


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
    bars = [chart for one in pages.overview.sections for chart in one.charts if chart.kind == "bars"]
    told = [(mark.task, mark.label, mark.kind, mark.value) for chart in bars for mark in chart.marks]
    assert len(told) == len(expected)
    assert set(told) == expected


def test_the_commands_of_a_section_print_what_it_shows(made: tuple[BenchmarkPages, ComparisonReport]) -> None:
    pages, _ = made
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
        assert all(as_text(table) in printed[one.command] for table in one.tables)
    # One for all tables, one with what papers printed.
    assert len(printed) == 2
