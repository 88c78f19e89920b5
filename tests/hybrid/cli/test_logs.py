"""The log of a run, and the part of it that is printed."""

import logging
from pathlib import Path

from hybrid.core.secrets import keep_secret
from hybrid.log.folder import LOG
from hybrid.running.run_log import run_log
from tests.finished_runs import Command, Words


def test_quiet_shows_no_progress(command: Command, blink: Words) -> None:
    result = command("run", *blink, "--solver", "mllm", "--quiet")
    assert (result.code, result.err) == (0, "")
    assert result.out
    assert command("run", *blink, "--quiet", "--debug").code == 2


def test_a_log_has_our_lines_and_warnings_of_others_and_no_secret(tmp_path: Path) -> None:
    keep_secret("hunter-22-hunter")
    with run_log(tmp_path / LOG):
        logging.getLogger("hybrid.here").info("key hunter-22-hunter")
        logging.getLogger("hybrid.here").debug("too much")
        logging.getLogger("other").warning("theirs")
    logging.getLogger("hybrid.here").warning("after")
    text = (tmp_path / LOG).read_text()
    assert "INFO key [redacted]" in text
    assert "WARNING theirs" in text
    assert "after" not in text
    assert "too much" not in text
