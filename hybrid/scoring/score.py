"""Loop 2: attempts on disk to scores and metrics; no model is called, and it can be repeated for ever.

    hybrid score RUN [--verdicts judge] [--json]
    hybrid score PREDICTIONS --benchmark blink --field stored

`score_run` sums the scores of a run (`tally.py` makes them, or reads them back), `score_predictions` scores what
somebody else saved, and `import_run` makes a run of it that every later command reads like our own. What a judge read
(`readings.py`) only adds numbers.

Every number exists twice: a question without a readable answer is wrong, as the papers count, or a guess
(`equal_credit` in JSON), alike for a specialist that abstains and a model whose reply nobody can read. A failed
question is in neither: it is missing, and `with_failed.*` counts it as wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hybrid.answers.letters import parse_letter
from hybrid.benchmarks.base import Abstain, Benchmark, Prediction, ScoreOptions, accuracy
from hybrid.errors import UsageError
from hybrid.log.attempts import attempt_line
from hybrid.log.codec import codec
from hybrid.log.files import write_redacted, writing
from hybrid.log.folder import QUESTIONS, RunFolder, attempts_of
from hybrid.registry import load
from hybrid.rotation import rotation_metrics
from hybrid.scoring.pairing import Data
from hybrid.scoring.predictions.base import Joined, Origin
from hybrid.scoring.predictions.mounted import join_predictions
from hybrid.scoring.readings import VERDICTS, Readings, models_of, read_readings, with_readings
from hybrid.scoring.tally import OTHER, Replies, Tally, recorded_of, tally, tally_replies
from hybrid.stats import combine, interval
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
AnyQuestions = Mapping[str, Question | BrokenQuestion]
"""Questions by id, broken rows among them."""

WITH_FAILED = "with_failed."
"""How the metrics that count a failed question as wrong begin."""
JUDGED = "judged."
"""How the metrics that count what a judge read begin."""


@dataclass(frozen=True)
class Counted:
    """Scores under one rule of what no answer is worth, and the metrics that they add up to."""

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
    """One solver's scores, under both rules of what no answer is worth."""

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
    damage: tuple[str, ...] = ()
    """A line for each thing that is wrong with what the run holds of this solver."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """By id why an answered question has no score."""
    not_kept: str | None = None
    """Why the scores are not on disk now."""
    judged: Mapping[Abstain, Counted] = field(default_factory=dict)
    """The same questions once more, where asked for: what a judge read instead of unreadable replies."""
    origin: Origin | None = None
    """Of predictions: the format, and what did not fit."""
    recorded: str = ""
    """The solver's own name in its run, which `solver` may add to; of predictions what they are called."""
    folder: RunFolder | None = None
    """The run, with its traces; None for predictions that were scored as they lie on disk."""
    model: str | None = None
    """The MLLM of the run as it is called everywhere (`openai:gpt-4o`); of predictions and imports their name."""
    tool_output: str = "real"
    """What tool calls of the run came to: `real`, or the control in force."""

    @property
    def scores(self) -> tuple[Score, ...]:
        """The scores by the chosen rule."""
        return self.counted[self.abstain].scores

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics by the chosen rule."""
        return self.counted[self.abstain].metrics

    @property
    def failed(self) -> int:
        """How many questions nobody answered."""
        return sum(score.outcome.failed for score in self.scores)

    @property
    def answered_nothing(self) -> bool:
        """Whether no question has a readable answer: what its metrics come to was not measured."""
        return nothing_answered(self.scores)

    def as_json(self, by: str | None = None) -> dict[str, Json]:
        """What `hybrid score --json` prints of one solver; `by` is a group to report by instead of tasks.

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
            "intervals": {metric.name: None if self.answered_nothing else _ends(metric) for metric in self.metrics},
        }
        if self.open:
            report["open"] = self.open
        if self.labels:
            report["labels"] = list(self.labels)
        if self.origin is not None:
            report["predictions"] = codec(Origin).dump_python(self.origin, mode="json")
        return report


def nothing_answered(scores: Sequence[Score]) -> bool:
    """Whether none of these has a readable answer."""
    return all(score.answer is None for score in scores)


def group_of(score: Score, by: str | None) -> str:
    """The task of a score, or its value of the group `by`; "-" where it has none."""
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


def score_run(
    folder: RunFolder,
    options: ScoreOptions,
    solvers: Sequence[str] = (),
    verdicts: Path | Literal["judge"] | None = None,
    *,
    keep: bool = True,
) -> tuple[Scored, ...]:
    """Score the solvers of a run (all by default), unless the scores on disk hold, and write their scores.

    Without `keep` nothing is written: for a run that goes on.

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
    questions = asked.by_id
    read = _readings(folder, names, verdicts)
    imported = "imported" in manifest["identity"]
    found = []
    for name in names:
        made = tally(folder, benchmark, name, asked, options, keep=keep)
        one = Scored(
            benchmark=benchmark.card.name,
            solver=name,
            counted=_counted(benchmark, questions, made, options.abstain),
            abstain=options.abstain,
            questions=questions,
            data=Data.of_run(manifest["identity"]),
            open=made.open,
            usage=None if imported else made.usage,
            wall_s=None if imported else made.wall_s,
            labels=_labels_of(manifest, name),
            damage=made.damage,
            reasons=made.reasons,
            not_kept=made.not_kept,
            recorded=name,
            folder=folder,
            model=_model_of(manifest["identity"]),
            tool_output=manifest["identity"].get("tool_output", "real"),
        )
        found.append(_judged(one, folder, benchmark, options, read[name]) if name in read else one)
    return tuple(found)


def _model_of(identity: Mapping[str, Any]) -> str | None:
    """What the MLLM of a run is called; the name of what was imported; None for a run without one."""
    if "imported" in identity:
        return str(identity["imported"].get("name") or "")
    model = identity.get("model")
    return None if model is None else str(model["model"])


def _labels_of(manifest: Mapping[str, Any], solver: str) -> tuple[str, ...]:
    """The labels of a run that are about one of its solvers: `KIND: TOOL, TOOL` is about those that may call them."""
    tools = {name: one.get("tools", {}) for name, one in manifest["solvers"].items()}
    every = {tool for own in tools.values() for tool in own}
    found = []
    for label in manifest.get("labels", ()):
        kind, _, words = label.partition(": ")
        named = words.split(", ")
        if not every.issuperset(named):
            found.append(label)
        elif own := [tool for tool in named if tool in tools.get(solver, {})]:
            found.append(f"{kind}: {', '.join(own)}")
    return tuple(found)


def chosen(folder: RunFolder, solvers: Sequence[str]) -> tuple[str, ...]:
    """The named solvers of a run, all without a name. Raises `UsageError` for one without attempts."""
    known = folder.solvers()
    for name in solvers:
        if name not in known:
            raise UsageError(f"{folder.path} has no attempts of {name!r}; it has: {', '.join(known) or 'none'}")
    return tuple(solvers) or known


def _readings(
    folder: RunFolder, solvers: Sequence[str], source: Path | Literal["judge"] | None
) -> Mapping[str, Readings]:
    if source is None:
        return {}
    if source != "judge":
        if len(solvers) != 1:
            raise UsageError(f"--verdicts {source} belongs to one solver: give RUN/SOLVER, one of {', '.join(solvers)}")
        if not source.is_file():
            raise UsageError(f"--verdicts {source}: there is no such file")
        return {solvers[0]: read_readings(source)}
    paths = {name: folder.path / name / VERDICTS for name in solvers}
    found = {name: read_readings(path) for name, path in paths.items() if path.is_file()}
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


def _counted(
    benchmark: Benchmark, asked: Mapping[str, Question | BrokenQuestion], made: Tally, rule: Abstain
) -> dict[Abstain, Counted]:
    """The scores and metrics under the rule by which a tally was made, and under the other one."""
    again = {score.id: score for score in made.unanswered}
    other = tuple(again.get(score.id, score) for score in made.scores)
    both: dict[Abstain, tuple[Score, ...]] = {rule: made.scores, OTHER[rule]: other}
    if not again:
        counted = Counted(made.scores, metrics_of(benchmark, asked, made.scores))
        return dict.fromkeys(both, counted)
    return {name: Counted(scores, metrics_of(benchmark, asked, scores)) for name, scores in both.items()}


def _judged(
    scored: Scored, folder: RunFolder, benchmark: Benchmark, options: ScoreOptions, readings: Readings
) -> Scored:
    """The same with metrics `judged.*`, in which unreadable replies count as the judge read them."""
    known = scored.questions
    unparsed = {score.id for score in scored.scores if score.outcome is Outcome.UNPARSED}
    attempts = folder.recorded(scored.solver).without_steps
    heard = {name: with_readings(attempts[name], readings) for name in attempts if name in unparsed}
    asked = {name: question for name in heard if isinstance(question := known[name], Question)}
    judged: dict[Abstain, Counted] = {}
    named_apart: dict[Abstain, Counted] = {}
    decided: dict[str, Score] = {}
    for rule, own in scored.counted.items():
        counting = replace(options, abstain=rule)
        again = [benchmark.score(asked[name], said, counting) for name, said in heard.items() if said is not None]
        decided = {one.id: replace(one, rule="judge") for one in again if one.outcome is not Outcome.UNPARSED}
        scores = tuple(decided.get(score.id, score) for score in own.scores)
        metrics = metrics_of(benchmark, known, scores)
        judged[rule] = Counted(scores, metrics)
        named = tuple(replace(metric, name=f"{JUDGED}{metric.name}") for metric in metrics)
        named_apart[rule] = Counted(own.scores, (*own.metrics, *named))
    by = ", ".join(models_of(tuple(readings.values()))) or "nobody"
    label = f"judged: {len(decided)} of {len(unparsed)} unparsed replies read by {by}"
    return replace(scored, counted=named_apart, labels=(*scored.labels, label), judged=judged)


def metrics_of(benchmark: Benchmark, questions: AnyQuestions, scores: Sequence[Score]) -> tuple[Metric, ...]:
    """The benchmark's metrics and those of rotations, without what failed; `with_failed.*` count that as wrong."""
    metrics = summary(benchmark, questions, scores)
    if not any(score.outcome.failed for score in scores):
        return metrics
    wrong = [replace(score, outcome=Outcome.UNPARSED) if score.outcome.failed else score for score in scores]
    return (*metrics, *(replace(m, name=f"{WITH_FAILED}{m.name}") for m in benchmark.summarise(wrong)))


def summary(benchmark: Benchmark, questions: AnyQuestions, scores: Sequence[Score]) -> tuple[Metric, ...]:
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
    pairs, chosen_field = found.pairs, field or _field_of(found)
    if chosen_field == "stored" and any(prediction.stored is None for _, prediction in pairs):
        raise UsageError(f"--field stored: {path} keeps no extracted answers; use --field text")
    asked = {question.id: question for question, _ in pairs}
    made = tally_replies(benchmark, _replies(pairs, chosen_field), options)
    counted = _counted(benchmark, asked, made, options.abstain)
    if chosen_field == "text":
        agreement = _agreement(pairs, made.scores, benchmark)
        counted = {rule: replace(one, metrics=(*one.metrics, *agreement)) for rule, one in counted.items()}
    return Scored(
        benchmark=benchmark.card.name,
        solver=_name_of(path),
        counted=counted,
        abstain=options.abstain,
        questions=asked,
        data=Data.of_predictions(benchmark.card.name, benchmark.card.splits[0]),
        reasons=made.reasons,
        origin=found.origin,
        recorded=_name_of(path),
        model=_name_of(path),
    )


def _field_of(found: Joined) -> Field:
    """What is scored when nothing was said: what was stored, where every prediction stores something."""
    return "stored" if all(prediction.stored is not None for _, prediction in found.pairs) else "text"


def _replies(pairs: Sequence[tuple[Question, Prediction]], field: Field) -> Replies:
    """Recorded replies in the shape of attempts of our own."""
    attempts = {question.id: Attempt(question.id, (_exchange(question, said, field),), 0.0) for question, said in pairs}
    return Replies(tuple(question for question, _ in pairs), attempts, stored=field == "stored")


def _exchange(question: Question, prediction: Prediction, field: Field) -> Exchange:
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
    field = field or _field_of(found)
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
        facts: dict[str, Json] = {"solvers": {name: {}}, "labels": labels, "predictions": origin}
        with writing(out):
            folder.write_questions(question for question, _ in found.pairs)
            journal = folder.journal(name)
            journal.append(*map(attempt_line, _replies(found.pairs, field).attempts.values()))
            journal.close()
            parts = (QUESTIONS, attempts_of(name))
            files = {part: asdict(folder.measure(part).extent) for part in parts}
            folder.write_manifest({"identity": identity, **facts, "files": files})
    return folder


def write_submission(folder: RunFolder, solver: str) -> Path:
    """The file that the benchmark's server takes, from one solver's attempts."""
    benchmark: Benchmark = load("hybrid.benchmarks", folder.manifest["identity"]["benchmark"])
    questions = folder.questions()
    answers: dict[str, str | None] = {question.id: None for question in questions.sound}
    for attempt in recorded_of(folder, solver, questions).without_steps.values():
        question = questions.by_id[attempt.id]
        assert isinstance(question, Question)  # noqa: S101 - a broken row is never asked
        answers[attempt.id] = parse_letter(attempt.exchanges[-1].reply.text, question.choices).value
    path = folder.path / solver / "submission.json"
    with writing(path.parent):
        write_redacted(path, benchmark.submission(answers).encode() + b"\n")
    return path
