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
from hybrid.core.types import BrokenQuestion, Cell, Combine, Json, Kind, Metric, Question


@dataclass(frozen=True)
class ImageSource:
    """A collection that images of a benchmark come from."""

    # As `hybrid.tool.image_sets` names it.
    name: str
    # The place in the paper that names it.
    where: str
    # The tasks that take images from it; empty for all.
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """A choice of a benchmark's protocol, made with `--setting NAME=VALUE`."""

    name: str
    default: str
    # The values it takes; with `pattern` a description of them, such as `1 to 20`.
    values: tuple[str, ...]
    help: str
    # A regular expression of the values, where they are too many to list.
    pattern: str | None = None

    def check(self, value: str) -> str:
        """The value. Raises `UsageError` that names the option, the value and those that it takes."""
        if not (value in self.values if self.pattern is None else re.fullmatch(self.pattern, value)):
            raise UsageError(f"--setting {self.name}={value}: the values are: {', '.join(self.values)}")
        return value


@dataclass(frozen=True)
class Baseline:
    """A row or a study that a benchmark's paper reports, and the command that asks the same here."""

    # As the paper calls it.
    name: str
    # The table or section of the paper.
    where: str
    # From `hybrid` on; DIR, FILE and URL stand for the user's own, and the model for any other.
    command: str
    # Differences from the paper, beyond the model.
    differs: str = ""


# By group the values that a score may have; `task` and `base`, its id without a variant, are groups of every score.
Groups = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Ratio:
    """How a metric is computed that is a sum over a sum."""

    # What is added up: `correct`, or one of a score's values. `a|b` are several, the words of `<a|b>` in the name.
    of: str
    # The value that it is divided by the sum of; without one the number of scores.
    over: str = ""
    # The scores that count.
    where: Groups = field(default_factory=dict)
    # The group that has a metric for each of its values.
    by: str = ""
    # Metrics by the word that the name has for them, and the scores of each.
    cases: Mapping[str, Groups] = field(default_factory=dict)
    # The groups whose scores are right or wrong as one: they are multiplied, and one that failed takes all along.
    unit: tuple[str, ...] = ()
    # The fewest and the most scores of a unit; 0 for any number.
    rows: tuple[int, int] = (1, 0)
    # The group over whose values the mean of the ratios is taken.
    strata: str = ""
    # So many values of `strata`, or of `by`, must be there.
    fewest: int = 1
    # As `Metric` has it.
    share: bool = True
    # Whether the metric is there without a score too.
    kept: bool = False


@dataclass(frozen=True)
class MetricCard:
    """A metric that a scorer prints, or a family of them: how it is computed, and by whose definition."""

    # As printed; `<a|b>` stands for one of these words, `<word>` for any word of the data.
    name: str
    # In plain text; its quantities are defined there or in `about`.
    formula: str
    # The unit that `n` counts.
    counts: str
    # The place in the paper, the authors' code, or that it is ours.
    source: str
    about: str = ""
    # The range, and the unit where there is one.
    values: str = "0 to 1"
    # How it is computed, where that is a sum over a sum.
    ratio: Ratio | None = field(default=None, hash=False)

    def describes(self, name: str) -> bool:
        """Whether a name belongs to this metric."""
        parts = re.split(r"<([^>]+)>", self.name)
        # What stands between angle brackets is one of its words, or where it is one word anything.
        words = ["|".join(map(re.escape, part.split("|"))) if "|" in part else ".+" for part in parts]
        pattern = "".join(f"(?:{words[n]})" if n % 2 else re.escape(part) for n, part in enumerate(parts))
        return re.fullmatch(pattern, name) is not None


def metric_of(name: str, cells: Iterable[Cell], combination: Combine = "ratio", *, share: bool = True) -> Metric:
    """The metric computed as the sum of some cells; `n` is their number, `share` as `Metric` has it."""
    # Only scoring adds up; a run asks without its numerical libraries.
    from hybrid.stats import combine

    cell_rows = tuple(cells)
    return Metric(name, combine(cell_rows, combination), len(cell_rows), combination, cell_rows, share)


# Hexadecimal digits of each answer's digest.
DIGITS: Final = 3
# Questions from which labels are told: of fewer, corrected ones may agree with the older by chance.
MIN_QUESTIONS: Final = 8
# Share of answers up to which labels that differ are the corrected ones, which left about one in ten as it was.
MAX_ALIKE: Final = 0.5


@dataclass(frozen=True, slots=True)
class CardCorrection:
    """Answers of one task and split that were replaced on a day (ISO 8601); `said` names the sources."""

    task: str
    split: str
    on: str
    said: str
    # By the number of the question, from 1, the digest of its older answer.
    before: tuple[str, ...]

    @property
    def older(self) -> str:
        """The word for the labels before."""
        return f"before {self.on}"

    def labels(self, questions: Iterable[Question | BrokenQuestion]) -> str | None:
        """Which labels these questions have; None where none is of the task, or its answers are not public.

        `before DAY`: each answer is the older one. `since DAY`: most differ from it. `neither`: some do. `unknown`: too
        few questions of the task to tell.
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
    """The digest of an answer."""
    return hashlib.sha256(f"{identity}\x1f{answer}".encode()).hexdigest()[:DIGITS]


def labels_of(
    corrections: Iterable[CardCorrection], questions: Iterable[Question | BrokenQuestion]
) -> Mapping[str, Json]:
    """By task which labels the questions have, of the tasks that were corrected."""
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
    # Expected number of questions of the main split, by task; 0 where it is not known. Empty where the data say which
    # tasks there are.
    tasks: Mapping[str, int]
    settings: tuple[Setting, ...] = ()
    # Splits whose answers are not public: they run and are never scored.
    hidden_splits: tuple[str, ...] = ()
    # Tasks whose options are text, so that `--rotate` can move them; not those with letters in the picture. "*" for
    # every choice, where the data say which tasks there are.
    rotatable: tuple[str, ...] = ()
    # Whether a question's text holds its options; else the dialogue writes them from the choices.
    options_in_text: bool = True
    # Tasks that `--data sample` can generate.
    sample_tasks: tuple[str, ...] = ()
    # Whether generated rows depend on seed, task and number alone, so that a larger sample begins with the smaller.
    sample_extends: bool = False
    # Kinds of question whose reply the official parse reads when it ends as our format line asks (`Answer: (B)`).
    #
    # An answer to any other kind that was asked for with our line would count as unread, so such a run is not scored by
    # the official parse.
    official_reads: frozenset[Kind] = frozenset(Kind)
    # Whether the route of every prompt is its question's task: the tasks of a run then tell which rules are asked.
    routes_are_tasks: bool = False
    # The routes of its prompts where they are no tasks. With neither, any rule may be asked.
    routes: tuple[str, ...] = ()
    # Settings that `--protocol official` implies where they are not given: each reads replies on the way to the answer
    # as the papers' code does, which our format line is not written for.
    official_settings: Mapping[str, str] = field(default_factory=dict)
    # Of further files with one model's published predictions: `mcq_` where `mcq_NAME.jsonl` goes with `NAME.jsonl`.
    prediction_prefixes: tuple[str, ...] = ()

    # The tools that a model is offered where `--tools` names none, the same for every question; empty for all.
    tools_offered: tuple[str, ...] = ()
    # Metrics that the paper leads with, in order: the first that the scores have is what two solvers are tested by.
    # Where none is named, the first of `metrics`.
    headline: tuple[str, ...] = ()
    # Metrics shown in tables: every name that begins with one of these; empty for all. JSON always has all.
    reported: tuple[str, ...] = ()
    # Published accuracy of MLLMs and of a guess, by route.
    prior_accuracy: PriorAccuracy = field(default_factory=PriorAccuracy)
    # How `--images concat` joins pictures.
    joint: Joint = OUR_JOINT
    # Results that the paper reports, and how to run them here.
    baselines: tuple[Baseline, ...] = ()
    # Every metric that `summarise` can give; a name that several describe is that of the first.
    metrics: tuple[MetricCard, ...] = ()
    # Where to get data that the hub does not give: an address, and what lies there or must be requested.
    elsewhere: str = ""
    # Labels that the authors have replaced.
    corrections: tuple[CardCorrection, ...] = ()
    # Facts of this card that could not be checked against the data.
    unchecked: str = ""
    # Settings with which the questions of the data are as many as `tasks` says, where the defaults ask more often.
    counted_with: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.headline and self.metrics:
            object.__setattr__(self, "headline", (self.metrics[0].name,))

    @property
    def short_title(self) -> str:
        """The name by which the benchmark is known: `MVP-Bench` of its title."""
        return self.title.partition(":")[0].strip()

    def resolve_settings(self, values: Mapping[str, str]) -> dict[str, str]:
        """The value of every setting: as given, else its default. Raises `UsageError` for an unknown key or value."""
        by_name = {setting.name: setting for setting in self.settings}
        for key in values:
            if key not in by_name:
                hint = did_you_mean(key, by_name)
                raise UsageError(f"{self.name} has no setting {key!r}{hint}; there are: {', '.join(by_name) or 'none'}")
        return {key: setting.check(values.get(key, setting.default)) for key, setting in by_name.items()}

    def task_in(self, text: str) -> str | None:
        """The task whose letters and digits `text` holds: Multi-view_Reasoning for `blink_multi_view_reasoning`.

        None where no task is named, or several are and none is the whole text.
        """
        words = _bare(text)
        same = [task for task in self.tasks if _bare(task) == words]
        inside = same or [task for task in self.tasks if _bare(task) in words]
        return inside[0] if len(inside) == 1 else None

    def sources_of(self, tasks: Collection[str]) -> tuple[str, ...]:
        """The collections that the images of these tasks come from."""
        return tuple(
            source.name for source in self.image_sources if not source.tasks or not set(source.tasks).isdisjoint(tasks)
        )


def _bare(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.casefold())
