"""The card of a benchmark: its sources, settings, tasks, metrics, and the studies that its paper reports."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from hybrid.answers.prior_accuracy import PriorAccuracy
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.images import OUR_JOINT, Joint
from hybrid.core.types import BrokenQuestion, Cell, Cells, Combine, Json, Kind, Metric, Question


@dataclass(frozen=True)
class ImageSource:
    """A collection from which images of a benchmark come."""

    # Name as in `hybrid.tool.image_sets`.
    name: str
    # Section of the paper that names it.
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
            raise UsageError(f"--setting {self.name}={value}: the values are: {', '.join(self.values)}")
        return value


@dataclass(frozen=True)
class Baseline:
    """A row or a study that a benchmark's paper reports, and the command that runs the same here."""

    # Name in the paper.
    name: str
    # The table or section of the paper.
    where: str
    # Command from `hybrid` on; DIR, FILE and URL are placeholders, and so is the model.
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
    # See `share` in `Metric`.
    share: bool = True
    # Whether the metric exists even without a score.
    kept: bool = False


@dataclass(frozen=True)
class MetricCard:
    """A metric that a scorer prints, or a family of them: its computation, and the source of its definition."""

    # Name as printed; `<a|b>` stands for one of these words, `<word>` for any word of the data.
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
    # Its computation, if it is a ratio of sums.
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
    return Metric(name, combine(cell_rows, combination), len(cell_rows), combination, cell_rows, share)


# Number of hexadecimal digits of each answer's digest.
DIGITS: Final = 3
# Smallest number of questions from which the version of the labels is identified: with fewer, corrected labels may
# equal the older ones by chance.
MIN_QUESTIONS: Final = 8
# Largest share of unchanged answers in corrected labels; the corrections left about one in ten unchanged.
MAX_ALIKE: Final = 0.5


@dataclass(frozen=True, slots=True)
class CardCorrection:
    """Answers of one task and split that the authors replaced on a day (ISO 8601); `said` names the sources."""

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
    # The routes of its prompts if they are not tasks. If this is empty and `routes_are_tasks` is False, any rule may
    # apply.
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
    # Results that the paper reports, and how to run them here.
    baselines: tuple[Baseline, ...] = ()
    # Every metric that `summarise` can return; the first match describes a name.
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
