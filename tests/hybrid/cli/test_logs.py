"""The log of a run, and how much of it is shown."""

import logging
from pathlib import Path

from hybrid.core.secrets import keep_secret
from hybrid.log.folder import LOG
from hybrid.running.run_log import run_log
from tests.ended import Command, Words


def test_quiet_shows_no_progress(command: Command, blink: Words) -> None:
    told = command("run", *blink, "--solver", "mllm", "--quiet")
    assert (told.code, told.err) == (0, "")
    assert told.out
    assert command("run", *blink, "--quiet", "--debug").code == 2


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
