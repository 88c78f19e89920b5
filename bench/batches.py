"""Test runs in batches: replies equal to a direct run's, kills at random moments, and memory for many questions.

    uv run python -m bench.batches equal [--questions 1000] [--json FILE]     # replies equal to the direct run's
    uv run python -m bench.batches kills [--questions 1000] [--kills 20]      # nothing sent twice, no reply lost
    uv run python -m bench.batches memory [--questions 10000]                 # peak memory, images of 50 kB

The servers are those of `bench/_batch_server.py`, with the APIs of OpenAI, Anthropic and Google. `equal` and `kills`
let a controller call one tool per question. A kill comes at a random moment in the first seconds of a command, which is
then restarted until it ends. `sent_twice` counts requests that the server has accepted more than once.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench._batch_server import BatchServer, Behaviour, batch_server
from bench._frame import environment, measured, options, table, turns, used_mb, write_json
from bench._loop_questions import write_questions

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
    """Return the command line of a run."""
    words = [sys.executable, "-m", "hybrid", "run", "blink", "--data", str(questions / "blink"), "--model", model]
    words += ["--task", "Spatial_Relation", "--base-url", f"{server.url}{APIS[model]}", "--out", str(out / "run")]
    return [*words, "--backend", "classical", "--quiet", *more]


def replies(out: Path, solver: str) -> dict[str, list[str]]:
    """Return the replies of a run by question."""
    lines = (json.loads(line) for line in (out / "run" / solver / "attempts.jsonl").read_text().splitlines())
    return {row["id"]: [item["reply"]["text"] for item in row["exchanges"]] for row in lines}


def batched(what: str, model: str, questions: Path, count: int, kills: int) -> Row:
    """Run in batches and kill the run `kills` times; also run directly if replies are compared."""
    alone = what == "memory"
    solver = "mllm" if alone else "controller"
    more = ["--solver", solver, *([] if alone else ["--tools", "crop"])]
    with tempfile.TemporaryDirectory() as folder, batch_server(Behaviour(looks=0 if alone else 1)) as server:
        direct, out = Path(folder) / "alone", Path(folder) / "batched"
        direct.mkdir()
        out.mkdir()
        if not alone:
            words = command(model, server, questions, direct, *more)
            measured(words, environment(direct / "home", **KEYS), direct / "log")
        words = command(model, server, questions, out, *more, "--batch", "--batch-wait", "5m")
        rng, killed, start = random.Random(f"{model} {kills}"), 0, time.monotonic()
        while killed < kills:
            after = time.monotonic() + rng.uniform(1.0, 12.0)

            def is_over(after: float = after) -> bool:
                time.sleep(0.2)
                return time.monotonic() > after

            if measured(words, environment(out / "home", **KEYS), out / "log", kill_when=is_over).killed is None:
                break
            killed += 1
        measurement = measured(words, environment(out / "home", **KEYS), out / "log", looks=(used_mb,))
        length, text = time.monotonic() - start, replies(out, solver)
        same = None if alone else text == replies(direct, solver)
        twice = sum(times - 1 for times in server.accepted.values())
        sizes = (len(text), killed, len(server.batches), twice)
        return Row(what, model, count, *sizes, same, round(length, 1), round(measurement.peaks_mb[0]))


def main() -> None:
    """Print one line per run."""
    flags = {"what": ("equal", "kills", "memory"), "--questions": 1000, "--kills": 20, "--model": sorted(APIS)}
    arguments = options(__doc__, {**flags, "--json": Path})
    kills = arguments.kills if arguments.what == "kills" else 0
    with tempfile.TemporaryDirectory() as folder:
        questions = write_questions(Path(folder) / "questions", arguments.questions)
        setting = (questions, arguments.questions, kills)
        rows = turns(arguments.model or list(APIS), 1, lambda model: batched(arguments.what, model, *setting))
    print(table(rows))
    write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
