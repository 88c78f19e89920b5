"""`--verbose`, `--quiet` and `--debug` of every long command: one decorator, one meaning."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from hybrid.cli._logging_options import told_options
from hybrid.display.notes import is_quiet, tell
from hybrid.errors import ToolError
from tests.tables import cases

Command = Callable[..., Any]
SERVED = ("--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1")


@click.command()
@told_options
def sample() -> int:
    """One that notes, logs and lets a tool fail."""
    tell("a note")
    logging.getLogger("hybrid.sample").info("a retry")
    logging.getLogger("hybrid.sample").warning("a warning")
    click.echo(f"quiet: {is_quiet()}")
    error = ToolError("it broke")
    error.trace = 'Traceback: File "tool.py", line 7\n'
    raise error


@pytest.mark.parametrize(*cases(__file__, "test_what_is_shown", list))
def test_what_is_shown(words: list[str], shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ToolError, match="it broke"):
        sample(words, standalone_mode=False)
    out, err = capsys.readouterr()
    assert err.splitlines() == shown
    assert out == f"quiet: {words == ['--quiet']}\n"
    assert not is_quiet()


@pytest.mark.system
def test_quiet_commands_say_nothing_but_results(
    command: Command, blink: tuple[str, ...], tmp_path: Path, fakes: Any
) -> None:
    run = tmp_path / "run"
    assert command("run", *blink, "--solver", "mllm", "--solver", "specialist", "--quiet").err == ""
    photo = tmp_path / "photo.png"
    photo.write_bytes(fakes.encoded(fakes.pixels(1)))
    for words in (
        ("score", run),
        ("compare", run),
        ("report", run, "-o", tmp_path / "site"),
        ("export", run / "mllm", "--to", "parquet", "-o", tmp_path / "run.parquet"),
        ("calibrate", run, "-o", tmp_path / "trust.json"),
        ("judge", run, "--model", f"replay:{tmp_path / 'model'}"),
        ("tools", "run", "markers", photo, "--picture", tmp_path / "marks.png"),
        ("ablate", *blink[:3], *SERVED, "-o", tmp_path / "ablation", "--dry-run"),
    ):
        ended = command(*words, "--quiet")
        assert (ended.code, ended.err) == (0, ""), words
        assert ended.out
