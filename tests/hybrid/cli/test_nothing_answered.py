"""A run without answers: one short statement with the reason and the remedy, in place of empty tables."""

from pathlib import Path

import pytest
from PIL import Image

from tests.finished_runs import Command, Words


@pytest.mark.usefixtures("impatient")
def test_a_run_that_asked_nothing_ends_with_it(command: Command, blink: Words, tmp_path: Path) -> None:
    arguments = ("--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1", "--run-max-calls", "1")
    words = [*blink[: blink.index("--model")], *blink[blink.index("--model") + 2 :]]
    result = command("run", *words, *arguments, "--solver", "mllm", code=3)
    head, _, statement = result.out.partition("\n")
    total = int(head.split(" | ")[2].removesuffix(" questions"))
    assert head.startswith(f"openai:x | BLINK val | {total} questions | ")
    assert f"0 questions failed, {total} were not asked." in statement
    assert total > 0
    assert statement.startswith("Nothing was answered by mllm: ")
    assert len(statement.strip().splitlines()) <= 3


@pytest.mark.usefixtures("impatient")
def test_the_head_counts_broken_questions_and_those_that_were_not_asked(command: Command, tmp_path: Path) -> None:
    lines = ["id,image,question,answer", "a,none.png,Is it red?,yes", *(f"b{i},a.png,Is it red?,yes" for i in "12")]
    (tmp_path / "q.csv").write_text("\n".join(lines))
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    server = ("--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1", "--allow", "blind")
    result = command("run", tmp_path / "q.csv", *server, "--solver", "mllm", "-o", tmp_path / "run", code=3)
    head, _, statement = result.out.partition("\n")
    assert " | 3 questions | " in head
    assert statement.startswith("Nothing was answered by mllm: 1 question failed, 2 were not asked.")
