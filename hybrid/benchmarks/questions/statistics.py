"""The metrics that a recipe can name: each is a sum of cells, which the statistics can resample.

    parse_metric("accuracy")                       # over all questions
    parse_metric("accuracy over task")             # the mean of the tasks' means
    parse_metric("accuracy over type/source")     # the mean over types of the mean over their sources
    parse_metric("all_right")                      # units (pairs, cycles) of which every question is right
    parse_metric("f1 by task")                     # one for each task: f1.NAME

A word other than `task` is the name of a group. Precision, recall and F1 are those of the answer "yes", as in POPE (Li
et al., EMNLP 2023, arXiv:2305.10355, section 5.1): a reply that is not "yes" counts as "no".
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hybrid.benchmarks.base import present
from hybrid.benchmarks.card import MetricCard, metric_of
from hybrid.core.errors import DataError, did_you_mean
from hybrid.core.types import Cell, Metric, Score

# Maximum number of copies of a cell. Cells are copied to weight uneven groups.
MAX_COPIES: Final = 10_000
# Names of two values in the score of a yes/no question: whether "yes" is right, and whether the reply is "yes".
YES, SAID_YES = "yes", "said_yes"

# Contributions of one score to the numerator and the denominator.
Part = tuple[float, float]


def _accuracy(score: Score) -> Part | None:
    return None if score.correct is None else (score.correct, 1.0)


def _yes_no_part(part: Callable[[float, float], Part]) -> Callable[[Score], Part | None]:
    """Return a function that computes a score's contributions from the right and the given answer.

    The function returns None for a score of a question that is not yes/no.
    """
    return lambda score: part(score.values[YES], score.values[SAID_YES]) if YES in score.values else None


@dataclass(frozen=True)
class Statistic:
    """A statistic that a metric can name."""

    part: Callable[[Score], Part | None]
    formula: str
    counts: str = "questions"


ALL_RIGHT: Final = "all_right"
YES_NO: Final = "yes/no questions"
STATISTICS: Final[Mapping[str, Statistic]] = {
    "accuracy": Statistic(_accuracy, "right answers / questions"),
    ALL_RIGHT: Statistic(_accuracy, "units of which every question is right / units", "units (pairs, cycles)"),
    "precision": Statistic(
        _yes_no_part(lambda true, replied: (true * replied, replied)), "right yes / all yes", YES_NO
    ),
    "recall": Statistic(
        _yes_no_part(lambda true, replied: (true * replied, true)), "right yes / questions whose answer is yes", YES_NO
    ),
    "f1": Statistic(
        _yes_no_part(lambda true, replied: (2 * true * replied, true + replied)),
        "2 x right yes / (all yes + questions whose answer is yes)",
        YES_NO,
    ),
    "yes_share": Statistic(_yes_no_part(lambda _, replied: (replied, 1.0)), "replies yes / yes/no questions", YES_NO),
}


@dataclass(frozen=True)
class MetricSpec:
    """A metric of a recipe: a statistic, and the groups over which it is averaged or by which it is split."""

    statistic: str
    over: tuple[str, ...] = ()
    by: str = ""

    @property
    def name(self) -> str:
        """Name as printed: the statistic with its groups, such as `accuracy_macro` for the mean over tasks."""
        if self.by:
            return f"{self.statistic}.<{self.by}>"
        if not self.over:
            return self.statistic
        return f"{self.statistic}_macro" + ("" if self.over == ("task",) else f".{'.'.join(self.over)}")

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the group columns that the metric requires."""
        return tuple(name for name in (*self.over, self.by) if name and name != "task")

    @property
    def card(self) -> MetricCard:
        """The card with its definition."""
        word = STATISTICS[self.statistic]
        formula = word.formula
        for name in reversed(self.over):
            formula = f"mean over each {name} of ({formula})"
        return MetricCard(self.name, formula, word.counts, "the recipe's file")


def parse_metric(text: str) -> MetricSpec:
    """Parse a metric. Raises `ValueError`, suggesting the closest word, for an invalid metric."""
    word, _, rest = text.strip().partition(" ")
    if word not in STATISTICS:
        raise ValueError(f"{word!r:.60} is unknown{did_you_mean(word, STATISTICS)}; available: {', '.join(STATISTICS)}")
    if not rest:
        return MetricSpec(word)
    combination, _, group_names = rest.strip().partition(" ")
    names = tuple(name.strip() for name in group_names.split("/"))
    if combination not in ("over", "by") or "" in names or (combination == "by" and len(names) > 1):
        raise ValueError(f"{text!r:.80}: write {word}, {word} over GROUP, {word} over GROUP/GROUP or {word} by GROUP")
    return MetricSpec(word, over=names) if combination == "over" else MetricSpec(word, by=names[0])


def summed(metrics: Sequence[MetricSpec], scores: Sequence[Score]) -> tuple[Metric, ...]:
    """Compute the metrics of scores; a metric without any relevant score is left out."""
    results: list[Metric] = []
    for metric in metrics:
        cells = tuple(_cells(metric, scores))
        if metric.over:
            results.append(metric_of(metric.name, _weighted(cells), "mean_of_ratios"))
        # Without a `by` group there is a single, empty value.
        for value in () if metric.over else sorted({path[:1] for path, _ in cells}):
            inside = (cell for path, cell in cells if path[:1] == value)
            results.append(metric_of(".".join((metric.statistic, *value)), inside))
    return tuple(metric for metric in results if metric.cells)


# The values of a score's groups, outermost first.
Path = tuple[str, ...]


def _cells(metric: MetricSpec, scores: Sequence[Score]) -> Iterator[tuple[Path, Cell]]:
    names = metric.over or ((metric.by,) if metric.by else ())
    part = STATISTICS[metric.statistic].part
    if metric.statistic == ALL_RIGHT:
        yield from _units(names, scores)
        return
    for score in present(scores):
        if (fraction := part(score)) is not None:
            yield _place(score, names), Cell("", score.unit, *fraction)


def _units(names: Path, scores: Sequence[Score]) -> Iterator[tuple[Path, Cell]]:
    """Yield a cell per unit; a unit with a failed question is missing."""
    units: defaultdict[str, list[Score]] = defaultdict(list)
    for score in scores:
        units[score.unit].append(score)
    for unit, members in units.items():
        right = [score.correct for score in members if score.correct is not None and not score.outcome.failed]
        if len(right) == len(members):
            yield _place(members[0], names), Cell("", unit, float(min(right) == 1.0), 1.0)


def _place(score: Score, names: Path) -> Path:
    return tuple(score.task if name == "task" else score.groups.get(name, "") for name in names)


def _weighted(cells: Sequence[tuple[Path, Cell]]) -> Iterator[Cell]:
    """Yield cells whose mean of ratios is a nested mean: over the first group, inside it over the second, and so on.

    A stratum with a larger weight is repeated in proportion, under different names; resampling draws units, so the
    copies stay together.
    """
    paths = dict.fromkeys(path for path, _ in cells)
    # Count every prefix of every path once.
    beginnings = dict.fromkeys(path[:depth] for path in paths for depth in range(1, len(path) + 1))
    children = Counter(prefix[:-1] for prefix in beginnings)
    size = {path: math.prod(children[path[:depth]] for depth in range(len(path))) for path in paths}
    least = math.lcm(*size.values())
    if least > MAX_COPIES:
        raise DataError(
            f"this mean over groups cannot be computed: its {len(paths)} inner groups are weighted by copying them, "
            f"and the least common multiple of the weights is {least:,}, more than {MAX_COPIES:,}"
        )
    for path, cell in cells:
        for copy in range(least // size[path]):
            yield Cell("/".join((*path, str(copy)) if copy else path), cell.cluster, cell.numerator, cell.denominator)
