"""Measure the gain from a second CPU in a Ray cluster: questions whose tool computes, on one CPU and on two.

    OMP_NUM_THREADS=1 uv run --extra ray python -m bench.ray [--questions 60] [--repeat 3] [--json FILE]

The specialist answers generated questions about corresponding points (`correspondence` without weights, about 0.4 s of
CPU each) with 16 in flight and no cache. In turn, each in a separate process, it runs the local engine, a cluster with
one CPU (one tool actor), and a cluster with two. The window is from the 16th finished question to the last, so it
excludes starting. cpu_s is the CPU time of all processes of the run in the window, and cores is cpu_s / window: if
other work uses the machine, a second worker cannot get a second core, and `cores` shows that. load is the machine's
load average over a minute, at the start.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench._frame import family, medians, options, table, turns, write_json

TASK = "Visual_Correspondence"
IN_FLIGHT = 16
# CPUs of the cluster; 0 is the engine of this process.
TURNS = (0, 1, 2)


@dataclass(frozen=True)
class ClusterRow:
    """One run, from its 16th finished question to its last."""

    cpus: int
    # Questions per second.
    rate: float
    # Average number of cores in use.
    cores: float
    # CPU time per question, of all processes.
    cpu_ms: float
    # CPU time per question of the process that distributes the questions and records them.
    own_ms: float
    load: float


def one(cpus: int, questions: int, folder: Path) -> ClusterRow:
    """Run one case in this process."""
    from hybrid.config import RunConfig, ServiceOptions
    from hybrid.running.engine import local_engine
    from hybrid.running.resolve import prepare
    from hybrid.running.run import run_until_complete

    load = os.getloadavg()[0]
    request = {"data": "sample", "tasks": (TASK,), "limit": questions, "concurrency": IN_FLIGHT}
    service = ServiceOptions("classical", isolated=True)
    run = prepare(RunConfig("blink", ("specialist",), **request, service=service, cache=False, out=folder))
    seen: list[tuple[float, float, float]] = []

    def progress(_: str, finished: int, total: int) -> None:
        if finished in (IN_FLIGHT, total):
            seen.append((time.monotonic(), sum(family(os.getpid()).values()), time.process_time()))

    opener = local_engine
    if cpus:
        import ray

        from hybrid.engines.ray.engine import on_ray

        ray.init("local", num_cpus=cpus, include_dashboard=False, log_to_driver=False, configure_logging=False)
        opener = on_ray
    end = asyncio.run(run_until_complete(run, progress, lambda line: print(line, file=sys.stderr), opener))
    if end.failures or end.stopped:
        raise SystemExit(f"the run failed: {end.stopped or end.failures[0]}")
    window, cpu, workers_cpu = (after - previous for previous, after in zip(*seen, strict=True))
    many = questions - IN_FLIGHT
    return ClusterRow(cpus, many / window, cpu / window, 1000 * cpu / many, 1000 * workers_cpu / many, load)


def in_process(cpus: int, questions: int, home: Path) -> ClusterRow:
    """Run once in a separate process; the questions are generated once."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "bench.ray", "--cpus", str(cpus), "--questions", str(questions)]
        environment = {
            **os.environ,
            "HYBRID_HOME": str(home),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",
        }
        command = [*words, "--out", str(Path(folder) / "run")]
        result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)  # noqa: S603
    return ClusterRow(**json.loads(result.stdout.splitlines()[-1]))


def main() -> None:
    """Print the medians of each cluster, and the gain of two CPUs over one in each turn."""
    flags = options(__doc__, {"--questions": 60, "--repeat": 3, "--json": Path, "--cpus": int, "--out": Path})
    if flags.cpus is not None:
        print(json.dumps(asdict(one(flags.cpus, flags.questions, flags.out))), flush=True)
        return
    with tempfile.TemporaryDirectory() as home:
        rows = turns(TURNS, flags.repeat, lambda cpus: in_process(cpus, flags.questions, Path(home)))
    print(table(medians(rows, "cpus")))
    pairs = zip(*([row for row in rows if row.cpus == cpus] for cpus in (1, 2)), strict=True)
    gains = [(two.rate / single.rate, two.cores / single.cores) for single, two in pairs]
    text = ", ".join(f"{gain:.2f} (cores {cores:.2f})" for gain, cores in gains)
    print(f"two CPUs over one, turn by turn: {text}; median {statistics.median(gain for gain, _ in gains):.2f}")
    write_json(flags.json, rows)


if __name__ == "__main__":
    main()
