"""The card of a benchmark: sources, settings, tasks, metrics with their ratios, and the studies of its paper."""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from hybrid.answers.prior_accuracy import PriorAccuracy
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.images import OUR_JOINT, Joint
from hybrid.core.types import BrokenQuestion, Cell, Cells, Combine, Json, Kind, Metric, Question, Score, base_id


@dataclass(frozen=True)
class ImageSource:
    """A collection from which images of a benchmark come."""

    # Name as in `hybrid.running.permissions`.
    name: str
    # Section of the paper that names the collection.
    where: str
    # The tasks that take images from this collection; empty if all do.
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """A choice of a benchmark's protocol, made with `--setting NAME=VALUE`."""

    name: str
    default: str
    # The valid values; with `pattern` a description of them, such as `1 to 20`.
    values: tuple[str, ...]
    help: str
    # A regular expression of the values, if they are too many to list.
    pattern: str | None = None

    def check(self, value: str) -> str:
        """Return the value. Raises `UsageError` that names the option, the value and the valid values."""
        if not (value in self.values if self.pattern is None else re.fullmatch(self.pattern, value)):
            raise UsageError(f"--setting {self.name}={value}: the allowed values are: {', '.join(self.values)}")
        return value


@dataclass(frozen=True)
class Baseline:
    """A row or a study that a benchmark's paper reports, and the `hybrid` command that runs the same experiment."""

    # Name in the paper.
    name: str
    # The table or section of the paper.
    where: str
    # Command that begins with `hybrid`; DIR, FILE and URL are placeholders, and so is the model.
    command: str
    # Differences from the paper, beyond the model.
    differs: str = ""


# Accepted values of a score, by group. Every score has the groups `task` and `base`, which is the score's id without a
# variant.
Groups = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Ratio:
    """Definition of a metric that is a ratio of two sums."""

    # What is summed: `correct`, or one of a score's values. `a|b` defines one metric per value; the metric's name then
    # contains the same words as `<a|b>`.
    of: str
    # The value whose sum is the denominator; by default the number of scores.
    over: str = ""
    # The scores to include.
    where: Groups = field(default_factory=dict)
    # The group with a separate metric for each of its values.
    by: str = ""
    # Maps a word in the metric's name to the scores of a separate metric.
    cases: Mapping[str, Groups] = field(default_factory=dict)
    # Groups that define a unit: scores with equal values in all of them. The scores of a unit are multiplied, and a
    # failed score excludes its unit.
    unit: tuple[str, ...] = ()
    # Smallest and largest number of scores of a unit; 0 for any number.
    rows: tuple[int, int] = (1, 0)
    # The group over whose values the ratios are averaged.
    strata: str = ""
    # Smallest number of values of `strata`, or of `by`, for the metric to exist.
    fewest: int = 1
    # Whether the metric is a share (`Metric.share`).
    share: bool = True
    # Whether the metric exists even without a score.
    kept: bool = False


@dataclass(frozen=True)
class MetricCard:
    """A metric or a family of metrics that a scorer prints: its computation, and the source of its definition."""

    # Name as printed; `<a|b>` stands for one of the words a and b, and `<word>` for any word of the data.
    name: str
    # Formula in plain text; its quantities are defined there or in `about`.
    formula: str
    # The unit that `n` counts.
    counts: str
    # The place in the paper or the authors' code, or a statement that it is hybrid's own.
    source: str
    about: str = ""
    # The range, and the unit if there is one.
    values: str = "0 to 1"
    # How the metric is computed, if it is a ratio of sums.
    ratio: Ratio | None = field(default=None, hash=False)

    def describes(self, name: str) -> bool:
        """Return whether a name belongs to this metric."""
        parts = re.split(r"<([^>]+)>", self.name)
        # Text between angle brackets with `|` matches one of its words; a single word between them matches anything.
        words = ["|".join(map(re.escape, part.split("|"))) if "|" in part else ".+" for part in parts]
        pattern = "".join(f"(?:{words[n]})" if n % 2 else re.escape(part) for n, part in enumerate(parts))
        return re.fullmatch(pattern, name) is not None


def metric_of(name: str, cells: Iterable[Cell], combination: Combine = "ratio", *, share: bool = True) -> Metric:
    """Compute the metric from cells; `n` is the number of cells; see `Metric` for `share`."""
    # Imported here because only scoring needs the numerical libraries.
    from hybrid.stats import combine

    cell_rows = Cells(cells)
    return Metric(
        name, combine(cell_rows, combination), n=len(cell_rows), combine=combination, cells=cell_rows, share=share
    )


# Number of hexadecimal digits of each answer's digest.
DIGITS: Final = 3
# Smallest number of questions from which the version of the labels is identified: with fewer, corrected labels may
# equal the older ones by chance.
MIN_QUESTIONS: Final = 8
# Largest share of unchanged answers in corrected labels; the corrections left about one in ten unchanged.
MAX_ALIKE: Final = 0.5


@dataclass(frozen=True, slots=True)
class CardCorrection:
    """A correction: answers of one task and split that the authors of the benchmark replaced.

    `on` is the day of the replacement (ISO 8601), and `said` names the sources.
    """

    task: str
    split: str
    on: str
    said: str
    # The digest of each question's older answer, in order of the question numbers from 1.
    before: tuple[str, ...]

    @property
    def older(self) -> str:
        """The name of the labels before the correction."""
        return f"before {self.on}"

    def labels(self, questions: Iterable[Question | BrokenQuestion]) -> str | None:
        """Return which labels these questions have; None without a question of the task with a public answer.

        `before DAY`: each answer is the older one. `since DAY`: most answers differ from the older ones. `neither`:
        some differ. `unknown`: too few questions of the task to decide.
        """
        unchanged: list[bool] = []
        for question in questions:
            number = question.id.rpartition("_")[2].partition("#")[0]
            if (
                question.task != self.task
                or not isinstance(question, Question)
                or not number.isdigit()
                or question.target is None
            ):
                continue
            place = int(number) - 1
            if question.id.startswith(f"{self.split}_") and 0 <= place < len(self.before) and "#" not in question.id:
                unchanged.append(digest(question.id, str(question.target)) == self.before[place])
        if not unchanged:
            return None
        if len(unchanged) < MIN_QUESTIONS:
            return "unknown"
        share = sum(unchanged) / len(unchanged)
        return self.older if share == 1 else f"since {self.on}" if share <= MAX_ALIKE else "neither"


def digest(identity: str, answer: str) -> str:
    """Return the digest of an answer."""
    return hashlib.sha256(f"{identity}\x1f{answer}".encode()).hexdigest()[:DIGITS]


def labels_of(
    corrections: Iterable[CardCorrection], questions: Iterable[Question | BrokenQuestion]
) -> Mapping[str, Json]:
    """Return which labels the questions have, for each task that was corrected."""
    question_rows = list(questions)
    return {
        correction.task: labels
        for correction in corrections
        if (labels := correction.labels(question_rows)) is not None
    }


@dataclass(frozen=True)
class BenchmarkCard:
    """Facts that a user must know about a benchmark before running it."""

    name: str
    title: str
    citation: str
    licence: str
    image_sources: tuple[ImageSource, ...]
    hub_id: str | None
    splits: tuple[str, ...]
    # Expected number of questions of the main split, by task; 0 if unknown. It is empty if the data define the tasks.
    tasks: Mapping[str, int]
    settings: tuple[Setting, ...] = ()
    # Splits whose answers are not public: they can be run but not scored.
    hidden_splits: tuple[str, ...] = ()
    # Tasks whose options are text, so that `--rotate` can move them; tasks with letters in the picture are not
    # included. "*" stands for every choice question, if the data define the tasks.
    rotatable: tuple[str, ...] = ()
    # Whether a question's text contains its options; else the dialogue writes them from the choices.
    options_in_text: bool = True
    # Tasks that `--data sample` can generate.
    sample_tasks: tuple[str, ...] = ()
    # Whether generated rows depend only on seed, task and number, so that a larger sample begins with the smaller one.
    sample_extends: bool = False
    # Kinds of question whose reply the official parse reads if it ends as the format line requests (`Answer: (B)`).
    #
    # Answers to any other kind, asked with the format line, would count as unreadable, so such a run is not scored with
    # the official parse.
    official_reads: frozenset[Kind] = frozenset(Kind)
    # Whether the route of every prompt is its question's task: then the tasks of a run determine which rules apply.
    routes_are_tasks: bool = False
    # The routes of the benchmark's prompts, if routes are not tasks. If this is empty and `routes_are_tasks` is False,
    # any rule may apply.
    routes: tuple[str, ...] = ()
    # Default settings under `--protocol official`. With them, intermediate replies are parsed as in the papers' code,
    # which does not know hybrid's format line.
    official_settings: Mapping[str, str] = field(default_factory=dict)
    # Prefixes of additional files with one model's published predictions: `mcq_` if `mcq_NAME.jsonl` goes with
    # `NAME.jsonl`.
    prediction_prefixes: tuple[str, ...] = ()

    # The tools that a model is offered by default, the same for every question; empty for all.
    tools_offered: tuple[str, ...] = ()
    # The paper's main metrics, in order; two solvers are compared by the first that the scores have. By default the
    # first of `metrics`.
    headline: tuple[str, ...] = ()
    # Prefixes of the metrics shown in tables; empty for all. JSON always has all.
    reported: tuple[str, ...] = ()
    # Published accuracy of MLLMs and of a guess, by route.
    prior_accuracy: PriorAccuracy = field(default_factory=PriorAccuracy)
    # How `--images concat` joins pictures.
    joint: Joint = OUR_JOINT
    # Results that the paper reports, each with the `hybrid` command that runs the same experiment.
    baselines: tuple[Baseline, ...] = ()
    # Every metric that `summarise` can return; the first card that matches a name describes it.
    metrics: tuple[MetricCard, ...] = ()
    # Where to get data that the hub does not have: an address, and what it provides or requires.
    elsewhere: str = ""
    # Labels that the authors have replaced.
    corrections: tuple[CardCorrection, ...] = ()
    # Facts on this card that could not be checked against the data.
    unchecked: str = ""
    # Settings for which the data have as many questions as `tasks` states, if the default settings ask more.
    counted_with: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.headline and self.metrics:
            object.__setattr__(self, "headline", (self.metrics[0].name,))

    @property
    def short_title(self) -> str:
        """Short name of the benchmark: `MVP-Bench` from its title."""
        return self.title.partition(":")[0].strip()

    def resolve_settings(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return the value of every setting: given or default. Raises `UsageError` for an unknown key or value."""
        by_name = {setting.name: setting for setting in self.settings}
        for key in values:
            if key not in by_name:
                hint = did_you_mean(key, by_name)
                raise UsageError(f"{self.name} has no setting {key!r}{hint}; available: {', '.join(by_name) or 'none'}")
        return {key: setting.check(values.get(key, setting.default)) for key, setting in by_name.items()}

    def task_in(self, text: str) -> str | None:
        """Return the task whose letters and digits `text` contains: Multi-view_Reasoning in `x_multi_view_reasoning`.

        Return None if no task is named, or if several tasks are named and none equals the full text.
        """
        words = _bare(text)
        same = [task for task in self.tasks if _bare(task) == words]
        inside = same or [task for task in self.tasks if _bare(task) in words]
        return inside[0] if len(inside) == 1 else None

    def sources_of(self, tasks: Collection[str]) -> tuple[str, ...]:
        """Return the collections from which the images of these tasks come."""
        return tuple(
            source.name for source in self.image_sources if not source.tasks or not set(source.tasks).isdisjoint(tasks)
        )


def _bare(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.casefold())


# The variable part of a card's name.
HOLE = re.compile(r"<([^>]+)>")


def ratios(
    cards: Iterable[MetricCard], scores: Sequence[Score], orders: Mapping[str, Iterable[str]]
) -> Iterator[Metric]:
    """Yield the metrics of scores. Values of a group are in the order of `orders`; without an order, by name."""
    # Metrics with a unit get all scores, because a failed score must exclude its unit.
    answered = [score for score in scores if not score.outcome.failed]
    computed = ((card.name, card.ratio) for card in cards if card.ratio is not None)
    for by, block in groupby(computed, key=lambda named_ratio: named_ratio[1].by):
        place = {value: number for number, value in enumerate(orders.get(by, ()))}
        named_ratio = [
            member for name, ratio in block for member in _family(name, ratio, scores if ratio.unit else answered)
        ]
        # Adjacent cards with the same group are listed value by value: all metrics of one value, then all of the next.
        yield from (
            metrics[1]
            for metrics in sorted(named_ratio, key=lambda entry: (place.get(entry[0], 0), entry[0]) if by else ())
        )


def _family(name: str, ratio: Ratio, scores: Sequence[Score]) -> Iterator[tuple[str, Metric]]:
    """Yield the metrics of one card, each with the value of the group, or the case, that it covers."""
    rows = _those(scores, ratio.where)
    cases = _grouped(rows, (ratio.by,)) if ratio.by else {"": rows}
    if ratio.cases:
        cases = {case: _those(rows, condition) for case, condition in ratio.cases.items()}
    hole = HOLE.findall(name)[-1:]
    if ratio.by and hole and "|" in hole[0]:
        cases = {case: members for case, members in cases.items() if case in hole[0].split("|")}
    if len(_grouped(rows, (ratio.strata,)) if ratio.strata else cases) < ratio.fewest and not ratio.kept:
        return
    for case, members in cases.items():
        for key in ratio.of.split("|"):
            metric_name = HOLE.sub(lambda _, case=case: case, name.replace(f"<{ratio.of}>", key))  # type: ignore[misc]
            metric = _metric(metric_name, ratio, key, members)
            if metric.n or ratio.kept:
                yield case, metric


def _metric(name: str, ratio: Ratio, key: str, scores: Sequence[Score]) -> Metric:
    if key == "correct":
        scored = [(score, score.correct) for score in scores if score.correct is not None]
    else:
        scored = [(score, score.values[key]) for score in scores if key in score.values]
    if not ratio.unit:
        strata, over = ratio.strata, ratio.over
        cells = [
            Cell(_group(score, strata) if strata else "", score.unit, value, score.values[over] if over else 1.0)
            for score, value in scored
        ]
        return metric_of(name, cells, "mean_of_ratios" if strata else "ratio", share=ratio.share)
    value_of, (fewest, most) = {score.id: value for score, value in scored}, ratio.rows
    units = _grouped([score for score, _ in scored], ratio.unit).values()
    full_units = (
        unit
        for unit in units
        if fewest <= len(unit) <= (most or len(unit)) and not any(score.outcome.failed for score in unit)
    )
    products = [Cell("", unit[0].unit, math.prod(value_of[score.id] for score in unit), 1.0) for unit in full_units]
    return metric_of(name, products, share=ratio.share)


def _those(scores: Sequence[Score], condition: Groups) -> Sequence[Score]:
    for name, values in condition.items():
        scores = [score for score in scores if _group(score, name) in values]
    return scores


def _group(score: Score, name: str) -> str:
    """Return the value of a group; empty if the score has no such group, as for broken data."""
    if name == "task":
        return score.task
    return base_id(score.id) if name == "base" else score.groups.get(name, "")


def _grouped(scores: Iterable[Score], names: Sequence[str]) -> Mapping[str, Sequence[Score]]:
    """Group the scores by their values of some groups; scores that lack a value are left out."""
    by_values: defaultdict[str, list[Score]] = defaultdict(list)
    for score in scores:
        values = [_group(score, name) for name in names]
        if all(values):
            by_values["/".join(values)].append(score)
    return by_values
