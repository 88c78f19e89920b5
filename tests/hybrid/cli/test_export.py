"""`hybrid export` as a user has it: what it prints, what it refuses, and what `hybrid score` makes of its files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench._chat_server import chat_server

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
    for form in ("conversations", "inspect", "lmms_eval", "parquet", "sharegpt", "submission", "vlmevalkit"):
        assert form in ended.err
    (run / "other").mkdir()
    ended = command("export", run / "other", "--to", "parquet", "-o", "a")
    assert "has no attempts of 'other'; it has: mllm" in ended.err


def test_a_folder_that_is_no_run_is_named(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ended = command("export", "empty", "--to", "parquet", "-o", "a.parquet")
    assert (ended.code, ended.err) == (2, "hybrid: empty is not a run: it has no manifest.json\n")


@pytest.mark.system
def test_training_data_are_counted_and_of_no_published_split(
    command: Command, fakes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    folder = fakes.blink_folder(tmp_path / "blink", 2, 0)
    with chat_server(0.0) as server:
        words = ("--model", "openai:mock", "--base-url", server.url, "--solver", "controller", "--solver", "mllm")
        words += ("--tools", "crop", "--backend", "classical", "--limit", "2", "--task", "Jigsaw")
        assert command("run", "blink", "--data", "sample", *words, "--out", "own").code == 0
        assert command("run", "blink", "--data", folder, *words, "--out", "published").code == 0
    for form in ("conversations", "sharegpt"):
        ended = command("export", "own", "--to", form, "--only", "all", "-o", form, "--json")
        assert ended.code == 0
        told = json.loads(ended.out)
        rows = Path(form, "conversations.jsonl").read_text().splitlines()
        assert (told["rows"], told["left_out"], told["notes"]) == (len(rows), {}, [])
        assert all(Path(file).is_file() for file in told["files"])
        assert "2 conversations written, 0 left out" in ended.err
        refused = command("export", "published", "--to", form, "--only", "all", "-o", "no")
        assert (refused.code, refused.out, Path("no").exists()) == (2, "", False)
        assert "asked the split val of blink" in refused.err
        allowed = ("--only", "all", "--allow", "test-split", "-o", f"meant-{form}")
        assert command("export", "published", "--to", form, *allowed).out.startswith(
            f"meant-{form}/conversations.jsonl\n"
        )


@pytest.mark.parametrize(
    ("form", "words", "option"),
    [
        ("parquet", ("--only", "all"), "--only"),
        ("inspect", ("--max-turns", "3"), "--max-turns"),
        ("vlmevalkit", ("--allow", "test-split"), "--allow"),
        ("conversations", ("--images", "none"), "--images"),
    ],
)
def test_an_option_of_other_formats_is_refused(
    run: Path, command: Command, form: str, words: tuple[str, ...], option: str
) -> None:
    ended = command("export", run, "--to", form, *words, "-o", "a")
    assert (ended.code, ended.err) == (2, f"hybrid: {option}: the format {form} takes no such option\n")


def test_the_files_of_a_table_are_told_as_json(run: Path, command: Command) -> None:
    told = json.loads(command("export", run, "--to", "parquet", "-o", "a.parquet", "--json").out)
    assert told == {"files": ["a.parquet"], "notes": []}
