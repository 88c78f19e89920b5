"""The command line of the training.

python -m training write DIR
python -m training train DIR OUT --steps 2200
"""

from __future__ import annotations

import argparse
import logging
import tomllib
from pathlib import Path
from typing import Final

from training.conversations import Batch, write
from training.learn import Schedule, train

# Number of generated rows in a batch; a batch is written completely or not at all.
ROWS: Final = 100
BATCHES: Final = Path(__file__).with_name("batches.toml")


def plan() -> list[Batch]:
    """Return the batches, seed by seed, so that an interrupted run has some of every kind."""
    tables = tomllib.loads(BATCHES.read_text())
    rows = [(name, task, count) for name, tasks in tables.items() for task, count in tasks.items()]
    most = max(count for _, _, count in rows)
    return [Batch(name, task, ROWS, seed) for seed in range(most) for name, task, count in rows if seed < count]


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("write", "train"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2200, help="of conversing, a second each on two CPU cores")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def main() -> None:
    """Run the command."""
    line = parser()
    args = line.parse_args()
    if args.step == "train" and args.out is None:
        line.error("train needs OUT, the folder of the checkpoint")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if args.step == "write":
        write(plan(), args.folder, args.workers)
        return
    losses = train(args.folder, args.out, Schedule(args.steps, seed=args.seed))
    last = losses[-100:]
    logging.info("%d steps, loss of the last hundred %.3f", len(losses), sum(last) / len(last))


if __name__ == "__main__":
    main()
