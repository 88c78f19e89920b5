"""What a question costs in the run loop, side by side with loops that do nothing else.

    uv run --with aiohttp python -m bench.loop [--client hybrid-mllm]... [--questions 1000] [--repeat 3] [--json FILE]

Every client asks the same questions (a JPEG of about 50 kB each) of a server on this machine that answers after 100 ms,
64 of them in flight. `hybrid-mllm`, `aiohttp` and `openai` make one request a question; `hybrid-controller` and
`langgraph` make two, with a call of a crop between them. The clients run one after the other in turn, each in a process
of its own with an empty home, `--repeat` times; the table shows medians.

wall_s is from the start of the process to its end, start_s until its first request, window_s from the first request to
the last reply (both by the server's log). cpu_ms is the processor time a question of the client and all processes that
it started and waited for; window_cpu_ms leaves out what a run of 2 questions costs, which is start and end. memory_mb
is the largest sum of resident memory over those processes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from bench._chat_server import Served, chat_server
from bench._loop_questions import write_questions

BARE = ("aiohttp", "openai", "langgraph")
HYBRID = {"hybrid-mllm": ("--solver", "mllm"), "hybrid-controller": ("--solver", "controller", "--tools", "crop")}
CLIENTS = (*HYBRID, *BARE)
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
class Row:
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


def command(client: str, url: str, questions: Path, in_flight: int, out: Path) -> list[str]:
    """The command line of a client; what it writes goes under `out`."""
    if client in BARE:
        told = [client, "--url", url, "--questions", str(questions / "plain"), "--in-flight", str(in_flight)]
        return [sys.executable, "-m", "bench._bare_clients", *told, "--out", str(out / "answers.jsonl")]
    told = ["--data", str(questions / "blink"), "--model", "openai:mock", "--base-url", url, "--out", str(out / "run")]
    told += ["--backend", "classical", "--concurrency", str(in_flight), *HYBRID[client]]
    return [sys.executable, "-m", "hybrid", "run", "blink", *told]


def environment(home: Path) -> dict[str, str]:
    """The client's environment: its own home, a key that is none, no proxy in the way."""
    plain = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    return {**plain, "HYBRID_HOME": str(home), "OPENAI_API_KEY": "not-a-key"}


def resident_mb(root: int) -> float:
    """Resident memory of a process and its descendants, in MB; 0 when it is gone."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    family, waiting = set(), [root]
    while waiting:
        one = waiting.pop()
        family.add(one)
        waiting += [child for child, parent in parents.items() if parent == one and child not in family]
    pages = 0
    for one in family:
        try:
            pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measured(told: Sequence[str], home: Path, log: Path) -> Ended:
    """Run a command to its end. Raises `SystemExit` with the end of its output where it fails."""
    began, started = time.time(), time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(told, env=environment(home), stdout=output, stderr=output)  # noqa: S603
    peak, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(SAMPLE_S):
            peak[0] = max(peak[0], resident_mb(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    over.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(told)} ended with {process.returncode}:\n{log.read_text()[-3000:]}")
    return Ended(began, wall, usage.ru_utime + usage.ru_stime, peak[0])


def run_client(client: str, questions: Path, in_flight: int) -> tuple[Ended, tuple[Served, ...]]:
    """One run of a client against a server of its own."""
    with tempfile.TemporaryDirectory() as folder, chat_server(LATENCY_S) as server:
        out = Path(folder)
        told = command(client, server.url, questions, in_flight, out)
        return measured(told, out / "home", out / "log"), server.log()


def row(client: str, count: int, many: tuple[Ended, tuple[Served, ...]], few: Ended) -> Row:
    """The numbers of a run of `count` questions, next to one of `FEW`."""
    ended, log = many
    first, last = min(served.began for served in log), max(served.ended for served in log)
    asked = {served.question for served in log}
    if len(asked) != count:
        raise SystemExit(f"{client} asked {len(asked)} of {count} questions")
    return Row(
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


def medians(rows: Sequence[Row]) -> Row:
    """One row of the medians of several."""
    numbers = [field.name for field in fields(Row) if field.name != "client"]
    return Row(rows[0].client, **{name: statistics.median(getattr(row, name) for row in rows) for name in numbers})


def table(rows: Sequence[Row]) -> str:
    """The rows as text, columns aligned."""
    names = [field.name for field in fields(Row)]
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
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="a file for every run's numbers")
    options = parser.parse_args()
    clients = tuple(options.clients or CLIENTS)
    found: dict[str, list[Row]] = {client: [] for client in clients}
    with tempfile.TemporaryDirectory() as folder:
        many = write_questions(Path(folder) / "many", options.questions)
        few = write_questions(Path(folder) / "few", FEW)
        least = {client: run_client(client, few, options.in_flight)[0] for client in clients}
        for _ in range(options.repeat):
            for client in clients:
                ended = run_client(client, many, options.in_flight)
                found[client].append(row(client, options.questions, ended, least[client]))
                print(table(found[client][-1:]), file=sys.stderr, flush=True)
    print(table([medians(found[client]) for client in clients]))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for rows in found.values() for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
