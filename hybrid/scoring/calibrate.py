"""Reliability of each tool, backend and route, out of fold by question: `hybrid calibrate RUN -o trust.json`.

Every testimony of a finished run is scored as if it were the reply to the ask in which it was given; of the MLLM alone,
where the run has it, the scores are counted. Asks of another kind than the question, such as ActiView's for parts, have
no score. Questions fall into folds by a hash of their id, and fold k of the file holds what was counted on all other
folds. A run with blank, shuffled or oracle findings is refused: it would be written under the name of the real tool.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.codecs import to_json
from hybrid.errors import UsageError
from hybrid.registry import load
from hybrid.run_folder import RunFolder, write_redacted, writing
from hybrid.scoring.score import refuse_hidden
from hybrid.scoring.tally import recorded_of, tally
from hybrid.solving.trust import MODEL, Key, Measured, fold_of, trust_content
from hybrid.tool import Tool
from hybrid.types import LETTERS, Attempt, Exchange, Json, Prompt, Question, Reply, Score

EDGES = (0.0, 0.55, 0.6, 0.7, 0.8, 0.9)
"""Lower ends of the confidence bins."""

MODEL_SOLVER = "mllm"
REAL = "real"
"""The setting of `--tool-output` under which tools say what they found."""
OPTIONS = ScoreOptions(abstain="wrong")
AS_TABLES = ScoreOptions(abstain="chance")
"""As `hybrid score` leaves the scores of a run; of the MLLM only answers count, which both rules score alike."""


@dataclass(frozen=True)
class CountedTestimony:
    """One testimony that was right or wrong."""

    unit: str
    key: Key
    confidence: float
    right: bool


def cases(folder: RunFolder) -> tuple[CountedTestimony, ...]:
    """Every testimony in a run, and the MLLM's own answers, each counted once a question and prompt."""
    manifest = folder.manifest
    benchmark: Benchmark = load("hybrid.benchmarks", manifest["identity"]["benchmark"])
    refuse_hidden(benchmark, manifest["identity"]["split"])
    questions = folder.questions()
    found: dict[tuple[str, Key, bytes], CountedTestimony] = {}
    for solver in folder.solvers():
        alone = tally(folder, benchmark, solver, questions, AS_TABLES).scores if solver == MODEL_SOLVER else ()
        scores = {score.id: score for score in alone}
        for attempt in recorded_of(folder, solver, questions).attempts:
            question = questions.by_id[attempt.id]
            if not isinstance(question, Question):
                continue
            if attempt.id in scores:
                for case in _model_case(question, attempt, scores[attempt.id]):
                    found.setdefault((attempt.id, case.key, b""), case)
            for exchange in attempt.exchanges:
                prompt = to_json(Prompt, exchange.prompt)
                for case in _cases(benchmark, question, attempt, exchange):
                    found.setdefault((attempt.id, case.key, prompt), case)
    return tuple(found.values())


def _model_case(question: Question, attempt: Attempt, score: Score) -> Iterator[CountedTestimony]:
    """Whether the MLLM alone was right, where its answer could be read."""
    if score.answer is not None and score.correct is not None:
        yield CountedTestimony(question.unit, (*MODEL, attempt.exchanges[-1].prompt.route), 1.0, score.correct == 1.0)


def _cases(
    benchmark: Benchmark, question: Question, attempt: Attempt, exchange: Exchange
) -> Iterator[CountedTestimony]:
    """The testimonies given in one ask."""
    for step in exchange.reply.steps:
        said = step.data.get("testimony")
        heard = _as_reply(question, attempt, exchange, said) if isinstance(said, Mapping) else None
        if not isinstance(said, Mapping) or heard is None:
            continue
        score = benchmark.score(question, heard, OPTIONS)
        confidence = said["confidence"]
        if score.correct is not None and isinstance(confidence, int | float):
            key = (str(said["tool"]), str(said["backend"]), exchange.prompt.route)
            yield CountedTestimony(question.unit, key, float(confidence), score.correct == 1.0)


def _as_reply(
    question: Question, attempt: Attempt, exchange: Exchange, said: Mapping[str, Json]
) -> tuple[Exchange, ...] | None:
    """The exchanges by which a testimony is scored; None where it answers something other than the question.

    The testimony replaces the reply, and other asks of the same choices are left out: a benchmark that counts
    the best of several (ActiView's any view) shall see this one alone. Where the ask offers a part of the choices
    under other letters (MM-SAP's second pass), the testimony is put in the letters of the question.
    """
    if not _same_ask(question, exchange.prompt):
        letter = _letter_in(question, exchange.prompt, said.get("letter"))
        return None if letter is None else (Exchange(exchange.prompt, Reply(f"Answer: ({letter})")),)
    heard = Exchange(exchange.prompt, Reply(str(said["answer"])))
    return tuple(
        heard if other is exchange else other
        for other in attempt.exchanges
        if other is exchange or not _same_ask(question, other.prompt)
    )


def _same_ask(question: Question, prompt: Prompt) -> bool:
    return prompt.kind is question.kind and prompt.choices in (question.choices, ())


def _letter_in(question: Question, prompt: Prompt, letter: Json) -> str | None:
    """The question's letter of the choice that a letter names in this prompt; None where there is no one such choice.

    A letter for parts of a picture, say, names no choice of the question.
    """
    offered = dict(zip(LETTERS, prompt.choices, strict=False))
    text = offered.get(str(letter))
    if prompt.kind is not question.kind or text is None or question.choices.count(text) != 1:
        return None
    return LETTERS[question.choices.index(text)]


def write_trust(folder: RunFolder, out: Path, folds: int) -> tuple[CountedTestimony, ...]:
    """Count the cases of a run into a trust file.

    Raises:
        UsageError: a run whose tools did not really answer, imported predictions, no case at all, or too few folds.
    """
    if folds < 2:
        raise UsageError(f"--folds {folds}: out-of-fold needs at least 2")
    manifest = folder.manifest
    identity = manifest["identity"]
    if "tool_output" not in identity:
        raise UsageError(f"{folder.path} holds imported predictions: its manifest names neither model nor tools")
    if identity["tool_output"] != REAL:
        raise UsageError(
            f"{folder.path} was run with --tool-output {identity['tool_output']}: what it counts is not what the tools "
            f"can do; calibrate a run with --tool-output {REAL}"
        )
    found = cases(folder)
    if not found:
        raise UsageError(f"{folder.path} holds no testimony: run the specialist or the arbiter in it first")
    rows: list[Json] = [
        _entries([case for case in found if fold_of(case.unit, folds) != fold]) for fold in range(folds)
    ]
    with writing(out):
        write_redacted(out, trust_content(measured(manifest, found), rows))
    return found


def measured(manifest: Mapping[str, Any], found: Sequence[CountedTestimony]) -> Measured:
    """What the cases of a run were measured with, by its manifest.

    Raises:
        UsageError: two solvers of the run were given findings of a tool by different backends or code.
    """
    identity, solvers = manifest["identity"], manifest["solvers"].values()
    counted = {case.key[:2] for case in found}
    relied = _with_needs({tool for tool, _ in counted - {MODEL}})
    tools: dict[str, Json] = {}
    for name, facts in (entry for solver in solvers for entry in solver.get("tools", {}).items()):
        if name in relied and tools.setdefault(name, facts) != facts:
            raise UsageError(f"two solvers of this run called {name} in different versions: {tools[name]}, {facts}")
    return Measured(
        benchmark=identity["benchmark"],
        split=identity["split"],
        data=identity["data"],
        model=identity["model"] if MODEL in counted else None,
        tools=dict(sorted(tools.items())),
        control=identity["tool_output"],
        unchecked=tuple(sorted({name for solver in solvers for name in solver.get("unchecked_weights", ())} & relied)),
    )


def _with_needs(tools: Collection[str]) -> frozenset[str]:
    """The tools, and those whose findings they are given."""
    found: set[str] = set()
    waiting = list(tools)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        tool: Tool = load("tools", name)
        needs = [*tool.card.needs, *(need for backend in tool.card.backends for need in backend.needs)]
        waiting += [need.tool for need in needs]
    return frozenset(found)


def _entries(found: Sequence[CountedTestimony]) -> list[Json]:
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
