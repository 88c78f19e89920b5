"""One solver's scores: its verdicts and metrics under both rules for unanswered questions, also as numpy columns.

Every number is computed under both rules, and an output uses one of them. Under one rule a question without a readable
answer counts as wrong, as in the papers; under the other it counts as a guess. Both rules cover a specialist that
abstains and a model whose reply cannot be parsed. Neither counts a failed question: it is missing, and only
`with_failed.*` counts it as wrong.

`runs.py` scores runs, `predicted.py` predictions that other programs saved.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hybrid.benchmarks.base import Benchmark, UnansweredRule, accuracy
from hybrid.core.option_rotation import ROTATED
from hybrid.core.types import LETTERS, BrokenQuestion, Cell, Json, Metric, Outcome, Question, Score, Usage
from hybrid.log.codec import codec
from hybrid.log.folder import RunFolder
from hybrid.scoring.pairing import Data
from hybrid.scoring.predictions.base import Origin
from hybrid.scoring.tally import OTHER, Tally
from hybrid.stats import combine, interval

T = TypeVar("T")

# Questions by id, including broken rows.
AnyQuestions = Mapping[str, Question | BrokenQuestion]

# Prefix of metrics that count a failed question as wrong.
WITH_FAILED = "with_failed."
# Prefix of metrics that count a judge's readings.
JUDGED = "judged."


@dataclass(frozen=True)
class Counted:
    """Scores under one rule for unanswered questions, and their metrics."""

    scores: tuple[Score, ...]
    metrics: tuple[Metric, ...]

    def values(self) -> dict[str, Json]:
        """Return the metrics by name; names with dots become nested objects."""
        return nested({metric.name: rounded(metric.value) for metric in self.metrics})

    def tasks(self, by: str | None) -> dict[str, Json]:
        """Return the number of questions and the accuracy of each task, or of each value of the group `by`."""
        tasks: dict[str, Json] = {}
        for name, members in grouped(self.scores, lambda score: group_of(score, by)).items():
            failed = sum(score.outcome.failed for score in members)
            # `n` counts all questions; failed questions are reported if there are any, and do not count in the
            # accuracy.
            counts: dict[str, Json] = {"n": len(members), "accuracy": rounded(accuracy("", members).value)}
            tasks[name] = {**counts, "failed": failed} if failed else counts
        return tasks


@dataclass(frozen=True)
class Scored:
    """One solver's scores, under both rules for unanswered questions."""

    benchmark: str
    solver: str
    counted: Mapping[UnansweredRule, Counted]
    # The rule that `scores` and `metrics` follow.
    unanswered: UnansweredRule
    questions: Mapping[str, Question | BrokenQuestion]
    data: Data
    # Number of questions that this solver has not been asked yet; no other number includes them.
    open: int = 0
    # The total usage of all prompts; None if not recorded.
    usage: Usage | None = None
    # Seconds during which at least one question was being asked; None if not recorded.
    wall_s: float | None = None
    labels: tuple[str, ...] = ()
    # One line per problem with the run's records of this solver.
    damage: tuple[str, ...] = ()
    # Reason why an answered question has no score, by id.
    reasons: Mapping[str, str] = field(default_factory=dict)
    # Reason why the scores were not saved; None if they were.
    not_kept: str | None = None
    # The scores in which unreadable replies count as a judge read them, if requested.
    judged: Mapping[UnansweredRule, Counted] = field(default_factory=dict)
    # The format of predictions, and the rows that did not match.
    origin: Origin | None = None
    # The solver's name in its run, which `solver` may extend; or the name of predictions.
    recorded: str = ""
    # The run with its traces; None for predictions scored directly from their file.
    folder: RunFolder | None = None
    # The file or folder of predictions; None for runs, and where their names alone tell predictions apart (`unique`).
    source: Path | None = None
    # The MLLM of the run, for example `openai:gpt-4o`; for predictions and imports their name.
    model: str | None = None
    # The source of tool output in the run: `real`, or the control in force.
    tool_output: str = "real"
    # Whether these are the scores of another solver again, counted with a judge's readings.
    read_by_judge: bool = False

    @property
    def in_batches(self) -> bool:
        """Whether the solver's model was asked in batches, so that seconds are not latencies."""
        asks = self.folder is not None and self.usage is not None and self.usage.model_calls > 0
        return asks and any("batch" in way for way in self.manifest.get("connection", ()))

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """The manifest of the solver's run (`folder`), cached because a comparison uses it for every row."""
        assert self.folder is not None  # noqa: S101 - predictions on disk have no manifest
        return self.folder.manifest

    @property
    def identity(self) -> Mapping[str, Any]:
        """The identity in the run's manifest; empty for predictions scored from their file."""
        return {} if self.folder is None else self.manifest["identity"]

    @property
    def scores(self) -> tuple[Score, ...]:
        """The scores under the chosen rule."""
        return self.counted[self.unanswered].scores

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics under the chosen rule."""
        return self.counted[self.unanswered].metrics

    @cached_property
    def failed(self) -> int:
        """Number of questions that failed; cached because the title of every table states it."""
        return sum(score.outcome.failed for score in self.scores)

    @property
    def without_prediction(self) -> int:
        """Number of the data's questions that the predictions omit; 0 for a run by hybrid."""
        if self.origin is not None:
            return len(self.origin.missing)
        predictions = self.manifest.get("predictions") if self.folder is not None else None
        return len(predictions["missing"]) if predictions else 0

    @property
    def answered_nothing(self) -> bool:
        """Whether no question has a readable answer, so that the solver's metrics mean nothing."""
        return nothing_answered(self.scores)

    def under(self, rule: UnansweredRule) -> Scored:
        """Return these scores under another rule for unanswered questions."""
        return replace(self, unanswered=rule)

    def as_json(self, by: str | None = None) -> dict[str, Json]:
        """Return the object of `hybrid score --json` for one solver; `by` is a group to report by instead of tasks.

        All numbers follow the rule `unanswered`. Accuracies cover the questions that did not fail; `intervals` has the
        low end, the high end and the method of each 95 % interval.
        """
        report: dict[str, Json] = {
            "benchmark": self.benchmark,
            "n": len(self.scores),
            "failed": self.failed,
            "outcomes": dict(Counter(score.outcome.value for score in self.scores)),
            "metrics": self.counted[self.unanswered].values(),
            "tasks": self.counted[self.unanswered].tasks(by),
            "unanswered": self.unanswered,
            "intervals": {
                metric.name: None
                if self.answered_nothing or (ends := interval(metric)) is None
                else [ends.low, ends.high, ends.method]
                for metric in self.metrics
            },
        }
        if self.open:
            report["open"] = self.open
        if self.labels:
            report["labels"] = list(self.labels)
        if self.origin is not None:
            report["predictions"] = codec(Origin).dump_python(self.origin, mode="json")
        return report


def with_judged(solvers: Sequence[Scored]) -> tuple[Scored, ...]:
    """Return every solver, each followed by its scores with a judge's readings if it has them."""
    expanded = []
    for solver in solvers:
        expanded.append(solver)
        if solver.judged:
            expanded.append(
                replace(solver, solver=f"{solver.solver} + judge", counted=solver.judged, judged={}, read_by_judge=True)
            )
    return tuple(expanded)


def nothing_answered(scores: Sequence[Score]) -> bool:
    """Return whether no score has a readable answer."""
    return all(score.answer is None for score in scores)


def group_of(score: Score, by: str | None) -> str:
    """Return the task of a score, or its value of the group `by`; "-" if it has no such group."""
    return score.task if by is None else score.groups.get(by, "-")


def grouped(items: Iterable[T], name: Callable[[T], str]) -> dict[str, list[T]]:
    """Group the items by name, with names sorted and the items of a name in their order."""
    parts = defaultdict[str, list[T]](list)
    for item in items:
        parts[name(item)].append(item)
    return dict(sorted(parts.items()))


def rounded(value: float | None) -> float | None:
    """Round to twelve digits, enough for every comparison, so that files have no last-bit noise."""
    return None if value is None else round(value, 12)


def nested(flat: Mapping[str, Json]) -> dict[str, Json]:
    """Turn `{"qAcc.low": x}` into `{"qAcc": {"low": x}}`."""
    tree: dict[str, Json] = {}
    for name, value in flat.items():
        head, dot, tail = name.partition(".")
        if dot:
            inner = tree.setdefault(head, {})
            assert isinstance(inner, dict)  # noqa: S101 - no metric name is the beginning of another
            inner[tail] = value
        else:
            tree[head] = value
    return tree


def counted_twice(
    benchmark: Benchmark, questions: Mapping[str, Question | BrokenQuestion], tally: Tally, rule: UnansweredRule
) -> dict[UnansweredRule, Counted]:
    """Return the scores and metrics under the tally's rule and under the other rule."""
    by_other_rule = {score.id: score for score in tally.by_other_rule}
    if not by_other_rule:
        return dict.fromkeys((rule, OTHER[rule]), Counted(tally.scores, metrics_of(benchmark, questions, tally.scores)))
    other = tuple(by_other_rule.get(score.id, score) for score in tally.scores)
    by_rule: dict[UnansweredRule, tuple[Score, ...]] = {rule: tally.scores, OTHER[rule]: other}
    return {name: Counted(scores, metrics_of(benchmark, questions, scores)) for name, scores in by_rule.items()}


def metrics_of(benchmark: Benchmark, questions: AnyQuestions, scores: Sequence[Score]) -> tuple[Metric, ...]:
    """Return the metrics without failed questions, then `with_failed.*`, which count these as wrong."""
    metrics = summary(benchmark, questions, scores)
    if not any(score.outcome.failed for score in scores):
        return metrics
    wrong = [replace(score, outcome=Outcome.UNPARSED) if score.outcome.failed else score for score in scores]
    return (*metrics, *(replace(m, name=f"{WITH_FAILED}{m.name}") for m in benchmark.summarise(wrong)))


def summary(benchmark: Benchmark, questions: AnyQuestions, scores: Sequence[Score]) -> tuple[Metric, ...]:
    """Return the benchmark's metrics of these scores, then the metrics of questions with rotated options."""
    return (*benchmark.summarise(scores), *rotation_metrics(questions, scores))


def rotation_metrics(questions: Mapping[str, Question | BrokenQuestion], scores: Sequence[Score]) -> tuple[Metric, ...]:
    """Return the metrics of the rotations; none if no question was rotated.

    `rotation.accuracy` is over all rotations. `rotation.consistency` is the share of questions with the same option
    chosen in every rotation, and `rotation.all_correct` the share of questions right in every rotation.
    `rotation.says.LETTER` is the share of rotations that were answered with this letter. `rotation.excluded` is the
    number of questions without rotations; `rotation.excluded_in.TASK` is that number for each task without any
    rotation. A question is left out if one of its rotations failed.
    """
    groups: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        groups[ROTATED.sub("", score.id)].append(score)
    multiples = {base: members for base, members in groups.items() if len(members) > 1}
    answered_groups = {
        base: members for base, members in multiples.items() if not any(score.outcome.failed for score in members)
    }
    if not answered_groups:
        return ()
    right: list[Cell] = []
    same: list[Cell] = []
    all_correct: list[Cell] = []
    for members in answered_groups.values():
        unit = members[0].unit
        credit = [score.correct or 0.0 for score in members]
        answers = {_original(score, questions[score.id]) for score in members}
        right.append(Cell("", unit, sum(credit), len(members)))
        same.append(Cell("", unit, float(len(answers) == 1 and None not in answers), 1.0))
        all_correct.append(Cell("", unit, float(min(credit) == 1.0), 1.0))
    cells = {"accuracy": right, "consistency": same, "all_correct": all_correct}
    metrics = [Metric(f"rotation.{name}", combine(c, "ratio"), len(c), "ratio", tuple(c)) for name, c in cells.items()]
    asks = [score for members in answered_groups.values() for score in members]
    letter_counts = Counter(score.answer for score in asks)
    choice_counts = {
        len(question.choices) for question in map(questions.get, answered_groups) if isinstance(question, Question)
    }
    # These metrics have no cells, because solvers are not compared by chosen letters.
    shares = {f"says.{letter}": letter_counts[letter] / len(asks) for letter in LETTERS[: max(choice_counts)]}
    tasks, moved = (Counter(members[0].task for members in grouping.values()) for grouping in (groups, multiples))
    still = {f"excluded_in.{task}": float(n) for task, n in sorted(tasks.items()) if task not in moved}
    excluded = {"excluded": float(len(groups) - len(multiples)), **still}
    counts = ((name, values, n) for values, n in ((shares, len(asks)), (excluded, len(groups))) for name in values)
    return (*metrics, *(Metric(f"rotation.{name}", values[name], n, "ratio") for name, values, n in counts))


def _original(score: Score, question: Question | BrokenQuestion) -> int | None:
    """Return the index of the chosen option among the unrotated options; None without an answer."""
    count = len(question.choices) if isinstance(question, Question) else 0
    if score.answer is None or score.answer not in tuple(LETTERS[:count]):
        return None
    match = ROTATED.search(score.id)
    return (LETTERS.index(score.answer) + (int(match[1]) if match else 0)) % count


Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.intp]
Objects = NDArray[np.object_]


class ScoredAnswers:
    """The columns of one solver, in the order of its scores; each repetition has columns of its own.

    The last entry stands for no question, so that index -1 denotes a question that the solver lacks.
    """

    def __init__(self, scored: Scored) -> None:
        self.scored = scored
        self.place = {score.id: place for place, score in enumerate(scored.scores)}
        self.failed: Flags = np.array([*(score.outcome.failed for score in scored.scores), False], bool)
        self.answer: Objects = objects([*(score.answer for score in scored.scores), None])
        self._correct: dict[UnansweredRule, Floats] = {}
        self.tasks_by_metric: Mapping[str, Sequence[str]] = {}

    def correct(self, rule: UnansweredRule) -> Floats:
        """Return the correctness under a rule, 0..1; nan if there is no right and wrong."""
        if rule not in self._correct:
            scores = self.scored.counted[rule].scores
            self._correct[rule] = np.array(
                [np.nan if s.correct is None else s.correct for s in scores] + [np.nan], float
            )
        return self._correct[rule]

    def right(self, rule: UnansweredRule) -> Floats:
        """Return 1 for a right answer, 0 for any other, and the rule's value for a missing answer."""
        correct = self.correct(rule)
        return np.where(answered(self.answer), correct == 1, np.nan_to_num(correct))

    def metrics(self, rule: UnansweredRule) -> tuple[Metric, ...]:
        """Return the metrics over all questions of the solver, which were computed with the scores."""
        metrics = self.scored.counted[rule].metrics
        return tuple(metric for metric in metrics if not metric.name.startswith((WITH_FAILED, JUDGED)))


def answered(answers: Objects) -> Flags:
    """Mark the positions with a readable answer."""
    # numpy compares the objects in one fast loop; a Python generator would take twenty times as long.
    flags: Flags = np.not_equal(answers, None).astype(bool)  # type: ignore[call-overload]  # any object may be compared
    return flags


def objects(values: Sequence[Any]) -> Objects:
    """Return a column of arbitrary values."""
    # numpy would turn answers of equal length into a two-dimensional array.
    array = np.empty(len(values), object)
    array[:] = values
    return array
