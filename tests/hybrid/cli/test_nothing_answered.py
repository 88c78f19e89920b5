"""A run that answered nothing: one short statement with the reason and what to do, in place of empty tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.mark.usefixtures("impatient")
def test_a_run_that_asked_nothing_ends_with_it(command: Command, blink: tuple[str, ...], tmp_path: Path) -> None:
    away = ("--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1", "--run-max-calls", "1")
    words = [*blink[: blink.index("--model")], *blink[blink.index("--model") + 2 :]]
    ended = command("run", *words, *away, "--solver", "mllm", code=3)
    assert ended.out.startswith("Nothing was answered by mllm: ")
    assert len(ended.out.strip().splitlines()) <= 3
