"""`hybrid run` and `hybrid score` where the disk, the folder, a signal or another process is in the way."""

import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.blink import Blink
from hybrid.cli._several_runs import program
from hybrid.log.folder import RunFolder
from hybrid.running.probes import PROBE_NUMBER, PROBE_TEXT
from tests.servers import JsonHandler, LocalServer, listening

Command = Callable[..., Any]
HYBRID = (sys.executable, "-m", "hybrid")
KEY = "sk-of-the-waiting-server"


# Programs that the tests write or start.
TEXT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ONE_AFTER_THE_OTHER = TEXT["ONE_AFTER_THE_OTHER"]


@dataclass(frozen=True)
class Ended:
    """Exit code, stdout and stderr of one command."""

    code: int
    out: str
    err: str


def hybrid(*commands: Sequence[object], limit: int | None = None, before: Sequence[str] = ()) -> list[Ended]:
    """Commands in a process of their own, in which no file grows beyond `limit` bytes."""

    def small_files() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    words = json.dumps([[str(word) for word in words] for words in commands])
    ended = subprocess.run(
        [*before, sys.executable, "-c", ONE_AFTER_THE_OTHER, words],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=small_files,
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    *errors, codes = ended.stderr.split("---\n")
    return [Ended(*one) for one in zip(json.loads(codes), ended.stdout.split("---\n"), errors, strict=False)]


def hidden(folder: Path) -> list[str]:
    """Files that were begun and not ended."""
    return [path.name for path in folder.rglob(".*") if path.name != ".lock"]


def whole(path: Path) -> list[str]:
    """The ids of a file whose every line is whole."""
    content = path.read_text()
    assert content.endswith("\n")
    return [json.loads(line)["id"] for line in content.splitlines()]


@pytest.mark.system
def test_a_full_disk_ends_the_run_and_costs_nothing_that_was_there(
    command: Command, tmp_path: Path, fakes: Any
) -> None:
    """A limit on the size of files stands for the disk."""
    data = fakes.blink_folder(tmp_path / "blink", 3, 20)
    model = fakes.recordings(tmp_path / "model", fakes.blink_replies(3, 20))
    words: list[object] = ["run", "blink", "--data", data, "--model", f"replay:{model}", "--backend", "classical"]
    words += ["--solver", "mllm", "--concurrency", "4", "--out", tmp_path / "run", "--json"]
    assert command(*words, "--limit", "5").code == 0
    path = tmp_path / "run" / "mllm" / "attempts.jsonl"
    before = path.read_bytes()
    # What the disk has room for: all that is written as a whole, and attempts of some questions.
    (ended,) = hybrid(words, limit=19_500)
    assert ended.code == 3, ended.err
    (told,) = [line for line in ended.err.splitlines() if line.startswith("stopped with")]
    done = whole(path)
    assert told == (
        f"stopped with {23 - len(done)} questions open: {tmp_path / 'run'} cannot be written: File too large; "
        "what is finished is kept: run it again to go on"
    )
    assert 5 < len(done) < 23
    assert json.loads(ended.out)["solvers"]["mllm"]["n"] == len(done)
    assert path.read_bytes().startswith(before)
    assert hidden(tmp_path / "run") == []
    again = command(*words)
    assert again.code == 0
    assert sorted(whole(path)) == sorted(fakes.blink_replies(3, 20))


@pytest.mark.system
def test_a_disk_without_room_is_one_line(command: Command, blink: tuple[str, ...], tmp_path: Path) -> None:
    words = ("run", *blink, "--solver", "mllm")
    assert command(*words, "--limit", "2").code == 0
    kept = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    same, more = hybrid((*words, "--limit", "2"), words, limit=0)
    assert (same.code, more.code) == (2, 2)
    assert same.err.splitlines()[-1] == f"hybrid: {tmp_path / 'run'} cannot be written: File too large"
    assert more.err.splitlines()[-1].endswith(" cannot be read or written: File too large")
    assert hidden(tmp_path / "run") == []
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == kept


@pytest.fixture
def read_only(blink: tuple[str, ...], command: Command, tmp_path: Path) -> Iterator[Path]:
    """A finished run in a folder that cannot be written to, before it was ever scored."""
    assert command("run", *blink, "--solver", "mllm", "--solver", "specialist").code == 0
    run = tmp_path / "run"
    for solver in ("mllm", "specialist"):
        for name in ("scores.jsonl", "scores.json"):
            (run / solver / name).unlink()
    folders = [run, *(path for path in run.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    yield run
    for path in folders:
        path.chmod(stat.S_IRWXU)


def as_others() -> list[str]:
    """A prefix that makes permissions hold: for root, a program that takes away the right to overrule them."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("as root permissions do not hold, and there is no setpriv")
    return ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]


@pytest.mark.system
def test_a_read_only_run_is_scored_and_compared(read_only: Path, blink: tuple[str, ...]) -> None:
    words = (("score", read_only, "--json"), ("compare", read_only, "--json"), ("run", *blink, "--solver", "mllm"))
    *read, run = hybrid(*words, before=as_others())
    for ended in read:
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)["solvers"]["mllm"]["n"] == 6
        assert ended.err == f"note: the scores of {read_only} are not kept there (Permission denied)\n"
    assert run.code == 2
    assert run.err.splitlines()[-1] == f"hybrid: {read_only} cannot be written: Permission denied"


class Unscorable(Blink):
    """Raises at one question, as a scorer that does not know so many choices would."""

    def score(self, question: Any, exchanges: Any, options: Any) -> Any:
        if question.id == "val_Jigsaw_2":
            raise IndexError("string index out of range")
        return super().score(question, exchanges, options)


def test_a_question_that_cannot_be_scored_costs_itself(
    command: Command, blink: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hybrid.benchmarks import blink as module

    monkeypatch.setattr(module, "BENCHMARK", Unscorable())
    told = "failed: val_Jigsaw_2 (mllm): cannot be scored: IndexError: string index out of range"
    told += " (cli/test_run_ends.py, line"
    for words in (("run", *blink, "--solver", "mllm", "--json"), ("score", tmp_path / "run", "--json")):
        ended = command(*words)
        assert ended.code == 3
        assert told in ended.err
        found = json.loads(ended.out)
        found = found.get("solvers", {"mllm": found})["mllm"]
        assert (found["n"], found["failed"]) == (6, 1)
        assert found["metrics"]["with_failed"]["accuracy_micro"] == pytest.approx(4 / 6)
    assert command("compare", tmp_path / "run").code == 0


def test_a_run_that_is_being_written_can_be_scored_and_not_written(
    command: Command, blink: tuple[str, ...], tmp_path: Path
) -> None:
    words = ("run", *blink, "--solver", "mllm", "--json")
    first = command(*words)
    with RunFolder(tmp_path / "run").locked():
        # A lock is held by an open file: the same process asks for it as another would.
        second = command(*words)
        scored = command("score", tmp_path / "run", "--json")
    assert (second.code, second.out) == (2, "")
    assert second.err.endswith(f"hybrid: {tmp_path / 'run'} is being written by another process\n")
    assert scored.code == 0
    assert json.loads(scored.out) == json.loads(first.out)["solvers"]["mllm"]


class WaitingServer(LocalServer):
    """A model's server that answers so many requests, and lets all further ones wait."""

    def __init__(self, answers: int) -> None:
        super().__init__(Waiting)
        self.left = answers
        self.lock = threading.Lock()
        self.waits = threading.Event()
        self.go_on = threading.Event()


class Waiting(JsonHandler):
    """Answers "(A)" in the form of an OpenAI-compatible server."""

    server: WaitingServer

    def posted(self, body: bytes) -> None:
        probe = PROBE_TEXT.encode() in body
        if not probe:
            self._wait()
        message = {"role": "assistant", "content": PROBE_NUMBER if probe else "Answer: (A)"}
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
        self.answer({**reply, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    def _wait(self) -> None:
        with self.server.lock:
            self.server.left -= 1
            waits = self.server.left < 0
        if waits:
            self.server.waits.set()
            self.server.go_on.wait(60)


@pytest.fixture
def waiting() -> Iterator[WaitingServer]:
    """A server that answers three requests at once."""
    with listening(WaitingServer(3)) as server:
        yield server
        server.go_on.set()


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_ends_the_run_in_order(
    waiting: WaitingServer, tmp_path: Path, fakes: Any, number: signal.Signals
) -> None:
    data = fakes.blink_folder(tmp_path / "blink")
    words = ["run", "blink", "--data", str(data), "--model", "openai:m", "--base-url", f"{waiting.url}/v1"]
    words += ["--backend", "classical", "--solver", "mllm", "--concurrency", "1", "--out", str(tmp_path / "run")]
    environment = {**os.environ, "OPENAI_API_KEY": KEY}
    with subprocess.Popen([*HYBRID, *words], stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert waiting.waits.wait(60)
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    again = " ".join((*program(), *words))
    assert told.splitlines()[-1] == (
        f"ended by {number.name}; what is finished is kept in {tmp_path / 'run'}; to go on: {again}"
    )
    assert "Traceback" not in told
    assert len(whole(tmp_path / "run" / "mllm" / "attempts.jsonl")) == 3
    files = RunFolder(tmp_path / "run").manifest["files"]
    assert files["mllm/attempts.jsonl"]["lines"] == 3
    with RunFolder(tmp_path / "run").locked():
        assert hidden(tmp_path / "run") == []


SLOW_TO_END = TEXT["SLOW_TO_END"]


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", SLOW_TO_END], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "works\n"
        process.send_signal(number)
        assert process.stdout.readline() == "ends\n"
        process.send_signal(number)
        assert process.wait(10) == -number
