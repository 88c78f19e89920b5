"""Every section on synthetic runs with repetitions, missing answers or questions: no row is lost to rounding."""

import math
from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.compare import ComparisonOptions, compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections import results
from tests.tables import cases


@pytest.mark.system
@pytest.mark.parametrize("rule", ["guess", "wrong"])
@pytest.mark.parametrize(*cases(__file__, "test_every_section_can_be_made"))
def test_every_section_can_be_made(
    tmp_path: Path, synthetic_runs: Any, benchmark: str, repeats: int, more: dict[str, int], rule: Any
) -> None:
    run = synthetic_runs.write(tmp_path, benchmark, size=5, repeats=repeats, unreadable=0.3, **more)
    solvers = compare_paths(run.paths, unanswered=rule).solvers
    result = results(compare(solvers, ComparisonOptions(allow_failed=True)))
    assert {item.name: item.fault for item in result if item.fault} == {}
    assert {"ceiling", "decomposition", "evidence", "gain", "knowledge", "spread", "tool_only"} <= {
        entry.name for entry in result
    }
    for row in (row for value in result for row in value.rows if row.low is not None and row.high is not None):
        assert row.value is not None
        assert row.low <= row.value + 1e-12
        assert row.value - 1e-12 <= row.high < math.inf
