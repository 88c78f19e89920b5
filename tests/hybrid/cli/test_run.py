"""`hybrid run`: exit codes, stdout, and errors in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.finished_runs import Command, Words
from tests.tables import cases


@pytest.mark.system
def test_a_broken_image_costs_one_question_and_the_code_is_3(
    command: Command, blink: Words, tmp_path: Path, fakes: Any
) -> None:
    rows = [{**fakes.jigsaw_row(1), "image_1": b"broken"}, fakes.jigsaw_row(2), fakes.jigsaw_row(3)]
    fakes.write_task(tmp_path / "blink", "Jigsaw", rows)
    result = command("run", *blink, "--solver", "specialist", "--json", code=3)
    report = json.loads(result.out)["solvers"]["specialist"]
    assert report["outcomes"] == {"broken": 1, "answered": 2, "abstained": 3}
    (line,) = [line for line in result.err.splitlines() if line.startswith("failed: ")]
    assert line.startswith("failed: val_Jigsaw_1 (specialist): ")
    assert "row 1, question val_Jigsaw_1, column image_1: these 6 bytes are not an image" in line


@pytest.mark.parametrize(*cases(__file__, "test_a_wrong_option_is_one_line_and_code_2", list))
def test_a_wrong_option_is_one_line_and_code_2(command: Command, blink: Words, words: list[str], message: str) -> None:
    result = command("run", *blink, *words, code=2)
    assert result.out == ""
    assert len([line for line in result.err.splitlines() if message in line]) == 1
    assert "Traceback" not in result.err


@pytest.mark.system
def test_hidden_answers_run_and_are_submitted(command: Command, tmp_path: Path, fakes: Any) -> None:
    fakes.write_task(tmp_path / "data", "Jigsaw", [fakes.jigsaw_row(n, "hidden", "test") for n in (1, 2)], "test")
    words = ("blink", "--data", tmp_path / "data", "--split", "test", "--out", tmp_path / "run")
    result = command("run", *words, "--solver", "specialist", "--json", code=0)
    assert json.loads(result.out) == {"run": str(tmp_path / "run"), "solvers": {}}
    assert "the answers of the split 'test' are hidden" in result.err
    scored = command("score", tmp_path / "run", "--json", code=0)
    assert json.loads(scored.out) == {"run": str(tmp_path / "run"), "solvers": {}}
    submission = json.loads((tmp_path / "run" / "specialist" / "submission.json").read_text())
    assert submission == {"test_Jigsaw_1": "(A)", "test_Jigsaw_2": "(A)"}
    oracle = command("run", *words, "--solver", "specialist", "--tool-output", "oracle")
    assert (oracle.code, oracle.err) == (
        2,
        "hybrid: --tool-output oracle: the answers of the split 'test' are hidden\n",
    )
    assert "hidden" in command("calibrate", tmp_path / "run", "-o", "trust.json").err


def test_the_program_is_also_a_module(command: Command) -> None:
    assert command("--version").out.startswith("hybrid, version ")
    assert "Ask a benchmark's questions" in command("--help", code=0).out


@pytest.mark.system
def test_unchecked_weights_stand_in_manifest_scores_and_tables(command: Command, blink: Words, tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"never loaded: the one question is a puzzle")
    words = [word if word != "classical" else "auto" for word in blink]
    words += ["--solver", "specialist", "--limit", "1", "--weights", f"detection={folder}", "--device", "cpu"]
    command("run", *words, "--json", code=0)
    assert '"unchecked_weights"' not in (tmp_path / "run" / "manifest.json").read_text()
    refused = command("run", *words, "--unchecked-weights", "--json", code=2)
    assert 'solver specialist.unchecked_weights: null -> ["' in refused.err
    words[words.index("--out") + 1] = str(tmp_path / "second")
    command("run", *words, "--unchecked-weights", "--json", code=0)
    label = "unchecked weights: detection"
    manifest = json.loads((tmp_path / "second" / "manifest.json").read_text())
    assert label in manifest["labels"]
    assert "detection" in manifest["solvers"]["specialist"]["unchecked_weights"]
    assert label in json.loads(command("score", tmp_path / "second", "--json").out)["labels"]
    assert label in command("score", tmp_path / "second").out
    assert label in command("compare", tmp_path / "run", tmp_path / "second").out


@pytest.mark.parametrize("benchmarks", ["blink", "blink,hvsbench"])
def test_an_interruption_before_the_first_question_says_so(
    command: Command, benchmarks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hybrid.running.resolve.prepare", interrupt)
    result = command("run", benchmarks, "--data", "sample", "--limit", "400", "--solver", "chance", code=130)
    line = result.err.splitlines()[-1]
    assert line.startswith("interrupted during the preparation, before anything was asked; to start again: ")
    assert result.err.count("interrupted") == 1
