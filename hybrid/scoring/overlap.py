"""Two, three or four solvers on exactly the questions that all of them have and none of them failed.

    shared = Overlap.of([alone, blank, hybrid])
    alone, blank, hybrid = shared.headline("wrong")      # the benchmark's own metric of each, over the same units
    [row.right for row in shared.kept]                   # who was right, question by question

Two solvers are compared on their overlap; a gain or a ceiling needs three on one, or its parts would not add up.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Literal

from hybrid.benchmarks.base import Abstain, Benchmark, accuracy
from hybrid.registry import load
from hybrid.scoring.score import AnyQuestions, Scored, group_of, summary
from hybrid.types import BrokenQuestion, Metric, Outcome, Question, Score

RULES: tuple[Abstain, ...] = ("chance", "wrong")
"""Both rules of what no answer counts; every section tells both."""
PLAIN: Abstain = "wrong"
"""The rule under which `correct` is 1 for a right answer and for nothing else."""

FAILED_SHARE = 0.01
"""Above this share of failed questions nothing is tested, unless `--allow-failed` is given."""

Untested = Literal["failed", "unanswered", "units"]
"""Why nothing is tested: too much failed, one solver answered nothing, or the metric is over other units for one."""


@dataclass(frozen=True)
class SharedQuestion:
    """One question: the scores of every solver, in the order of the solvers, under one rule."""

    scores: tuple[Score, ...]

    @property
    def first(self) -> Score:
        """A score that tells id, task and unit, which are the same for all."""
        return self.scores[0]

    @property
    def right(self) -> tuple[bool, ...]:
        """Who answered rightly; under `PLAIN` no answer is not right."""
        return tuple(score.correct == 1 for score in self.scores)


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
    def of(cls, solvers: Sequence[Scored]) -> Overlap:
        """The questions of these solvers, in the order of the first."""
        known = [{score.id: score for score in one.counted[PLAIN].scores} for one in solvers]
        every = dict.fromkeys(identity for one in known for identity in one)
        missing = frozenset(identity for identity in every if not all(identity in one for one in known))
        lost = frozenset(
            identity
            for identity in every
            if identity not in missing and any(one[identity].outcome.failed for one in known)
        )
        out = missing | lost
        return cls(tuple(solvers), {rule: _rows(solvers, rule, tuple(every), out) for rule in RULES}, lost, missing)

    @property
    def kept(self) -> tuple[SharedQuestion, ...]:
        """The questions that all of them have and none failed, under `PLAIN`; those without right and wrong aside."""
        return tuple(row for row in self.rows[PLAIN] if _counts(row))

    @property
    def n(self) -> int:
        """How many questions all of them have and none failed."""
        return len(self.rows[PLAIN]) - len(self.lost) - len(self.missing)

    @property
    def failed_share(self) -> float:
        """Of the questions that all of them have, the share that one of them failed."""
        return len(self.lost) / max(1, len(self.rows[PLAIN]) - len(self.missing))

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
        """By name every metric that all solvers have, of each solver."""
        questions = self.questions
        metrics = [
            {m.name: m for m in summary(self.benchmark, questions, [row.scores[place] for row in self.rows[rule]])}
            for place in range(len(self.solvers))
        ]
        return {
            name: tuple(one[name] for one in metrics)
            for name in metrics[0]
            if all(name in one and one[name].cells for one in metrics)
        }

    @cached_property
    def benchmark(self) -> Benchmark:
        """Of the solvers."""
        found: Benchmark = load("hybrid.benchmarks", self.solvers[0].benchmark)
        return found

    def places_by_group(self, by: str | None) -> dict[str, list[int]]:
        """The places in `rows` of each task, or of each value of the group `by`, sorted by name."""
        places: dict[str, list[int]] = {}
        for place, row in enumerate(self.rows[PLAIN]):
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

    def untested(self, metrics: Sequence[Metric], *, allow_failed: bool, whole: Overlap) -> Untested | None:
        """Why no difference of these metrics is tested; None where it is. `whole` is all that the solvers share."""
        if max(self.failed_share, whole.failed_share) > FAILED_SHARE and not allow_failed:
            return "failed"
        units = {cell.cluster for cell in metrics[0].cells}
        counted = [row for row in self.rows[PLAIN] if row.first.unit in units and not row.first.outcome.failed]
        if any(all(row.scores[place].answer is None for row in counted) for place in range(len(self.solvers))):
            return "unanswered"
        places = [{(cell.cluster, cell.stratum) for cell in metric.cells} for metric in metrics]
        return None if all(one == places[0] for one in places) else "units"

    def at(self, places: Sequence[int]) -> Overlap:
        """The questions at these places of `rows`."""
        rows = {rule: tuple(self.rows[rule][place] for place in places) for rule in RULES}
        ids = {row.first.id for row in rows[PLAIN]}
        return replace(self, rows=rows, lost=self.lost & ids, missing=self.missing & ids)

    @property
    def questions(self) -> AnyQuestions:
        """The questions of all solvers by id."""
        empty: AnyQuestions = {}
        return reduce(_over, (one.questions for one in self.solvers), empty)


def _over(first: AnyQuestions, second: AnyQuestions) -> Mapping[str, Question | BrokenQuestion]:
    return ChainMap(first, second)  # type: ignore[arg-type]  # nothing is written to it


def _rows(
    solvers: Sequence[Scored], rule: Abstain, every: Sequence[str], out: frozenset[str]
) -> tuple[SharedQuestion, ...]:
    known = [{score.id: score for score in one.counted[rule].scores} for one in solvers]
    rows = []
    for identity in every:
        some = next(one[identity] for one in known if identity in one)
        scores = tuple(one.get(identity, some) for one in known)
        if identity in out:
            scores = tuple(replace(score, outcome=Outcome.OUTAGE) for score in scores)
        rows.append(SharedQuestion(scores))
    return tuple(rows)


def _counts(row: SharedQuestion) -> bool:
    """Whether no solver failed the question and all verdicts on it are right or wrong."""
    return not row.first.outcome.failed and all(score.correct is not None for score in row.scores)
