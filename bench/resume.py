"""Cost of a command that finds nothing to do: `hybrid run` on a finished run of 1,000 questions.

    uv run python -m bench.resume [--questions 1000] [--repeat 5] [--tree DIR] [--json FILE]

The questions are those of `bench.scale`. Next to the run the table shows what is known of its cost: `hybrid --help`,
which starts and does nothing, and the same run with 26 questions. Medians; processor time counts the start too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.scale import ASKED, FEW, Bench, ScaleRow, apart, copy_run, heading, line, write_data


def words(data: Path, out: Path) -> tuple[str, ...]:
    """The command of a run."""
    made = ("--data", str(data), "--solver", "chance", "--backend", "classical", "--out", str(out), "--json")
    return ("run", "hvsbench", *made)


def finished(bench: Bench, count: int) -> tuple[str, ...]:
    """Make a finished run of so many questions; the command that made it."""
    data, out = bench.folder / f"data-{count}", bench.folder / f"run-{count}"
    apart(write_data, data, count)
    if count > ASKED:
        apart(copy_run, data, out, 0, bench.folder / "home")
    told = words(data, out)
    bench.command("run", count, *told)
    return told


def median(rows: Sequence[ScaleRow]) -> ScaleRow:
    """The medians of several rows of one command."""
    first = rows[0]
    numbers = (statistics.median(getattr(row, name) for row in rows) for name in ("cpu_s", "wall_s", "memory_mb"))
    return ScaleRow(first.what, first.questions, *numbers)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--tree", type=Path, default=Path(), help="the checkout whose `hybrid` is run")
    parser.add_argument("--json", type=Path, help="a file for every command's numbers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.tree.resolve(), Path(folder))
        commands = {
            ("--help", 0): ("--help",),
            ("resume", FEW): finished(bench, FEW),
            ("resume", options.questions): finished(bench, options.questions),
        }
        found: dict[tuple[str, int], list[ScaleRow]] = {called: [] for called in commands}
        for _ in range(options.repeat):
            for (what, count), told in commands.items():
                found[what, count].append(bench.command(what, count, *told))
    print(heading())
    for rows in found.values():
        print(line(median(rows)))
    if options.json:
        every = [asdict(row) for rows in found.values() for row in rows]
        options.json.write_text(json.dumps(every, indent=1) + "\n")


if __name__ == "__main__":
    main()
