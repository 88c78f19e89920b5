"""Reliability of each tool, backend and route, out of fold by question: `hybrid calibrate RUN -o trust.json`.

Every testimony of a finished run is scored as if it were the reply; so is the MLLM alone where the run has it.
Questions fall into folds by a hash of their id, and fold k of the file holds what was counted on all other folds.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.errors import UsageError
from hybrid.images import write_atomic
from hybrid.records import RunFolder
from hybrid.registry import load
from hybrid.score import refuse_hidden
from hybrid.trust import MODEL, Key, fold_of
from hybrid.types import Attempt, Exchange, Json, Question, Reply

EDGES = (0.0, 0.55, 0.6, 0.7, 0.8, 0.9)
"""Lower ends of the confidence bins."""

MODEL_SOLVER = "mllm"


@dataclass(frozen=True)
class Case:
    """One testimony that was right or wrong."""

    unit: str
    key: Key
    confidence: float
    right: bool


def cases(folder: RunFolder) -> tuple[Case, ...]:
    """Every testimony in a run, and the MLLM's own answers, each counted once a question and ask."""
    manifest = folder.manifest
    benchmark: Benchmark = load("hybrid.benchmarks", manifest["identity"]["benchmark"])
    refuse_hidden(benchmark, manifest["identity"]["split"])
    asked = {question.id: question for question in folder.questions() if isinstance(question, Question)}
    found: dict[tuple[str, Key], Case] = {}
    for solver in folder.solvers():
        for attempt in folder.attempts(solver):
            for case in _cases(benchmark, asked[attempt.id], attempt, solver):
                found.setdefault((attempt.id, case.key), case)
    return tuple(found.values())


def _cases(benchmark: Benchmark, question: Question, attempt: Attempt, solver: str) -> Iterator[Case]:
    options = ScoreOptions(abstain="wrong")
    exchange = attempt.exchanges[-1]
    route = exchange.prompt.route
    if solver == MODEL_SOLVER:
        verdict = benchmark.score(question, attempt.exchanges, options)
        if verdict.answer is not None and verdict.correct is not None:
            yield Case(question.unit, (*MODEL, route), 1.0, verdict.correct == 1.0)
    for step in exchange.reply.steps:
        said = step.data.get("testimony")
        if not isinstance(said, Mapping):
            continue
        heard = (*attempt.exchanges[:-1], Exchange(exchange.prompt, Reply(str(said["answer"]))))
        verdict = benchmark.score(question, heard, options)
        confidence = said["confidence"]
        if verdict.correct is not None and isinstance(confidence, int | float):
            key = (str(said["tool"]), str(said["backend"]), route)
            yield Case(question.unit, key, float(confidence), verdict.correct == 1.0)


def write_trust(folder: RunFolder, out: Path, folds: int) -> tuple[Case, ...]:
    """Count the cases of a run into a trust file. Raises `UsageError` without any case or with too few folds."""
    if folds < 2:
        raise UsageError(f"--folds {folds}: out-of-fold needs at least 2")
    found = cases(folder)
    if not found:
        raise UsageError(f"{folder.path} holds no testimony: run the specialist or the arbiter in it first")
    rows: list[Json] = [
        _entries([case for case in found if fold_of(case.unit, folds) != fold]) for fold in range(folds)
    ]
    content = {"format": 1, "run": folder.manifest["identity"], "folds": rows}
    write_atomic(out, json.dumps(content, indent=1).encode() + b"\n")
    return found


def _entries(found: Sequence[Case]) -> list[Json]:
    counts: dict[Key, dict[float, list[int]]] = defaultdict(lambda: {edge: [0, 0] for edge in EDGES})
    for case in found:
        edge = max(edge for edge in EDGES if edge <= case.confidence)
        counts[case.key][edge][0] += case.right
        counts[case.key][edge][1] += 1
    return [
        {
            "tool": tool,
            "backend": backend,
            "route": route,
            "bins": [[edge, right, n] for edge, (right, n) in counts[tool, backend, route].items() if n],
        }
        for tool, backend, route in sorted(counts)
    ]
