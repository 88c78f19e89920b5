"""The cost of a question in the run loop, side by side with loops that do nothing else.

    uv run python -m bench.loop [--client hybrid-mllm]... [--questions 1000] [--repeat 5] [--json FILE]
    uv venv INSPECT && uv pip install --python INSPECT/bin/python inspect-ai openai pillow
    uv run python -m bench.loop --inspect-python INSPECT/bin/python

Every client asks the same questions (a JPEG of about 50 kB each) of a server on this machine that answers after 100 ms,
64 of them in flight. `hybrid-mllm`, `aiohttp` and `openai` make one request a question; `hybrid-controller`,
`aiohttp-crop`, `langgraph` and `inspect` (Inspect AI, where it is installed) make two, with a call of a crop between
them. All crops are 768 px long. Those of `langgraph` and `inspect` are encoded by Pillow as PNG, as one writes it;
those of `hybrid-controller` and `aiohttp-crop` are JPEG of quality 95. From what `hybrid` and Inspect write on disk
they can go on. The clients run one after the other in turn, each in a process of its own with an empty home, `--repeat`
times; the table shows medians, and below it ratios of two clients in the same turn: their median, lowest and highest.

wall_s is from the start of the process to its end, start_s until its first request, window_s from the first request to
the last reply (both by the server's log). cpu_ms is the processor time a question of the client and all processes that
it started and waited for; window_cpu_ms leaves out what a run of 2 questions costs, which is start and end. memory_mb
is the largest sum of resident memory over those processes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from bench._chat_server import Served, chat_server
from bench._loop_questions import write_questions

BARE = ("aiohttp", "aiohttp-crop", "openai", "langgraph")
INSPECT = "inspect"
HYBRID = {"hybrid-mllm": ("--solver", "mllm"), "hybrid-controller": ("--solver", "controller", "--tools", "crop")}
CLIENTS = (*HYBRID, *BARE, INSPECT)
LATENCY_S = 0.1
SAMPLE_S = 0.1
FEW = 2
"""Questions of the run that tells what start and end cost."""


@dataclass(frozen=True)
class Ended:
    """A process that has ended: its times, and the largest memory that it and its children held together."""

    began: float
    """Seconds since the epoch."""
    wall_s: float
    cpu_s: float
    memory_mb: float


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
    """A number of one client over that of another: the most that it should be, and what it is."""

    number: str
    client: str
    other: str
    most: float
    median: float = 0.0
    lowest: float = 0.0
    highest: float = 0.0


RATIOS = (
    Compared("cpu_ms", "hybrid-controller", "langgraph", 0.7),
    Compared("window_s", "hybrid-controller", "aiohttp-crop", 2.0),
    Compared("cpu_ms", "hybrid-controller", INSPECT, 0.25),
    Compared("window_s", "hybrid-mllm", "aiohttp", 1.5),
    Compared("window_cpu_ms", "hybrid-mllm", "openai", 1.5),
)


def command(
    client: str, url: str, questions: Path, in_flight: int, out: Path, inspect_python: str = sys.executable
) -> list[str]:
    """The command line of a client; what it writes goes under `out`."""
    options = ["--url", url, "--questions", str(questions / "plain"), "--in-flight", str(in_flight)]
    if client in BARE:
        return [sys.executable, "-m", "bench._bare_clients", client, *options, "--out", str(out / "answers.jsonl")]
    if client == INSPECT:
        return [inspect_python, "-m", "bench._inspect_client", *options, "--out", str(out / "log")]
    options = ["--data", str(questions / "blink"), "--model", "openai:mock", "--base-url", url]
    options += ["--out", str(out / "run"), "--backend", "classical", "--concurrency", str(in_flight), *HYBRID[client]]
    return [sys.executable, "-m", "hybrid", "run", "blink", *options]


def environment(home: Path) -> dict[str, str]:
    """The client's environment: its own home, a key that is none, no proxy in the way."""
    plain = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    return {**plain, "HYBRID_HOME": str(home), "OPENAI_API_KEY": "not-a-key"}


def family(root: int) -> set[int]:
    """A process and its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, waiting = set(), [root]
    while waiting:
        one = waiting.pop()
        found.add(one)
        waiting += [child for child, parent in parents.items() if parent == one and child not in found]
    return found


def resident_mb(root: int) -> float:
    """Resident memory of a process and its descendants, in MB; 0 when it is gone."""
    pages = 0
    for one in family(root):
        try:
            pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measured(arguments: Sequence[str], home: Path, log: Path, memory_mb: Callable[[int], float] = resident_mb) -> Ended:
    """Run a command to its end; `memory_mb` tells its memory by its process id. Raises `SystemExit` where it fails."""
    began, started = time.time(), time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(arguments, env=environment(home), stdout=output, stderr=output)  # noqa: S603
    peak, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(SAMPLE_S):
            peak[0] = max(peak[0], memory_mb(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    over.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}:\n{log.read_text()[-3000:]}")
    return Ended(began, wall, usage.ru_utime + usage.ru_stime, peak[0])


def run_client(client: str, questions: Path, in_flight: int, inspect_python: str) -> tuple[Ended, tuple[Served, ...]]:
    """One run of a client against a fresh server."""
    with tempfile.TemporaryDirectory() as folder, chat_server(LATENCY_S) as server:
        out = Path(folder)
        arguments = command(client, server.url, questions, in_flight, out, inspect_python)
        return measured(arguments, out / "home", out / "output"), server.log()


def row(client: str, count: int, many: tuple[Ended, tuple[Served, ...]], few: Ended) -> LoopRow:
    """The numbers of a run of `count` questions, next to one of `FEW`."""
    ended, log = many
    first, last = min(served.began for served in log), max(served.ended for served in log)
    asked = {served.question for served in log}
    if len(asked) != count:
        raise SystemExit(f"{client} asked {len(asked)} of {count} questions")
    return LoopRow(
        client,
        ended.wall_s,
        first - ended.began,
        last - first,
        1000 * ended.cpu_s / count,
        1000 * (ended.cpu_s - few.cpu_s) / max(1, count - FEW),
        ended.memory_mb,
        len(log),
        sum(served.request_bytes for served in log) / 1e6,
    )


def medians(rows: Sequence[LoopRow]) -> LoopRow:
    """One row of the medians of several."""
    numbers = [field.name for field in fields(LoopRow) if field.name != "client"]
    return LoopRow(rows[0].client, **{name: statistics.median(getattr(row, name) for row in rows) for name in numbers})


def compared(found: Mapping[str, Sequence[LoopRow]]) -> list[Compared]:
    """The ratios of which both clients were run."""
    made = []
    for one in RATIOS:
        pairs = zip(found.get(one.client, ()), found.get(one.other, ()), strict=False)
        if ratios := [getattr(ours, one.number) / getattr(theirs, one.number) for ours, theirs in pairs]:
            made.append(replace(one, median=statistics.median(ratios), lowest=min(ratios), highest=max(ratios)))
    return made


def table(rows: Sequence[LoopRow | Compared]) -> str:
    """The rows as text, columns aligned."""
    if not rows:
        return ""
    names = [field.name for field in fields(rows[0])]
    cells = [names] + [[_cell(getattr(row, name)) for name in names] for row in rows]
    widths = [max(len(line[place]) for line in cells) for place in range(len(names))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".removesuffix(".00")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", action="append", choices=CLIENTS, dest="clients")
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--inspect-python", default=sys.executable, help="an interpreter that has inspect_ai")
    parser.add_argument("--json", type=Path, help="a file for every run's numbers and the ratios")
    options = parser.parse_args()
    chosen = options.inspect_python
    able = chosen != sys.executable or importlib.util.find_spec("inspect_ai") is not None
    clients = tuple(options.clients or (client for client in CLIENTS if client != INSPECT or able))
    runs: dict[str, list[LoopRow]] = {client: [] for client in clients}
    with tempfile.TemporaryDirectory() as folder:
        many = write_questions(Path(folder) / "many", options.questions)
        few = write_questions(Path(folder) / "few", FEW)
        least = {client: run_client(client, few, options.in_flight, chosen)[0] for client in clients}
        for _ in range(options.repeat):
            for client in clients:
                ended = run_client(client, many, options.in_flight, chosen)
                runs[client].append(row(client, options.questions, ended, least[client]))
                print(table(runs[client][-1:]), file=sys.stderr, flush=True)
    ratios = compared(runs)
    print(table([medians(runs[client]) for client in clients]), table(ratios), sep="\n\n")
    if options.json:
        rows = [asdict(row) for rows in runs.values() for row in rows]
        numbers = {"runs": rows, "ratios": [asdict(one) for one in ratios]}
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
