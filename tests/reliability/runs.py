"""Runs of `hybrid` with a server of these tests: their command lines, processes and folders."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# No command of these tests takes this long: a process that does is killed and its test fails.
END_S = 600
# Returns a folder with this many questions.
Questions = Callable[[int], Path]
MODEL = ("--model", "openai:mock")
CONTROLLER = ("--solver", "controller", "--tools", "crop")
MLLM = ("--solver", "mllm")


@dataclass(frozen=True)
class Files:
    """A run's folder as these tests read it."""

    path: Path
    solver: str

    @property
    def attempts(self) -> Path:
        return self.path / self.solver / "attempts.jsonl"

    @property
    def scores(self) -> bytes:
        return (self.path / self.solver / "scores.jsonl").read_bytes()

    def finished(self) -> set[int]:
        """Return numbers of the finished questions: the complete lines of attempts.jsonl with an answer."""
        if not self.attempts.exists():
            return set()
        rows = map(json.loads, self.attempts.read_bytes().split(b"\n")[:-1])
        return {number_of(row["id"]) for row in rows if "exchanges" in row}

    def bytes(self) -> dict[str, bytes]:
        """Return every file in the folder except its lock."""
        files = (path for path in self.path.rglob("*") if path.is_file() and path.name != ".lock")
        return {str(path.relative_to(self.path)): path.read_bytes() for path in files}


def number_of(identity: str) -> int:
    """Return 17 for `val_Spatial_Relation_17`."""
    return int(identity.rsplit("_", 1)[1])


def words(data: Path, url: str, out: Path, *more: object) -> list[str]:
    """Return the words of `hybrid run` with a server."""
    values = ["run", "blink", "--data", data, *MODEL, "--base-url", url, "--backend", "classical", "--out", out, *more]
    return [str(word) for word in values]


class Process:
    """`hybrid` as a process in its own group, with its output in a file."""

    def __init__(
        self, log: Path, arguments: list[str], prefix: tuple[str, ...] = (), program: tuple[str, ...] = ("-m", "hybrid")
    ) -> None:
        self.log = log
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, *program, *arguments],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the process, unless it has ended."""
        if self._process.poll() is None:
            os.kill(self._process.pid, number)

    @property
    def is_alive(self) -> bool:
        """Return whether the process still runs."""
        return self._process.poll() is None

    def wait_for(self, words: str, seconds: float = END_S) -> None:
        """Wait until the output contains these words. Fails the test after `seconds`, or if the process ends."""
        until = time.monotonic() + seconds
        while words not in self.output:
            if self._process.poll() is not None or time.monotonic() > until:
                pytest.fail(f"it has not said {words!r}:\n{self.output[-3000:]}")
            time.sleep(0.02)

    def end(self, seconds: float = END_S) -> int:
        """Return the exit code, negative for a signal. After `seconds`, kills what is left of its group and fails."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running after {seconds:g} s:\n{self.output[-3000:]}")
        finally:
            self.sweep()

    def sweep(self) -> None:
        """Kill whatever is left of the group."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(END_S)

    @property
    def output(self) -> str:
        """The output so far."""
        return self.log.read_text(errors="replace")
