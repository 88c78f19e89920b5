"""Measures the worth of a second CPU of a Ray cluster: questions whose tool computes, on one CPU and on two.

    OMP_NUM_THREADS=1 uv run --extra ray python -m bench.ray [--questions 60] [--repeat 3] [--json FILE]

The specialist answers generated questions about corresponding points (`correspondence` without weights, about 0.4 s of
CPU each) with 16 in flight and no cache. Turn by turn, each in a process of its own: the engine of this process, then a
cluster of one CPU (one tool actor), then one of two. The window is from the 16th finished question to the last, so that
starting is not in it. cpu_s is what all processes of the run took in it; cores is cpu_s over the window: where other
work has the machine, a second worker cannot get a second core, and `cores` says so. load is the machine's own load
average over a minute, at the start.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

TASK = "Visual_Correspondence"
IN_FLIGHT = 16
TURNS = (0, 1, 2)
"""CPUs of the cluster; 0 is the engine of this process."""


@dataclass(frozen=True)
class ClusterRow:
    """One run, from its 16th finished question to its last."""

    cpus: int
    questions: int
    window_s: float
    cpu_s: float
    own_s: float
    """CPU seconds of the process that gives out the questions and records them."""
    load: float

    @property
    def rate(self) -> float:
        """Questions a second."""
        return self.questions / self.window_s

    @property
    def cores(self) -> float:
        """How many cores the run had."""
        return self.cpu_s / self.window_s


def family_cpu_s(root: int) -> float:
    """CPU seconds of a process and of all that it has started and that still run (Linux)."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(entry.name)
            parents[pid], ticks[pid] = int(words[1]), int(words[11]) + int(words[12])
    family, waiting = {root}, [root]
    while waiting:
        parent = waiting.pop()
        new = [pid for pid, above in parents.items() if above == parent and pid not in family]
        family.update(new)
        waiting += new
    return sum(ticks.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")


def one(cpus: int, questions: int, folder: Path) -> ClusterRow:
    """One run in this process."""
    from hybrid.config import RunConfig, ServiceOptions
    from hybrid.running.engine import local_engine
    from hybrid.running.resolve import prepare
    from hybrid.running.run import ask_run_to_end

    load = os.getloadavg()[0]
    run = prepare(
        RunConfig(
            "blink",
            ("specialist",),
            data="sample",
            tasks=(TASK,),
            limit=questions,
            service=ServiceOptions("classical", isolated=True),
            cache=False,
            concurrency=IN_FLIGHT,
            out=folder,
        )
    )
    seen: list[tuple[float, float, float]] = []

    def progress(_: str, finished: int, total: int) -> None:
        if finished in (IN_FLIGHT, total):
            seen.append((time.monotonic(), family_cpu_s(os.getpid()), time.process_time()))

    opener = local_engine
    if cpus:
        import ray

        from hybrid.engines.ray.engine import on_ray

        ray.init("local", num_cpus=cpus, include_dashboard=False, log_to_driver=False, configure_logging=False)
        opener = on_ray
    end = asyncio.run(ask_run_to_end(run, progress, lambda line: print(line, file=sys.stderr), opener))
    if end.failures or end.stopped:
        raise SystemExit(f"the run failed: {end.stopped or end.failures[0]}")
    window, cpu, own = (after - before for before, after in zip(*seen, strict=True))
    return ClusterRow(cpus, questions - IN_FLIGHT, window, cpu, own, load)


def in_process(cpus: int, questions: int, home: Path) -> ClusterRow:
    """One run in a separate process; the questions are generated once."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "bench.ray", "--cpus", str(cpus), "--questions", str(questions)]
        environment = {
            **os.environ,
            "HYBRID_HOME": str(home),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",
        }
        command = [*words, "--out", str(Path(folder) / "run")]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)  # noqa: S603
    return ClusterRow(**json.loads(done.stdout.splitlines()[-1]))


def table(rows: Sequence[ClusterRow]) -> str:
    """Medians by cluster, and what two CPUs gain over one, turn by turn."""
    lines = ["engine          questions/s   cores   CPU ms a question   of the run's process   load"]
    for cpus in TURNS:
        mine = [row for row in rows if row.cpus == cpus]
        numbers = [
            (one.rate, one.cores, 1000 * one.cpu_s / one.questions, 1000 * one.own_s / one.questions, one.load)
            for one in mine
        ]
        rate, cores, each, own, load = map(statistics.median, zip(*numbers, strict=True))
        name = f"ray, {cpus} CPU{'s'[: cpus > 1]}" if cpus else "this process"
        lines.append(f"{name:14}  {rate:11.2f}  {cores:6.2f}  {each:18.0f}  {own:21.1f}  {load:5.1f}")
    pairs = zip(*([row for row in rows if row.cpus == cpus] for cpus in (1, 2)), strict=True)
    gains = [(two.rate / single.rate, two.cores / single.cores) for single, two in pairs]
    told = ", ".join(f"{gain:.2f} (cores {cores:.2f})" for gain, cores in gains)
    return "\n".join(
        [*lines, f"two CPUs over one, turn by turn: {told}; median {statistics.median(g for g, _ in gains):.2f}"]
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="a file for every run's numbers")
    parser.add_argument("--cpus", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cpus is not None:
        print(json.dumps(asdict(one(options.cpus, options.questions, options.out))), flush=True)
        return
    rows: list[ClusterRow] = []
    with tempfile.TemporaryDirectory() as home:
        for _ in range(options.repeat):
            for cpus in TURNS:
                rows.append(in_process(cpus, options.questions, Path(home)))
                print(rows[-1], file=sys.stderr, flush=True)
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
