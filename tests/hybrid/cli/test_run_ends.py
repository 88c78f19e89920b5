"""`hybrid run` and `hybrid score` when disk, folder, a signal or another process interferes."""

import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.blink import Blink
from hybrid.log.folder import RunFolder
from tests.finished_runs import Command, Ended, Words
from tests.time_limits import running_process

ONE_AFTER_THE_OTHER = """
import json, sys
from hybrid.cli import main

ended = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["hybrid", *words]
    try:
        main()
    except SystemExit as end:
        ended.append(end.code)
    print("---", flush=True)
    print("---", file=sys.stderr, flush=True)
sys.exit(json.dumps(ended))
"""


def hybrid(*commands: Sequence[object], limit: int | None = None, names: Sequence[str] = ()) -> list[Ended]:
    """Run commands in a separate process in which no file grows beyond `limit` bytes."""

    def small_files() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    words = json.dumps([[str(word) for word in words] for words in commands])
    result = subprocess.run(
        [*names, sys.executable, "-c", ONE_AFTER_THE_OTHER, words],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
        preexec_fn=small_files,
    )
    assert "Traceback" not in result.stderr, result.stderr
    *errors, codes = result.stderr.split("---\n")
    return [Ended(*item) for item in zip(json.loads(codes), result.stdout.split("---\n"), errors, strict=False)]


def hidden(folder: Path) -> list[str]:
    """Return the names of files that were begun and not finished, which are hidden."""
    return [path.name for path in folder.rglob(".*") if path.name != ".lock"]


def complete_ids(path: Path) -> list[str]:
    """Return the ids in a file, after checking that its last line is complete."""
    content = path.read_text()
    assert content.endswith("\n")
    return [json.loads(line)["id"] for line in content.splitlines()]


@pytest.mark.system
def test_a_full_disk_ends_the_run_and_costs_nothing_that_was_there(
    command: Command, tmp_path: Path, fakes: Any
) -> None:
    """A full disk ends the run and damages no earlier answer. A file size limit simulates the full disk."""
    data = fakes.blink_folder(tmp_path / "blink", 3, 20)
    model = fakes.recordings(tmp_path / "model", fakes.blink_replies(3, 20))
    words: list[object] = ["run", "blink", "--data", data, "--model", f"replay:{model}", "--backend", "classical"]
    words += ["--solver", "mllm", "--concurrency", "4", "--out", tmp_path / "run", "--json"]
    assert command(*words, "--limit", "5").code == 0
    path = tmp_path / "run" / "mllm" / "attempts.jsonl"
    content = path.read_bytes()
    # The limit suffices for all files that are written completely and for the attempts of some questions.
    (result,) = hybrid(words, limit=19_500)
    assert result.code == 3, result.err
    (value,) = [line for line in result.err.splitlines() if line.startswith("stopped with")]
    finished = complete_ids(path)
    assert value == (
        f"stopped with {23 - len(finished)} questions open: {tmp_path / 'run'} cannot be written: File too large; "
        "finished answers are saved: run it again to continue"
    )
    assert 5 < len(finished) < 23
    assert json.loads(result.out)["solvers"]["mllm"]["n"] == len(finished)
    assert path.read_bytes().startswith(content)
    assert hidden(tmp_path / "run") == []
    assert command(*words).code == 0
    assert sorted(complete_ids(path)) == sorted(fakes.blink_replies(3, 20))


@pytest.mark.system
def test_a_disk_without_room_is_one_line(command: Command, blink: Words, tmp_path: Path) -> None:
    words = ("run", *blink, "--solver", "mllm")
    assert command(*words, "--limit", "2").code == 0
    by_path = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    same, more = hybrid((*words, "--limit", "2"), words, limit=0)
    assert (same.code, more.code) == (2, 2)
    assert same.err.splitlines()[-1] == f"hybrid: {tmp_path / 'run'} cannot be written: File too large"
    assert more.err.splitlines()[-1].endswith(" cannot be read or written: File too large")
    assert hidden(tmp_path / "run") == []
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == by_path


class Unscorable(Blink):
    """Raises an error for one question, like a scorer that does not support its number of choices."""

    def score(self, question: Any, exchanges: Any, options: Any) -> Any:
        if question.id == "val_Jigsaw_2":
            raise IndexError("string index out of range")
        return super().score(question, exchanges, options)


def test_a_question_that_cannot_be_scored_costs_itself(
    command: Command, blink: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hybrid.benchmarks import blink as module

    monkeypatch.setattr(module, "BENCHMARK", Unscorable())
    text = "failed: val_Jigsaw_2 (mllm): cannot be scored: IndexError: string index out of range"
    text += " (cli/test_run_ends.py, line"
    for words in (("run", *blink, "--solver", "mllm", "--json"), ("score", tmp_path / "run", "--json")):
        result = command(*words, code=3)
        assert text in result.err
        data = json.loads(result.out)
        data = data.get("solvers", {"mllm": data})["mllm"]
        assert (data["n"], data["failed"]) == (6, 1)
        assert data["metrics"]["with_failed"]["accuracy_micro"] == pytest.approx(4 / 6)
    assert command("compare", tmp_path / "run").code == 0


def test_a_run_that_is_being_written_can_be_scored_and_not_written(
    command: Command, blink: Words, tmp_path: Path
) -> None:
    words = ("run", *blink, "--solver", "mllm", "--json")
    first = command(*words)
    with RunFolder(tmp_path / "run").locked():
        # A lock belongs to an open file, so this process can request it like another process.
        second = command(*words)
        scored = command("score", tmp_path / "run", "--json")
    assert (second.code, second.out) == (2, "")
    assert second.err.endswith(f"hybrid: {tmp_path / 'run'} is being written by another process\n")
    assert scored.code == 0
    assert json.loads(scored.out) == {
        **json.loads(first.out)["solvers"]["mllm"],
        "head": json.loads(first.out)["head"],
    }


SLOW_TO_END = """
import asyncio, signal, sys
from hybrid.running.process import until_signal

async def work():
    print("works", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("ends", flush=True)
        await asyncio.Event().wait()

asyncio.run(until_signal(work()))
"""


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_signal_after_the_second_ends_at_once(number: signal.Signals) -> None:
    command = [sys.executable, "-c", SLOW_TO_END]
    with running_process(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout.readline() == "works\n"
        process.send_signal(number)
        assert "ends\n" in iter(process.stdout.readline, "")
        # The second signal removes the handlers and the next one ends the process; signals during the removal count as
        # one.
        while process.poll() is None:
            process.send_signal(number)
            time.sleep(0.05)
        assert process.returncode == -number
