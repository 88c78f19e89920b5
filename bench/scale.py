"""Measure the cost of large runs: resume, score and compare of up to 85,147 questions, the number in HVSBench.

    uv run python -m bench.scale [--questions 1000]... [--recorded ../shared/data/blink_outputs] [--json FILE]
    uv run python -m bench.scale --tree ../before      # the same for another checkout

The questions are rows in HVSBench's official layout, copied from generated questions, with its thirteen types in the
card's shares; the solver draws random answers, so that only our own code is measured. Up to `ASKED` questions are
really asked; the remaining lines of a larger run are copies with their own ids.

A row of the table is one command in a separate process: CPU time (including the start), wall time, peak resident
memory. `us_question` is the CPU time per question beyond that of the same command on `FEW` questions; if it does not
grow with the number of questions, the command is linear. The first command also runs once before it is measured, so
that modules are compiled.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from bench._frame import measured, options, write_json
from hybrid.core.types import Question
from hybrid.log.attempts import attempt_line
from hybrid.log.folder import RunFolder

SIZES = (1_000, 10_000, 85_147)
FEW = 26
# Rows of each type according to the paper; it gives only the sum of the two scanpath types, which is halved.
SHARES: Mapping[str, int] = {
    f"Q{place}": rows
    for place, rows in enumerate((819, 1886, 866, 800, 124, 818, 182, 808, 542, 870, 185, 541, 216), start=1)
}
# This many generated questions of each type are copied until there are enough.
COPIED = 20
ASKED = 1_000
# Number of rows of each type with an image if only these are read, because disk space is limited.
PICTURES = 4
# Rows per row group.
GROUP = 500
# The columns that identify a row's question.
KIND = ["index", "question_type"]
# When a run is resumed with open questions, one in this many is open.
OPEN_SHARE = 100


@dataclass(frozen=True)
class ScaleRow:
    """Cost of one command."""

    what: str
    questions: int
    cpu_s: float
    wall_s: float
    memory_mb: float
    us_question: float = 0.0


@dataclass(frozen=True)
class Bench:
    """Runs commands of the checkout `tree`; their files are in `folder`."""

    tree: Path
    folder: Path

    def command(self, what: str, questions: int, *words: str) -> ScaleRow:
        """Run `hybrid` to its end. Raises `SystemExit` with its last messages if it fails."""
        # Keep compiled modules, as users do.
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        payload = {"HYBRID_HOME": str(self.folder / "home"), "PYTHONPYCACHEPREFIX": str(self.folder / "compiled")}
        environment = {**plain, **payload, "PYTHONPATH": str(self.tree)}
        command = [sys.executable, "-m", "hybrid", *words]
        measurement = measured(command, environment, self.folder / "log", out=self.folder / "out", cwd=self.tree)
        return ScaleRow(what, questions, measurement.cpu_s, measurement.wall_s, measurement.largest_mb)


def write_data(folder: Path, count: int) -> None:
    """Make a folder in HVSBench's layout with `count` rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hybrid.benchmarks.hvsbench.sample import schema, write

    write(folder / "copied", tuple(SHARES), COPIED, seed=0)
    (path,) = (folder / "copied").rglob("*.parquet")
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in pq.read_table(path).to_pylist():
        rows.setdefault(row["question_type"], []).append(row)
    (folder / "data").mkdir()
    with pq.ParquetWriter(folder / "data" / "test-00000-of-00001.parquet", schema()) as file:
        copies = _copies(rows, count)
        while waiting := list(itertools.islice(copies, GROUP)):
            file.write_table(pa.Table.from_pylist(waiting, schema=schema()))


def _copies(rows: Mapping[str, Sequence[Mapping[str, Any]]], count: int) -> Iterator[dict[str, Any]]:
    """Yield `count` rows, each with a distinct index and image name."""
    finished = number = 0
    for task, share in SHARES.items():
        finished += share
        for place in range(count * finished // sum(SHARES.values()) - number):
            row = rows[task][place % len(rows[task])]
            seen = {} if count <= ASKED or place < PICTURES else {"image": {"bytes": b"", "path": None}}
            yield {**row, **seen, "index": number, "real_image_path": f"copied/{task}_{place}.jpg"}
            number += 1


def copy_run(data: Path, out: Path, seed: int, home: Path) -> None:
    """Make a finished run of all questions of a data set, of which only `FEW` are really asked."""
    os.environ["HYBRID_HOME"] = str(home)
    import pyarrow.parquet as pq

    from hybrid.config import RunConfig, ServiceOptions
    from hybrid.running.resolve import prepare
    from hybrid.running.run import ask_run

    config = RunConfig(
        "hvsbench", ("chance",), data=str(data), limit=FEW, seed=seed, out=out, service=ServiceOptions("classical")
    )
    run = prepare(config)
    asyncio.run(ask_run(run, lambda *_: None))
    request: dict[str, list[Question]] = {}
    for question in run.folder.questions().sound:
        request.setdefault(question.task, []).append(question)
    answered = {attempt.id: attempt for attempt in run.folder.attempts("chance")}
    # Each row's own id, and the question of which it is a copy.
    kinds = [(row["question_type"], row["index"]) for row in pq.read_table(data / "data", columns=KIND).to_pylist()]
    copied = [(f"{kind}_{index}", request[kind][index % len(request[kind])]) for kind, index in kinds]
    questions = run.folder.write_questions(replace(item, id=name, cluster=f"image-{name}") for name, item in copied)
    (out / "chance" / "attempts.jsonl").unlink()
    journal = run.folder.journal("chance")
    lines = (attempt_line(replace(answered[entry.id], id=name)) for name, entry in copied)
    while part := tuple(itertools.islice(lines, GROUP)):
        journal.append(*part)
    journal.close()
    attempts = run.folder.measure("chance/attempts.jsonl").extent
    manifest = run.folder.manifest
    files = {"questions.jsonl": asdict(questions), "chance/attempts.jsonl": asdict(attempts)}
    run.folder.write_manifest({**manifest, "files": files, "taken": {**manifest["taken"], "limit": None}})
    unscored(out)


def close(run: Path, solver: str) -> None:
    """Leave a run as if it was killed with one question in `OPEN_SHARE` open."""
    path = run / solver / "attempts.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) - len(lines) // OPEN_SHARE]))
    manifest = RunFolder(run).manifest
    del manifest["files"][f"{solver}/attempts.jsonl"]
    RunFolder(run).write_manifest(manifest)


def unscored(run: Path) -> None:
    """Remove the scores of a run."""
    for path in run.glob("*/scores.json*"):
        path.unlink()


def apart(work: Callable[..., None], *words: object) -> None:
    """Call a function in a separate process, because all child processes would inherit this process's memory."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=words)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{work.__name__}: exit {process.exitcode}")


def on_runs(bench: Bench, count: int, tell: Callable[[ScaleRow], None]) -> None:
    """Run every command on runs of `count` questions."""
    for path in bench.folder.glob(f"*{count}*"):
        shutil.rmtree(path)
    data = bench.folder / f"data-{count}"
    apart(write_data, data, count)
    item, other = bench.folder / f"{count}-one", bench.folder / f"{count}-other"

    def run(what: str, out: Path, seed: int) -> None:
        words = ("run", "hvsbench", "--data", str(data), "--solver", "chance", "--backend", "classical", "--json")
        tell(bench.command(what, count, *words, "--seed", str(seed), "--out", str(out)))

    for seed, out in enumerate((item, other)):
        if count <= ASKED:
            run("run", out, seed)
        else:
            apart(copy_run, data, out, seed, bench.folder / "home")
            bench.command("score", count, "score", str(out), "--json")
    run("resume", item, 0)
    close(item, "chance")
    run("resume 1 %", item, 0)
    unscored(item)
    tell(bench.command("score anew", count, "score", str(item), "--json"))
    tell(bench.command("score again", count, "score", str(item), "--json"))
    tell(bench.command("compare", count, "compare", str(item), str(other), "--json"))


def recorded(bench: Bench, outputs: Path, tell: Callable[[ScaleRow], None]) -> None:
    """Score the published answers of two models to BLINK val."""
    for file in bench.folder.glob("imported-*"):
        shutil.rmtree(file)
    item, other = (str((outputs / name).resolve()) for name in ("GPT4o", "GPT4V"))
    tell(bench.command("score recorded", 1901, "score", item, "--benchmark", "blink", "--json"))
    tell(bench.command("compare recorded", 1901, "compare", item, other, "--benchmark", "blink", "--json"))
    runs = [bench.folder / name for name in ("imported-one", "imported-other")]
    for path, out in zip((item, other), runs, strict=True):
        tell(bench.command("import", 1901, "score", path, "--benchmark", "blink", "-o", str(out), "--json"))
    tell(bench.command("score imported again", 1901, "score", str(runs[0]), "--json"))
    tell(bench.command("compare imported", 1901, "compare", *map(str, runs), "--json"))


def main() -> None:
    """Print a line for each command."""
    flags = options(__doc__, {"--questions": [int], "--recorded": Path, "--tree": Path(), "--json": Path})
    rows: list[ScaleRow] = []
    least: dict[str, ScaleRow] = {}

    def tell(row: ScaleRow) -> None:
        few = least.setdefault(row.what, row)
        if row.questions > few.questions:
            row = replace(row, us_question=1e6 * (row.cpu_s - few.cpu_s) / (row.questions - few.questions))
        rows.append(row)
        numbers = (getattr(row, field.name) for field in fields(ScaleRow)[1:])
        print(f"{row.what:<22}" + "".join(f"{number:>13,.2f}".replace(".00", "   ") for number in numbers), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(flags.tree.resolve(), Path(folder))
        print(f"{'':<22}" + "".join(f"{field.name:>13}" for field in fields(ScaleRow)[1:]))
        if flags.recorded is not None:
            recorded(bench, flags.recorded, lambda row: None)
            recorded(bench, flags.recorded, tell)
        on_runs(bench, FEW, lambda row: None)
        for count in (FEW, *(flags.questions or SIZES)):
            on_runs(bench, count, tell)
    write_json(flags.json, rows)


if __name__ == "__main__":
    main()
