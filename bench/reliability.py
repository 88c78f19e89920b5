"""Measure how often each classical tool is right on generated questions, by confidence: the `reliability` on its card.

    uv run python -m bench.reliability [--items 200] [--seed 1000] [--task Jigsaw]...

Runs the specialist on `--data sample` of BLINK and counts its answers. No constant of a tool was set on this seed. The
printed lines go into the cards, where the arbiter reads them if there is no `--trust`.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

from bench._accuracy import bins
from bench._frame import options
from bench._runs import finished
from hybrid.config import RunConfig, ServiceOptions
from hybrid.scoring.calibrate import CountedAnswer, cases
from hybrid.solving.trust import Key


def measure(items: int, seed: int, tasks: tuple[str, ...]) -> tuple[CountedAnswer, ...]:
    """Return every answer of the specialist on `items` generated questions per task."""
    with tempfile.TemporaryDirectory() as folder:
        request = {"data": "sample", "tasks": tasks, "limit": items * len(tasks), "seed": seed}
        service, out = ServiceOptions("classical"), Path(folder) / "run"
        return cases(finished(RunConfig("blink", ("specialist",), **request, service=service, concurrency=8, out=out)))


def lines(counts: tuple[CountedAnswer, ...]) -> list[str]:
    """Return the bins of each tool, in the form of a card."""
    answers: dict[Key, list[tuple[float, float]]] = defaultdict(list)
    for case in counts:
        answers[case.key].append((case.confidence or 0.0, round(case.score)))
    text = []
    for (tool, backend, route), answer in sorted(answers.items()):
        text.append(f"{tool} {backend} on {route}: right {sum(right for _, right in answer)}/{len(answer)}")
        text.append(f"    {bins(answer)}")
    return text


def main() -> None:
    """Print the table."""
    flags = options(__doc__, {"--items": 200, "--seed": 1000, "--task": [str]})
    tasks = tuple(flags.task or ("Jigsaw", "Relative_Depth"))
    print("\n".join(lines(measure(flags.items, flags.seed, tasks))))


if __name__ == "__main__":
    main()
