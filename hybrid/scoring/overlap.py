"""Two, three or four solvers on exactly the questions that all of them have and none of them failed.

    shared = comparison.overlap(alone, blank, hybrid)
    alone, blank, hybrid = shared.headline("wrong")      # the benchmark's own metric of each, over the same units
    shared.right[2][shared.kept]                         # how right the hybrid is on the questions that all answered

Two solvers are compared on their overlap; a gain or a ceiling needs three on one, or its parts would not add up.
"""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from statistics import fmean
from typing import Literal

import numpy as np

from hybrid.benchmarks.base import Abstain, Benchmark
from hybrid.benchmarks.card import metric_of
from hybrid.registry import load
from hybrid.scoring.score import AnyQuestions, Scored, summary
from hybrid.scoring.table import Answers, Flags, Floats, Objects, Places, Questions, answered
from hybrid.stats import combine, contrast
from hybrid.types import Cell, Metric, Outcome, Score

# Both rules of what no answer counts; an output follows one of them.
RULES: tuple[Abstain, ...] = ("chance", "wrong")

# Above this share of failed questions nothing is tested, unless `--allow-failed` is given.
FAILED_SHARE = 0.01

# Why nothing is tested: too much failed, questions of a mean over tasks are not asked yet, one solver answered nothing,
# or the metric is over other units for one.
Untested = Literal["failed", "waiting", "unanswered", "units"]


@dataclass(frozen=True, eq=False)
class Overlap:
    """Some solvers of one benchmark, and the questions of any of them, or some of these questions.

    A question that one of them lacks or failed stays among them as failed for all: benchmarks then leave out what it
    belongs to (a pair of images). Columns are over the questions of this view; `kept` are those that all answered.
    """

    every: Questions
    places: Places
    # Whether solvers are tested though too many questions failed.
    allow_failed: bool = False

    @classmethod
    def of(cls, solvers: Sequence[Scored], again: Sequence[Sequence[Answers]], *, allow_failed: bool) -> Overlap:
        """The questions of these solvers, in the order of the first; `again` are all repetitions of each."""
        every = Questions.of(again, solvers)
        return cls(every, np.arange(len(every.ids)), allow_failed)

    @property
    def solvers(self) -> tuple[Scored, ...]:
        """The solvers that share them."""
        return self.every.solvers

    @property
    def rule(self) -> Abstain:
        """What no answer counts, for every number of a comparison."""
        return self.solvers[0].abstain

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def ids(self) -> Objects:
        """The name of each question."""
        return self.every.ids[self.places]

    @cached_property
    def unit(self) -> Objects:
        """What statistics resample."""
        return self.every.unit[self.places]

    @cached_property
    def task(self) -> Objects:
        """The task of each."""
        return self.every.task[self.places]

    @cached_property
    def lost(self) -> Flags:
        """The questions that all of them have and one of them failed."""
        return self.every.lost[self.places]

    @cached_property
    def missing(self) -> Flags:
        """The questions that one of them lacks."""
        return self.every.missing[self.places]

    @cached_property
    def present(self) -> Flags:
        """The questions that all of them have and none failed."""
        return ~self.lost & ~self.missing

    @cached_property
    def kept(self) -> Flags:
        """Of these the ones with right and wrong."""
        kept: Flags = self.present & np.all([~np.isnan(one) for one in self.correct()], 0)
        return kept

    def correct(self, rule: Abstain | None = None) -> list[Floats]:
        """How right each solver is by a rule, 0..1; nan where there is no right and wrong."""
        return [one[self.places] for one in self.every.mean(lambda own: own.correct(rule or self.rule))]

    @cached_property
    def right(self) -> list[Floats]:
        """1 for a right answer of a solver, 0 for any other, and for no answer what the rule gives."""
        return [one[self.places] for one in self.every.mean(lambda own: own.right(self.rule))]

    @cached_property
    def answer(self) -> list[Objects]:
        """The answer of each solver; None for none."""
        return [one[self.places] for one in self.every.answer]

    @property
    def n(self) -> int:
        """How many questions all of them have and none failed."""
        return int(self.present.sum())

    @property
    def left_out(self) -> str:
        """`left out: 2 that one of them failed, 1 that one of them was not asked`; empty where nothing is."""
        counts = {"one of them failed": self.lost.sum(), "one of them was not asked": self.missing.sum()}
        said = ", ".join(f"{count} that {why}" for why, count in counts.items() if count)
        return f"left out: {said}" if said else ""

    def headline(self, rule: Abstain) -> tuple[Metric, ...] | None:
        """The first headline metric of the benchmark that every solver has, of each; None where there is none."""
        found = self.metrics(rule)
        name = next((name for name in self.benchmark.card.headline if name in found), None)
        return None if name is None else found[name]

    def metrics(self, rule: Abstain) -> dict[str, tuple[Metric, ...]]:
        """By name every metric that all solvers have, of each solver the mean over its repetitions."""
        if rule not in self._known:
            self._known[rule] = self._metrics(rule)
        return self._known[rule]

    @cached_property
    def _known(self) -> dict[Abstain, dict[str, tuple[Metric, ...]]]:
        return {}

    def _metrics(self, rule: Abstain) -> dict[str, tuple[Metric, ...]]:
        every = []
        for place, repetitions in enumerate(self.every.again):
            again: dict[str, list[Metric]] = defaultdict(list)
            for number, answers in enumerate(repetitions):
                # Over all questions the metrics are at hand, or worth keeping.
                if len(answers.place) == len(self) == len(self.every.ids) and self.present.all():
                    found = answers.metrics(self.benchmark, self.questions, rule)
                else:
                    found = summary(self.benchmark, self.questions, self.scores(place, rule, number))
                for metric in found:
                    again[metric.name].append(metric)
            # A metric that a repetition lacks is not that of all.
            every.append({name: _mean_metric(own) for name, own in again.items()})
        in_all = [name for name in every[0] if all(name in one and one[name].cells for one in every)]
        return {name: tuple(one[name] for one in every) for name in in_all}

    def tasks_by_metric(self) -> Mapping[str, Sequence[str]]:
        """The tasks that have a metric when they are alone; one that needs several tasks at once is not in it."""
        own = self.every.again[0][0]
        whole = len(own.place) == len(self) and bool(self.present.all())
        if whole and own.tasks_by_metric:
            return own.tasks_by_metric
        scores, found = defaultdict[str, list[Score]](list), defaultdict[str, list[str]](list)
        for score in self.scores(0, self.rule):
            scores[score.task].append(score)
        for task, of_task in scores.items():
            for metric in summary(self.benchmark, self.questions, of_task):
                if metric.cells:
                    found[metric.name].append(task)
        if whole:
            own.tasks_by_metric = found
        return found

    def scores(self, place: int, rule: Abstain, number: int = 0) -> list[Score]:
        """The scores of a solver's repetition, those that do not count as failed."""
        own, at = self.every.again[place][number], self.every.at[place][number][self.places]
        scores = own.scored.counted[rule].scores
        return [
            scores[where]
            if where >= 0 and counts
            else replace(scores[where] if where >= 0 else self.every.first[n], outcome=Outcome.OUTAGE)
            for n, where, counts in zip(self.places, at, self.present, strict=True)
        ]

    @cached_property
    def benchmark(self) -> Benchmark:
        """Of the solvers."""
        found: Benchmark = load("hybrid.benchmarks", self.solvers[0].benchmark)
        return found

    def groups(self, by: str | None) -> dict[str, Overlap]:
        """The questions of each task, or of each value of the group `by`."""
        return {name: self.at(places) for name, places in self.every.groups(by).items()}

    def by_group(self, by: str | None) -> dict[str, Overlap]:
        """The same, groups without a question with right and wrong left out."""
        return {name: part for name, part in self.groups(by).items() if part.kept.any()}

    def at(self, places: Places) -> Overlap:
        """The questions at these places of the whole."""
        return replace(self, places=places)

    def accuracy(self, rule: Abstain) -> tuple[Metric, ...]:
        """Accuracy of each solver over the questions that have right and wrong."""
        return tuple(self.ratio("accuracy", one[self.kept]) for one in self.correct(rule))

    def ratio(
        self, name: str, above: Floats, below: Floats | None = None, *, macro: bool = False, share: bool = True
    ) -> Metric:
        """The ratio of sums of two columns over the kept questions, by default a mean; `macro` is that over tasks.

        Of a share only the questions with anything below the line count.
        """
        tasks = self.task[self.kept] if macro else repeat("")
        under = np.ones(len(above)) if below is None else below
        cells = map(Cell, tasks, self.unit[self.kept], above.tolist(), under.tolist())
        counted = tuple(cell for cell in cells if cell.denominator > 0 or not share)
        if macro:
            return metric_of(name, counted, "mean_of_ratios", share=share)
        # The sum is at hand: `combine` would sort the cells for it.
        value = float(above.sum() / under.sum()) if under.sum() else None
        return Metric(name, value, len(counted), "ratio", counted, share)

    def untested(self, metrics: Sequence[Metric] | None = None) -> Untested | None:
        """Why no interval of these metrics, by default the accuracy, is told; None where it is.

        The one gate of every section that compares solvers. Too many may fail here or of all that the solvers share.
        """
        failed = [one.lost.sum() / max(1, (~one.missing).sum()) for one in (self, self.every)]
        if max(failed) > FAILED_SHARE and not self.allow_failed:
            return "failed"
        if self.waits(metrics):
            return "waiting"
        units = set(self.unit[self.kept]) if metrics is None else {cell.cluster for cell in metrics[0].cells}
        counted = self.present & np.fromiter((unit in units for unit in self.unit), bool, len(self))
        if any(not answered(answer[counted]).any() for answer in self.answer):
            return "unanswered"
        places = [{(cell.cluster, cell.stratum) for cell in metric.cells} for metric in metrics or ()]
        return None if all(one == places[0] for one in places) else "units"

    def shown(self, rule: Abstain) -> int | None:
        """1 where the second solver is shown to be ahead by the headline metric under a rule, -1 behind; else 0.

        None without a test.
        """
        both = self.headline(rule)
        if both is None or self.untested(both):
            return None
        ends = contrast(both[0], both[1]).interval
        return None if ends is None else int(ends.low > 0) - int(ends.high < 0)

    def waits(self, metrics: Sequence[Metric] | None) -> bool:
        """Whether these are means over tasks, and one of the tasks is open: the others are no sample of all."""
        by_task = any(metric.combine == "mean_of_ratios" for metric in metrics or ())
        return by_task and any(one.open for one in self.solvers)

    @property
    def questions(self) -> AnyQuestions:
        """The questions of all solvers by id."""
        return ChainMap(*(one.questions for one in self.solvers))  # type: ignore[arg-type]  # nothing is written to it


def _mean_metric(again: Sequence[Metric]) -> Metric:
    """The mean over repetitions, cell by cell: still one cell for what one question adds."""
    if len(again) == 1:
        return again[0]
    cells: dict[tuple[str, str, int], list[Cell]] = defaultdict(list)
    for metric in again:
        seen: dict[tuple[str, str], int] = defaultdict(int)
        for cell in metric.cells:
            key = (cell.stratum, cell.cluster)
            cells[(*key, seen[key])].append(cell)
            seen[key] += 1
    means = tuple(
        Cell(stratum, cluster, fmean(c.numerator for c in own), fmean(c.denominator for c in own))
        for (stratum, cluster, _), own in cells.items()
    )
    first = max(again, key=lambda metric: metric.n)
    return replace(first, value=combine(means, first.combine), cells=means)
