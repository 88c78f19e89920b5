"""`--verbose`, `--quiet` and `--debug` come from one decorator and mean the same in every long command."""

import logging

import click
import pytest

from hybrid.cli._options import logging_options_of
from hybrid.core.errors import ToolError
from hybrid.display.notes import is_quiet, tell
from tests.tables import cases


@click.command()
@logging_options_of
def sample() -> int:
    """A command that prints a note, logs messages, and reports a failed tool."""
    tell("a note")
    logging.getLogger("hybrid.sample").info("a retry")
    logging.getLogger("hybrid.sample").warning("a warning")
    click.echo(f"quiet: {is_quiet()}")
    error = ToolError("it broke")
    error.trace = 'Traceback: File "tool.py", line 7\n'
    raise error


@pytest.mark.parametrize(*cases(__file__, "test_what_is_shown", list))
def test_what_is_shown(words: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ToolError, match="it broke"):
        sample(words, standalone_mode=False)
    out, err = capsys.readouterr()
    assert err.splitlines() == lines
    assert out == f"quiet: {words == ['--quiet']}\n"
    assert not is_quiet()
