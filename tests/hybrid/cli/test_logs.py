"""The log of a run, and how much of it is shown."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import ToolError
from hybrid.log.folder import LOG
from hybrid.running.run_log import run_log, shown
from hybrid.secrets import keep_secret
from hybrid.serving.stages import tool_errors

Command = Callable[..., Any]


def test_every_command_of_a_run_is_in_its_log(command: Command, blink: tuple[str, ...], tmp_path: Path) -> None:
    assert command("run", *blink, "--solver", "mllm").code == 0
    assert command("run", *blink, "--solver", "mllm").code == 0
    lines = (tmp_path / "run" / LOG).read_text().splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines] == ["INFO begun: mllm, 6 questions", "INFO ended"] * 2
    assert logging.getLogger("hybrid").level == logging.NOTSET


def test_quiet_shows_no_progress(command: Command, blink: tuple[str, ...]) -> None:
    told = command("run", *blink, "--solver", "mllm", "--quiet")
    assert (told.code, told.err) == (0, "")
    assert told.out
    assert command("run", *blink, "--quiet", "--debug").code == 2


def test_verbose_shows_what_the_log_gets(command: Command, blink: tuple[str, ...]) -> None:
    assert "begun: mllm, 6 questions\n" in command("run", *blink, "--solver", "mllm", "--verbose").err
    assert "begun" not in command("run", *blink, "--solver", "mllm").err


def test_a_log_has_our_lines_and_warnings_of_others_and_no_secret(tmp_path: Path) -> None:
    keep_secret("hunter-22-hunter")
    with run_log(tmp_path / LOG):
        logging.getLogger("hybrid.here").info("key hunter-22-hunter")
        logging.getLogger("hybrid.here").debug("too much")
        logging.getLogger("other").warning("theirs")
    logging.getLogger("hybrid.here").warning("after")
    kept = (tmp_path / LOG).read_text()
    assert "INFO key [redacted]" in kept
    assert "WARNING theirs" in kept
    assert "after" not in kept
    assert "too much" not in kept


def test_traces_are_shown_where_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for traces in (True, False):
        with shown(logging.ERROR, traces=traces):
            logging.getLogger("hybrid.solving.session.traces").info("line 7")
            logging.getLogger("hybrid.solving.session").info("a retry")
        assert capsys.readouterr().err == ("line 7\n" if traces else "")


def test_a_defect_of_a_tool_has_its_file_and_line() -> None:
    with pytest.raises(ToolError) as told, tool_errors():
        raise KeyError("lost")
    assert "test_logs.py" in told.value.trace
    assert "KeyError: 'lost'" in told.value.trace
    assert "test_logs" not in str(told.value)
