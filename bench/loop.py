"""Measure the cost of a question in the run loop, compared with minimal loops.

    uv run python -m bench.loop [--client hybrid-mllm]... [--questions 1000] [--repeat 5] [--json FILE]
    uv venv INSPECT && uv pip install --python INSPECT/bin/python inspect-ai openai pillow
    uv run python -m bench.loop --inspect-python INSPECT/bin/python

Every client asks the same questions (a JPEG of about 50 kB each) of a server on this machine that answers after 100 ms,
64 of them in flight. `hybrid-mllm`, `aiohttp` and `openai` make one request per question; `hybrid-controller`,
`aiohttp-crop`, `langgraph` (`create_agent`), `langgraph-graph` (a `StateGraph`) and `inspect` (Inspect AI, if
installed) make two, with a crop between them. All crops are JPEGs of quality 95, 768 px long. `hybrid` and Inspect can
resume from what they write to disk. The clients run in turn, each in a separate process with an empty home, `--repeat`
times; the table shows medians, and below it the ratios of two clients in the same turn: median, minimum and maximum.

wall_s is the time from the start of the process to its end, start_s the time until its first request, and window_s the
time from the first request to the last reply (both by the server's log). cpu_ms is the CPU time per question of the
client and all processes that it started and waited for; window_cpu_ms excludes the cost of a run of 2 questions, which
is start and end. memory_mb is the largest sum of resident memory over those processes.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench._chat_server import Served, chat_server
from bench._frame import FinishedProcess, environment, measured, medians, options, resident_mb, table, turns, write_json
from bench._loop_questions import write_questions

BARE = ("aiohttp", "aiohttp-crop", "openai", "langgraph", "langgraph-graph")
INSPECT = "inspect"
HYBRID = {"hybrid-mllm": ("--solver", "mllm"), "hybrid-controller": ("--solver", "controller", "--tools", "crop")}
CLIENTS = (*HYBRID, *BARE, INSPECT)
LATENCY_S = 0.1
# Number of questions of the run that measures the cost of start and end.
FEW = 2


@dataclass(frozen=True)
class LoopRow:
    """One client's run."""

    client: str
    wall_s: float
    start_s: float
    window_s: float
    cpu_ms: float
    window_cpu_ms: float
    memory_mb: float
    requests: int
    sent_mb: float


@dataclass(frozen=True)
class Compared:
    """The ratio of two clients' values of one measure (`number`): the upper limit to meet, and the measured ratios."""

    number: str
    client: str
    other: str
    most: float
    median: float = 0.0
    lowest: float = 0.0
    highest: float = 0.0


RATIOS = (
    Compared("cpu_ms", "hybrid-controller", "langgraph", 0.7),
    Compared("cpu_ms", "hybrid-controller", "langgraph-graph", 0.6),
    Compared("window_s", "hybrid-controller", "aiohttp-crop", 2.0),
    Compared("cpu_ms", "hybrid-controller", INSPECT, 0.25),
    Compared("window_s", "hybrid-mllm", "aiohttp", 1.5),
    Compared("window_cpu_ms", "hybrid-mllm", "openai", 1.5),
)


def command(
    client: str, url: str, questions: Path, in_flight: int, out: Path, inspect_python: str = sys.executable
) -> list[str]:
    """Return the command line of a client, which writes its files under `out`."""
    options = ["--url", url, "--questions", str(questions / "plain"), "--in-flight", str(in_flight)]
    if client in BARE:
        return [sys.executable, "-m", "bench._bare_clients", client, *options, "--out", str(out / "answers.jsonl")]
    if client == INSPECT:
        return [inspect_python, "-m", "bench._inspect_client", *options, "--out", str(out / "log")]
    options = ["--data", str(questions / "blink"), "--model", "openai:mock", "--base-url", url]
    options += ["--out", str(out / "run"), "--backend", "classical", "--concurrency", str(in_flight), *HYBRID[client]]
    return [sys.executable, "-m", "hybrid", "run", "blink", *options]


def run_client(
    client: str,
    questions: Path,
    in_flight: int,
    inspect_python: str = sys.executable,
    looks: Sequence[Callable[[int], float]] = (resident_mb,),
) -> tuple[FinishedProcess, tuple[Served, ...]]:
    """Run a client once against a fresh server; `looks` is passed to `measured`."""
    with tempfile.TemporaryDirectory() as folder, chat_server(LATENCY_S) as server:
        out = Path(folder)
        words = command(client, server.url, questions, in_flight, out, inspect_python)
        return measured(words, environment(out / "home"), out / "output", looks=looks), server.log()


def row(client: str, count: int, many: tuple[FinishedProcess, tuple[Served, ...]], few: FinishedProcess) -> LoopRow:
    """Return the numbers of a run of `count` questions, compared with a run of `FEW`."""
    result, log = many
    questions = {served.question for served in log}
    if len(questions) != count:
        raise SystemExit(f"{client} asked {len(questions)} of {count} questions")
    first, last = min(served.received_s for served in log), max(served.answered_s for served in log)
    cpu_ms = (1000 * result.cpu_s / count, 1000 * (result.cpu_s - few.cpu_s) / max(1, count - FEW))
    sent_mb = sum(served.request_bytes for served in log) / 1e6
    passed_s = (result.wall_s, first - result.started, last - first)
    return LoopRow(client, *passed_s, *cpu_ms, result.peaks_mb[0], len(log), sent_mb)


def compared(results: Mapping[str, Sequence[LoopRow]]) -> list[Compared]:
    """Return the ratios for which both clients were run."""
    rows = []
    for ratio in RATIOS:
        pairs = zip(results.get(ratio.client, ()), results.get(ratio.other, ()), strict=False)
        if ratios := [getattr(pair, ratio.number) / getattr(reference, ratio.number) for pair, reference in pairs]:
            rows.append(replace(ratio, median=statistics.median(ratios), lowest=min(ratios), highest=max(ratios)))
    return rows


def main() -> None:
    """Print the table."""
    flags = {"--client": list(CLIENTS), "--questions": 1000, "--in-flight": 64, "--repeat": 5}
    arguments = options(__doc__, {**flags, "--inspect-python": sys.executable, "--json": Path})
    inspect_python = arguments.inspect_python
    able = inspect_python != sys.executable or importlib.util.find_spec("inspect_ai") is not None
    clients = arguments.client or [client for client in CLIENTS if client != INSPECT or able]
    with tempfile.TemporaryDirectory() as folder:
        many = write_questions(Path(folder) / "many", arguments.questions)
        few = write_questions(Path(folder) / "few", FEW)
        least = {client: run_client(client, few, arguments.in_flight, inspect_python)[0] for client in clients}

        def once(client: str) -> LoopRow:
            result = run_client(client, many, arguments.in_flight, inspect_python)
            return row(client, arguments.questions, result, least[client])

        rows = turns(clients, arguments.repeat, once)
    ratios = compared({client: [row for row in rows if row.client == client] for client in clients})
    print(table(medians(rows, "client")), table(ratios), sep="\n\n")
    write_json(arguments.json, {"runs": rows, "ratios": ratios})


if __name__ == "__main__":
    main()
