"""Loop 2: attempts on disk to verdicts and metrics; no model is called, and it can be repeated for ever.

    hybrid score RUN [--verdicts judge] [--json]
    hybrid score PREDICTIONS --benchmark blink --field stored

`score_run` writes `RUN/SOLVER/scores.jsonl`; `score_predictions` scores what somebody else saved, and `import_run`
makes a run of it that every later command reads like our own. Verdicts of a judge (`verdicts.py`) only add numbers.

Every number exists twice: a question without a readable answer is wrong, as the papers count, or a guess
(`equal_credit` in JSON), alike for a specialist that abstains and a model whose reply nobody can read. A failed
question is in neither: it is missing, and `with_failed.*` counts it as wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from hybrid.answers.letters import parse_letter
from hybrid.benchmarks.base import Abstain, Benchmark, Prediction, ScoreOptions, accuracy
from hybrid.errors import UsageError
from hybrid.registry import load
from hybrid.rotation import rotation_metrics
from hybrid.run_folder import ERRORS, RunFolder, attempt_line, codec
from hybrid.scoring.pairing import Data
from hybrid.scoring.predictions.base import Joined, Origin
from hybrid.scoring.predictions.mounted import join_predictions
from hybrid.scoring.readings import VERDICTS, Verdicts, models_of, read_verdicts, with_verdicts
from hybrid.stats import combine, interval
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

Field = Literal["stored", "text"]

WITH_FAILED = "with_failed."
"""How the metrics that count a failed question as wrong begin."""
JUDGED = "judged."
"""How the metrics that count what a judge read begin."""


@dataclass(frozen=True)
class Counted:
    """Verdicts under one rule of what no answer is worth, and the metrics that they add up to."""

    scores: tuple[Score, ...]
    metrics: tuple[Metric, ...]

    def values(self) -> dict[str, Json]:
        """The metrics by name, those with dots nested."""
        return nested({metric.name: rounded(metric.value) for metric in self.metrics})

    def tasks(self, by: str | None) -> dict[str, Json]:
        """Questions and accuracy of each task, or of each value of the group `by`."""
        parts: dict[str, list[Score]] = {}
        for score in self.scores:
            parts.setdefault(group_of(score, by), []).append(score)
        return {name: _part(members) for name, members in sorted(parts.items())}


@dataclass(frozen=True)
class Scored:
    """One solver's verdicts, under both rules of what no answer is worth."""

    benchmark: str
    solver: str
    counted: Mapping[Abstain, Counted]
    abstain: Abstain
    """The rule that `scores` and `metrics` follow."""
    questions: Mapping[str, Question | BrokenQuestion]
    data: Data
    open: int = 0
    """Questions of the run that this solver has not been asked yet: no part of any number."""
    usage: Usage | None = None
    """What the asks cost; None where nobody recorded it."""
    wall_s: float | None = None
    """Seconds during which at least one question was being asked; None where nobody recorded it."""
    labels: tuple[str, ...] = ()
    judged: Mapping[Abstain, Counted] = field(default_factory=dict)
    """The same questions once more, where asked for: a judge's verdicts in the place of unreadable replies."""
    origin: Origin | None = None
    """Of predictions: the format, and what did not fit."""

    @property
    def scores(self) -> tuple[Score, ...]:
        """The verdicts by the chosen rule."""
        return self.counted[self.abstain].scores

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics by the chosen rule."""
        return self.counted[self.abstain].metrics

    @property
    def failed(self) -> int:
        """How many questions nobody answered."""
        return sum(score.outcome.failed for score in self.scores)

    def as_json(self, by: str | None = None) -> dict[str, Json]:
        """What `hybrid score --json` prints of one solver; `by` is a group that takes the place of the tasks.

        `metrics` and `tasks` follow the rule `abstain`, `equal_credit` always counts no answer as a guess. Accuracies
        are over the questions that did not fail; `intervals` are 95 %: low, high, method.
        """
        guessed = self.counted["chance"]
        report: dict[str, Json] = {
            "benchmark": self.benchmark,
            "n": len(self.scores),
            "failed": self.failed,
            "outcomes": dict(Counter(score.outcome.value for score in self.scores)),
            "metrics": self.counted[self.abstain].values(),
            "tasks": self.counted[self.abstain].tasks(by),
            "abstain": self.abstain,
            "equal_credit": {"metrics": guessed.values(), "tasks": guessed.tasks(by)},
            "intervals": {metric.name: _ends(metric) for metric in self.metrics},
        }
        if self.open:
            report["open"] = self.open
        if self.labels:
            report["labels"] = list(self.labels)
        if self.origin is not None:
            report["predictions"] = codec(Origin).dump_python(self.origin, mode="json")
        return report


def group_of(score: Score, by: str | None) -> str:
    """The task of a verdict, or its value of the group `by`; "-" where it has none."""
    return score.task if by is None else score.groups.get(by, "-")


def _part(members: Sequence[Score]) -> dict[str, Json]:
    """`n` counts all questions; failed ones are named where there are some and are not in the accuracy."""
    failed = sum(score.outcome.failed for score in members)
    found: dict[str, Json] = {"n": len(members), "accuracy": rounded(accuracy("", members).value)}
    return {**found, "failed": failed} if failed else found


def _ends(metric: Metric) -> Json:
    found = interval(metric)
    return None if found is None else [found.low, found.high, found.method]


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
    stored: bool = False
    """Whether the replies are answers that somebody else's extraction stored."""


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
    manifest = folder.manifest
    imported = "imported" in manifest["identity"]
    attempts = {attempt.id: attempt for attempt in found.attempts}

    def verdict(score: Score, rule: Abstain) -> Score:
        attempt = attempts[score.id]
        return verdict_on(
            benchmark, found.questions[score.id], attempt, replace(options, abstain=rule), stored=found.stored
        )

    scored = Scored(
        benchmark=benchmark.card.name,
        solver=solver,
        counted=_both(benchmark, found.questions, found.scores, options.abstain, verdict),
        abstain=options.abstain,
        questions={question.id: question for question in asked},
        data=Data.of_run(manifest["identity"]),
        open=found.open,
        usage=None if imported else found.usage,
        wall_s=None if imported else wall_seconds(found.attempts),
        labels=tuple(manifest.get("labels", ())),
    )
    return scored if verdicts is None else _judged(scored, found, benchmark, options, verdicts)


def _both(
    benchmark: Benchmark,
    questions: Mapping[str, Question],
    scores: Sequence[Score],
    rule: Abstain,
    verdict: Callable[[Score, Abstain], Score],
) -> dict[Abstain, Counted]:
    """The verdicts and metrics under the rule by which `scores` were made, and under the other one.

    `verdict` judges a question again, which only those without an answer need.
    """
    other: Abstain = "wrong" if rule == "chance" else "chance"
    again = [score if score.answer is not None or score.outcome.failed else verdict(score, other) for score in scores]
    made: dict[Abstain, Sequence[Score]] = {rule: scores, other: again}
    return {name: Counted(tuple(made[name]), metrics_of(benchmark, questions, made[name])) for name in made}


def wall_seconds(attempts: Sequence[Attempt]) -> float | None:
    """Seconds during which at least one of the attempts was under way; None where one does not say when it began.

    Questions asked side by side count once, and a pause between two commands that fill one run does not count.
    """
    began = [(attempt.started, attempt.seconds) for attempt in attempts]
    spans = sorted((start, start + lasted) for start, lasted in began if start is not None)
    if len(spans) < len(attempts):
        return None
    total, until = 0.0, 0.0
    for start, end in spans:
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def verdict_on(
    benchmark: Benchmark, question: Question, attempt: Attempt, options: ScoreOptions, *, stored: bool
) -> Score:
    """The verdict on a finished question; what their own extraction `stored` is compared as it stands, not parsed."""
    if stored:
        return benchmark.score_stored(question, attempt.exchanges[-1].reply.text, options)
    return benchmark.score(question, attempt.exchanges, options)


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
            scores.append(verdict_on(benchmark, question, attempt, options, stored=stored))
            usage = sum((exchange.reply.usage for exchange in attempt.exchanges), usage)
        elif question.id in failed:
            scores.append(_unasked(question, Outcome.OUTAGE))
        else:
            waiting += 1
    known = {question.id: question for question in asked if isinstance(question, Question)}
    return Tally(tuple(scores), tuple(attempts.values()), known, waiting, usage, stored)


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
    judged: dict[Abstain, Counted] = {}
    beside: dict[Abstain, Counted] = {}
    for rule, own in scored.counted.items():
        scores = tuple(decided.get(score.id, score) for score in own.scores)
        metrics = metrics_of(benchmark, found.questions, scores)
        judged[rule] = Counted(scores, metrics)
        named = tuple(replace(metric, name=f"{JUDGED}{metric.name}") for metric in metrics)
        beside[rule] = Counted(own.scores, (*own.metrics, *named))
    by = ", ".join(models_of(tuple(verdicts.values()))) or "nobody"
    label = f"judged: {len(decided)} of {len(unparsed)} unparsed replies read by {by}"
    return replace(scored, counted=beside, labels=(*scored.labels, label), judged=judged)


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


def metrics_of(benchmark: Benchmark, questions: Mapping[str, Question], scores: Sequence[Score]) -> tuple[Metric, ...]:
    """The benchmark's metrics and those of rotations, without what failed; `with_failed.*` count that as wrong."""
    metrics = summary(benchmark, questions, scores)
    if not any(score.outcome.failed for score in scores):
        return metrics
    wrong = [replace(score, outcome=Outcome.UNPARSED) if score.outcome.failed else score for score in scores]
    return (*metrics, *(replace(m, name=f"{WITH_FAILED}{m.name}") for m in benchmark.summarise(wrong)))


def summary(benchmark: Benchmark, questions: Mapping[str, Question], scores: Sequence[Score]) -> tuple[Metric, ...]:
    """The benchmark's metrics, and those of `--rotate` where there are rotations; what failed is missing."""
    return (*benchmark.summarise(scores), *rotation_metrics(questions, scores))


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
    if chosen_field == "stored" and any(prediction.stored is None for _, prediction in pairs):
        raise UsageError(f"--field stored: {path} keeps no extracted answers; use --field text")
    said = {question.id: (question, prediction) for question, prediction in pairs}

    def verdict(identity: str, rule: Abstain) -> Score:
        question, prediction = said[identity]
        attempt = Attempt(identity, (exchange_of(question, prediction, chosen_field),), 0.0)
        chosen_rule = replace(options, abstain=rule)
        return verdict_on(benchmark, question, attempt, chosen_rule, stored=chosen_field == "stored")

    scores = [verdict(question.id, options.abstain) for question, _ in pairs]
    asked = {question.id: question for question, _ in pairs}
    counted = _both(benchmark, asked, scores, options.abstain, lambda score, rule: verdict(score.id, rule))
    if chosen_field == "text":
        agreement = _agreement(pairs, scores, benchmark)
        counted = {rule: replace(one, metrics=(*one.metrics, *agreement)) for rule, one in counted.items()}
    return Scored(
        benchmark=benchmark.card.name,
        solver=_name_of(path),
        counted=counted,
        abstain=options.abstain,
        questions=asked,
        data=Data.of_predictions(benchmark.card.name, benchmark.card.splits[0]),
        origin=found.origin,
    )


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
