"""Loop 2: attempts on disk to verdicts and metrics; no model is called, and it can be repeated for ever.

    hybrid score RUN [--json]
    hybrid score PREDICTIONS --benchmark blink --field stored

`score_run` writes `RUN/SOLVER/scores.jsonl`; `score_predictions` scores what somebody else saved, and `import_run`
makes a run of it that every later command reads like our own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from hybrid.answers.letters import parse_letter
from hybrid.benchmarks.base import Benchmark, Prediction, ScoreOptions
from hybrid.data import mount, questions
from hybrid.errors import DataError, UsageError
from hybrid.images import ImageStore, home
from hybrid.records import ERRORS, RunFolder, attempt_line
from hybrid.registry import load
from hybrid.rotation import rotation_metrics
from hybrid.stats import combine
from hybrid.types import (
    Attempt,
    BrokenQuestion,
    Cell,
    Exchange,
    Json,
    Metric,
    Outcome,
    Prompt,
    Question,
    Reply,
    Score,
    Usage,
)

Field = Literal["stored", "text"]


@dataclass(frozen=True)
class Scored:
    """One solver's verdicts and what they add up to."""

    benchmark: str
    solver: str
    scores: tuple[Score, ...]
    metrics: tuple[Metric, ...]
    open: int = 0
    """Questions of the run that this solver has not been asked yet: no part of any number."""
    usage: Usage = field(default_factory=Usage)
    labels: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Json]:
        """What `hybrid score --json` prints of one solver."""
        tasks = sorted({score.task for score in self.scores})
        report: dict[str, Json] = {
            "benchmark": self.benchmark,
            "n": len(self.scores),
            "failed": sum(score.outcome.failed for score in self.scores),
            "outcomes": dict(Counter(score.outcome.value for score in self.scores)),
            "metrics": nested({metric.name: rounded(metric.value) for metric in self.metrics}),
            "tasks": {task: self._task(task) for task in tasks},
        }
        if self.open:
            report["open"] = self.open
        if self.labels:
            report["labels"] = list(self.labels)
        return report

    def _task(self, task: str) -> dict[str, Json]:
        members = [score for score in self.scores if score.task == task]
        known = [score.correct for score in members if score.correct is not None]
        return {"n": len(members), "accuracy": rounded(sum(known) / len(known)) if known else None}


def rounded(value: float | None) -> float | None:
    """Twelve digits: enough for every comparison, and no noise of the last bit in a file."""
    return None if value is None else round(value, 12)


def nested(flat: Mapping[str, Json]) -> dict[str, Json]:
    """`{"qAcc.low": x}` as `{"qAcc": {"low": x}}`."""
    tree: dict[str, Json] = {}
    for name, value in flat.items():
        head, dot, tail = name.partition(".")
        if dot:
            inner = tree.setdefault(head, {})
            assert isinstance(inner, dict)  # noqa: S101 - metric names of one benchmark do not end inside another
            inner[tail] = value
        else:
            tree[head] = value
    return tree


def score_run(folder: RunFolder, options: ScoreOptions, solvers: Sequence[str] = ()) -> tuple[Scored, ...]:
    """Score the solvers of a run (all by default) and write their scores.

    Raises:
        UsageError: the answers are hidden, or a solver has no attempts there.
    """
    manifest = folder.manifest
    benchmark: Benchmark = load("hybrid.benchmarks", manifest["identity"]["benchmark"])
    refuse_hidden(benchmark, manifest["identity"]["split"])
    known = folder.solvers()
    for name in solvers:
        if name not in known:
            raise UsageError(f"{folder.path} has no attempts of {name!r}; it has: {', '.join(known) or 'none'}")
    asked = folder.questions()
    return tuple(_score_solver(folder, benchmark, name, asked, options) for name in solvers or known)


def refuse_hidden(benchmark: Benchmark, split: str) -> None:
    """Raise `UsageError` for a split whose answers nobody outside has."""
    if split in benchmark.card.hidden_splits:
        raise UsageError(
            f"the answers of {benchmark.card.name} {split} are hidden: it can be submitted, not scored "
            "(`hybrid score RUN` writes the submission file)"
        )


def _score_solver(
    folder: RunFolder,
    benchmark: Benchmark,
    solver: str,
    asked: Sequence[Question | BrokenQuestion],
    options: ScoreOptions,
) -> Scored:
    attempts = {attempt.id: attempt for attempt in folder.attempts(solver)}
    failed = failed_ids(folder, solver)
    scores: list[Score] = []
    usage = Usage()
    waiting = 0
    stored = folder.manifest["identity"].get("imported", {}).get("field") == "stored"
    for question in asked:
        attempt = attempts.get(question.id)
        if isinstance(question, BrokenQuestion):
            scores.append(_unasked(question, Outcome.BROKEN))
        elif attempt is not None:
            # What their own extraction stored is compared as it stands, and never parsed once more.
            last = attempt.exchanges[-1].reply.text
            exact = benchmark.score_stored(question, last) if stored else None
            scores.append(exact or benchmark.score(question, attempt.exchanges, options))
            usage = sum((exchange.reply.usage for exchange in attempt.exchanges), usage)
        elif question.id in failed:
            scores.append(_unasked(question, Outcome.OUTAGE))
        else:
            waiting += 1
    folder.write_scores(solver, scores)
    labels = tuple(folder.manifest.get("labels", ()))
    known = {question.id: question for question in asked if isinstance(question, Question)}
    metrics = (*metrics_of(benchmark, scores), *rotation_metrics(known, scores))
    return Scored(benchmark.card.name, solver, tuple(scores), metrics, waiting, usage, labels)


def _unasked(question: Question | BrokenQuestion, outcome: Outcome) -> Score:
    """The verdict on a question that nobody answered."""
    return Score(question.id, question.task, 0.0, outcome, groups=question.groups, cluster=question.cluster)


def failed_ids(folder: RunFolder, solver: str) -> frozenset[str]:
    """The questions that were asked and not finished."""
    path = folder.path / solver / ERRORS
    if not path.exists():
        return frozenset()
    lines = path.read_bytes().splitlines(keepends=True)
    # A crash may have left a last line without its end.
    return frozenset(json.loads(line)["id"] for line in lines if line.endswith(b"\n"))


def metrics_of(benchmark: Benchmark, scores: Sequence[Score]) -> tuple[Metric, ...]:
    """The benchmark's metrics over everything; where questions failed, the first one once more without them."""
    metrics = benchmark.summarise(scores)
    answered = [score for score in scores if not score.outcome.failed]
    if len(answered) == len(scores) or not metrics:
        return metrics
    return (*metrics, *(replace(m, name=f"without_failed.{m.name}") for m in benchmark.summarise(answered)))


def _name_of(path: Path) -> str:
    """What predictions are called: the folder's whole name (`llava-v1.6-34b`), or a file's without its suffix."""
    return path.resolve().name if path.is_dir() else path.stem


def score_predictions(
    path: Path, benchmark: Benchmark, field: Field, options: ScoreOptions, data: str | None = None
) -> Scored:
    """Score predictions that somebody else saved.

    Raises:
        UsageError: the layout is not one this benchmark knows.
        DataError: a row that cannot be used, or ids that the data does not have.
    """
    pairs = read_predictions(path, benchmark, data)
    name = _name_of(path)
    scores = []
    for question, prediction in pairs:
        if field == "stored":
            if prediction.stored is None:
                raise UsageError(f"--field stored: {path} keeps no extracted answers; use --field text")
            scores.append(benchmark.score_stored(question, prediction.stored))
        else:
            scores.append(benchmark.score(question, (exchange_of(question, prediction, field),), options))
    metrics = metrics_of(benchmark, scores)
    if field == "text":
        metrics = (*metrics, *_agreement(pairs, scores, benchmark))
    return Scored(benchmark.card.name, name, tuple(scores), metrics)


def read_predictions(path: Path, benchmark: Benchmark, data: str | None) -> tuple[tuple[Question, Prediction], ...]:
    """The predictions at `path`, each with its question; with `data` the questions are those of the benchmark."""
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    pairs = benchmark.predictions(path)
    if pairs is None:
        raise UsageError(f"{path} is neither a run nor a layout of predictions that {benchmark.card.name} knows")
    if data is None:
        return pairs
    store = ImageStore(home() / "images")
    mounted = mount(benchmark, data, split=None, tasks=(), settings={}, store=store)
    source = replace(mounted.source, joining=True)
    real = {q.id: q for q in questions(benchmark, source, None) if isinstance(q, Question)}
    joined = tuple((real[question.id], prediction) for question, prediction in pairs if question.id in real)
    if not joined:
        raise DataError(f"none of the {len(pairs)} ids of {path} stands in {data}")
    for question, _ in pairs:
        if question.id in real and question.target not in (None, real[question.id].target):
            raise DataError(
                f"{question.id}: {path} says the answer is {question.target!r}, the data {real[question.id].target!r}"
            )
    return joined


def exchange_of(question: Question, prediction: Prediction, field: Field) -> Exchange:
    """A recorded reply in the shape of an exchange of our own."""
    text = prediction.stored if field == "stored" else prediction.text
    prompt = Prompt((question.text,) if question.text else (), question.kind, question.choices, route=question.route)
    return Exchange(prompt, Reply(text or ""))


def _agreement(
    pairs: Sequence[tuple[Question, Prediction]], scores: Sequence[Score], benchmark: Benchmark
) -> tuple[Metric, ...]:
    """How often our parse says what the authors' extraction stored, and how often it does not decide."""
    same, undecided = [], []
    for (question, prediction), score in zip(pairs, scores, strict=True):
        undecided.append(Cell("", score.unit, float(score.answer is None), 1.0))
        if prediction.stored is not None:
            agrees = score.answer == benchmark.score_stored(question, prediction.stored).answer
            same.append(Cell("", score.unit, float(agrees), 1.0))
    named = {"agreement": tuple(same), "undecided": tuple(undecided)}
    return tuple(Metric(name, combine(cells, "ratio"), len(cells), "ratio", cells) for name, cells in named.items())


def import_run(path: Path, benchmark: Benchmark, field: Field, out: Path, data: str | None = None) -> RunFolder:
    """Make a run out of somebody else's predictions. Raises `UsageError` when `out` is taken."""
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"-o {out}: the folder is not empty")
    pairs = read_predictions(path, benchmark, data)
    folder = RunFolder(out)
    name = _name_of(path)
    with folder.locked():
        identity: dict[str, Json] = {
            "benchmark": benchmark.card.name,
            "split": benchmark.card.splits[0],
            "imported": {"name": name, "field": field},
        }
        folder.write_manifest({"identity": identity, "solvers": {name: {}}, "labels": [f"imported ({field})"]})
        folder.write_questions(question for question, _ in pairs)
        journal = folder.journal(name)
        for question, prediction in pairs:
            exchange = exchange_of(question, prediction, field)
            journal.append(attempt_line(Attempt(question.id, (exchange,), 0.0)))
        journal.close()
    return folder


def write_submission(folder: RunFolder, solver: str) -> Path:
    """The file that the benchmark's server takes, from one solver's attempts."""
    benchmark: Benchmark = load("hybrid.benchmarks", folder.manifest["identity"]["benchmark"])
    asked = {question.id: question for question in folder.questions() if isinstance(question, Question)}
    answers: dict[str, str | None] = dict.fromkeys(asked)
    for attempt in folder.attempts(solver):
        answers[attempt.id] = parse_letter(attempt.exchanges[-1].reply.text, asked[attempt.id].choices).value
    path = folder.path / solver / "submission.json"
    path.write_text(benchmark.submission(answers) + "\n")
    return path
