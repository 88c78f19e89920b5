"""Measure the cost of large runs: resume, score, compare, export and report.

    uv run python -m bench.scale [--questions 1000]... [--recorded ../shared/data/blink_outputs] [--json FILE]
    uv run python -m bench.scale --part three_solvers --json three.json       # or own_questions, hvsbench
    uv run python -m bench.scale --read three.json --read other.json --out bench/results/scale.md     # their page
    uv run python -m bench.scale --tree ../before                  # the same for another checkout

The questions are rows in HVSBench's official layout, copied from generated questions, with its thirteen types in the
card's shares; the solver draws random answers, so that only our own code is measured. Up to `ASKED` questions are
really asked; the remaining lines of a larger run are copies with their own ids. The rows "three solvers" are of a run
in BLINK's layout that names no clusters (`bench/_large_run.py`): a controller with traces, the MLLM alone and the
specialist alone. The rows "own questions" are of a file of questions on 200 shared pictures, without clusters, of which
every one is asked; its pictures are read again at each resume.

A row of the table is one command in a separate process: CPU time (including the start), wall time, peak resident
memory. `us_question` is the CPU time per question beyond that of the same command on `FEW` questions, and `growth` its
ratio to that of the previous size: up to 1.2 the command counts as linear. Each command also runs once before it is
measured, so that modules are compiled.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import os
import platform
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench._frame import measured, options, write_json
from hybrid.core.types import Question
from hybrid.log.attempts import attempt_line
from hybrid.log.folder import RunFolder

SIZES = (1_000, 5_000, 20_000)
FEW = 60
# Rows of each type according to the paper; it gives only the sum of the two scanpath types, which is halved.
SHARES: Mapping[str, int] = {
    f"Q{place}": rows
    for place, rows in enumerate((819, 1886, 866, 800, 124, 818, 182, 808, 542, 870, 185, 541, 216), start=1)
}
# Number of generated questions of each type, which are copied until there are enough.
COPIED = 20
ASKED = 1_000
# Number of rows of each type that have an image, if only these rows are read: disk space is limited.
PICTURES = 4
# Rows per row group.
GROUP = 500
# Columns that identify a row's question.
KIND = ["index", "question_type"]
# Number of pictures that the questions of the rows "own questions" share.
SHARED_PICTURES = 200
# When a run is resumed with open questions, one in this many is open.
OPEN_SHARE = 100

# Introduction of the page of results.
INTRO = (
    "Written by `python -m bench.scale`. {data} The columns are CPU seconds, peak MB, microseconds of CPU per question "
    "beyond the same command on the smallest size, and the ratio of these to the previous size (up to 1.2: linear). "
    "Only the CPU is used; learned backends take no part."
)
PAGE = """# Large runs

{intro}

{conditions}

{table}
"""


@dataclass(frozen=True)
class ScaleRow:
    """Cost of one command."""

    what: str
    questions: int
    cpu_s: float
    wall_s: float
    memory_mb: float
    us_question: float = 0.0
    growth: float = 0.0


@dataclass(frozen=True)
class Bench:
    """Runs commands of the checkout `tree`; their files are in `folder`."""

    tree: Path
    folder: Path

    def command(self, what: str, questions: int, *words: str) -> ScaleRow:
        """Run `hybrid` to its end. Raises `SystemExit` with its last messages if it fails."""
        # Keep compiled modules, as users do.
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment = {**plain, "HYBRID_HOME": str(self.folder / "home"), "PYTHONPATH": str(self.tree)}
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
    """Make a finished run of all questions of a data set; only `FEW` questions are really asked."""
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


def on_three_solvers(bench: Bench, count: int, tell: Callable[[ScaleRow], None]) -> None:
    """Compare, export and report a run of three solvers that names no clusters."""
    run, out = bench.folder / f"{count}-three", bench.folder / f"{count}-written"
    for path in (run, out):
        shutil.rmtree(path, ignore_errors=True)
    apart(write_three_solvers, run, count, bench.folder / "home")
    tell(bench.command("three solvers: score", count, "score", str(run), "--json"))
    tell(bench.command("three solvers: compare", count, "compare", str(run), "--json"))
    out.mkdir()
    tell(
        bench.command("three solvers: table", count, "export", str(run), "--to", "table", "-o", str(out / "table.csv"))
    )
    tell(bench.command("three solvers: report", count, "report", str(run), "-o", str(out / "report")))


def on_own_questions(bench: Bench, count: int, tell: Callable[[ScaleRow], None]) -> None:
    """Run and resume a file of questions that share pictures and name no clusters."""
    data, run = bench.folder / f"{count}-questions", bench.folder / f"{count}-own"
    for path in (data, run):
        shutil.rmtree(path, ignore_errors=True)
    write_own_questions(data, count)
    words = ("run", str(data), "--solver", "chance", "--out", str(run), "--json")
    tell(bench.command("own questions: run", count, *words))
    tell(bench.command("own questions: resume", count, *words))
    close(run, "chance")
    tell(bench.command("own questions: resume 1 %", count, *words))


def write_own_questions(folder: Path, count: int) -> None:
    """Write a file of `count` questions on `SHARED_PICTURES` pictures."""
    from PIL import Image

    folder.mkdir()
    for number in range(SHARED_PICTURES):
        Image.new("RGB", (96, 72), (number, 255 - number, number // 2)).save(folder / f"{number}.png")
    rows = (
        {"id": f"q{n}", "image": f"{n % SHARED_PICTURES}.png", "question": f"Question {n}: which of the two is nearer?"}
        | {"choices": ["the left one", "the right one"], "answer": "AB"[n % 2], "task": f"task {n % 4}"}
        for n in range(count)
    )
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def write_three_solvers(run: Path, count: int, home: Path) -> None:
    """Write a run of three solvers; its images go to the store in `home`."""
    os.environ["HYBRID_HOME"] = str(home)
    from bench._large_run import write_run

    write_run(run, count)


def page_of(rows: Sequence[ScaleRow], conditions: Sequence[str]) -> str:
    """Return the page of the measurements: a row per command, with columns for each size."""
    sizes = sorted({row.questions for row in rows if row.questions > FEW})
    by_command = {(row.what, row.questions): row for row in rows}
    heads = [f"{size:,}: CPU | MB | us | growth" for size in sizes]
    lines = [f"| command | {' | '.join(heads)} |", "|---|" + "---:|" * 4 * len(sizes)]
    for what in dict.fromkeys(row.what for row in rows):
        size_rows = [by_command.get((what, size)) for size in sizes]
        cells = [_cells_of(row) if row is not None else " | | |" for row in size_rows]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    intro = textwrap.fill(INTRO.format(data=" ".join((__doc__ or "").split("\n\n")[2].split())), 120)
    measured_by = "\n".join(textwrap.fill(condition, 120, break_on_hyphens=False) for condition in conditions)
    return PAGE.format(intro=intro, conditions=measured_by, table="\n".join(lines))


def condition_of(words: Sequence[str]) -> str:
    """Return the date, the command, and the machine with its load: other programs on its cores raise the CPU time."""
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    machine = f"{os.cpu_count()} CPUs (load {os.getloadavg()[2]:.0f}), Python {platform.python_version()}"
    # Leave the output files of this machine out of the command.
    output_places = {place + step for place, word in enumerate(words) if word in ("--json", "--out") for step in (0, 1)}
    command = shlex.join(
        ["python", "-m", "bench.scale", *(word for n, word in enumerate(words) if n not in output_places)]
    )
    return f"Measured on {today} by `{command}`, {machine}."


def _cells_of(row: ScaleRow) -> str:
    growth = f"{row.growth:.2f}" if row.growth else ""
    return f"{row.cpu_s:.1f} | {row.memory_mb:.0f} | {row.us_question:.0f} | {growth}"


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


def with_growth(rows: Sequence[ScaleRow]) -> list[ScaleRow]:
    """Return the rows by size, with the CPU time per question beyond the start, and its growth since the last size."""
    results: list[ScaleRow] = []
    for row in sorted(rows, key=lambda row: row.questions):
        smaller = [other for other in results if other.what == row.what and other.questions < row.questions]
        if smaller:
            few, previous_us = smaller[0], smaller[-1].us_question
            us_question = 1e6 * (row.cpu_s - few.cpu_s) / (row.questions - few.questions)
            growth = us_question / previous_us if previous_us > 0 else 0.0
            results.append(replace(row, us_question=us_question, growth=growth))
        else:
            results.append(row)
    return results


def measure(bench: Bench, flags: argparse.Namespace, tell: Callable[[ScaleRow], None]) -> None:
    """Run the commands of all sizes."""
    if flags.recorded is not None:
        recorded(bench, flags.recorded, lambda row: None)
        recorded(bench, flags.recorded, tell)
    parts = [part for name, part in PARTS.items() if flags.part in (None, name)]
    for part in parts:
        part(bench, FEW, lambda row: None)
    for count in (FEW, *(flags.questions or SIZES)):
        for part in parts:
            part(bench, count, tell)


PARTS: Mapping[str, Callable[[Bench, int, Callable[[ScaleRow], None]], None]] = {
    "three_solvers": on_three_solvers,
    "own_questions": on_own_questions,
    "hvsbench": on_runs,
}


def main() -> None:
    """Print a line for each command; then write the page, if requested."""
    paths = {"--recorded": Path, "--tree": Path(), "--out": Path, "--json": Path, "--read": [Path]}
    flags = options(__doc__, {"--questions": [int], "--part": (None, *PARTS), **paths})
    files = [json.loads(path.read_bytes()) for path in flags.read or ()]
    conditions = [file["conditions"] for file in files]
    rows = [ScaleRow(**row) for file in files for row in file["rows"]]

    def tell(row: ScaleRow) -> None:
        rows.append(row)
        row = next(other for other in with_growth(rows) if (other.what, other.questions) == (row.what, row.questions))
        numbers = (getattr(row, field.name) for field in fields(ScaleRow)[1:])
        print(f"{row.what:<22}" + "".join(f"{number:>13,.2f}".replace(".00", "   ") for number in numbers), flush=True)
        measurement = {"conditions": condition_of(sys.argv[1:]), "rows": with_growth(rows)}
        write_json(flags.json, measurement)

    if not flags.read:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{'':<22}" + "".join(f"{field.name:>13}" for field in fields(ScaleRow)[1:]))
            measure(Bench(flags.tree.resolve(), Path(folder)), flags, tell)
    if flags.out is not None:
        flags.out.write_text(page_of(with_growth(rows), conditions or [condition_of(sys.argv[1:])]))


if __name__ == "__main__":
    main()
