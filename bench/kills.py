"""Count the answers that a killed run keeps: a run of 1,000 questions is killed after 506 answers, and continued.

    uv run python -m bench.kills [--solver mllm] [--questions 1000] [--answered 506] [--repeat 3] [--json FILE]

The server's log shows which replies had been sent when the process was killed, and which requests were repeated when
the same command continued. A reply in transit at that moment counts as sent; one that the server wrote after the kill
does not. `reused` is the number of replies sent before the kill that the second command did not request again. The
scores of both ways are compared.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench._chat_server import chat_server
from bench._frame import environment, measured, options, table, turns, write_json
from bench._loop_questions import write_questions
from bench.loop import HYBRID, LATENCY_S, command

POLL_S = 0.01


@dataclass(frozen=True)
class Killed:
    """The cost of one kill."""

    solver: str
    # Replies that the server had sent when the process was killed.
    answered: int
    # Questions that were complete on disk.
    recorded: int
    # Replies sent before the kill that were requested again.
    asked_again: int
    reused: int
    same_scores: bool


def measure(solver: str, questions: Path, answered: int, in_flight: int, full: bytes) -> Killed:
    """Kill one run and continue it; `full` has the scores of an undisturbed run."""
    with tempfile.TemporaryDirectory() as folder, chat_server(LATENCY_S) as server:
        out = Path(folder)
        words = command(f"hybrid-{solver}", server.url, questions, in_flight, out)

        def are_answered() -> bool:
            time.sleep(POLL_S)
            return server.count() >= answered

        killed = measured(words, environment(out / "home"), out / "log", kill_when=are_answered).killed
        if killed is None:
            raise SystemExit(f"the command ended after {server.count()} replies, and was not killed")
        items = tuple(item for item in server.log() if item.answered_s <= killed)
        attempts = out / "run" / solver / "attempts.jsonl"
        recorded = attempts.read_bytes().count(b',"steps":') if attempts.exists() else 0
        measured(words, environment(out / "home"), out / "log")
        # Requests before and after the kill, each as its question and its number of tool results.
        sent, later = (
            {(entry.question, entry.tool_results) for entry in log}
            for log in (items, [value for value in server.log() if value.received_s > killed])
        )
        second = sent & later
        same = (out / "run" / solver / "scores.jsonl").read_bytes() == full
    return Killed(solver, len(items), recorded, len(second), len(items) - len(second), same)


def undisturbed(solver: str, questions: Path, in_flight: int) -> bytes:
    """Return the scores of a run that is not killed."""
    with tempfile.TemporaryDirectory() as folder, chat_server(0.0) as server:
        out = Path(folder)
        words = command(f"hybrid-{solver}", server.url, questions, in_flight, out)
        measured(words, environment(out / "home"), out / "log")
        return (out / "run" / solver / "scores.jsonl").read_bytes()


def main() -> None:
    """Print one line per kill."""
    solvers = tuple(name.removeprefix("hybrid-") for name in HYBRID)
    flags = {"--solver": solvers, "--questions": 1000, "--answered": 506, "--in-flight": 64, "--repeat": 3}
    arguments = options(__doc__, {**flags, "--json": Path})
    with tempfile.TemporaryDirectory() as folder:
        questions = write_questions(Path(folder) / "questions", arguments.questions)
        full = undisturbed(arguments.solver, questions, arguments.in_flight)
        setting = (questions, arguments.answered, arguments.in_flight, full)
        rows = turns([arguments.solver], arguments.repeat, lambda solver: measure(solver, *setting))
    print(table(rows))
    write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
