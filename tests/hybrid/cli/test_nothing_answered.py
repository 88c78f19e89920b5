"""A run that answered nothing: one short statement with the reason and what to do, in place of empty tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.log.attempts import Unfinished
from hybrid.log.codec import to_json
from hybrid.log.folder import RunFolder

Command = Callable[..., Any]


@pytest.fixture
def silent(command: Command, blink: tuple[str, ...], tmp_path: Path) -> Path:
    """A run whose six questions all failed."""
    run = tmp_path / "run"
    command("run", *blink, "--solver", "mllm", "--json")
    folder = RunFolder(run)
    manifest = folder.manifest
    (run / "mllm" / "attempts.jsonl").write_bytes(b"")
    del manifest["files"]["mllm/attempts.jsonl"]
    folder.write_manifest(manifest)
    journal = folder.journal("mllm")
    journal.append(*(to_json(Unfinished, Unfinished(one.id, "HTTP 401: no such key")) for one in folder.questions()))
    journal.close()
    return run


@pytest.mark.parametrize("word", ["score", "compare"])
@pytest.mark.parametrize("form", [(), ("--markdown",), ("--tables", "narrow")])
def test_it_is_said_in_three_lines(command: Command, silent: Path, word: str, form: tuple[str, ...]) -> None:
    if word == "score" and form == ("--markdown",):
        form = ()
    ended = command(word, silent, *form)
    nothing, reason, again = ended.out.strip().splitlines()
    assert nothing == "Nothing was answered by mllm: 6 questions failed, 0 were not asked."
    assert reason == "The reason of 6: HTTP 401: no such key"
    assert again.startswith("Mend that, then ask again: hybrid run blink ")


@pytest.mark.usefixtures("impatient")
def test_a_run_that_asked_nothing_ends_with_it(command: Command, blink: tuple[str, ...], tmp_path: Path) -> None:
    away = ("--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1", "--run-max-calls", "1")
    words = [*blink[: blink.index("--model")], *blink[blink.index("--model") + 2 :]]
    ended = command("run", *words, *away, "--solver", "mllm")
    assert ended.code == 3
    assert ended.out.startswith("Nothing was answered by mllm: ")
    assert len(ended.out.strip().splitlines()) <= 3


def test_one_answer_is_enough_for_tables(command: Command, blink: tuple[str, ...], silent: Path) -> None:
    command("run", *blink, "--solver", "mllm", "--limit", "1", "--json")
    assert "Nothing was answered" not in command("score", silent).out
