"""A file or a folder of questions in place of a benchmark: `hybrid run questions.jsonl`."""

from __future__ import annotations

import os
from pathlib import Path

from hybrid.core.errors import UsageError


def is_path(word: str) -> bool:
    """Return whether the word is a path: no benchmark's name, and it exists or has a separator or a table's ending."""
    from hybrid.plugins.registry import names

    if word in names("hybrid.benchmarks"):
        return False
    from hybrid.benchmarks.questions.tables import ENDINGS

    return word.lower().endswith(ENDINGS) or "/" in word or os.sep in word or Path(word).expanduser().exists()


def benchmark_of_files() -> str:
    """Return the benchmark that reads a file of questions."""
    from hybrid.plugins.registry import load, own_names

    benchmarks = ((name, load("hybrid.benchmarks", name)) for name in sorted(own_names("hybrid.benchmarks")))
    return next(name for name, benchmark in benchmarks if benchmark.accepts_file)


def benchmark_of(source: str) -> str:
    """Return the benchmark for data that are given without a benchmark.

    It is `questions` for a questions file or a folder with one, else `blink`.
    """
    from hybrid.benchmarks.questions import STEM
    from hybrid.benchmarks.questions.tables import ENDINGS

    path = Path(source).expanduser()
    if path.is_file() or any((path / f"{STEM}{ending}").is_file() for ending in ENDINGS):
        return benchmark_of_files()
    return "blink"


def named(benchmark: str, data: str | None) -> tuple[str, str | None]:
    """Return the benchmark and its data; for a path, the benchmark that reads it and the path.

    Raises `UsageError` for a path that does not exist, or if `data` is given too.

    Args:
        benchmark: a name or a path.
        data: separately given data, or None.
    """
    if not is_path(benchmark):
        return benchmark, data
    if data is not None:
        raise UsageError(f"{benchmark}: this path is the data; leave out --data {data}")
    if not Path(benchmark).expanduser().exists():
        raise UsageError(f"{benchmark}: file not found; give a file or a folder of questions, or a benchmark")
    return benchmark_of_files(), benchmark
