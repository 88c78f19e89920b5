"""A model's replies to an unfinished question are available to the next run, byte for byte."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.secrets import keep_secret
from hybrid.models.base import CallKey, ReplyLog
from hybrid.running.replies import RunReplies

CALL = CallKey("q1", 0, 2, "of-the-prompt", "mllm")


def opened(path: Path, **finished: set[str]) -> RunReplies:
    return RunReplies(path / "replies.jsonl", lambda solver: finished.get(solver, ()))


@given(st.binary(max_size=200) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_a_reply_comes_back_byte_for_byte(tmp_path: Path, reply: bytes) -> None:
    (tmp_path / "replies.jsonl").unlink(missing_ok=True)
    log: ReplyLog = opened(tmp_path)
    log.keep(CALL, "sha", reply)
    assert opened(tmp_path).find_reply(CALL, "sha") == reply


@pytest.mark.parametrize(
    "line", [b'{"solver": "mllm", "ques', b"[]\n", b"{}\n", b'"x"\n', b"\xff\n", b"[" * 100_000 + b"\n", b"7\n"]
)
def test_a_line_that_is_none_costs_its_own_call(tmp_path: Path, line: bytes) -> None:
    opened(tmp_path).keep(CALL, "sha", b"said")
    path = tmp_path / "replies.jsonl"
    path.write_bytes(path.read_bytes() + line)
    opened(tmp_path).keep(CALL, "second", b"said again")
    result = opened(tmp_path)
    assert (result.find_reply(CALL, "sha"), result.find_reply(CALL, "second")) == (b"said", b"said again")


def test_a_reply_with_a_secret_is_not_kept(tmp_path: Path) -> None:
    keep_secret("sk-replies-secret")
    log = opened(tmp_path)
    log.keep(CALL, "sha", b"your key is sk-replies-secret")
    log.keep(CALL, "second", b"your key is wrong")
    assert b"sk-replies-secret" not in (tmp_path / "replies.jsonl").read_bytes()
    assert opened(tmp_path).find_reply(CALL, "sha") is None
    assert opened(tmp_path).find_reply(CALL, "second") == b"your key is wrong"


KILLED = """
import os, signal, sys
from pathlib import Path
from hybrid.models.base import CallKey
from hybrid.running.replies import RunReplies

log = RunReplies(Path(sys.argv[1]), lambda solver: ())
for number in range(50):
    log.keep(CallKey(f"q{number}", solver="mllm"), "sha", b"said")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.system
def test_a_kill_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    result = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, env=os.environ.copy(), timeout=300)
    assert result.returncode == -signal.SIGKILL
    log = opened(tmp_path)
    assert all(log.find_reply(CallKey(f"q{number}", solver="mllm"), "sha") == b"said" for number in range(50))
