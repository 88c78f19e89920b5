"""Runs in batches: the replies of a direct run, kills at random moments, and the memory of many questions.

    uv run python -m bench.batches equal [--questions 1000] [--json FILE]     # replies equal to the direct run's
    uv run python -m bench.batches kills [--questions 1000] [--kills 20]      # nothing sent twice, no reply lost
    uv run python -m bench.batches memory [--questions 10000]                 # peak memory, pictures of 50 kB

The servers are those of `bench/_batch_server.py`, with the APIs of OpenAI, Anthropic and Google. `equal` and `kills`
let a controller call one tool a question. A kill comes at a moment drawn from its first seconds; the command
is then given again until it ends. `sent_twice` counts requests that the server has taken more than once.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench._batch_server import BatchServer, Behaviour, batch_server
from bench._loop_questions import write_questions
from bench.loop import environment
from bench.memory import used_mb

APIS = {"openai:mock": "/v1", "anthropic:mock": "", "google_genai:mock": ""}
KEYS = {f"{name}_API_KEY": "not-a-real-key-1" for name in ("OPENAI", "ANTHROPIC", "GOOGLE")}


@dataclass(frozen=True)
class Row:
    """One run."""

    what: str
    model: str
    questions: int
    answered: int
    kills: int
    batches: int
    sent_twice: int
    same_replies: bool | None
    seconds: float
    peak_mb: float


def command(model: str, server: BatchServer, questions: Path, out: Path, *more: str) -> list[str]:
    """The words of a run."""
    words = [sys.executable, "-m", "hybrid", "run", "blink", "--data", str(questions / "blink"), "--model", model]
    words += ["--task", "Spatial_Relation", "--base-url", f"{server.url}{APIS[model]}", "--out", str(out / "run")]
    return [*words, "--backend", "classical", "--quiet", *more]


def carry_out(words: list[str], home: Path, kill_after: float | None = None) -> tuple[bool, float]:
    """Whether the command came to its end, and its peak memory in MB."""
    peak, began = 0.0, time.monotonic()
    with (home.parent / "log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603
            words, env={**environment(home), **KEYS}, stdout=log, stderr=log
        )
        while process.poll() is None:
            if kill_after is not None and time.monotonic() - began > kill_after:
                process.kill()
                process.wait()
                return False, peak
            peak = max(peak, used_mb(process.pid)) if kill_after is None else 0.0
            time.sleep(0.2)
    if process.returncode != 0:
        raise SystemExit(f"the command ended with {process.returncode}: {(home.parent / 'log').read_text()[-2000:]}")
    return True, peak


def replies(out: Path, solver: str) -> dict[str, list[str]]:
    """The replies of a run by question."""
    lines = (json.loads(line) for line in (out / "run" / solver / "attempts.jsonl").read_text().splitlines())
    return {row["id"]: [one["reply"]["text"] for one in row["exchanges"]] for row in lines}


def measured(what: str, model: str, questions: Path, count: int, kills: int = 0) -> Row:
    """One run in batches, killed so many times, beside a direct one where replies are compared."""
    solver = "mllm" if what == "memory" else "controller"
    more = ["--solver", solver, *([] if what == "memory" else ["--tools", "crop"])]
    behaviour = Behaviour(looks=0 if what == "memory" else 1)
    with tempfile.TemporaryDirectory() as folder, batch_server(behaviour) as server:
        out, began, killed, length = Path(folder), time.monotonic(), 0, 0.0
        (out / "alone").mkdir()
        (out / "batched").mkdir()
        if what != "memory":
            carry_out(command(model, server, questions, out / "alone", *more), out / "alone" / "home")
        began = time.monotonic()
        words = command(model, server, questions, out / "batched", *more, "--batch", "--batch-wait", "5m")
        drawn = random.Random(f"{model} {kills}")
        ended, peak = False, 0.0
        while not ended:
            after = drawn.uniform(1.0, 12.0) if killed < kills else None
            ended, peak = carry_out(words, out / "batched" / "home", after)
            killed += not ended
        length = time.monotonic() - began
        said = replies(out / "batched", solver)
        same = None if what == "memory" else said == replies(out / "alone", solver)
        twice = sum(times - 1 for times in server.accepted.values())
        return Row(
            what, model, count, len(said), killed, len(server.batches), twice, same, round(length, 1), round(peak)
        )


def main() -> None:
    """Print one line a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("equal", "kills", "memory"))
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--model", action="append", choices=sorted(APIS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        questions = write_questions(Path(folder) / "questions", options.questions)
        for model in options.model or APIS:
            kills = options.kills if options.what == "kills" else 0
            rows.append(measured(options.what, model, questions, options.questions, kills))
            print(rows[-1], flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
