"""Fuzz every reader of files.

    uv run --with atheris python -m bench.fuzz loaders [--seconds 300]

The first byte of an input chooses the reader (`READERS`), and the rest is the file. A reader may only raise a
`HybridError`, which names the fault, and must not write outside its own folder.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import hybrid.benchmarks
from hybrid.benchmarks.base import Benchmark, Source
from hybrid.benchmarks.questions import BENCHMARK as QUESTIONS
from hybrid.benchmarks.questions.schema import recipe_of
from hybrid.benchmarks.questions.tables import ENDINGS
from hybrid.core.errors import DataError, HybridError
from hybrid.core.images import ImageStore, decode, inspect
from hybrid.core.types import Question
from hybrid.log.folder import RunFolder
from hybrid.log.lines import json_lines
from hybrid.models.replay import read_folder
from hybrid.plugins.prompt_texts import read_texts
from hybrid.plugins.registry import load, names
from hybrid.scoring.readings import read_readings
from hybrid.solving.trust import read_trust

FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))  # noqa: S108
BENCHMARKS: tuple[Benchmark, ...] = tuple(load("hybrid.benchmarks", name) for name in names("hybrid.benchmarks"))
OURS = Path(hybrid.benchmarks.__path__[0]) / "blink" / "texts.toml"
MANIFEST = b'{"format": 2, "identity": {}, "labels": [], "solvers": {"mllm": {}}, "environment": {}, "notices": []}\n'


def _write_file(name: str, data: bytes) -> Path:
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _run(files: Mapping[str, bytes]) -> RunFolder:
    for name in ("manifest.json", "questions.jsonl", "mllm/attempts.jsonl"):
        _write_file(f"run/{name}", files.get(name, MANIFEST if name == "manifest.json" else b""))
    return RunFolder(FOLDER / "run")


def attempts(data: bytes) -> None:
    """Read the finished questions of a run."""
    _run({"mllm/attempts.jsonl": data}).attempts("mllm")


def questions(data: bytes) -> None:
    """Read the questions of a run."""
    _run({"questions.jsonl": data}).questions()


def manifest(data: bytes) -> None:
    """Read a manifest, and the solvers that it lists."""
    folder = _run({"manifest.json": data})
    folder.manifest["identity"].get("model")
    folder.solvers()


def lines(data: bytes) -> None:
    """Read JSON lines."""
    for _ in json_lines(FOLDER / "lines.jsonl", data):
        pass


def image(data: bytes) -> None:
    """Read an image file. If the file passes inspection, it must decode at the reported size."""
    samples = inspect(data, "here")
    if samples.width * samples.height > 4_000_000:
        return
    pixels = decode(data, "here")
    if pixels.shape != (samples.height, samples.width, 3):
        raise AssertionError(f"{pixels.shape} of an image of {samples.width} x {samples.height}")


def predictions(data: bytes) -> None:
    """Read saved predictions in the layout of each benchmark."""
    for name in ("predictions.json", "predictions.jsonl", "Jigsaw.json"):
        path = _write_file(f"predictions/{name}", data)
        for benchmark in BENCHMARKS:
            try:
                benchmark.predictions(path)
            except HybridError:
                continue


def recordings(data: bytes) -> None:
    """Read a folder of recorded calls."""
    _write_file("recorded/calls.jsonl", data)
    read_folder(FOLDER / "recorded")


def trust(data: bytes) -> None:
    """Read reliabilities of tools."""
    read_trust(_write_file("trust.json", data))


def readings(data: bytes) -> None:
    """Read a judge's readings."""
    read_readings(_write_file("verdicts.jsonl", data))


def texts(data: bytes) -> None:
    """Read texts that replace ours."""
    read_texts.cache_clear()
    read_texts(OURS, _write_file("prompts.toml", data))


def own_questions(data: bytes) -> None:
    """Read a file of questions, with a suffix chosen by the first byte, and the same bytes as a recipe."""
    path = _write_file(f"own/questions{ENDINGS[data[0] % len(ENDINGS)] if data else '.csv'}", data[1:])
    source = Source(path, ImageStore(FOLDER / "store"), "all", (), {"mapping": "beside"})
    try:
        for question in QUESTIONS.questions(replace(source, tasks=QUESTIONS.tasks(source))):
            if isinstance(question, Question):
                QUESTIONS.expected(question)
    except HybridError:
        pass
    recipe_of(_write_file("own/recipe.yaml", data))


# Readers by the first byte of an input; any other byte also selects one of them.
READERS: Mapping[bytes, Callable[[bytes], None]] = {
    b"a": attempts,
    b"q": questions,
    b"m": manifest,
    b"l": lines,
    b"i": image,
    b"p": predictions,
    b"c": recordings,
    b"u": trust,
    b"v": readings,
    b"w": texts,
    b"o": own_questions,
}
NAMED = tuple(READERS.values())


def target(data: bytes) -> None:
    """Read one file. Raises whatever a reader raises that is not a `HybridError`."""
    if not data:
        return
    reader = READERS.get(data[:1]) or NAMED[data[0] % len(NAMED)]
    try:
        reader(data[1:])
    except (HybridError, DataError):
        return
