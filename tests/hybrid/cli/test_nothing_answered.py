"""A run without answers: one short statement with the reason and the remedy, in place of empty tables."""

from pathlib import Path

import pytest

from tests.finished_runs import Command, Words


@pytest.mark.usefixtures("impatient")
def test_a_run_that_asked_nothing_ends_with_it(command: Command, blink: Words, tmp_path: Path) -> None:
    arguments = ("--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1", "--run-max-calls", "1")
    words = [*blink[: blink.index("--model")], *blink[blink.index("--model") + 2 :]]
    result = command("run", *words, *arguments, "--solver", "mllm", code=3)
    head, _, statement = result.out.partition("\n")
    assert head.startswith("openai:x | BLINK val | 0 questions | ")
    assert statement.startswith("Nothing was answered by mllm: ")
    assert len(statement.strip().splitlines()) <= 3
