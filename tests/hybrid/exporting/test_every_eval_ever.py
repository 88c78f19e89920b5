"""`hybrid export --to every_eval_ever`: its files are correct, and the validator of the format's authors accepts
them."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.cli import cli
from hybrid.core.errors import UsageError
from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.exporting.every_eval_ever import EXPORTER
from hybrid.plugins.registry import load
from hybrid.scoring.predicted import score_predictions

pytestmark = pytest.mark.system
TASKS = ("Jigsaw", "Relative_Depth")


@pytest.fixture
def exported(traced: Path, tmp_path: Path) -> Callable[..., dict[str, tuple[Any, list[Any]]]]:
    """Return a function that exports the run with some options and returns, by model, the aggregate and its rows."""

    def export(*options: str) -> dict[str, tuple[Any, list[Any]]]:
        out = tmp_path / "-".join(["shared", *options])
        words = ["export", str(traced), "--to", "every_eval_ever", "-o", str(out), *options, "--allow", "generated"]
        assert cli.main(words, standalone_mode=False) == 0
        results = {}
        for file in sorted(out.rglob("*.json")):
            data = json.loads(file.read_text())
            lines = out / data["detailed_evaluation_results"]["file_path"]
            checksum = hashlib.sha256(lines.read_bytes()).hexdigest()
            assert data["detailed_evaluation_results"]["checksum"] == checksum
            results[data["model_info"]["id"]] = (data, [json.loads(line) for line in lines.read_text().splitlines()])
        return results

    return export


def test_aggregates_have_intervals_and_rows_their_tools(exported: Callable[..., Any]) -> None:
    export = exported()
    assert sorted(export) == ["hybrid/chance", "hybrid/specialist"]
    full, rows = export["hybrid/specialist"]
    first = full["evaluation_results"][0]
    right = {
        name: [row["evaluation"]["is_correct"] for row in rows if row["metadata"]["task"] == name] for name in TASKS
    }
    assert first["score_details"]["score"] == pytest.approx(sum(sum(v) / len(v) for v in right.values()) / len(TASKS))
    limits = first["score_details"]["uncertainty"]["confidence_interval"]
    assert limits["lower"] <= first["score_details"]["score"] <= limits["upper"]
    assert {row["interaction_type"] for row in rows} == {"agentic"}
    for row in rows:
        ids = [call["id"] for item in row["messages"] for call in item.get("tool_calls") or ()]
        values = [entry["tool_call_id"][0] for entry in row["messages"] if entry["role"] == "tool"]
        assert ids == values
        assert len(values) == row["evaluation"]["tool_calls_count"] > 0
        assert row["error"] is None
    assert {row["interaction_type"] for row in export["hybrid/chance"][1]} == {"single_turn"}


def test_questions_are_hashes_unless_they_are_asked_for(exported: Callable[..., Any]) -> None:
    hidden, export = exported(), exported("--questions", "shown")
    for (_, without), (_, complete) in zip(hidden.values(), export.values(), strict=True):
        for row, full in zip(without, complete, strict=True):
            raw = full["input"]["raw"]
            assert row["input"]["raw"] == f"sha256:{hashlib.sha256(raw.encode()).hexdigest()}"
            assert raw.splitlines()[0] not in json.dumps(row)
            assert row["sample_hash"] == full["sample_hash"]


def test_generated_questions_are_refused_without_a_word_and_marked_with_it(
    traced: Path, exported: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"asked generated questions, .* --allow generated"):
        EXPORTER.export(ExportedRun.at(traced), tmp_path / "out", ExportOptions())
    assert not (tmp_path / "out").exists()
    for value, rows in exported().values():
        assert "blink_generated" in value["detailed_evaluation_results"]["file_path"]
        assert {item["source_data"]["dataset_name"] for item in value["evaluation_results"]} == {
            "blink_generated generated"
        }
        assert all(row["sample_id"].startswith("generated_") for row in rows)
    file = next((tmp_path / "shared").rglob("*_samples.jsonl"))
    assert score_predictions(file, load("hybrid.benchmarks", "blink"), None, ScoreOptions()).data.generated


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("uv") is None, reason="it needs uv, and a package index")
@pytest.mark.parametrize("python", [sys.executable, os.environ.get("PYTHON312")], ids=["this python", "python 3.12"])
def test_the_check_of_its_authors_takes_it_from_any_folder(
    exported: Callable[..., Any], tmp_path: Path, python: str | None
) -> None:
    """The authors' check accepts the files from any folder. It runs in a separate environment, also with Python 3.11
    although the package requires 3.12."""
    if python is None:
        pytest.skip("it needs $PYTHON312, a Python 3.12")
    exported()
    files = sorted((tmp_path / "shared").rglob("*.json*"))
    environment = tmp_path / "environment"
    install = ["uv", "pip", "install", "--quiet", "--python", str(environment)]
    subprocess.run(["uv", "venv", "--quiet", "--python", python, str(environment)], check=True)
    subprocess.run([*install, "pydantic==2.12.5", "requests==2.32.5", "rich==14.2.0"], check=True)
    # `--python-version` makes uv accept the package on a Python that the package does not declare.
    subprocess.run([*install, "--python-version", "3.12", "--no-deps", "every-eval-ever==0.3.0"], check=True)
    check = [str(environment / "bin/python"), "-m", "every_eval_ever.validator.cli", "--format", "json"]
    below = [file.relative_to(tmp_path / "shared") for file in files]
    for folder, names in ((tmp_path / "shared", below), (Path("/"), files)):
        result = subprocess.run([*check, *map(str, names)], cwd=folder, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        assert [report["valid"] for report in json.loads(result.stdout)] == [True] * len(files)
