"""A run on disk: lines that survive a crash, one writer at a time, and the differences of two configurations."""

import fcntl
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.errors import DataError, UsageError
from hybrid.core.types import Attempt, Exchange, Fault, Kind, Outcome, Prompt, Reply, Step, Usage
from hybrid.log.attempts import STEPS, attempt_line
from hybrid.log.folder import RunFolder
from tests.time_limits import running_process

IDENTITY = {"benchmark": "blink", "split": "val"}
PROMPT = Prompt(("What?",), Kind.CHOICE, ("yes", "no"), route="Route")


def attempt(identity: str, text: str = "(A)") -> Attempt:
    steps = (
        Step("model", "m", text, 0.5, None, {"likelihood": {"A": 0.7}}),
        Step("tool", "t", "found", fault=Fault.TIMEOUT),
        Step("rule", "keep", "no specialist answer", data={"specialist_answer": {"letter": "A", "confidence": 0.5}}),
    )
    reply = Reply(text, Outcome.ANSWERED, Usage(1, 1, 10, 5, 0, 0.25, 1.5), steps)
    return Attempt(identity, (Exchange(PROMPT, reply),), 2.0)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def write(folder: RunFolder, *ids: str) -> Path:
    journal = folder.journal("mllm")
    for identity in ids:
        journal.append(attempt_line(attempt(identity)))
    journal.close()
    return folder.path / "mllm" / "attempts.jsonl"


def test_what_was_read_is_read_again_only_when_it_changed(folder: RunFolder) -> None:
    path = write(folder, "q1")
    first = folder.recorded("mllm")
    assert folder.recorded("mllm") is first
    write(folder, "q2")
    assert list(folder.recorded("mllm").by_id) == ["q1", "q2"]
    path.unlink()
    assert folder.attempts("mllm") == ()


@pytest.mark.parametrize("steps", [b',"steps":[[{"kind":"model"}]]}', b"}", b',"steps":[[],[]]}', b',"steps":[]'])
def test_a_line_whose_steps_are_damaged_is_none(folder: RunFolder, steps: bytes) -> None:
    path = write(folder, "q1", "q2")
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first.partition(STEPS)[0] + steps + b"\n" + second)
    recorded = folder.recorded("mllm")
    assert list(recorded.by_id) == ["q2"]
    (damage,) = recorded.damage
    assert damage.startswith(f"{path}, line 1: not an Attempt (")


@settings(max_examples=30)
@given(cut=st.integers(0, 10_000))
def test_a_file_cut_anywhere_keeps_every_whole_line(tmp_path: Path, cut: int) -> None:
    folder = RunFolder(tmp_path / "run")
    path = folder.path / "mllm" / "attempts.jsonl"
    path.unlink(missing_ok=True)
    content = write(folder, "q1", "q2", "q3").read_bytes()
    selected = content[: cut % (len(content) + 1)]
    path.write_bytes(selected)
    ids = ["q1", "q2", "q3"][: selected.count(b"\n")]
    assert [item.id for item in folder.attempts("mllm")] == ids
    write(folder, "q9")
    assert [entry.id for entry in folder.attempts("mllm")] == [*ids, "q9"]


@pytest.mark.system
def test_a_second_process_is_refused_while_one_writes(folder: RunFolder) -> None:
    script = (
        "import sys; from pathlib import Path; from hybrid.log.folder import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])).locked():\n    print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(folder.path)]
    with running_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match="is being written by another process"), folder.locked():
            pytest.fail("the lock was given twice")
        other.communicate()
    with folder.locked():
        pass


def test_a_look_at_the_lock_refuses_no_run_that_begins(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with folder.locked():
        assert folder.is_held()
    # This is a lock like that of `is_held`; it is released after it has blocked once.
    look = (folder.path / ".lock").open("rb")
    fcntl.flock(look, fcntl.LOCK_SH | fcntl.LOCK_NB)
    flock = fcntl.flock

    def refused_once(file: Any, kind: int) -> None:
        try:
            flock(file, kind)
        except BlockingIOError:
            look.close()
            raise

    monkeypatch.setattr(fcntl, "flock", refused_once)
    with folder.locked():
        assert look.closed
        assert folder.is_held()
    assert not folder.is_held()


@pytest.mark.parametrize(
    ("text", "message"), [("{", "is not JSON"), ("[]", "not a manifest"), ("{}", "not a manifest")]
)
def test_what_is_no_manifest_is_refused(folder: RunFolder, text: str, message: str) -> None:
    folder.path.mkdir()
    (folder.path / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=message):
        assert folder.manifest


@pytest.mark.parametrize("number", [1, 3])
def test_a_run_of_another_format_is_refused_in_one_sentence(folder: RunFolder, number: int) -> None:
    folder.path.mkdir()
    (folder.path / "manifest.json").write_text(json.dumps({"format": number, "identity": IDENTITY, "solvers": {}}))
    with pytest.raises(DataError) as refused:
        assert folder.manifest
    text = str(refused.value)
    assert text.startswith(f"{folder.path / 'manifest.json'} has format {number} ")
    assert "run it again with this version" in text
    assert "\n" not in text


def test_a_folder_without_a_manifest_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not a run: it has no manifest\.json"):
        RunFolder.existing(tmp_path)


ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=30)


@settings(max_examples=60)
@given(ANY_TEXT | st.text(st.sampled_from("\ud800\udfffab\n"), max_size=6))
def test_any_reply_can_be_written_and_read(tmp_path: Path, text: str) -> None:
    folder = RunFolder(tmp_path / "run")
    (folder.path / "mllm" / "attempts.jsonl").unlink(missing_ok=True)
    journal = folder.journal("mllm")
    journal.append(attempt_line(attempt("q1", text)))
    journal.close()
    (result,) = folder.attempts("mllm")
    assert result.exchanges[0].reply.text == text.encode("utf-8", "replace").decode()
