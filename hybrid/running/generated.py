"""Generated benchmarks on disk: created once per seed and size, and read by the same code as real data.

folder = generate(load("hybrid.benchmarks", "blink"), home() / "samples", ("Jigsaw",), per_task=20, seed=0)
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hybrid.benchmarks.base import Benchmark
from hybrid.benchmarks.card import BenchmarkCard
from hybrid.core.errors import needed_by
from hybrid.core.files import write_atomic
from hybrid.core.generated_mark import MARKER
from hybrid.samples.seeds import Purpose

# Increase whenever a generator's output changes.
VERSION = 2
# Generated questions per task if there is no limit.
PER_TASK = 50
# Sample sizes are multiples of this, so that similar limits share one sample.
STEP = 5


def sample_size(card: BenchmarkCard, tasks: int, limit: int | None) -> int:
    """Return the number of questions to generate per task so that there are `limit` in total."""
    if limit is None:
        return PER_TASK
    needed = STEP * -(-limit // (tasks * STEP))
    return needed if card.sample_extends else max(PER_TASK, needed)


def mark_subfolders(folder: Path) -> None:
    """Copy the mark of generated questions into each subfolder with files, so that copied subfolders keep the mark."""
    mark = (folder / MARKER).read_bytes()
    for subfolder in {path.parent for path in folder.rglob("*") if path.is_file()} - {folder}:
        write_atomic(subfolder / MARKER, mark)


def has_mark(path: Path) -> bool:
    """Return whether a data folder, a folder in it, or the folder of a data file contains generated questions."""
    if path.is_dir():
        return next(path.rglob(MARKER), None) is not None
    return (path.parent / MARKER).is_file()


def generate(
    benchmark: Benchmark, root: Path, tasks: Sequence[str], per_task: int, seed: int, purpose: Purpose = "sample"
) -> Path:
    """Return the folder of a generated benchmark in its official layout, generating it if missing.

    If another process generates the same folder at the same time, the first process to finish wins; the two results are
    equal.
    """
    name = benchmark.card.name
    made_of = [VERSION, name, list(tasks), per_task, seed, *([] if purpose == "sample" else [purpose])]
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:12]
    folder = root / f"{name}-{per_task}-{seed}-{key}"
    if folder.is_dir():
        return folder
    root.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=root, prefix=f".{folder.name}."))
    try:
        with needed_by(f"the generator of {name}"):
            benchmark.generate(making, tasks, per_task, seed, purpose)
        facts = {"benchmark": name, "tasks": list(tasks), "per_task": per_task, "seed": seed, "generator": VERSION}
        write_atomic(making / MARKER, f"{json.dumps(facts)}\n".encode())
        try:
            making.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return folder
