"""BLINK's Table 2 compared with a run: the published cells, their source, and the weight-free run on the published
items."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench import blink_table2 as bench
from hybrid.core.errors import UsageError
from hybrid.display.tables import as_text
from hybrid.stats import Interval
from tests.tables import cases
from tests.tools.specialist_run import specialist_run


def options(data: Path) -> Namespace:
    return Namespace(data=data, weights=[], backend="classical", device="cpu", allow=[])


@pytest.mark.parametrize(*cases(__file__, "test_where_a_cell_lies"))
def test_where_a_cell_lies(low: float | None, high: float | None, verdict: str) -> None:
    cell = replace(next(cell for cell in bench.cells() if cell.metric == "Relative_Depth"), value=97.58)
    around = None if low is None or high is None else Interval(low, high, "made up")
    row = bench.TableRow(cell, 10, 0, low, around, ("depth:learned",))
    assert row.verdict == verdict
    assert verdict in as_text(bench.table((row,)))
    assert ("Outside of the interval: Relative_Depth." in as_text(bench.table((row,)))) == verdict.startswith("OUTSIDE")


def test_a_run_on_generated_data_is_refused(tmp_path: Path) -> None:
    plan = specialist_run("blink", tmp_path, tasks=("Jigsaw",), limit=1)
    with pytest.raises(UsageError, match="Table 2 is BLINK val, the run is blink val on sample data"):
        bench.compare(plan.folder)


def test_data_without_the_six_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none of the six tasks"):
        bench.run(options(tmp_path), tmp_path / "run")


@pytest.mark.system
@pytest.mark.shared_data
def test_depth_without_weights_is_flagged(shared_data: Path, tmp_path: Path) -> None:
    data = tmp_path / "data" / "Relative_Depth"
    data.mkdir(parents=True)
    (path,) = (shared_data / "blink" / "Relative_Depth").glob("val-*.parquet")
    pq.write_table(pq.read_table(path).slice(0, 24), data / path.name)
    rows = bench.compare(bench.run(options(data.parent), tmp_path / "run"))
    depth = next(row for row in rows if row.cell.metric == "Relative_Depth")
    assert depth.n == 24
    assert depth.backends == ("depth:classical",)
    assert 0.5 < (depth.value or 0) < 0.9
    assert depth.verdict == "OUTSIDE (ours lower)"
    printed = as_text(bench.table(rows))
    assert "Outside of the interval: Relative_Depth." in printed
    assert "Not in this run: Visual_Correspondence" in printed
