"""`--tables narrow`: every table of every command fits 80 columns and has every number of the wide one."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hybrid.display.terminal import NARROW, display_width
from tests.finished_runs import Command, Words

NUMBER = re.compile(r"[-+<]?[0-9][0-9,.]*(?:/[0-9.]+)?")


def both(command: Command, *words: object) -> tuple[str, str]:
    """Return the output of a command with wide and with narrow tables."""
    wide, narrow = (command(*words, "--tables", shape) for shape in ("wide", "narrow"))
    assert wide.code == narrow.code, narrow.err
    for line in narrow.out.splitlines():
        # The path of a test's folder cannot be wrapped.
        assert display_width(line) <= NARROW or len(line.split()) <= 2, line
    return wide.out, narrow.out


@pytest.mark.parametrize("benchmark", ["blink", pytest.param("mvp_bench", marks=pytest.mark.system)])
def test_every_number_of_a_comparison_is_there(
    command: Command, tmp_path: Path, synthetic_runs: Any, benchmark: str
) -> None:
    run = synthetic_runs.write(tmp_path, benchmark, size=4)
    for words in (("compare", *run.paths, "--all"), ("compare", run.real, "--only", "metrics,tasks")):
        wide, narrow = both(command, *words)
        assert max(map(display_width, wide.splitlines())) > NARROW
        assert not (Counter(NUMBER.findall(wide)) - Counter(NUMBER.findall(narrow)))


def test_runs_list_and_dry_runs(command: Command, blink: Words, tmp_path: Path) -> None:
    words = ("run", *blink, "--solver", "mllm")
    both(command, *words, "--dry-run")
    wide, narrow = both(command, *words)
    assert "accuracy_macro" in wide
    assert "accuracy_macro" in narrow
    _, narrow = both(command, "runs", "list", tmp_path)
    assert "6/6" in narrow
