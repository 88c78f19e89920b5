"""Runs with scores and costs: filters, orders, one run in detail, and the questions of a run."""

import json
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.core.errors import UsageError
from hybrid.core.types import Usage
from hybrid.log.folder import RunFolder
from hybrid.scoring.run_list import RunFilter, list_scored, show_run
from tests.finished_runs import Command, run_command


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, synthetic_runs: Any) -> Path:
    """Runs of two benchmarks; one of the runs has open questions."""
    folder: Path = tmp_path_factory.mktemp("runs")
    synthetic_runs.write(folder, size=4, failed=0)
    synthetic_runs.write(folder / "study" / "part", "mvp_bench", size=2, failed=2)
    return folder


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    from functools import partial

    monkeypatch.chdir(tmp_path)
    return partial(run_command, capsys, monkeypatch)


def test_scores_and_costs_are_those_of_hybrid_score(command: Command, runs: Path) -> None:
    row_by_solver = {row["solver"]: row for row in list_scored([runs / "blink"]).rows()}
    scored = json.loads(command("score", runs / "blink", "--json", code=0).out)["solvers"]
    assert row_by_solver.keys() == scored.keys()
    for name, row in row_by_solver.items():
        assert row["metric"] == "accuracy_macro"
        assert row["score"] == pytest.approx(scored[name]["metrics"]["accuracy_macro"], abs=1e-9)
        assert row["failed"] == scored[name]["failed"]
    recorded = RunFolder(runs / "blink").attempts("mllm")
    usages = [exchange.reply.usage for attempt in recorded for exchange in attempt.exchanges]
    assert row_by_solver["mllm"]["cost_usd"] == sum(usages, Usage()).cost_usd
    assert row_by_solver["mllm"]["answered"] == len(recorded)


def test_runs_are_filtered_and_sorted(runs: Path) -> None:
    everything = list_scored([runs])
    assert {run.benchmark for run in everything.runs} == {"blink", "mvp_bench"}
    assert {run.benchmark for run in list_scored([runs], RunFilter(benchmark="blink")).runs} == {"blink"}
    alone = list_scored([runs], RunFilter(solver="mllm"))
    assert {summary.solver for _, summary in alone.entries} == {"mllm"}
    models = {run.model for run in everything.runs}
    assert {run.model for run in list_scored([runs], RunFilter(model=next(iter(models)).upper())).runs} <= models
    assert {run.state for run in list_scored([runs], RunFilter(state="open")).runs} == {"open"}
    scores = [summary.score for _, summary in list_scored([runs], sort="score").entries]
    numbers = [score for score in scores if score is not None]
    assert numbers == sorted(numbers, reverse=True)
    assert scores[: len(numbers)] == numbers
    costs = [summary.cost_usd or 0.0 for _, summary in list_scored([runs], sort="cost").entries]
    assert costs == sorted(costs, reverse=True)
    names = [str(run.path) for run, _ in list_scored([runs], sort="name").entries]
    assert names == sorted(names)
    assert next(run.n for run, _ in list_scored([runs], sort="n", most=1).entries) == max(
        run.n for run in everything.runs
    )
    with pytest.raises(UsageError, match=r"--benchmark blnk: no run here has it \(did you mean 'blink'\?\)"):
        list_scored([runs], RunFilter(benchmark="blnk"))


def test_a_run_that_cannot_be_scored_has_no_score(runs: Path, tmp_path: Path, synthetic_runs: Any) -> None:
    synthetic_runs.write(tmp_path, size=2, failed=0)
    (tmp_path / "blink" / "manifest.json").write_text("no JSON")
    (row,) = list_scored([tmp_path / "blink"]).rows()
    assert (row["solver"], row["score"], row["state"]) == ("", None, "damaged")


def test_the_command_prints_a_row_for_each_solver(command: Command, runs: Path) -> None:
    lines = command("runs", "list", runs, "--benchmark", "blink", "--solver", "mllm", code=0).out.splitlines()
    assert lines[0].split() == [
        *("name", "benchmark", "model", "solver", "answered", "score", "cost", "control", "date", "state"),
    ]
    assert all(" mllm " in line for line in lines[2:])
    assert "no run here has --state being written" in command("runs", "list", runs, "--state", "being written").err
    output = command("runs", "show", runs / "blink", code=0).out
    assert "accuracy_macro" in output
    assert "benchmark  blink" in output


def test_one_run_is_shown_with_what_its_manifest_says(runs: Path) -> None:
    details = show_run(runs / "blink")
    facts = dict(details.facts())
    assert facts["run"] == str(runs / "blink")
    assert facts["benchmark"].startswith("blink, split val, ")
    assert [summary.solver for summary in details.solvers] == list(details.run.solvers)
    assert json.loads(json.dumps(details.as_json()))["scores"].keys() == details.run.solvers.keys()


def test_the_steps_of_a_question_are_printed_again(command: Command, runs: Path) -> None:
    name = next(iter(hybrid.table(runs / "blink")))["id"]
    result = json.loads(command("runs", "show", runs / "blink", "--only", name, "--json", code=0).out)
    assert [question["id"] for question in result["questions"]] == [name]
    assert f"--only {name}x: " in command("runs", "show", runs / "blink", "--only", f"{name}x", code=2).err


def test_python_lists_runs(runs: Path) -> None:
    listing = hybrid.runs(runs, benchmark="blink", sort="score")
    assert listing.rows()[0]["benchmark"] == "blink"
    assert "<table>" in listing._repr_html_()
