"""A complete ablation with a server: what each run offers, how it is resumed, and that nothing is asked twice."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faulty_server import Fault, FaultyServer, always, only
from runs import MODEL, Files, Process, Questions

from hybrid.log.folder import RunFolder
from tests.finished_runs import Command

COUNT = 4
TOOLS = ("crop", "jigsaw", "depth")
RUNS = ("full", "none", "without-crop", "without-jigsaw", "without-depth")
STOP_S = 60
# Exit code of the run without crop: the server calls crop all the same, so no tool runs.
LEFT_OUT = 3


def ablate_arguments(data: Path, url: str, out: Path, *more: object) -> list[str]:
    """Return the words of `hybrid ablate`."""
    words = ["ablate", "blink", "--data", data, *MODEL, "--base-url", url, "--backend", "classical", "-o", out]
    return [str(word) for word in (*words, "--tools", ",".join(TOOLS), *more)]


def finished(out: Path) -> dict[str, set[int]]:
    return {name: Files(out / name, "controller").finished() for name in RUNS}


def identity(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "manifest.json").read_text())["identity"])


@pytest.fixture
def data(questions: Questions) -> Path:
    return questions(COUNT)


@pytest.mark.system
def test_every_run_is_asked_once_with_its_own_menu(data: Path, tmp_path: Path, hybrid: Command) -> None:
    out = tmp_path / "out"
    with FaultyServer() as server:
        result = hybrid(*ablate_arguments(data, server.url, out, "--add-one", "--json"))
        count = len(server.seen)
        second = hybrid(*ablate_arguments(data, server.url, out, "--add-one", "--json"))
        assert len(server.seen) == count
    assert (result.code, second.code) == (LEFT_OUT, LEFT_OUT)
    report = json.loads(result.out)
    assert second.out == result.out
    tools_offered_by = {name: tuple(run["tools_offered"]) for name, run in report["runs"].items()}
    assert tools_offered_by["without-crop"] == ("jigsaw", "depth")
    assert {name: tuple(identity(out / name)["tools_offered"]) for name in tools_offered_by} == tools_offered_by
    # Everything else in the runs is the same.
    others = [{**identity(out / name), "tools_offered": None} for name in tools_offered_by]
    assert all(other == others[0] for other in others)
    # The server calls crop if any tool is offered, so the model is called twice per question, or once without tools.
    calls = {name: run["model_calls"] for name, run in report["runs"].items()}
    assert calls == {name: COUNT * (1 if name == "none" else 2) for name in tools_offered_by}
    assert count == sum(calls.values())
    assert {name: run["tool_calls"] for name, run in report["runs"].items()} == {
        name: 0 if name == "none" else COUNT for name in tools_offered_by
    }
    assert "run 8 of 8, only depth: 4 of 4 questions open" in result.err
    assert "run 8 of 8, only depth: 0 of 4 questions open" in second.err


@pytest.mark.system
def test_a_model_that_is_offered_no_tool_is_told_of_none(data: Path, tmp_path: Path, hybrid: Command) -> None:
    with FaultyServer() as server:
        assert hybrid(*ablate_arguments(data, server.url, tmp_path / "out", "--vary", "crop")).code == LEFT_OUT
        assert [seen.request.offers_tools for seen in server.seen].count(False) == COUNT
    lines = (tmp_path / "out" / "none" / "controller" / "attempts.jsonl").read_text().splitlines()
    for line in lines:
        ((step,),) = json.loads(line)["steps"]
        assert (step["kind"], step.get("fault")) == ("model", None)
    assert len(lines) == COUNT


@pytest.mark.system
def test_the_table_is_printed_again_without_a_model(data: Path, tmp_path: Path, hybrid: Command) -> None:
    out = tmp_path / "out"
    with FaultyServer() as server:
        result = hybrid(*ablate_arguments(data, server.url, out, "--vary", "crop,depth"))
    second = hybrid("ablate", "--report", out)
    assert (second.code, second.out) == (LEFT_OUT, result.out)
    assert "No single tool's absence changes accuracy_macro measurably on 4 questions" in " ".join(second.out.split())
    compared = hybrid("compare", *(out / name for name in RUNS if name != "without-jigsaw"), "--json")
    assert list(json.loads(compared.out)["solvers"]) == [
        "controller",
        "controller [no tools]",
        "controller [without crop]",
        "controller [without depth]",
    ]


@pytest.mark.system
def test_a_budget_is_of_all_runs_together_and_the_same_command_goes_on(
    data: Path, tmp_path: Path, hybrid: Command
) -> None:
    out = tmp_path / "out"
    with FaultyServer() as server:
        result = hybrid(*ablate_arguments(data, server.url, tmp_path / "nothing", "--run-max-calls", 1))
        assert (result.code, result.out) == (3, "")
        assert "stopped with 4 questions open and 4 of 5 runs not started" in result.err
        server.seen.clear()
        # The run with the full menu takes 8 calls and the run without tools 4; one question of the third run (2 calls)
        # is finished. Each run checks whether the model sees and, if the run offers tools, whether the model calls them
        # and sees their pictures: 3 + 1 + 3 calls.
        result = hybrid(*ablate_arguments(data, server.url, out, "--run-max-calls", 21, "--concurrency", 1))
        assert (result.code, len(server.seen)) == (3, 14)
        assert "3 questions open and 2 of 5 runs not started: the budget of 21 model calls is spent" in result.err
        assert [len(value) for value in finished(out).values()] == [4, 4, 1, 0, 0]
        assert "without crop: 3 questions not finished yet, left out." in " ".join(result.out.split())
        result = hybrid(*ablate_arguments(data, server.url, out, "--concurrency", 1))
        assert (result.code, len(server.seen)) == (LEFT_OUT, 4 + 4 * 8)
    assert [len(item) for item in finished(out).values()] == [COUNT] * 5


@pytest.mark.slow
def test_an_ablation_that_is_told_to_stop_goes_on_where_it_was(
    data: Path, tmp_path: Path, hybrid: Command, process: Callable[..., Process]
) -> None:
    out = tmp_path / "out"
    with FaultyServer(latency_s=0.1) as server:
        words = ablate_arguments(data, server.url, out, "--concurrency", "1")
        running = process(words)
        server.wait_for(8 + 4 + 3)
        running.kill(signal.SIGINT)
        assert running.end(STOP_S) == 130
        assert f"finished answers are saved in {out}; to resume:" in running.output
        previous, mark = finished(out), len(server.seen)
        assert (len(previous["full"]), len(previous["none"])) == (COUNT, COUNT)
        assert len(previous["without-crop"]) < COUNT
        server.latency_s = 0.0
        assert hybrid(*words).code == LEFT_OUT
    open_questions = sum(COUNT - len(value) for value in previous.values())
    # The replies received for a question in flight are saved.
    assert 2 * open_questions - 1 <= len(server.seen) - mark <= 2 * open_questions
    assert [len(item) for item in finished(out).values()] == [COUNT] * 5


@pytest.mark.system
def test_a_refusal_ends_all_and_a_failed_question_is_named(data: Path, tmp_path: Path, hybrid: Command) -> None:
    out = tmp_path / "out"
    with FaultyServer(plan=always(Fault.WRONG_KEY)) as server:
        result = hybrid(*ablate_arguments(data, server.url, out, "--vary", "depth"), code=2)
        assert "401 Unauthorized" in result.err
        # A key that the server refuses ends the ablation before anything is written.
        assert list(out.iterdir()) == []
        server.plan = only({2: Fault.BAD_REQUEST})
        result = hybrid(*ablate_arguments(data, server.url, out, "--vary", "depth", "--json"), code=3)
    values = [line.partition(": ")[2] for line in result.err.splitlines() if line.startswith("failed: ")]
    runs = ("full", "no tool", "without depth")
    assert [line.partition(": ")[0] for line in values] == [f"val_Spatial_Relation_2 ({run})" for run in runs]
    report = json.loads(result.out)
    differences = [row for row in report["results"] if row["quantity"] == "difference"]
    assert all("more than 1 % of the questions failed" in row["note"] for row in differences)
    assert report["conclusion"][0] == "1 of 1 difference could not be tested."


@pytest.mark.system
def test_a_run_of_another_configuration_is_refused(data: Path, tmp_path: Path, hybrid: Command) -> None:
    out = tmp_path / "out"
    with FaultyServer() as server:
        assert hybrid(*ablate_arguments(data, server.url, out, "--vary", "depth")).code == 0
        count = len(server.seen)
        result = hybrid(*ablate_arguments(data, server.url, out, "--vary", "depth", "--seed", 7))
        assert (result.code, len(server.seen)) == (2, count)
    assert "full holds a run of another configuration:\n" in result.err
    assert "\n  seed: 0 -> 7\n" in result.err
    folder = RunFolder(out / "without-depth")
    content = folder.manifest
    content["identity"]["seed"] = 7
    folder.write_manifest(content)
    result = hybrid("ablate", "--report", out)
    assert (result.code, "without-depth is not a run of this ablation" in result.err) == (2, True)
    assert "seed: 0 -> 7" in result.err
