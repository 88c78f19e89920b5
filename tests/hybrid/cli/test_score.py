"""`hybrid score`, `compare` and `calibrate`: one JSON object, imports, and several paths in one call."""

import json
from pathlib import Path

import pytest

from hybrid.log.folder import RunFolder
from tests.finished_runs import Command, Words


def saved(folder: Path, replies: dict[int, str]) -> Path:
    """Write a model's outputs for Jigsaw in the format of BLINK's authors, with (A) as every right answer; return the
    folder."""
    folder.mkdir(parents=True)
    rows = [
        {"idx": f"val_Jigsaw_{n}", "answer": "(A)", "full_prediction": text, "prediction": text}
        for n, text in replies.items()
    ]
    (folder / "Jigsaw.json").write_text(json.dumps({"val": rows, "test": []}))
    return folder


@pytest.mark.shared_data
def test_the_published_number_from_the_command_line(command: Command, shared_data: Path) -> None:
    path = shared_data / "blink_outputs" / "GPT4o"
    result = command("score", path, "--benchmark", "blink", "--field", "stored", "--json", "--unanswered", "wrong")
    assert (result.code, result.out.count("\n")) == (0, 1)
    assert result.err.startswith("format: blink")
    report = json.loads(result.out)
    assert set(report) >= {"benchmark", "n", "failed", "outcomes", "metrics", "tasks"}
    assert (report["benchmark"], report["n"], report["failed"]) == ("blink", 1901, 0)
    assert report["metrics"]["accuracy_macro"] == pytest.approx(0.6004, abs=5e-5)
    assert report["metrics"]["accuracy_micro"] == pytest.approx(0.5992, abs=5e-5)
    assert report["tasks"]["Jigsaw"] == {"n": 150, "accuracy": pytest.approx(83 / 150)}


def test_predictions_become_a_run(command: Command, tmp_path: Path) -> None:
    path = saved(tmp_path / "llava-v1.6-34b", {1: "(A)", 2: "(B) the third image"})
    words = ("score", path, "--benchmark", "blink", "-o", tmp_path / "run", "--json")
    report = json.loads(command(*words).out)
    assert report["metrics"]["accuracy_micro"] == 0.5
    assert report["labels"] == ["imported (stored)"]
    assert (tmp_path / "run" / "llava-v1.6-34b" / "attempts.jsonl").exists()
    assert json.loads(command("score", tmp_path / "run", "--json").out) == report
    assert "the folder is not empty" in command(*words, code=2).err


@pytest.mark.system
def test_from_a_run_to_a_trust_file(command: Command, blink: Words, tmp_path: Path) -> None:
    command("run", *blink, "--solver", "mllm", "--solver", "specialist", "--json")
    result = command("calibrate", tmp_path / "run", "-o", tmp_path / "trust.json", "--folds", "3", code=0)
    assert "jigsaw" in result.out
    assert len(json.loads((tmp_path / "trust.json").read_text())["folds"]) == 3

    # The table has a line per route: of one tool with --only, of all tools with --all; the JSON has the same numbers.
    result = command("calibrate", tmp_path / "run", "-o", tmp_path / "trust.json", "--json")
    measured = json.loads(result.out)["measured"]
    assert {item["tool"] for item in measured} >= {"jigsaw", "mllm"}
    for choice in (("--only", "mllm"), ("--all",)):
        table = command("calibrate", tmp_path / "run", "-o", tmp_path / "trust.json", *choice).out
        values = [entry for entry in measured if choice == ("--all",) or entry["tool"] == "mllm"]
        assert len(table.splitlines()) == 4 + len(values)
        assert all(f" {value['route']} " in table and f"{value['right']:g}/{value['n']}" in table for value in values)
    refused = command("calibrate", tmp_path / "run", "-o", tmp_path / "trust.json", "--only", "jigsw", code=2)
    assert "jigsaw" in refused.err
    assert command("calibrate", tmp_path / "run", "-o", tmp_path / "trust.json", "--all", "--json").code == 2

    words = [word if not word.endswith("/run") else str(tmp_path / "second") for word in blink]
    trusting = command("run", *words, "--solver", "arbiter", "--trust", tmp_path / "trust.json", "--json", code=0)
    assert json.loads(trusting.out)["solvers"]["arbiter"]["n"] == 6


@pytest.mark.system
def test_unchecked_weights_are_said_when_they_are_counted(command: Command, blink: Words, tmp_path: Path) -> None:
    command("run", *blink, "--solver", "specialist", "--json")
    folder = RunFolder(tmp_path / "run")
    content = folder.manifest
    content["solvers"]["specialist"]["unchecked_weights"] = ["jigsaw", "ocr"]
    folder.write_manifest(content)
    result = command("calibrate", tmp_path / "run", "-o", tmp_path / "trust.json", code=0)
    assert "unchecked weights: jigsaw answered, but its known answers were not checked" in result.err
    assert "ocr" not in result.err
    assert json.loads((tmp_path / "trust.json").read_text())["measured"]["unchecked"] == ["jigsaw"]
