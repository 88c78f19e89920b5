"""`hybrid ablate` before anything is asked: its options, its dry run, and its refusals."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.cli.ablate import command as ablate_command
from hybrid.cli.run import command as run_command
from tests.finished_runs import Command, Words
from tests.tables import cases

SERVER = ("--model", "openai:mock", "--base-url", "http://127.0.0.1:9/v1", "--backend", "classical")


@pytest.fixture
def words(tmp_path: Path, fakes: Any) -> Words:
    """Return the words after `hybrid ablate` for two relations and two puzzles; the model cannot be reached."""
    data = fakes.blink_folder(tmp_path / "blink", 2, 2)
    return ("blink", "--data", str(data), *SERVER, "-o", str(tmp_path / "out"))


def test_it_takes_every_option_of_a_run() -> None:
    words = [word for option in ablate_command.params for word in (*option.opts, *option.secondary_opts)]
    assert len(set(words)) == len(words)
    own_options = {"benchmark", "config", "solver", "out", "json", "verbose", "quiet", "debug"}
    for option in run_command.params:
        assert option in ablate_command.params or option.name in own_options


def test_a_tool_that_others_call_is_told_before_anything_is_asked(command: Command, words: Words) -> None:
    result = command("ablate", *words, "--tools", "markers,depth", "--dry-run")
    assert "note: markers is called by depth even in a run that leaves it out" in result.out


@pytest.mark.parametrize(*cases(__file__, "test_what_does_not_fit_is_one_line", list))
def test_what_does_not_fit_is_one_line(
    command: Command, words: Words, tmp_path: Path, more: list[str], message: str
) -> None:
    assert message in command("ablate", *words, *more, code=2).err
    assert not (tmp_path / "out").exists()


def test_benchmark_and_folder_belong_together(command: Command, tmp_path: Path) -> None:
    for options in (["blink"], ["-o", str(tmp_path / "out")], []):
        result = command("ablate", *options, "--data", "sample")
        assert (result.code, "give BENCHMARK and --out DIR, or --report DIR" in result.err) == (2, True)
    result = command("ablate", "--report", tmp_path)
    assert (result.code, "contains no ablation" in result.err) == (2, True)


def test_hidden_answers_are_refused_before_anything_is_asked(command: Command, tmp_path: Path, fakes: Any) -> None:
    fakes.write_task(tmp_path / "test", "Jigsaw", [fakes.jigsaw_row(1, "hidden", "test")], "test")
    values = ("ablate", "blink", "--data", tmp_path / "test", "--split", "test", *SERVER, "-o", tmp_path / "out")
    assert "the answers of the split 'test' of blink are hidden" in command(*values, code=2).err
    assert not (tmp_path / "out").exists()
