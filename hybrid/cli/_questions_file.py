"""A file or a folder of questions where a command takes a benchmark: `hybrid run questions.jsonl`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from hybrid.errors import UsageError

TABLES: Final = (".jsonl", ".csv", ".tsv", ".parquet")


def is_path(word: str) -> bool:
    """Whether a word for a benchmark is a path: it ends as a table does, has a separator, or is there and no name."""
    from hybrid.registry import names

    if word.lower().endswith(TABLES) or "/" in word or os.sep in word:
        return True
    return word not in names("hybrid.benchmarks") and Path(word).expanduser().exists()


def benchmark_of_files() -> str:
    """The benchmark whose data may be a file."""
    from hybrid.registry import load, own_names

    every = ((name, load("hybrid.benchmarks", name)) for name in sorted(own_names("hybrid.benchmarks")))
    return next(name for name, benchmark in every if benchmark.takes_file)


def named(benchmark: str, data: str | None) -> tuple[str, str | None]:
    """The benchmark and its data: of a path the benchmark that reads it. Raises `UsageError` where data is given too.

    Args:
        benchmark: a name or a path.
        data: as given beside it; None where it was not.
    """
    if not is_path(benchmark):
        return benchmark, data
    path = Path(benchmark).expanduser()
    if data is not None:
        raise UsageError(f"{benchmark}: this path is the data; leave out --data {data}")
    if not path.exists():
        raise UsageError(f"{benchmark}: there is no such file; give a file or a folder of questions, or a benchmark")
    return benchmark_of_files(), benchmark


def is_folder_of_questions(path: Path) -> bool:
    """Whether a folder holds a file of questions by its name."""
    return any((path / f"questions{ending}").is_file() for ending in TABLES)
