"""`hybrid runs list` and `hybrid solvers list`."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load_solver, solver_names
from tests.finished_runs import Command


@pytest.fixture
def runs(tmp_path: Path, synthetic_runs: Any) -> Path:
    """Three runs in `runs/`, one of which has two open questions."""
    folder = tmp_path / "runs"
    synthetic_runs.write(folder, size=2, failed=0)
    synthetic_runs.write(folder / "study" / "part", "mvp_bench", size=2, failed=2)
    for age, path in enumerate(sorted(folder.glob("**/manifest.json"))):
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return folder


def by_name(command: Command, *words: object) -> dict[str, Any]:
    result = command("runs", "list", *words, "--json", code=0)
    return {Path(run["path"]).name: run for run in json.loads(result.out)["runs"]}


def test_a_run_that_somebody_writes_says_so(command: Command, runs: Path) -> None:
    with RunFolder(runs / "blink").locked():
        assert by_name(command)["blink"]["state"] == "being written"
    assert by_name(command)["blink"]["state"] == "finished"


def test_damage_is_told_and_hides_no_other_run(command: Command, runs: Path) -> None:
    lines = (runs / "blink" / "mllm" / "attempts.jsonl").read_text().splitlines(keepends=True)
    (runs / "blink" / "mllm" / "attempts.jsonl").write_text("".join(["{}\n", *lines[1:]]))
    (runs / "blink-blank" / "manifest.json").write_text("no JSON")
    (runs / "blink-shuffled" / "manifest.json").unlink()
    result = by_name(command)
    assert {name for name, run in result.items() if run["state"] == "damaged"} == {
        "blink",
        "blink-blank",
        "blink-shuffled",
    }
    assert "line 1: not an Attempt" in result["blink"]["damage"][0]
    assert "is not JSON" in result["blink-blank"]["damage"][0]
    assert "no manifest.json" in result["blink-shuffled"]["damage"][0]
    assert result["mvp_bench"]["state"] == "open"
    process = command("runs", "list")
    assert process.err.count("note: ") == 3
    assert "damaged" in process.out


def test_where_no_run_is_nothing_is_listed(command: Command, tmp_path: Path) -> None:
    result = command("runs", "list")
    assert (result.code, result.out) == (0, "")
    assert "no runs here" in result.err
    assert json.loads(command("runs", "list", "--json").out) == {"runs": []}
    result = command("runs", "list", "nowhere")
    assert (result.code, result.err) == (2, "hybrid: nowhere is not a folder\n")


def test_every_solver_is_listed_with_a_line_of_its_own(command: Command) -> None:
    result = command("solvers", "list", code=0)
    assert [line.split()[0] for line in result.out.splitlines()] == list(solver_names())
    solvers = json.loads(command("solvers", "list", "--json").out)["solvers"]
    assert [(item["name"], item["role"], item["needs_model"]) for item in solvers] == [
        (name, load_solver(name).role, load_solver(name).needs_model) for name in solver_names()
    ]
    summaries = [entry["summary"] for entry in solvers]
    assert len(set(summaries)) == len(summaries)
    assert all(0 < len(summary) <= 120 and "\n" not in summary for summary in summaries)
