"""How often each weight-free tool is right on generated questions, by confidence: the `reliability` of its card.

    uv run python -m bench.reliability [--items 200] [--seed 1000] [--task Jigsaw]...

Runs the specialist on `--data sample` of BLINK and counts its answers. The seed is not one that any constant
of a tool was set on. The lines it prints go into the cards, where the arbiter reads them when there is no `--trust`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path

from bench._runs import finished
from hybrid.config import RunConfig, ServiceOptions
from hybrid.scoring.calibrate import CountedAnswer, cases
from hybrid.solving.trust import Key

EDGES = (0.0, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def measure(items: int, seed: int, tasks: tuple[str, ...]) -> tuple[CountedAnswer, ...]:
    """Every answer of the specialist on `items` generated questions a task."""
    with tempfile.TemporaryDirectory() as folder:
        config = RunConfig(
            "blink",
            solvers=("specialist",),
            data="sample",
            tasks=tasks,
            limit=items * len(tasks),
            seed=seed,
            service=ServiceOptions("classical"),
            concurrency=8,
            out=Path(folder) / "run",
        )
        return cases(finished(config))


def lines(counted: tuple[CountedAnswer, ...]) -> list[str]:
    """For each tool its bins, as they stand in a card."""
    counts: dict[Key, dict[float, list[int]]] = defaultdict(lambda: {edge: [0, 0] for edge in EDGES})
    for case in counted:
        edge = max(edge for edge in EDGES if edge <= (case.confidence or 0.0))
        counts[case.key][edge][0] += round(case.score)
        counts[case.key][edge][1] += 1
    text = []
    for (tool, backend, route), bins in sorted(counts.items()):
        right, n = (sum(bin_[place] for bin_ in bins.values()) for place in (0, 1))
        text.append(f"{tool} {backend} on {route}: right {right}/{n}")
        text.append(f"    ({', '.join(f'Bin({edge}, {r}, {n})' for edge, (r, n) in bins.items() if n)},)")
    return text


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--task", action="append", dest="tasks")
    options = parser.parse_args()
    tasks = tuple(options.tasks or ("Jigsaw", "Relative_Depth"))
    print("\n".join(lines(measure(options.items, options.seed, tasks))))


if __name__ == "__main__":
    main()
