"""Two, three or four solvers on exactly the questions that all of them have and none of them failed.

    shared = Overlap.of([alone, blank, hybrid])
    alone, blank, hybrid = shared.headline("wrong")      # the benchmark's own metric of each, over the same units
    [row.right for row in shared.kept]                   # how right each was, question by question

Two solvers are compared on their overlap; a gain or a ceiling needs three on one, or its parts would not add up. A
solver that was asked again counts with the mean over its repetitions, question by question.
"""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from statistics import fmean
from typing import Literal

from hybrid.benchmarks.base import Abstain, Benchmark, accuracy
from hybrid.registry import load
from hybrid.scoring.score import AnyQuestions, Scored, group_of, summary
from hybrid.stats import combine, contrast
from hybrid.types import BrokenQuestion, Cell, Metric, Outcome, Question, Score

RULES: tuple[Abstain, ...] = ("chance", "wrong")
"""Both rules of what no answer counts; an output follows one of them."""

FAILED_SHARE = 0.01
"""Above this share of failed questions nothing is tested, unless `--allow-failed` is given."""

Untested = Literal["failed", "waiting", "unanswered", "units"]
"""Why nothing is tested: too much failed, questions of a mean over tasks are not asked yet, one solver answered
nothing, or the metric is over other units for one."""


@dataclass(frozen=True)
class SharedQuestion:
    """One question under one rule: the scores of every solver, in the order of the solvers, repetition by repetition.

    A repetition that lacks or failed it is an outage among those that have it.
    """

    asked: tuple[tuple[Score, ...], ...]

    @cached_property
    def scores(self) -> tuple[Score, ...]:
        """The score of each solver: over repetitions the first answered one's, with the mean of what they are worth."""
        return tuple(map(_mean_score, self.asked))

    @property
    def first(self) -> Score:
        """A score that tells id, task and unit, which are the same for all."""
        return self.scores[0]

    @property
    def right(self) -> tuple[float, ...]:
        """How right each solver is, 0..1: 1 for a right answer, and for no answer what the rule gives."""
        return tuple(fmean(map(rightness, _known(again))) for again in self.asked)


def rightness(score: Score) -> float:
    """1 for a right answer, 0 for any other, and for no answer what its rule gives."""
    return (score.correct or 0.0) if score.answer is None else float(score.correct == 1)


def _known(again: Sequence[Score]) -> Sequence[Score]:
    return [score for score in again if not score.outcome.failed] or again[:1]


def _mean_score(again: Sequence[Score]) -> Score:
    if len(again) == 1:
        return again[0]
    known = _known(again)
    first = next((score for score in known if score.answer is not None), known[0])
    worth = [score.correct for score in known if score.correct is not None]
    return replace(first, correct=fmean(worth) if len(worth) == len(known) else None)


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


@dataclass(frozen=True)
class Overlap:
    """Some solvers of one benchmark, and the questions of any of them.

    A question that one of them lacks or failed stays among them as failed for all: benchmarks then leave out what it
    belongs to (a pair of images).
    """

    solvers: tuple[Scored, ...]
    rows: Mapping[Abstain, tuple[SharedQuestion, ...]]
    lost: frozenset[str]
    """Ids that all of them have and one of them failed."""
    missing: frozenset[str]
    """Ids that one of them lacks."""

    @classmethod
    def of(cls, solvers: Sequence[Scored], repetitions: Sequence[Sequence[Scored]] | None = None) -> Overlap:
        """The questions of these solvers, in the order of the first; of each solver all `repetitions`, itself one."""
        asked = repetitions or [[one] for one in solvers]
        known = [[{score.id: score for score in one.scores} for one in again] for again in asked]
        every = dict.fromkeys(identity for again in known for one in again for identity in one)
        missing = frozenset(i for i in every if not all(any(i in one for one in again) for again in known))
        lost = frozenset(
            i
            for i in every
            if i not in missing and any(all(one[i].outcome.failed for one in again if i in one) for again in known)
        )
        out = missing | lost
        return cls(tuple(solvers), {rule: _rows(asked, rule, tuple(every), out) for rule in RULES}, lost, missing)

    @property
    def rule(self) -> Abstain:
        """What no answer counts, for every number of a comparison."""
        return self.solvers[0].abstain

    @property
    def shared(self) -> tuple[SharedQuestion, ...]:
        """Every question, by the rule."""
        return self.rows[self.rule]

    @property
    def kept(self) -> tuple[SharedQuestion, ...]:
        """The questions that all of them have and none failed, by the rule; those without right and wrong aside."""
        return tuple(row for row in self.shared if _counts(row))

    @property
    def n(self) -> int:
        """How many questions all of them have and none failed."""
        return len(self.shared) - len(self.lost) - len(self.missing)

    @property
    def failed_share(self) -> float:
        """Of the questions that all of them have, the share that one of them failed."""
        return len(self.lost) / max(1, len(self.shared) - len(self.missing))

    @property
    def left_out(self) -> str:
        """`2 that one of them failed, 1 that one was not asked`; empty where nothing is left out."""
        counts = {"one of them failed": len(self.lost), "one of them was not asked": len(self.missing)}
        return ", ".join(f"{count} that {why}" for why, count in counts.items() if count)

    def headline(self, rule: Abstain) -> tuple[Metric, ...] | None:
        """The first headline metric of the benchmark that every solver has, of each; None where there is none."""
        found = self.metrics(rule)
        name = next((name for name in self.benchmark.card.headline if name in found), None)
        return None if name is None else found[name]

    def metrics(self, rule: Abstain) -> dict[str, tuple[Metric, ...]]:
        """By name every metric that all solvers have, of each solver the mean over its repetitions."""
        metrics = [self._metrics(rule, place) for place in range(len(self.solvers))]
        return {
            name: tuple(one[name] for one in metrics)
            for name in metrics[0]
            if all(name in one and one[name].cells for one in metrics)
        }

    def _metrics(self, rule: Abstain, place: int) -> dict[str, Metric]:
        again: dict[str, list[Metric]] = defaultdict(list)
        for scores in zip(*(row.asked[place] for row in self.rows[rule]), strict=True):
            for metric in summary(self.benchmark, self.questions, scores):
                again[metric.name].append(metric)
        # A metric that a repetition lacks is not that of all.
        return {name: _mean_metric(own) for name, own in again.items()}

    @cached_property
    def benchmark(self) -> Benchmark:
        """Of the solvers."""
        found: Benchmark = load("hybrid.benchmarks", self.solvers[0].benchmark)
        return found

    def places_by_group(self, by: str | None) -> dict[str, list[int]]:
        """The places in `rows` of each task, or of each value of the group `by`, sorted by name."""
        places: dict[str, list[int]] = {}
        for place, row in enumerate(self.shared):
            # Predictions without their questions lack some groups that the other side knows.
            known = [name for name in (group_of(score, by) for score in row.scores) if name != "-"]
            places.setdefault(known[0] if known else "-", []).append(place)
        return dict(sorted(places.items()))

    def by_group(self, by: str | None) -> dict[str, Overlap]:
        """The questions with right and wrong of each task, or of each value of the group `by`; empty ones left out."""
        parts = {name: self.at(own) for name, own in self.places_by_group(by).items()}
        return {name: part for name, part in parts.items() if part.kept}

    def accuracy(self, rule: Abstain) -> tuple[Metric, ...]:
        """Accuracy of each solver over the questions that have right and wrong."""
        rows = [row for row in self.rows[rule] if _counts(row)]
        return tuple(accuracy("accuracy", [row.scores[place] for row in rows]) for place in range(len(self.solvers)))

    def untested(
        self, metrics: Sequence[Metric] | None = None, *, allow_failed: bool, whole: Overlap
    ) -> Untested | None:
        """Why no interval of these metrics, by default the accuracy, is told; None where it is.

        The one gate of every section that compares solvers. `whole` is all that the solvers share.
        """
        if max(self.failed_share, whole.failed_share) > FAILED_SHARE and not allow_failed:
            return "failed"
        if self.waits(metrics):
            return "waiting"
        metrics = self.accuracy(self.rule) if metrics is None else metrics
        units = {cell.cluster for cell in metrics[0].cells}
        counted = [row for row in self.shared if row.first.unit in units and not row.first.outcome.failed]
        if any(all(row.scores[place].answer is None for row in counted) for place in range(len(self.solvers))):
            return "unanswered"
        places = [{(cell.cluster, cell.stratum) for cell in metric.cells} for metric in metrics]
        return None if all(one == places[0] for one in places) else "units"

    def shown(self, rule: Abstain, *, allow_failed: bool) -> int | None:
        """1 where the second solver is shown to be ahead by the headline metric under a rule, -1 behind; else 0.

        None without a test.
        """
        both = self.headline(rule)
        if both is None or self.untested(both, allow_failed=allow_failed, whole=self):
            return None
        ends = contrast(both[0], both[1]).interval
        return None if ends is None else int(ends.low > 0) - int(ends.high < 0)

    def waits(self, metrics: Sequence[Metric] | None) -> bool:
        """Whether these are means over tasks, and one of the tasks is open: the others are no sample of all."""
        by_task = any(metric.combine == "mean_of_ratios" for metric in metrics or ())
        return by_task and any(one.open for one in self.solvers)

    def at(self, places: Sequence[int]) -> Overlap:
        """The questions at these places of `rows`."""
        rows = {rule: tuple(self.rows[rule][place] for place in places) for rule in RULES}
        ids = {row.first.id for row in rows[self.rule]}
        return replace(self, rows=rows, lost=self.lost & ids, missing=self.missing & ids)

    @property
    def questions(self) -> AnyQuestions:
        """The questions of all solvers by id."""
        empty: AnyQuestions = {}
        return reduce(_over, (one.questions for one in self.solvers), empty)


def _over(first: AnyQuestions, second: AnyQuestions) -> Mapping[str, Question | BrokenQuestion]:
    return ChainMap(first, second)  # type: ignore[arg-type]  # nothing is written to it


def _rows(
    asked: Sequence[Sequence[Scored]], rule: Abstain, every: Sequence[str], out: frozenset[str]
) -> tuple[SharedQuestion, ...]:
    known = [[{score.id: score for score in one.counted[rule].scores} for one in again] for again in asked]
    rows = []
    for identity in every:
        some = next(one[identity] for again in known for one in again if identity in one)
        lost = replace(some, outcome=Outcome.OUTAGE)

        def of(one: Mapping[str, Score], identity: str = identity, lost: Score = lost) -> Score:
            score = one.get(identity, lost)
            return replace(score, outcome=Outcome.OUTAGE) if identity in out else score

        rows.append(SharedQuestion(tuple(tuple(map(of, again)) for again in known)))
    return tuple(rows)


def _counts(row: SharedQuestion) -> bool:
    """Whether no solver failed the question and all verdicts on it are right or wrong."""
    return not row.first.outcome.failed and all(score.correct is not None for score in row.scores)
