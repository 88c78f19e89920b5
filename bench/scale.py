"""What large runs cost: resume, score and compare of up to 85,147 questions, the number in HVSBench.

    uv run python -m bench.scale [--questions 1000]... [--recorded ../shared/data/blink_outputs] [--json FILE]
    uv run python -m bench.scale --tree ../before      # the same of another checkout

The questions are rows in HVSBench's official layout, its thirteen types in the card's shares, made of generated ones;
the solver draws its answers, so that nothing but our own work is measured. A row of the table is one command in a
process of its own: processor time (start included), wall time, largest resident memory. `us_question` is processor time
beyond that of the same command on `FEW` questions, for each question: where it does not grow with their number, the
command is linear.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

SIZES = (1_000, 10_000, 85_147)
FEW = 26
SHARES: Mapping[str, int] = {
    "Q1": 819,
    "Q2": 1886,
    "Q3": 866,
    "Q4": 800,
    "Q5": 124,
    "Q6": 818,
    "Q7": 182,
    "Q8": 808,
    "Q9": 542,
    "Q10": 870,
    "Q11": 185,
    "Q12": 541,
    "Q13": 216,
}
"""Rows of each type by the paper; the two types of scanpaths, of which it gives the sum, in halves."""
COPIED = 20
"""So many generated questions of each type are copied until there are enough."""
GROUP = 500
"""Rows of a row group."""
OPEN_SHARE = 100
"""One question in so many is open when a run is resumed with some."""


@dataclass(frozen=True)
class Row:
    """One command."""

    what: str
    questions: int
    cpu_s: float
    wall_s: float
    memory_mb: float
    us_question: float = 0.0


class Bench:
    """Runs commands of one checkout in a folder of its own."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self._tree = tree
        self.folder = folder

    def command(self, what: str, questions: int, *words: str) -> Row:
        """Run `hybrid` to its end. Raises `SystemExit` with the end of its messages where it fails."""
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment = {**plain, "HYBRID_HOME": str(self.folder / "home"), "PYTHONPATH": str(self._tree)}
        log = self.folder / "log"
        began = time.monotonic()
        with log.open("wb") as messages, (self.folder / "out").open("wb") as out:
            process = subprocess.Popen(  # noqa: S603 - our own words, no shell
                [sys.executable, "-m", "hybrid", *words], env=environment, cwd=self._tree, stdout=out, stderr=messages
            )
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{what}: exit {process.returncode}\n{log.read_text()[-3000:]}")
        cpu_s = used.ru_utime + used.ru_stime
        return Row(what, questions, cpu_s, time.monotonic() - began, used.ru_maxrss / 1024)


def write_data(folder: Path, count: int) -> Path:
    """A folder in HVSBench's layout with `count` rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hybrid.benchmarks.hvsbench.sample import schema, write

    write(folder / "copied", tuple(SHARES), COPIED, seed=0)
    (made,) = (folder / "copied").rglob("*.parquet")
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in pq.read_table(made).to_pylist():
        rows.setdefault(row["question_type"], []).append(row)
    (folder / "data").mkdir()
    with pq.ParquetWriter(folder / "data" / "test-00000-of-00001.parquet", schema()) as file:
        waiting: list[dict[str, Any]] = []
        for row in _copies(rows, count):
            waiting.append(row)
            if len(waiting) == GROUP:
                file.write_table(pa.Table.from_pylist(waiting, schema=schema()))
                waiting = []
        if waiting:
            file.write_table(pa.Table.from_pylist(waiting, schema=schema()))
    return folder


def _copies(rows: Mapping[str, Sequence[Mapping[str, Any]]], count: int) -> Iterator[dict[str, Any]]:
    """So many rows, each with an index and an image name of its own."""
    done = number = 0
    for task, share in SHARES.items():
        done += share
        for place in range(count * done // sum(SHARES.values()) - number):
            row = rows[task][place % len(rows[task])]
            yield {**row, "index": number, "real_image_path": f"copied/{task}_{place}.jpg"}
            number += 1


def close(run: Path, solver: str) -> None:
    """Leave a run as a kill does that comes with one question in `OPEN_SHARE` open."""
    path = run / solver / "attempts.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) - len(lines) // OPEN_SHARE]))
    manifest = json.loads((run / "manifest.json").read_bytes())
    del manifest["files"][f"{solver}/attempts.jsonl"]
    (run / "manifest.json").write_text(json.dumps(manifest))


def unscored(run: Path) -> None:
    """Remove the scores of a run."""
    for path in run.glob("*/scores.json*"):
        path.unlink()


def measured(bench: Bench, count: int, tell: Callable[[Row], None]) -> None:
    """Every command on runs of so many questions."""
    data = write_data(bench.folder / f"data-{count}", count)
    one, other = bench.folder / f"{count}-one", bench.folder / f"{count}-other"

    def run(what: str, out: Path, seed: int) -> None:
        words = ("run", "hvsbench", "--data", str(data), "--solver", "chance", "--backend", "classical", "--json")
        tell(bench.command(what, count, *words, "--seed", str(seed), "--out", str(out)))

    run("run", one, 0)
    run("run", other, 1)
    run("resume", one, 0)
    close(one, "chance")
    run("resume 1 %", one, 0)
    unscored(one)
    tell(bench.command("score anew", count, "score", str(one), "--json"))
    tell(bench.command("score again", count, "score", str(one), "--json"))
    tell(bench.command("compare", count, "compare", str(one), str(other), "--json"))


def recorded(bench: Bench, outputs: Path, tell: Callable[[Row], None]) -> None:
    """The published answers of two models to BLINK val."""
    one, other = (str((outputs / name).resolve()) for name in ("GPT4o", "GPT4V"))
    tell(bench.command("score recorded", 1901, "score", one, "--benchmark", "blink", "--json"))
    tell(bench.command("compare recorded", 1901, "compare", one, other, "--benchmark", "blink", "--json"))
    runs = [bench.folder / name for name in ("imported-one", "imported-other")]
    for path, out in zip((one, other), runs, strict=True):
        tell(bench.command("import", 1901, "score", path, "--benchmark", "blink", "-o", str(out), "--json"))
    tell(bench.command("score imported again", 1901, "score", str(runs[0]), "--json"))
    tell(bench.command("compare imported", 1901, "compare", *map(str, runs), "--json"))


def beyond_start(row: Row, least: Mapping[str, Row]) -> Row:
    """A row with the time of each question."""
    few = least.get(row.what)
    if few is None or row.questions <= few.questions:
        return row
    each = 1e6 * (row.cpu_s - few.cpu_s) / (row.questions - few.questions)
    return Row(row.what, row.questions, row.cpu_s, row.wall_s, row.memory_mb, each)


def line(row: Row) -> str:
    """A row as text."""
    numbers = (getattr(row, field.name) for field in fields(Row)[1:])
    return f"{row.what:<22}" + "".join(f"{number:>13,.2f}".replace(".00", "   ") for number in numbers)


def main() -> None:
    """Print a line for each command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, action="append", help=f"may be given several times  [{SIZES}]")
    parser.add_argument("--recorded", type=Path, help="the folder of published answers to BLINK val")
    parser.add_argument("--tree", type=Path, default=Path(), help="the checkout whose `hybrid` is run")
    parser.add_argument("--json", type=Path, help="a file for the numbers")
    options = parser.parse_args()
    found: list[Row] = []
    least: dict[str, Row] = {}

    def tell(row: Row) -> None:
        least.setdefault(row.what, row)
        found.append(beyond_start(row, least))
        print(line(found[-1]), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.tree.resolve(), Path(folder))
        print(f"{'':<22}" + "".join(f"{field.name:>13}" for field in fields(Row)[1:]))
        if options.recorded is not None:
            recorded(bench, options.recorded, tell)
        for count in (FEW, *(options.questions or SIZES)):
            measured(bench, count, tell)
            shutil.rmtree(bench.folder / f"data-{count}")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
