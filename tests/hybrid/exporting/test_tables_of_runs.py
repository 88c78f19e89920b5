"""The formats for tables, the submission of a hidden split, and the names of solvers in other programs."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hybrid.core.errors import UsageError
from hybrid.core.machine_paths import hide_paths
from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.exporting.parquet import EXPORTER as PARQUET
from hybrid.exporting.submission import EXPORTER as SUBMISSION
from hybrid.log.folder import RunFolder


def test_a_table_has_a_row_a_question_and_solver(synthetic_runs: Any, tmp_path: Path) -> None:
    run_path = synthetic_runs.write(tmp_path, "blink", size=4, failed=2)
    run = ExportedRun.at(run_path.real)
    PARQUET.export(run, tmp_path / "run.parquet", ExportOptions())
    table = pq.read_table(tmp_path / "run.parquet")
    rows = table.to_pylist()
    assert [(row["solver"], row["id"]) for row in rows] == [
        (item.solver, score.id) for item in run.scored for score in item.scores
    ]
    for entry in run.scored:
        values = [row for row in rows if row["solver"] == entry.solver]
        # Failed questions are missing; a question without an answer is wrong in the metric.
        correct = [row["correct"] or 0.0 for row in values if row["correct_or_chance"] is not None]
        metrics = {metric.name: metric.value for metric in entry.metrics}
        assert sum(correct) / len(correct) == pytest.approx(metrics["accuracy_micro"])
        wrong = {score.id: score.correct for score in entry.counted["wrong"].scores if not score.outcome.failed}
        assert {row["id"]: row["correct"] for row in values if row["replies"]} == wrong
    items = [row for row in rows if row["outcome"] == "outage"]
    assert len(items) == 2
    assert all(row["correct"] is None and row["replies"] == [] for row in items)
    metadata = table.schema.metadata
    assert metadata[b"run_sha256"].decode() == run.sha256
    assert json.loads(metadata[b"identity"]) == run.identity
    assert metadata[b"unanswered"] == b"wrong"
    assert json.loads(metadata[b"conclusion"]) == [hide_paths(sentence.text) for sentence in run.conclusion] != []


def test_a_hidden_split_is_submitted(synthetic_runs: Any, tmp_path: Path) -> None:
    run_path = synthetic_runs.write(tmp_path, "blink", size=2)
    manifest = RunFolder(run_path.real).manifest
    manifest["identity"]["split"] = "test"
    RunFolder(run_path.real).write_manifest(manifest)
    run = ExportedRun.at(run_path.real / "specialist")
    SUBMISSION.export(run, tmp_path / "s.json", ExportOptions())
    sent = json.loads((tmp_path / "s.json").read_text())
    assert set(sent) == set(run.folder.questions().by_id)
    assert set(sent.values()) <= {"(A)", "(B)", "(C)", "(D)", "(Z)"}
    assert (run_path.real / "specialist" / "submission.json").read_text() == (tmp_path / "s.json").read_text()
    with pytest.raises(UsageError, match="the answers of the split 'test' of blink are hidden"):
        PARQUET.export(ExportedRun.at(run_path.real), tmp_path / "out.parquet", ExportOptions())


def test_public_answers_are_not_submitted(synthetic_runs: Any, tmp_path: Path) -> None:
    run = synthetic_runs.write(tmp_path, "blink", size=1)
    with pytest.raises(UsageError, match=r"split 'val' of blink are public, .* the split 'test' are hidden"):
        SUBMISSION.export(ExportedRun.at(run.real / "mllm"), tmp_path / "s.json", ExportOptions())
    other = synthetic_runs.write(tmp_path, "mvp_bench", size=1)
    with pytest.raises(UsageError, match=r"`hybrid score` scores it$"):
        SUBMISSION.export(ExportedRun.at(other.real / "mllm"), tmp_path / "s.json", ExportOptions())


def test_answers_of_no_mllm_go_under_no_mllms_name(synthetic_runs: Any, tmp_path: Path) -> None:
    run_path = synthetic_runs.write(tmp_path, "blink", size=1)
    runs = [ExportedRun.at(run_path.real / "specialist"), ExportedRun.at(run_path.blank / "controller")]
    rows = [(run.mllm_of(item), run.model_of(item)) for run in runs for item in run.scored]
    assert rows == [(None, "specialist"), ("made:up", "made:up/controller-blank")]
