"""Accuracy, time and backend of every tool that decides a generated BLINK question.

    uv run python -m bench.tools [--items 40] [--seed 2000] [--backend classical] [--device cpu] [--weights TOOL=DIR]

Runs the specialist on `--data sample`, whose answers are known, with an empty cache; the seed is none that a constant
was set on. With `--device cuda` and weights it times the learned backends in the service's batches.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

# Run as a file (`python bench/tools.py`), its own folder comes first on the path, and this file would be `tools`.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.blink import CARD
from hybrid.calibrate import Case, cases
from hybrid.config import RunConfig
from hybrid.plan import prepare
from hybrid.report.tables import Column, Table, accuracy, as_text, bounds, share
from hybrid.run import execute
from hybrid.score import score_run
from hybrid.stats import wilson


def measure(task: str, options: argparse.Namespace) -> tuple[tuple[Case, ...], int, float]:
    """The testimonies on one task, the number of questions, and seconds for all of them (images made before)."""
    with tempfile.TemporaryDirectory() as folder:
        config = RunConfig(
            "blink",
            solvers=("specialist",),
            data="sample",
            tasks=(task,),
            limit=options.items,
            seed=options.seed,
            backend=options.backend,
            weights=dict(pair.split("=", 1) for pair in options.weights),
            device=options.device,
            out=Path(folder) / "run",
        )
        plan = prepare(config)
        started = time.perf_counter()
        asyncio.run(execute(plan, lambda *_: None))
        seconds = time.perf_counter() - started
        (scored,) = score_run(plan.folder, ScoreOptions())
        found = cases(plan.folder) if any(s.outcome == "answered" for s in scored.scores) else ()
        return found, len(scored.scores), seconds


def rows(options: argparse.Namespace) -> list[tuple[str, ...]]:
    """A row for each task and tool that decided."""
    found = []
    for task in CARD.sample_tasks:
        testimonies, n, seconds = measure(task, options)
        by_tool: dict[tuple[str, str], list[bool]] = defaultdict(list)
        for case in testimonies:
            by_tool[case.key[0], case.key[1]].append(case.right)
        per_item = f"{1000 * seconds / n:.0f} ms"
        if not by_tool:
            found.append((task, "-", "-", share(0, n), "-", "-", per_item))
        for (tool, backend), right in sorted(by_tool.items()):
            k = sum(right)
            limits = bounds(wilson(k, len(right)))
            found.append((task, tool, backend, share(len(right), n), accuracy(k / len(right)), limits, per_item))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--seed", type=int, default=2000)
    parser.add_argument("--backend", default="classical", choices=["auto", "learned", "classical"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--weights", action="append", default=[], metavar="TOOL=DIR_OR_ID")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        # A cache of its own: a finding that is already known takes no time.
        os.environ["HYBRID_HOME"] = home
        names = ("task", "tool", "backend", "decided", "right", "95 %", "time")
        columns = tuple(Column(name, "left" if place < 3 else "right") for place, name in enumerate(names))
        title = f"{options.items} generated questions a task, seed {options.seed}, device {options.device}"
        print(as_text(Table(title, columns, tuple(rows(options)))), end="")


if __name__ == "__main__":
    main()
