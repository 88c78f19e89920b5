"""The recorded answers of four models to all 1,901 questions of BLINK val, imported as runs and compared.

Accuracies are those of the paper's Table 1 (val); shared mistakes of two pairs are recounted from the recorded files.
"""

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from hybrid.benchmarks.blink import BENCHMARK
from hybrid.scoring.predicted import import_run
from hybrid.scoring.reports import ComparisonReport, compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections import results
from hybrid.scoring.sections.agreement import RATIO
from hybrid.stats import mcnemar

MODELS = ("GPT4o", "GPT4V", "llava-v1.6-34b", "QwenVLMax")
# Means of the fourteen tasks in percent, as printed.
PRINTED = {"GPT4o": 60.04, "GPT4V": 51.14, "llava-v1.6-34b": 46.80, "QwenVLMax": 40.28}
BOTH_WRONG = {("GPT4o", "GPT4V"): (499, 378), ("GPT4V", "QwenVLMax"): (668, 570)}

pytestmark = [pytest.mark.shared_data, pytest.mark.system]


@pytest.fixture(scope="module")
def report(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> ComparisonReport:
    """The comparison of the four imported runs, with missing answers counted as in the paper."""
    folder = tmp_path_factory.mktemp("runs")
    for name in MODELS:
        import_run(shared_data / "blink_outputs" / name, BENCHMARK, "stored", folder / name)
    return compare_paths([folder / name for name in MODELS], unanswered="wrong")


def rows_of(report: ComparisonReport, section: str) -> tuple[Result, ...]:
    """Return the rows of one section: the others take seconds for so many questions."""
    (built,) = results(report.comparison, (section,))
    return built.rows


@cache
def recorded(shared_data: Path, name: str) -> dict[str, bool]:
    """Return whether a model was right, by id, from the recorded files alone."""
    by_name = {}
    for file in (shared_data / "blink_outputs" / name).glob("*.json"):
        for row in json.loads(file.read_text())["val"]:
            by_name[row["idx"]] = row["prediction"] == row["answer"]
    return by_name


def test_published_accuracies(report: ComparisonReport) -> None:
    for solver in report.solvers:
        (macro,) = [metric for metric in solver.metrics if metric.name == "accuracy_macro"]
        assert macro.n == 1901
        assert 100 * (macro.value or 0.0) == pytest.approx(PRINTED[solver.solver], abs=0.005)


def test_paired_tests_find_what_mcnemar_finds(report: ComparisonReport, shared_data: Path) -> None:
    """For single questions, the micro accuracy differs by the questions helped minus those harmed, and the difference
    is significant exactly if McNemar's test is."""
    rows = [
        row for row in rows_of(report, "differences") if (row.quantity, row.metric) == ("difference", "accuracy_micro")
    ]
    assert len(rows) == 6
    for row in rows:
        of_a, of_b = recorded(shared_data, row.a), recorded(shared_data, row.b)
        changed = Counter((of_a[key], of_b[key]) for key in of_a)
        helped, harmed = changed[False, True], changed[True, False]
        assert row.value == pytest.approx((helped - harmed) / 1901)
        assert row.p is not None
        assert (row.p < 0.05) == (mcnemar(helped, harmed) < 0.05)


def test_shared_mistakes(report: ComparisonReport, shared_data: Path) -> None:
    mapping = {(row.a, row.b, row.quantity): row for row in rows_of(report, "agreement")}
    for pair, (sides, expected) in BOTH_WRONG.items():
        row = mapping[(*pair, "both wrong")]
        assert (row.n, row.value, round(mapping[(*pair, "expected")].value or 0)) == (1901, sides, expected)
        assert (mapping[(*pair, RATIO)].p or 1.0) < 1e-6
    for (a, b, quantity), row in mapping.items():
        if quantity == "both wrong":
            of_a, of_b = recorded(shared_data, a), recorded(shared_data, b)
            assert set(row.ids) == {key for key in of_a if not of_a[key] and not of_b[key]}


def test_imported_runs_have_no_hybrid_solver_and_cost_nothing(report: ComparisonReport) -> None:
    hybrid = ("gain", "ceiling", "evidence", "tool_use", "cost")
    assert [result.name for result in results(report.comparison, ("agreement", *hybrid))] == ["agreement"]
    assert report.failed == ()
