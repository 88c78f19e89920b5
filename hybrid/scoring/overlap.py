"""Compares two to four solvers on exactly the questions that all of them have and none of them failed.

    shared = comparison.overlap(alone, blank, hybrid)
    alone, blank, hybrid = shared.headline("wrong")      # each solver's headline metric, over the same units
    shared.right[2][shared.kept]                         # the hybrid's correctness on the questions that all answered

Two solvers are compared on their overlap; a gain or a ceiling needs three solvers on one overlap, so that its parts
add up.
"""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, product, repeat
from operator import itemgetter
from statistics import fmean
from typing import Literal

import numpy as np

from hybrid.benchmarks.base import Benchmark, UnansweredRule
from hybrid.core.types import Cell, Cells, Metric, Outcome, Score
from hybrid.plugins.registry import load
from hybrid.scoring.score import (
    AnyQuestions,
    Flags,
    Floats,
    Objects,
    Places,
    Scored,
    ScoredAnswers,
    answered,
    group_of,
    grouped,
    objects,
    summary,
)
from hybrid.stats import combine, contrast

# Separates the cluster from the question in the cluster name of a cell (`_summary`).
OF_QUESTION = "\0"

# If a larger share of questions failed, nothing is tested, unless `--allow-failed` is given.
FAILED_SHARE = 0.01

# Reason why nothing is tested: too many questions failed, some questions of a mean over tasks are not finished, one
# solver answered nothing, or the metric covers other units for one solver.
Untested = Literal["failed", "waiting", "unanswered", "units"]


@dataclass(frozen=True, eq=False)
class Overlap:
    """Solvers of one benchmark, and the questions that at least one of them has, or a subset of these questions.

    A question that one solver lacks or failed stays in the view as failed for all, so that benchmarks leave out the
    whole unit it belongs to (a pair of images). A repeated solver counts with the mean over its repetitions, per
    question. Columns cover the questions of this view; `kept` marks those that all answered.
    """

    solvers: tuple[Scored, ...]
    # For each solver, all of its repetitions, including the solver itself.
    repetitions: tuple[tuple[ScoredAnswers, ...], ...]
    # Whether solvers are tested even if too many questions failed.
    allow_failed: bool
    # The id of each question, and a score with its task, unit and answer, from the first solver that has it.
    ids: Objects
    first: Objects
    # For each repetition, the index of each question among its scores; -1 if missing.
    positions: tuple[tuple[Places, ...], ...]
    # If this is a subset: the overlap of all questions. Otherwise None.
    full: Overlap | None = None
    # Cache of metrics by rule.
    _known: dict[UnansweredRule, dict[str, tuple[Metric, ...]]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls, solvers: Sequence[Scored], repetitions: Sequence[Sequence[ScoredAnswers]], *, allow_failed: bool
    ) -> Overlap:
        """Return the overlap of these solvers; questions are in the order of the first solver.

        `repetitions` has all repetitions of each solver.
        """
        ids = list(dict.fromkeys(name for repeats in repetitions for answers in repeats for name in answers.place))
        places = tuple(
            tuple(np.fromiter((answers.place.get(name, -1) for name in ids), np.intp, len(ids)) for answers in repeats)
            for repeats in repetitions
        )
        sources = [(answers.scored.scores, at) for answers, at in zip(chain(*repetitions), chain(*places), strict=True)]
        first = objects([next(scores[at[n]] for scores, at in sources if at[n] >= 0) for n in range(len(ids))])
        return cls(tuple(solvers), tuple(map(tuple, repetitions)), allow_failed, objects(ids), first, places)

    def at(self, places: Places) -> Overlap:
        """Return the view restricted to these positions."""
        positions = tuple(tuple(at[places] for at in solver_places) for solver_places in self.positions)
        full = self.full or self
        view = replace(self, ids=self.ids[places], first=self.first[places], positions=positions, full=full)
        # Clusters are computed once, for all subsets.
        view.__dict__["unit"] = self.unit[places]
        return view

    @property
    def rule(self) -> UnansweredRule:
        """The rule by which every number of a comparison counts unanswered questions."""
        return self.solvers[0].unanswered

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def unit(self) -> Objects:
        """Cluster of each question, which statistics resample."""
        return objects([score.unit for score in self.first])

    @cached_property
    def task(self) -> Objects:
        """Task of each question."""
        return objects([score.task for score in self.first])

    @cached_property
    def missing(self) -> Flags:
        """Marks the questions that at least one solver lacks."""
        lacks: Flags = ~np.all([np.any([at >= 0 for at in solver_places], 0) for solver_places in self.positions], 0)
        return lacks

    @cached_property
    def lost(self) -> Flags:
        """Marks the questions that all solvers have and that at least one solver failed in every repetition."""
        failed = [
            np.all([(at < 0) | answers.failed[at] for answers, at in zip(repeats, places, strict=True)], 0)
            for repeats, places in zip(self.repetitions, self.positions, strict=True)
        ]
        flags: Flags = ~self.missing & np.any(failed, 0)
        return flags

    @cached_property
    def _counting(self) -> list[list[tuple[ScoredAnswers, Places, Flags]]]:
        """For each repetition, the questions that count for its solver.

        A question that counts in no repetition counts in the first one.
        """
        counting = []
        for repeats, places in zip(self.repetitions, self.positions, strict=True):
            flags = [(at >= 0) & ~answers.failed[at] for answers, at in zip(repeats, places, strict=True)]
            flags[0] = flags[0] | ~np.any(flags, 0)
            counting.append(list(zip(repeats, places, flags, strict=True)))
        return counting

    @cached_property
    def _cover_same_questions(self) -> bool:
        """Whether every repetition counts for every present question."""
        return all(bool(counts[self.present].all()) for repeats in self._counting for _, _, counts in repeats)

    def _mean(self, column: Callable[[ScoredAnswers], Floats]) -> list[Floats]:
        """Return for each solver the mean of a column over the counting repetitions; nan if any of these is nan."""
        means = []
        for repeats in self._counting:
            values = [np.where(flags, column(answers)[at], 0.0) for answers, at, flags in repeats]
            means.append(np.sum(values, 0) / np.sum([flags for _, _, flags in repeats], 0))
        return means

    @cached_property
    def present(self) -> Flags:
        """Marks the questions that all solvers have and none failed."""
        return ~self.lost & ~self.missing

    @cached_property
    def kept(self) -> Flags:
        """Marks the present questions that every solver has a verdict on (right or wrong)."""
        flags: Flags = self.present & np.all([~np.isnan(correct) for correct in self.correct()], 0)
        return flags

    def correct(self, rule: UnansweredRule | None = None) -> list[Floats]:
        """Return each solver's correctness by a rule, 0..1; nan for questions without right and wrong."""
        return self._mean(lambda answers: answers.correct(rule or self.rule))

    @cached_property
    def right(self) -> list[Floats]:
        """Each solver's correctness: 1 for a right answer, 0 for any other, the rule's value for a missing answer."""
        return self._mean(lambda answers: answers.right(self.rule))

    @cached_property
    def answer(self) -> list[Objects]:
        """Each solver's first readable answer among its repetitions; None if there is none or it is missing."""
        columns = []
        for repeats in self._counting:
            column = objects([None] * len(self))
            for answers, at, _ in reversed(repeats):
                values = answers.answer[at]
                column = np.where(answered(values), values, column)
            columns.append(column)
        return columns

    @cached_property
    def silent_share(self) -> list[Floats]:
        """For each solver and question: share, 0..1, of counting repetitions without an answer; 0 if not present."""
        shares = self._mean(lambda answers: (~answered(answers.answer)).astype(float))
        return [np.where(self.present, share, 0.0) for share in shares]

    @cached_property
    def unanswered(self) -> list[Flags]:
        """For each solver, marks the present questions that it left unanswered in a counting repetition."""
        return [share > 0 for share in self.silent_share]

    @cached_property
    def answered_by_all(self) -> Flags:
        """Marks the present questions that every solver answered in at least one counting repetition."""
        by_all: Flags = self.present & np.all([share < 1 for share in self.silent_share], 0)
        return by_all

    @cached_property
    def counted(self) -> Flags:
        """Marks the present questions in tasks that the headline metric counts; all of them if it needs several tasks.

        HVSBench's overall accuracy leaves out scanpaths, and MVP-Bench's mAcc counts yes/no questions only.
        """
        metrics = self.headline(self.rule)
        if metrics is None or metrics[0].n == self.n:
            return self.present
        flags: Flags = self.present & np.isin(self.task.astype(str), self.tasks_by_metric().get(metrics[0].name, ()))
        return flags if flags.any() else self.present

    @property
    def all_counted(self) -> bool:
        """Whether the headline metric counts every present question."""
        return bool(self.counted.sum() == self.n)

    def with_answers(self) -> Overlap:
        """Return the questions that every solver answered, without the repetitions that left a question unanswered.

        If the headline metric counts units of several questions, these are the questions that every solver answered in
        every repetition.
        """
        part = self.with_failed(self.answered_by_all)

        def drop_unanswered(answers: ScoredAnswers, at: Places) -> Places:
            # Failed questions stay failed: with too many of them, the difference is not tested.
            return np.where(part.present & ~answered(answers.answer[at]), -1, at)

        pairs = zip(part.repetitions, part.positions, strict=True)
        view = replace(part, positions=tuple(tuple(map(drop_unanswered, repeats, places)) for repeats, places in pairs))
        # If the metric counts units of several questions, a unit may be complete in some repetitions of one solver, but
        # in none of the other.
        if any(metric.n != view.kept.sum() for metric in view.headline(self.rule) or ()):
            return self.with_failed(~np.any(self.unanswered, 0))
        return view

    def with_failed(self, flags: Flags) -> Overlap:
        """Return the flagged questions and all that are not present, which count as failed.

        A benchmark leaves out the whole unit of a failed question.
        """
        return self.at(np.flatnonzero(flags | ~self.present))

    @property
    def n(self) -> int:
        """Number of questions that every solver has and none failed."""
        return int(self.present.sum())

    @property
    def left_out(self) -> str:
        """`left out: 2 that one of them failed, 1 that one of them was not asked`; empty if nothing is left out."""
        counts = {"one of them failed": self.lost.sum(), "one of them was not asked": self.missing.sum()}
        reasons = ", ".join(f"{count} that {reason}" for reason, count in counts.items() if count)
        return f"left out: {reasons}" if reasons else ""

    def headline(self, rule: UnansweredRule) -> tuple[Metric, ...] | None:
        """Return each solver's value of the first headline metric that every solver has; None if there is none."""
        metrics = self.metrics(rule)
        name = next((name for name in self.benchmark.card.headline if name in metrics), None)
        return None if name is None else metrics[name]

    def metrics(self, rule: UnansweredRule) -> dict[str, tuple[Metric, ...]]:
        """Return by name every metric that all solvers have; each solver's value is the mean over its repetitions."""
        if rule in self._known:
            return self._known[rule]
        by_solver = []
        for place, repetitions in enumerate(self.repetitions):
            by_name: dict[str, list[Metric]] = defaultdict(list)
            for number, answers in enumerate(repetitions):
                # Metrics over all questions were computed with the scores; metrics over a subset were not.
                if len(answers.place) == len(self) and self.present.all() and self._cover_same_questions:
                    all_metrics: Iterable[Metric] = answers.metrics(rule)
                else:
                    all_metrics = self._summary(self.scores(place, rule, number), by_question=len(repetitions) > 1)
                for metric in all_metrics:
                    by_name[metric.name].append(metric)
            # Average each metric over the repetitions that have it.
            by_solver.append({name: _mean_metric(repeats) for name, repeats in by_name.items()})
        in_all = [
            name
            for name in by_solver[0]
            if all(name in solver_metrics and solver_metrics[name].cells for solver_metrics in by_solver)
        ]
        self._known[rule] = {name: tuple(solver_metrics[name] for solver_metrics in by_solver) for name in in_all}
        return self._known[rule]

    def split_by_answering(self, rule: UnansweredRule) -> tuple[tuple[Metric, ...], tuple[Metric, ...]] | None:
        """Split each solver's headline metric into two parts whose differences add up to the metric's difference.

        The first part is the metric as if nobody had answered the questions that any solver left unanswered; the second
        is the remainder, cell by cell. For repeated solvers, every combination of their repetitions is split, and each
        part is the mean. Returns None without a headline metric, or if its denominators depend on which questions were
        answered.
        """
        metrics = self.headline(rule)
        if metrics is None:
            return None
        metrics, neutral = tuple(map(_in_order, metrics)), self._unanswered_scores(rule)
        combinations = list(product(*(range(len(repeats)) for repeats in self.repetitions)))
        better, rest = [], []
        for place, metric in enumerate(metrics):
            repeats = [self._headline_with(metric.name, neutral, place, rule, numbers) for numbers in combinations]
            present = [repeat for repeat in repeats if repeat is not None]
            # A combination that includes a repetition in which every question failed has no value, and no question
            # counts in it.
            part = _in_order(_mean_metric(present)) if present else None
            if part is None or _units(part) != _units(metric):
                return None
            better.append(part)
            rest.append(
                [cell.numerator - part_cell.numerator for cell, part_cell in zip(metric.cells, part.cells, strict=True)]
            )
        # A wrong answer may score less than the guess that counts for a missing answer, so a remainder may be negative;
        # then the cell is raised equally for all solvers.
        least = [min(0.0, *values) for values in zip(*rest, strict=True)]
        moved = ([value - low for value, low in zip(numerators, least, strict=True)] for numerators in rest)
        return tuple(better), tuple(map(_with_numerators, metrics, moved))

    @cached_property
    def credit(self) -> Floats:
        """The worth of a missing answer, 0..1, for each question that a solver left unanswered; 0 for others."""
        credit = np.zeros(len(self))
        for place, score in self._unanswered_scores(self.rule).items():
            credit[place] = score.correct or 0.0
        return credit

    def _unanswered_scores(self, rule: UnansweredRule) -> dict[int, Score]:
        """Return by index one unanswered score, for each question that not all solvers answered."""
        by_place: dict[int, Score] = {}
        for repeats in self._counting:
            for answers, at, counts in repeats:
                scores = answers.scored.counted[rule].scores
                for place in np.flatnonzero(self.present & counts & ~answered(answers.answer[at])):
                    by_place.setdefault(int(place), scores[at[place]])
        return by_place

    def _headline_with(
        self, name: str, neutral: Mapping[int, Score], place: int, rule: UnansweredRule, numbers: Sequence[int]
    ) -> Metric | None:
        """Return one solver's metric for a combination that has one repetition of each solver.

        On questions that any of these repetitions left unanswered, the solver gets the neutral score. Questions that do
        not count in all of them are marked as failed.
        """
        silent, counts = np.zeros(len(self), bool), self.present.copy()
        for repeats, number in zip(self._counting, numbers, strict=True):
            answers, at, counting = repeats[number]
            silent |= ~answered(answers.answer[at])
            counts &= counting
        own_scores = enumerate(self.scores(place, rule, numbers[place]))
        replies = ((neutral[n] if silent[n] and counts[n] else score, counts[n]) for n, score in own_scores)
        scores = [score if count else replace(score, outcome=Outcome.OUTAGE) for score, count in replies]
        return next((metric for metric in self._summary(scores, by_question=True) if metric.name == name), None)

    def _summary(self, scores: Sequence[Score], *, by_question: bool) -> Iterable[Metric]:
        """Return the metrics of these scores.

        With `by_question`, if repetitions cover different questions, the cluster of a cell also names its question
        where possible: otherwise the mean over repetitions would mix different questions of one cluster. A single
        repetition needs no such names, which would cost a second summary.
        """
        metrics = summary(self.benchmark, self.questions, scores)
        if not by_question or self._cover_same_questions:
            return metrics
        named_scores = [replace(score, cluster=f"{score.unit}{OF_QUESTION}{n:09}") for n, score in enumerate(scores)]
        by_question_name = {metric.name: metric for metric in summary(self.benchmark, self.questions, named_scores)}
        # A metric over whole clusters has other cells, or none, if each question is a cluster of its own. Such a metric
        # keeps its original cells.
        pairs = ((metric, by_question_name.get(metric.name, metric)) for metric in metrics)
        return [named if len(named.cells) == len(metric.cells) else metric for metric, named in pairs]

    def tasks_by_metric(self) -> Mapping[str, Sequence[str]]:
        """Map each metric to the tasks that have it when scored alone; metrics that need several tasks are missing."""
        answers = self.repetitions[0][0]
        is_full = len(answers.place) == len(self) and bool(self.present.all())
        if is_full and answers.tasks_by_metric:
            return answers.tasks_by_metric
        tasks = defaultdict[str, list[str]](list)
        for task, of_task in grouped(self.scores(0, self.rule), lambda score: score.task).items():
            for metric in summary(self.benchmark, self.questions, of_task):
                if metric.cells:
                    tasks[metric.name].append(task)
        if is_full:
            answers.tasks_by_metric = tasks
        return tasks

    def scores(self, place: int, rule: UnansweredRule, number: int = 0) -> list[Score]:
        """Return the scores of a solver's repetition; scores that do not count are marked as failed."""
        scores = self.repetitions[place][number].scored.counted[rule].scores
        rows = zip(self.first, self.positions[place][number], self.present, strict=True)
        pairs = ((scores[at] if at >= 0 else first, at >= 0 and counts) for first, at, counts in rows)
        return [score if counts else replace(score, outcome=Outcome.OUTAGE) for score, counts in pairs]

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark of the solvers."""
        loaded: Benchmark = load("hybrid.benchmarks", self.solvers[0].benchmark)
        return loaded

    def groups(self, by: str | None) -> dict[str, Overlap]:
        """Return the questions of each task, or of each value of the group `by`, sorted by name."""
        if by is None:
            names, at = np.unique(self.task.astype(str), return_inverse=True)
            return {str(name): self.at(np.flatnonzero(at == n)) for n, name in enumerate(names)}
        places: dict[str, list[int]] = defaultdict(list)
        for n in range(len(self)):
            # Predictions without their questions lack some groups that another solver knows.
            sources = zip(chain(*self.repetitions), chain(*self.positions), strict=True)
            values = (group_of(answers.scored.scores[at[n]], by) for answers, at in sources if at[n] >= 0)
            places[next((name for name in values if name != "-"), "-")].append(n)
        return {name: self.at(np.array(places[name], np.intp)) for name in sorted(places)}

    def by_group(self, by: str | None) -> dict[str, Overlap]:
        """Return the groups with at least one question that is scored as right or wrong."""
        return {name: part for name, part in self.groups(by).items() if part.kept.any()}

    def accuracy(self, rule: UnansweredRule) -> tuple[Metric, ...]:
        """Return the accuracy of each solver over the questions that can be right or wrong."""
        return tuple(self.ratio("accuracy", correct[self.kept]) for correct in self.correct(rule))

    def ratio(self, name: str, above: Floats, below: Floats | None = None, *, share: bool = True) -> Metric:
        """Return the ratio of sums of two columns over the kept questions, by default a mean.

        For a share only the questions with a positive denominator count.
        """
        under = np.ones(len(above)) if below is None else below
        counted = under > 0 if share else np.ones(len(under), bool)
        columns = (self.unit[self.kept][counted], above[counted].tolist(), under[counted].tolist())
        valid = tuple(map(Cell, repeat(""), *columns))
        # The ratio is computed directly, because `combine` would sort the cells first.
        value = float(above.sum() / under.sum()) if under.sum() else None
        return Metric(name, value, n=len(valid), combine="ratio", cells=valid, share=share)

    def untested(
        self, metrics: Sequence[Metric] | None = None, solvers: Sequence[Scored] | None = None
    ) -> Untested | None:
        """Return the reason why these metrics (default: accuracy) are not tested; None if they are tested.

        Every section that compares solvers uses this check. The share of failed questions is limited both in this view
        and in the full overlap. `solvers` are the compared solvers (default: all), and `metrics` are theirs; whether
        another solver answers nothing is no reason.
        """
        failed = [view.lost.sum() / max(1, (~view.missing).sum()) for view in (self, self.full or self)]
        if max(failed) > FAILED_SHARE and not self.allow_failed:
            return "failed"
        # If one task is not finished, the other tasks do not represent the mean over all tasks.
        if any(metric.combine == "mean_of_ratios" for metric in metrics or ()) and any(
            solver.open for solver in self.solvers
        ):
            return "waiting"
        if self.without_answers(metrics, solvers):
            return "unanswered"
        places = [{(cell.cluster, cell.stratum) for cell in metric.cells} for metric in metrics or ()]
        return None if all(place == places[0] for place in places) else "units"

    def without_answers(
        self, metrics: Sequence[Metric] | None = None, solvers: Sequence[Scored] | None = None
    ) -> tuple[Scored, ...]:
        """Return which `solvers` (default: all) answered none of the questions of these metrics (default: accuracy)."""
        compared = {solver.solver for solver in (self.solvers if solvers is None else solvers)}
        inside = (
            self._of_kept_units if metrics is None else self._questions_of({cell.cluster for cell in metrics[0].cells})
        )
        pairs = zip(self.solvers, self.answer, strict=True)
        return tuple(
            solver for solver, answer in pairs if solver.solver in compared and not answered(answer[inside]).any()
        )

    @cached_property
    def _of_kept_units(self) -> Flags:
        """Marks the present questions of all units that have a kept question; cached, because every section uses it."""
        return self._questions_of(set(self.unit[self.kept]))

    def _questions_of(self, units: Collection[str]) -> Flags:
        """Mark the present questions of these units."""
        flags: Flags = self.present & np.fromiter(map(units.__contains__, self.unit), bool, len(self))
        return flags

    def shown(self, rule: UnansweredRule) -> int | None:
        """Return whether the second solver is ahead by the headline metric under a rule: 1 ahead, -1 behind, 0 neither.

        "Ahead" and "behind" require a 95 % interval on one side of 0. Returns None without a test.
        """
        metrics = self.headline(rule)
        if metrics is None or self.untested(metrics):
            return None
        ends = contrast(metrics[0], metrics[1]).interval
        return None if ends is None else int(ends.low > 0) - int(ends.high < 0)

    @property
    def questions(self) -> AnyQuestions:
        """The questions of all solvers by id."""
        return ChainMap(*(solver.questions for solver in self.solvers))  # type: ignore[arg-type]  # never modified


def _in_order(metric: Metric) -> Metric:
    """Return the metric with its cells sorted by stratum and cluster."""
    return replace(metric, cells=Cells(sorted(metric.cells, key=lambda cell: (cell.stratum, cell.cluster))))


def _units(metric: Metric) -> list[tuple[str, str, float]]:
    """Return stratum, cluster and denominator of each cell of a metric."""
    return [(cell.stratum, cell.cluster, cell.denominator) for cell in metric.cells]


def _with_numerators(metric: Metric, numerators: Sequence[float]) -> Metric:
    """Return the metric with other numerators in its cells."""
    cells = Cells(cell._replace(numerator=value) for cell, value in zip(metric.cells, numerators, strict=True))
    return replace(metric, value=combine(cells, metric.combine), cells=cells)


def _mean_metric(metrics: Sequence[Metric]) -> Metric:
    """Return the mean over repetitions, cell by cell; each question keeps its own cells."""
    # The cells of a single repetition may name their questions. Averaging removes these names, as it does for several
    # repetitions.
    if len(metrics) == 1 and not any(OF_QUESTION in cell.cluster for cell in metrics[0].cells):
        return metrics[0]
    cells: dict[tuple[str, str, int], list[Cell]] = defaultdict(list)
    for metric in metrics:
        seen: dict[tuple[str, str], int] = defaultdict(int)
        for cell in metric.cells:
            key = (cell.stratum, cell.cluster)
            cells[(*key, seen[key])].append(cell)
            seen[key] += 1
    means = Cells(
        Cell(
            stratum,
            cluster.partition(OF_QUESTION)[0],
            fmean(c.numerator for c in group),
            fmean(c.denominator for c in group),
        )
        for (stratum, cluster, _), group in sorted(cells.items(), key=itemgetter(0))
    )
    first = max(metrics, key=lambda metric: metric.n)
    n = len(means) if all(metric.n == len(metric.cells) for metric in metrics) else first.n
    return replace(first, value=combine(means, first.combine), n=n, cells=means)
