"""Predictions at a path, recognised and put to the questions of `--data`, or to those that they tell themselves.

A library module of `hybrid.predictions`; `hybrid.score` uses it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hybrid.benchmarks.base import Benchmark
from hybrid.data import mount, questions
from hybrid.errors import DataError, UsageError
from hybrid.images import ImageStore, home
from hybrid.predictions import FORMATS, recognise
from hybrid.predictions.alone import without_data
from hybrid.predictions.base import Joined, Origin, first
from hybrid.predictions.join import join, missing_from
from hybrid.types import Question


def join_predictions(path: Path, benchmark: Benchmark, data: str | None) -> Joined:
    """The predictions at `path`, each with its question; with `data` the questions are those of the benchmark.

    Raises:
        UsageError: nobody knows the layout, or it needs `data`.
        DataError: a row that cannot be used, contradicts the data, or none that fits it.
    """
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    name = benchmark.card.name
    pairs = benchmark.predictions(path)
    found = recognise(path) if pairs is None else None
    if found is not None:
        return (
            without_data(found, benchmark) if data is None else join(found, benchmark.card, _mounted(benchmark, data))
        )
    if pairs is None:
        raise UsageError(f"{path} is neither a run nor a layout of predictions that {name} knows, nor {FORMATS}")
    layout = f"{name}: the benchmark's own layout ({len(pairs)} rows)"
    if data is None:
        return Joined(pairs, Origin(layout))
    real = {question.id: question for question in _mounted(benchmark, data)}
    joined = tuple((real[question.id], prediction) for question, prediction in pairs if question.id in real)
    extra = tuple(question.id for question, _ in pairs if question.id not in real)
    if not joined:
        raise DataError(f"none of the {len(pairs)} ids of {path} stands in {data}: {first(extra)}")
    for question, _ in pairs:
        if question.id in real and question.target not in (None, real[question.id].target):
            raise DataError(
                f"{question.id}: {path} says the answer is {question.target!r}, the data {real[question.id].target!r}"
            )
    missing = missing_from(real, {question.id: question for question, _ in joined})
    return Joined(joined, Origin(layout, missing, extra))


def _mounted(benchmark: Benchmark, data: str) -> tuple[Question, ...]:
    """All questions that may have been predicted."""
    store = ImageStore(home() / "images")
    mounted = mount(benchmark, data, split=None, tasks=(), settings={}, store=store)
    source = replace(mounted.source, joining=True)
    return tuple(q for q in questions(benchmark, source, None) if isinstance(q, Question))
