"""`hybrid export` as a user has it: what it prints, what it refuses, and what `hybrid score` makes of its files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture
def run(blink: tuple[str, ...], command: Command, tmp_path: Path) -> Path:
    assert command("run", *blink, "--solver", "mllm").code == 0
    return tmp_path / "run"


@pytest.mark.parametrize(("form", "out", "scored"), [("lmms_eval", "logs", "logs"), ("vlmevalkit", "a.xlsx", "a.xlsx")])
def test_an_export_scores_as_its_run(
    run: Path, command: Command, tmp_path: Path, form: str, out: str, scored: str
) -> None:
    ended = command("export", run / "mllm", "--to", form, "-o", out)
    assert ended.code == 0
    assert all(Path(line).is_file() for line in ended.out.splitlines())
    (first, *_) = json.loads(command("compare", run / "mllm", "--json").out)["conclusion"]
    assert first["text"] in ended.err
    own = json.loads(command("score", run / "mllm", "--json").out)
    back = json.loads(command("score", scored, "--benchmark", "blink", "--data", tmp_path / "blink", "--json").out)
    assert back["tasks"] == own["tasks"]
    assert {**back["metrics"], "undecided": None} == {**own["metrics"], "undecided": None}
    assert back["n"] == own["n"]
    alone = json.loads(command("score", scored, "--benchmark", "blink", "--json").out)
    assert alone["metrics"]["accuracy_micro"] == own["metrics"]["accuracy_micro"]


def test_nothing_is_overwritten(run: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "card.md").write_text("mine")
    ended = command("export", run, "--to", "parquet", "-o", "card.md")
    assert (ended.code, ended.out) == (2, "")
    assert "-o card.md is there already" in ended.err
    assert (tmp_path / "card.md").read_text() == "mine"


def test_a_wrong_word_ends_with_those_there_are(run: Path, command: Command) -> None:
    ended = command("export", run, "--to", "excel", "-o", "a")
    assert ended.code == 2
    for form in ("inspect", "lmms_eval", "parquet", "submission", "vlmevalkit"):
        assert form in ended.err
    (run / "other").mkdir()
    ended = command("export", run / "other", "--to", "parquet", "-o", "a")
    assert "has no attempts of 'other'; it has: mllm" in ended.err


def test_a_folder_that_is_no_run_is_named(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ended = command("export", "empty", "--to", "parquet", "-o", "a.parquet")
    assert (ended.code, ended.err) == (2, "hybrid: empty is not a run: it has no manifest.json\n")
