"""Predictions at a path, matched to the questions of `--data`, or to those in the predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hybrid.benchmarks.base import Benchmark, Prediction
from hybrid.benchmarks.card import BenchmarkCard
from hybrid.core.errors import DataError, UsageError
from hybrid.core.image_clusters import cluster_by_pictures
from hybrid.core.images import ImageStore, home
from hybrid.core.types import Json, Question
from hybrid.display.terminal import how_many
from hybrid.running.data import mount, questions
from hybrid.scoring.predictions import FORMATS, recognise
from hybrid.scoring.predictions.base import Joined, Origin, first
from hybrid.scoring.predictions.join import join, missing_from, pictures_note, without_data


def sets_of(paths: Sequence[Path], card: BenchmarkCard) -> tuple[tuple[Path, ...], ...]:
    """Group the paths by model: files of one model in one folder form one set, with the plain file first.

    `mcq_NAME.jsonl` belongs to `NAME.jsonl` if `mcq_` is among the card's `prediction_prefixes`; every other path is a
    set by itself, in the order given.
    """
    plain = {path.resolve() for path in paths}
    files_by_model: dict[Path, list[Path]] = {}
    for path in paths:
        full_path = path.resolve()
        bare = (full_path.with_name(full_path.name.removeprefix(prefix)) for prefix in card.prediction_prefixes)
        owner = next((file for file in bare if file != full_path and file in plain), full_path)
        members = files_by_model.setdefault(owner, [])
        if owner == full_path:
            members.insert(0, path)
        else:
            members.append(path)
    return tuple(map(tuple, files_by_model.values()))


def join_predictions(path: Path, benchmark: Benchmark, data: str | None, more: Sequence[Path] = ()) -> Joined:
    """Return the predictions at `path`, each with its question; with `data`, the benchmark's own questions.

    `more` lists further files of the same model, in the benchmark's own layout.

    Raises:
        UsageError: the layout is unknown, or it needs `data`.
        DataError: an unusable row, one that contradicts the data or another file of the model, or no row matches.
    """
    for source in (path, *more):
        if not source.exists():
            raise UsageError(f"{source}: file or folder not found")
    name = benchmark.card.name
    mounted: tuple[Question, ...] = ()
    facts: Mapping[str, Json] = {}
    pairs = _recorded((path, *more), benchmark)
    recognised = recognise(path) if pairs is None else None
    if data is not None:
        mounted, facts = _mounted(benchmark, data)
    if recognised is not None:
        if data is None and not any(row.answer or row.text for row in recognised.rows):
            raise UsageError(f"{path} holds neither questions nor right answers: give --data DIR")
        joined = (
            without_data(recognised, benchmark)
            if data is None
            else replace(join(recognised, benchmark.card, mounted), data=facts)
        )
        joined = replace(joined, solver=recognised.solver, model=recognised.model)
        return joined if any(row.cluster for row in recognised.rows) else _with_note(joined)
    if pairs is None:
        raise UsageError(f"{path} is neither a run nor a layout of predictions that {name} knows, nor {FORMATS}")
    layout = f"{name}: the benchmark's own layout ({how_many(len(pairs), 'row')})"
    if data is None:
        return _with_note(Joined(pairs, Origin(layout)))
    real = {question.id: question for question in mounted}
    questions = cluster_by_pictures([real[question.id] for question, _ in pairs if question.id in real])
    predicted = [prediction for question, prediction in pairs if question.id in real]
    matches = tuple(zip(questions, predicted, strict=True))
    extra = tuple(question.id for question, _ in pairs if question.id not in real)
    if not matches:
        raise DataError(f"none of the {len(pairs)} ids of {path} is in {data}: {first(extra)}")
    for question, _ in pairs:
        if question.id in real and question.target not in (None, real[question.id].target):
            raise DataError(
                f"{question.id}: {path} says that the answer is {question.target!r}, the data say "
                f"{real[question.id].target!r}"
            )
    missing = missing_from(real, {question.id: question for question, _ in matches})
    return _with_note(Joined(matches, Origin(layout, missing, extra), facts))


def _with_note(joined: Joined) -> Joined:
    """Return the predictions, with a note if questions may share unknown pictures."""
    notes = (*joined.origin.notes, *pictures_note([question for question, _ in joined.pairs]))
    return replace(joined, origin=replace(joined.origin, notes=notes))


def _recorded(paths: Sequence[Path], benchmark: Benchmark) -> tuple[tuple[Question, Prediction], ...] | None:
    """Return the questions and predictions of one model in the benchmark's own layout; None for other layouts."""
    by_id: dict[str, tuple[Question, Prediction]] = {}
    first_paths: dict[str, Path] = {}
    for path in paths:
        pairs = benchmark.predictions(path)
        if pairs is None:
            return None
        for question, prediction in pairs:
            if by_id.setdefault(question.id, (question, prediction))[1] != prediction:
                first_path = first_paths[question.id]
                if first_path == path:
                    raise DataError(f"{path}: question {question.id} has two different replies")
                raise DataError(f"{path}: question {question.id} has a different reply in {first_path}")
            first_paths.setdefault(question.id, path)
    return tuple(by_id.values())


def _mounted(benchmark: Benchmark, data: str) -> tuple[tuple[Question, ...], Mapping[str, Json]]:
    """Return all questions that predictions may answer, and the manifest's facts about them if they are generated."""
    store = ImageStore(home() / "images")
    mounted = mount(benchmark, data, split=None, tasks=(), settings={}, store=store)
    source = replace(mounted.source, for_predictions=True)
    # For other data the facts would include a fingerprint, which was not computed.
    facts = mounted.origin if mounted.is_sample else {}
    return tuple(q for q in questions(benchmark, source, None) if isinstance(q, Question)), facts
