"""The formats for tables and pages: parquet, the model card, and the submission of a hidden split."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from huggingface_hub import ModelCard

from hybrid.errors import UsageError
from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.exporting.model_card import EXPORTER as MODEL_CARD
from hybrid.exporting.parquet import COLUMNS
from hybrid.exporting.parquet import EXPORTER as PARQUET
from hybrid.exporting.submission import EXPORTER as SUBMISSION
from hybrid.run_folder import RunFolder
from hybrid.stats import interval


def table_of(path: Path, out: Path) -> Any:
    PARQUET.export(ExportedRun.at(path), out, ExportOptions())
    return pq.read_table(out)


def test_a_table_has_a_row_a_question_and_solver(made_up_runs: Any, tmp_path: Path) -> None:
    made = made_up_runs.write(tmp_path, "blink", size=4, failed=2)
    run = ExportedRun.at(made.real)
    table = table_of(made.real, tmp_path / "run.parquet")
    rows = table.to_pylist()
    assert [(row["solver"], row["id"]) for row in rows] == [
        (one.solver, score.id) for one in run.scored for score in one.scores
    ]
    for one in run.scored:
        own = [row for row in rows if row["solver"] == one.solver]
        correct = [row["correct"] for row in own if row["correct"] is not None]
        metrics = {metric.name: metric.value for metric in one.metrics}
        assert sum(correct) / len(correct) == pytest.approx(metrics["accuracy_micro"])
        guess = {score.id: score.correct for score in one.counted["chance"].scores if not score.outcome.failed}
        assert {row["id"]: row["correct_or_chance"] for row in own if row["replies"]} == guess
    lost = [row for row in rows if row["outcome"] == "outage"]
    assert len(lost) == 2
    assert all(row["correct"] is None and row["replies"] == [] for row in lost)
    metadata = table.schema.metadata
    assert metadata[b"run_sha256"].decode() == run.sha256
    assert json.loads(metadata[b"identity"]) == run.identity


def test_the_columns_have_the_types_that_are_written_down(made_up_runs: Any, tmp_path: Path) -> None:
    made = made_up_runs.write(tmp_path, "blink", size=1)
    table = table_of(made.real / "mllm", tmp_path / "one.parquet")
    assert set(table.column("solver").to_pylist()) == {"mllm"}
    for field, column in zip(table.schema, COLUMNS, strict=True):
        inner = re.sub(r"(element|item): ", "", str(field.type)).replace("tz=", "")
        assert (field.name, re.sub(r" \('\w+'\)", "", inner)) == (column.name, column.type)


def test_every_ask_is_in_the_table(traced: Path, tmp_path: Path) -> None:
    run = ExportedRun.at(traced / "specialist")
    rows = {row["id"]: row for row in table_of(traced / "specialist", tmp_path / "run.parquet").to_pylist()}
    for name, attempt in run.folder.recorded("specialist").by_id.items():
        row, question = rows[name], run.folder.questions().by_id[name]
        assert row["replies"] == [exchange.reply.text for exchange in attempt.exchanges]
        assert row["prompts"] == [exchange.prompt.text for exchange in attempt.exchanges]
        assert row["tool_calls"] == sum(exchange.reply.usage.tool_calls for exchange in attempt.exchanges)
        assert row["started"].timestamp() == pytest.approx(attempt.started)
        assert dict(row["groups"]) == question.groups
        assert json.loads(row["target"]) == question.target  # type: ignore[union-attr]


def test_the_hub_reads_the_card(made_up_runs: Any, tmp_path: Path) -> None:
    made = made_up_runs.write(tmp_path, "blink", size=6)
    run = ExportedRun.at(made.real)
    MODEL_CARD.export(run, tmp_path / "card.md", ExportOptions())
    text = (tmp_path / "card.md").read_text()
    found = ModelCard(text).data.eval_results
    assert found is not None
    expected = {
        f"{metric.name} ({one.solver})": metric
        for one in run.scored
        for metric in one.metrics
        if metric.name.startswith("accuracy") and one.solver != "specialist"
    }
    assert {result.metric_name for result in found} == set(expected)
    for result in found:
        metric = expected[str(result.metric_name)]
        ends = interval(metric)
        assert ends is not None
        assert result.metric_value == pytest.approx(metric.value, abs=1e-6)
        assert (result.dataset_split, result.dataset_type) == ("val", "BLINK-Benchmark/BLINK")
        assert result.metric_args is not None
        assert result.metric_args["interval_95"] == pytest.approx([ends.low, ends.high], abs=1e-6)
        assert result.metric_args["n"] == metric.n == 18
        assert result.metric_args["run_sha256"] == run.sha256
    # What no MLLM was asked for is no result of the MLLM, and only in the table.
    assert "| specialist | accuracy\\_micro |" in text


def test_a_control_does_not_pass_for_the_solver(made_up_runs: Any, tmp_path: Path) -> None:
    made = made_up_runs.write(tmp_path, "blink", size=6)
    MODEL_CARD.export(ExportedRun.at(made.blank), tmp_path / "card.md", ExportOptions())
    text = (tmp_path / "card.md").read_text()
    found = ModelCard(text).data.eval_results
    assert found is not None
    assert {one.metric_name for one in found} == {
        f"accuracy_{mean} (controller, tool output blank)" for mean in ("macro", "micro")
    }
    assert "| controller, tool output blank | accuracy\\_micro |" in text


def test_a_model_has_no_page_of_what_it_was_not_asked_for(made_up_runs: Any, tmp_path: Path) -> None:
    made = made_up_runs.write(tmp_path, "blink", size=2)
    with pytest.raises(UsageError, match="none of its solvers asks made:up"):
        MODEL_CARD.export(ExportedRun.at(made.real / "specialist"), tmp_path / "card.md", ExportOptions())


def test_generated_questions_never_pass_for_the_published_ones(traced: Path, tmp_path: Path) -> None:
    MODEL_CARD.export(ExportedRun.at(traced), tmp_path / "card.md", ExportOptions())
    found = ModelCard((tmp_path / "card.md").read_text()).data.eval_results
    assert found is not None
    assert {(one.dataset_type, one.dataset_name) for one in found} == {("blink", "BLINK (generated questions)")}


def test_a_hidden_split_is_submitted(made_up_runs: Any, tmp_path: Path) -> None:
    made = made_up_runs.write(tmp_path, "blink", size=2)
    told = RunFolder(made.real).manifest
    told["identity"]["split"] = "test"
    RunFolder(made.real).write_manifest(told)
    run = ExportedRun.at(made.real / "specialist")
    SUBMISSION.export(run, tmp_path / "s.json", ExportOptions())
    sent = json.loads((tmp_path / "s.json").read_text())
    assert set(sent) == set(run.folder.questions().by_id)
    assert set(sent.values()) <= {"(A)", "(B)", "(C)", "(D)", "(Z)"}
    assert (made.real / "specialist" / "submission.json").read_text() == (tmp_path / "s.json").read_text()
    for other in (PARQUET, MODEL_CARD):
        with pytest.raises(UsageError, match="the answers of blink test are hidden"):
            other.export(ExportedRun.at(made.real), tmp_path / "out", ExportOptions())


def test_public_answers_are_not_submitted(made_up_runs: Any, tmp_path: Path) -> None:
    made = made_up_runs.write(tmp_path, "blink", size=1)
    with pytest.raises(UsageError, match=r"answers of blink val are public, .* hidden are those of blink test"):
        SUBMISSION.export(ExportedRun.at(made.real / "mllm"), tmp_path / "s.json", ExportOptions())
    other = made_up_runs.write(tmp_path, "mvp_bench", size=1)
    with pytest.raises(UsageError, match=r"`hybrid score` scores it$"):
        SUBMISSION.export(ExportedRun.at(other.real / "mllm"), tmp_path / "s.json", ExportOptions())


def test_the_hash_is_of_configuration_and_answers(made_up_runs: Any, tmp_path: Path) -> None:
    first, other = (made_up_runs.write(tmp_path / str(seed), "blink", size=2, seed=seed).real for seed in (1, 2))
    found = ExportedRun.at(first).sha256
    assert re.fullmatch(r"[0-9a-f]{64}", found)
    assert found != ExportedRun.at(other).sha256
    assert found == ExportedRun.at(first / "mllm").sha256
