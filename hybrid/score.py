"""Loop 2: attempts on disk to verdicts and metrics; no model is called, and it can be repeated for ever.

    hybrid score RUN [--verdicts judge] [--json]
    hybrid score PREDICTIONS --benchmark blink --field stored

`score_run` writes `RUN/SOLVER/scores.jsonl`; `score_predictions` scores what somebody else saved, and `import_run`
makes a run of it that every later command reads like our own. Verdicts of a judge (`verdicts.py`) only add numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from hybrid.answers.letters import parse_letter
from hybrid.benchmarks.base import Benchmark, Prediction, ScoreOptions
from hybrid.errors import UsageError
from hybrid.predictions.base import Joined, Origin
from hybrid.predictions.mounted import join_predictions
from hybrid.records import ERRORS, RunFolder, attempt_line, codec
from hybrid.registry import load
from hybrid.rotation import rotation_metrics
from hybrid.stats import combine
from hybrid.types import (
    Attempt,
    BrokenQuestion,
    Cell,
    Exchange,
    Json,
    Kind,
    Metric,
    Outcome,
    Prompt,
    Question,
    Reply,
    Score,
    Usage,
)
from hybrid.verdicts import VERDICTS, Verdicts, models_of, read_verdicts, with_verdicts

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
    judged: tuple[Score, ...] = ()
    """The same questions once more, where asked for: a judge's verdicts in the place of unreadable replies."""
    origin: Origin | None = None
    """Of predictions: the format, and what did not fit."""

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
        if self.origin is not None:
            report["predictions"] = codec(Origin).dump_python(self.origin, mode="json")
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


@dataclass(frozen=True)
class Tally:
    """One solver's verdicts before they are summed, with the attempts behind them."""

    scores: tuple[Score, ...]
    attempts: tuple[Attempt, ...]
    questions: Mapping[str, Question]
    open: int
    usage: Usage


def score_run(
    folder: RunFolder,
    options: ScoreOptions,
    solvers: Sequence[str] = (),
    verdicts: Path | Literal["judge"] | None = None,
) -> tuple[Scored, ...]:
    """Score the solvers of a run (all by default) and write their scores.

    With `verdicts`, a file or "judge" for each solver's own, there are also metrics `judged.*` that count what a judge
    read in replies which our parser could not read. The scores on disk stay without them.

    Raises:
        UsageError: the answers are hidden, a solver has no attempts there, or there are no verdicts.
        DataError: a verdict that does not belong to the run.
    """
    manifest = folder.manifest
    benchmark: Benchmark = load("hybrid.benchmarks", manifest["identity"]["benchmark"])
    refuse_hidden(benchmark, manifest["identity"]["split"])
    names = chosen(folder, solvers)
    asked = folder.questions()
    read = _verdicts(folder, names, verdicts)
    return tuple(_score_solver(folder, benchmark, name, asked, options, read.get(name)) for name in names)


def chosen(folder: RunFolder, solvers: Sequence[str]) -> tuple[str, ...]:
    """The named solvers of a run, all without a name. Raises `UsageError` for one without attempts."""
    known = folder.solvers()
    for name in solvers:
        if name not in known:
            raise UsageError(f"{folder.path} has no attempts of {name!r}; it has: {', '.join(known) or 'none'}")
    return tuple(solvers) or known


def _verdicts(
    folder: RunFolder, solvers: Sequence[str], source: Path | Literal["judge"] | None
) -> Mapping[str, Verdicts]:
    if source is None:
        return {}
    if source != "judge":
        if len(solvers) != 1:
            raise UsageError(f"--verdicts {source} belongs to one solver: give RUN/SOLVER, one of {', '.join(solvers)}")
        if not source.is_file():
            raise UsageError(f"--verdicts {source}: there is no such file")
        return {solvers[0]: read_verdicts(source)}
    paths = {name: folder.path / name / VERDICTS for name in solvers}
    found = {name: read_verdicts(path) for name, path in paths.items() if path.is_file()}
    if not found:
        raise UsageError(f"--verdicts judge: {folder.path} has none yet; make them with `hybrid judge RUN --model M`")
    return found


def refuse_hidden(benchmark: Benchmark, split: str) -> None:
    """Raise `UsageError` for a split whose answers nobody outside has."""
    if split in benchmark.card.hidden_splits:
        raise UsageError(
            f"the answers of {benchmark.card.name} {split} are hidden: it can be submitted, not scored "
            "(`hybrid score RUN` writes the submission file)"
        )


def refuse_our_line(folder: RunFolder, benchmark: Benchmark, kinds: Collection[Kind], options: ScoreOptions) -> None:
    """Raise `UsageError` where the official parse cannot read what the run's own format line asked for.

    Predictions that somebody else saved carry no line of ours.
    """
    prompts = folder.manifest["identity"].get("prompts")
    unread = sorted(set(kinds) - benchmark.card.official_reads)
    if options.parse != "official" or prompts is None or not unread:
        return
    if prompts.get("format_line", True):
        raise UsageError(
            f"{folder.path} was asked with our format line, and the official parse of {benchmark.card.name} does not "
            f'read replies that follow it ("Answer: ..."; {", ".join(unread)}): every one would count as unparsed. '
            f"Run with --protocol official, which sends the papers' wording, or score with --protocol strict"
        )


def _score_solver(
    folder: RunFolder,
    benchmark: Benchmark,
    solver: str,
    asked: Sequence[Question | BrokenQuestion],
    options: ScoreOptions,
    verdicts: Verdicts | None,
) -> Scored:
    found = tally(folder, benchmark, solver, asked, options)
    folder.write_scores(solver, found.scores)
    labels = tuple(folder.manifest.get("labels", ()))
    metrics = (*metrics_of(benchmark, found.scores), *rotation_metrics(found.questions, found.scores))
    scored = Scored(benchmark.card.name, solver, found.scores, metrics, found.open, found.usage, labels)
    return scored if verdicts is None else _judged(scored, found, benchmark, options, verdicts)


def tally(
    folder: RunFolder,
    benchmark: Benchmark,
    solver: str,
    asked: Sequence[Question | BrokenQuestion],
    options: ScoreOptions,
) -> Tally:
    """A verdict on every question of the run that this solver was asked or could not be asked.

    Raises:
        UsageError: the official parse cannot read replies to our format line.
    """
    refuse_our_line(folder, benchmark, {one.kind for one in asked if isinstance(one, Question)}, options)
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
    known = {question.id: question for question in asked if isinstance(question, Question)}
    return Tally(tuple(scores), tuple(attempts.values()), known, waiting, usage)


def _judged(scored: Scored, found: Tally, benchmark: Benchmark, options: ScoreOptions, verdicts: Verdicts) -> Scored:
    """The same with metrics `judged.*`, in which unreadable replies count as the judge read them."""
    attempts = {attempt.id: attempt for attempt in found.attempts}
    unparsed = [score for score in found.scores if score.outcome is Outcome.UNPARSED]
    decided: dict[str, Score] = {}
    for score in unparsed:
        exchanges = with_verdicts(attempts[score.id], verdicts)
        if exchanges is None:
            continue
        again = benchmark.score(found.questions[score.id], exchanges, options)
        if again.outcome is not Outcome.UNPARSED:
            decided[score.id] = replace(again, rule="judge")
    scores = tuple(decided.get(score.id, score) for score in found.scores)
    metrics = (*metrics_of(benchmark, scores), *rotation_metrics(found.questions, scores))
    named = tuple(replace(metric, name=f"judged.{metric.name}") for metric in metrics)
    by = ", ".join(models_of(tuple(verdicts.values()))) or "nobody"
    label = f"judged: {len(decided)} of {len(unparsed)} unparsed replies read by {by}"
    return replace(scored, metrics=(*scored.metrics, *named), labels=(*scored.labels, label), judged=scores)


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
    path: Path,
    benchmark: Benchmark,
    field: Field | None,
    options: ScoreOptions,
    data: str | None = None,
    more: Sequence[Path] = (),
) -> Scored:
    """Score predictions that somebody else saved; without a field what they stored, or their texts if they stored none.

    `more` are further files of the same model (`sets_of`).

    Raises:
        UsageError: the layout is not one this benchmark knows.
        DataError: a row that cannot be used, or ids that the data does not have.
    """
    found = join_predictions(path, benchmark, data, more)
    pairs, chosen_field = found.pairs, field or field_of(found)
    scores = []
    for question, prediction in pairs:
        if chosen_field == "stored":
            if prediction.stored is None:
                raise UsageError(f"--field stored: {path} keeps no extracted answers; use --field text")
            scores.append(benchmark.score_stored(question, prediction.stored))
        else:
            scores.append(benchmark.score(question, (exchange_of(question, prediction, chosen_field),), options))
    metrics = metrics_of(benchmark, scores)
    if chosen_field == "text":
        metrics = (*metrics, *_agreement(pairs, scores, benchmark))
    return Scored(benchmark.card.name, _name_of(path), tuple(scores), metrics, origin=found.origin)


def field_of(found: Joined) -> Field:
    """What is scored when nothing was said: what was stored, where every prediction stores something."""
    return "stored" if all(prediction.stored is not None for _, prediction in found.pairs) else "text"


def read_predictions(path: Path, benchmark: Benchmark, data: str | None) -> tuple[tuple[Question, Prediction], ...]:
    """The pairs of `join_predictions`."""
    return join_predictions(path, benchmark, data).pairs


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
    named = {"agreement": tuple(same)} if same else {}
    named["undecided"] = tuple(undecided)
    return tuple(Metric(name, combine(cells, "ratio"), len(cells), "ratio", cells) for name, cells in named.items())


def import_run(
    path: Path,
    benchmark: Benchmark,
    field: Field | None,
    out: Path,
    data: str | None = None,
    more: Sequence[Path] = (),
) -> RunFolder:
    """Make a run out of somebody else's predictions; `more` are further files of the same model.

    Raises:
        UsageError: `out` is taken, or as `score_predictions`.
    """
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"-o {out}: the folder is not empty")
    found = join_predictions(path, benchmark, data, more)
    field = field or field_of(found)
    folder = RunFolder(out)
    name = _name_of(path)
    with folder.locked():
        identity: dict[str, Json] = {
            "benchmark": benchmark.card.name,
            "split": benchmark.card.splits[0],
            "imported": {"name": name, "field": field},
        }
        origin = codec(Origin).dump_python(found.origin, mode="json")
        labels: list[Json] = [f"imported ({field})"]
        folder.write_manifest({"identity": identity, "solvers": {name: {}}, "labels": labels, "predictions": origin})
        folder.write_questions(question for question, _ in found.pairs)
        journal = folder.journal(name)
        for question, prediction in found.pairs:
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
