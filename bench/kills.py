"""How many answers a killed run keeps: a run of 1,000 questions is killed when 506 are answered, and continued.

    uv run python -m bench.kills [--solver mllm] [--questions 1000] [--answered 506] [--repeat 3] [--json FILE]

The server's log tells which replies had been sent when the process was killed, and which requests came for a second
time when the same command went on. A reply in transit at that moment counts as sent, one that the server wrote
after the kill does not. `kept` is the number of replies sent before the kill that the second command did
not ask for again; scores of both ways are compared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench._chat_server import ChatServer, Served, chat_server
from bench._loop_questions import write_questions
from bench.loop import HYBRID, LATENCY_S, command, environment

POLL_S = 0.01
GIVE_UP_S = 600.0


@dataclass(frozen=True)
class Killed:
    """The cost of one kill."""

    solver: str
    answered: int
    """Replies that the server had sent when the process was killed."""
    recorded: int
    """Questions that were finished on disk."""
    asked_again: int
    """Replies sent before the kill that were asked for again."""
    kept: int
    same_scores: bool


def kill_at(words: Sequence[str], home: Path, server: ChatServer, answered: int) -> tuple[tuple[Served, ...], float]:
    """Start a command, kill it after `answered` replies, and return the replies sent and the time of the kill."""
    with (home.parent / "log").open("ab") as log:
        process = subprocess.Popen(words, env=environment(home), stdout=log, stderr=log)  # noqa: S603
    until = time.monotonic() + GIVE_UP_S
    while server.count() < answered:
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            raise SystemExit(f"{server.count()} replies were sent, and the command is over or takes too long")
        time.sleep(POLL_S)
    process.kill()
    killed = time.time()
    process.wait()
    return tuple(one for one in server.log() if one.ended <= killed), killed


def finish(words: Sequence[str], home: Path) -> None:
    """Run a command to its end."""
    with (home.parent / "log").open("ab") as log:
        subprocess.run(words, env=environment(home), stdout=log, stderr=log, check=True)  # noqa: S603


def requests_of(log: Sequence[Served]) -> set[tuple[int, int]]:
    """The requests of a log: question and number of tool results."""
    return {(served.question, served.tool_results) for served in log}


def measure(solver: str, questions: Path, answered: int, in_flight: int, whole: bytes) -> Killed:
    """Kill one run and continue it; `whole` are the scores of an undisturbed one."""
    client = f"hybrid-{solver}"
    with tempfile.TemporaryDirectory() as folder, chat_server(LATENCY_S) as server:
        out = Path(folder)
        words = command(client, server.url, questions, in_flight, out)
        before, killed = kill_at(words, out / "home", server, answered)
        attempts = out / "run" / solver / "attempts.jsonl"
        recorded = attempts.read_bytes().count(b',"steps":') if attempts.exists() else 0
        finish(words, out / "home")
        again = requests_of(before) & requests_of([one for one in server.log() if one.began > killed])
        same = (out / "run" / solver / "scores.jsonl").read_bytes() == whole
    return Killed(solver, len(before), recorded, len(again), len(before) - len(again), same)


def undisturbed(solver: str, questions: Path, in_flight: int) -> bytes:
    """The scores of a run that is not killed."""
    with tempfile.TemporaryDirectory() as folder, chat_server(0.0) as server:
        out = Path(folder)
        finish(command(f"hybrid-{solver}", server.url, questions, in_flight, out), out / "home")
        return (out / "run" / solver / "scores.jsonl").read_bytes()


def main() -> None:
    """Print one line a kill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", default="mllm", choices=[name.removeprefix("hybrid-") for name in HYBRID])
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--answered", type=int, default=506)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        questions = write_questions(Path(folder) / "questions", options.questions)
        whole = undisturbed(options.solver, questions, options.in_flight)
        for _ in range(options.repeat):
            rows.append(measure(options.solver, questions, options.answered, options.in_flight, whole))
            print(rows[-1], flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
