"""The table of questions: one row per question and solver, for Python and as files."""

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hybrid
from hybrid.core.errors import UsageError
from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.exporting.table import EXPORTER
from hybrid.scoring.findings import outputs_by_question


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, synthetic_runs: Any) -> Path:
    folder = tmp_path_factory.mktemp("records")
    path: Path = synthetic_runs.write(folder, "mvp_bench", size=6, seed=4, failed=1, repeats=2).real
    return path


def test_a_row_is_a_question_of_a_solver(run: Path) -> None:
    table, scored = hybrid.table(run), hybrid.score(run).solvers
    rows = {(row["solver"], row["id"]): row for row in table}
    assert len(table) == len(rows) == sum(len(item.scores) for item in scored)
    for entry in scored:
        text = outputs_by_question(entry)
        for score in entry.counted["wrong"].scores:
            row = rows[entry.solver, score.id]
            assert (row["answer"], row["outcome"], row["task"]) == (score.answer, score.outcome.value, score.task)
            assert row["correct"] == (None if score.outcome.failed else score.correct)
            assert {name: row[f"group.{name}"] for name in score.groups} == score.groups
            if score.id in text and text[score.id].calls:
                assert (row["finding"], row["tools"]) == (text[score.id].finding, " + ".join(text[score.id].tools))
            else:
                assert (row["finding"], row["tools"]) == (None, None)
    assert {row["repetition"] for row in table if row["solver"] == "mllm@2"} == {2}
    assert {row["outcome"] for row in table if row["correct"] is None} == {"outage"}
    assert {row["tokens"] for row in table if row["solver"] == "specialist"} == {0}


def test_a_failed_question_costs_nothing_that_is_known(run: Path) -> None:
    (value,) = [row for row in hybrid.table(run) if row["correct"] is None]
    assert {value[name] for name in ("tokens", "tool_calls", "seconds", "cost_usd", "finding")} == {None}


def test_frames_have_the_columns(run: Path) -> None:
    pytest.importorskip("pandas")
    frame = (table := hybrid.table(run)).to_pandas()
    assert list(frame.columns) == list(table.columns) == list(table[0])
    assert len(frame) == len(table)
    assert frame.groupby("solver")["correct"].mean()["mllm"] == pytest.approx(
        sum(row["correct"] for row in table if row["solver"] == "mllm") / 24
    )


def test_a_package_that_is_missing_is_named(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(UsageError, match="to_polars needs the package polars, which is not installed"):
        hybrid.table(run).to_polars()


def test_files_hold_what_the_table_holds(run: Path, tmp_path: Path) -> None:
    table = hybrid.table(run)
    for ending in ("csv", "parquet"):
        EXPORTER.export(ExportedRun.at(run), tmp_path / f"t.{ending}", ExportOptions())
    stored = pq.read_table(tmp_path / "t.parquet")
    assert stored.to_pylist() == list(table)
    # `datasets` cannot read maps, and a viewer shows no lists.
    assert not [field for field in stored.schema if pa.types.is_map(field.type) or pa.types.is_list(field.type)]
    lines = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text())))
    assert [line["id"] for line in lines] == [row["id"] for row in table]
    assert list(lines[0]) == list(table.columns)
    with pytest.raises(UsageError, match=r"t\.xlsx: the format table writes \.csv or \.parquet"):
        EXPORTER.export(ExportedRun.at(run), tmp_path / "t.xlsx", ExportOptions())
