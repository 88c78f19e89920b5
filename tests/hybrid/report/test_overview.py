"""The first page of a benchmark: charts hold the rows that they are made of, marks the printed cells, ids lead on.

The numbers of the rows are recomputed in `tests/hybrid/scoring/test_recomputed.py`.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from hybrid.benchmarks.card import MetricCard
from hybrid.report.charts import charts_of
from hybrid.report.collect import collect_paths
from hybrid.report.payload import BenchmarkPages, Chart
from hybrid.scoring.compare import Comparison
from hybrid.scoring.reference import ReferenceLine
from hybrid.scoring.reports import ComparisonReport, compare_paths
from hybrid.scoring.result import FRACTION, ChartKind, Result, Section, SectionResult


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


@pytest.mark.parametrize("kind", [None, "intervals", "bars", "counts", "stack", "scatter", "waterfall"])
def test_without_a_number_there_is_no_chart(found: Comparison, kind: ChartKind | None) -> None:
    assert charts(found, kind, [row("x", None, "mllm")]) == []


# Real runs.


def test_cards_and_warnings(made: tuple[BenchmarkPages, ComparisonReport]) -> None:
    pages, report = made
    told = {card.name: (card.n, card.failed) for card in pages.overview.solvers}
    assert told == {one.solver: (36, int(one.solver == "controller")) for one in report.solvers}
    assert any(line.startswith("controller: 1 of 36 questions failed") for line in pages.overview.warnings)
