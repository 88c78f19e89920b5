"""`hybrid export` as a user runs it: its output, its refusals, and what `hybrid score` reads from its files."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench._chat_server import chat_server
from tests.finished_runs import Command, Words
from tests.tables import cases


@pytest.fixture
def run(blink: Words, command: Command, tmp_path: Path) -> Path:
    assert command("run", *blink, "--solver", "mllm").code == 0
    return tmp_path / "run"


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
        result = command("export", "own", "--to", form, "--only", "all", "-o", form, "--json", code=0)
        data = json.loads(result.out)
        rows = Path(form, "conversations.jsonl").read_text().splitlines()
        assert (data["rows"], data["left_out"], data["notes"]) == (len(rows), {}, [])
        assert all(Path(file).is_file() for file in data["files"])
        assert "2 conversations written, 0 left out" in result.err
        refused = command("export", "published", "--to", form, "--only", "all", "-o", "no")
        assert (refused.code, refused.out, Path("no").exists()) == (2, "", False)
        assert "asked the split val of blink" in refused.err
        allowed = ("--only", "all", "--allow", "test-split", "-o", f"meant-{form}")
        assert command("export", "published", "--to", form, *allowed).out.startswith(
            f"meant-{form}/conversations.jsonl\n"
        )


@pytest.mark.parametrize(*cases(__file__, "test_an_option_of_other_formats_is_refused"))
def test_an_option_of_other_formats_is_refused(
    run: Path, command: Command, form: str, words: Words, option: str
) -> None:
    result = command("export", run, "--to", form, *words, "-o", "a")
    assert (result.code, result.err) == (2, f"hybrid: {option}: the format {form} does not have this option\n")


def test_the_files_of_a_table_are_told_as_json(run: Path, command: Command) -> None:
    data = json.loads(command("export", run, "--to", "parquet", "-o", "a.parquet", "--json").out)
    assert data == {"files": ["a.parquet"], "notes": []}
