"""Two, three or four solvers on exactly the questions that all of them have and none of them failed.

    same = SameQuestions.of([alone, blank, hybrid])
    alone, blank, hybrid = same.headline("wrong")        # the benchmark's own metric of each, over the same units
    [row.right for row in same.kept]                     # who was right, question by question

`compare.py` pairs two solvers; what is split into parts (a gain, a ceiling) needs all of them on the same questions, or
the parts would not add up.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from hybrid.benchmarks.base import Abstain, Benchmark, accuracy
from hybrid.registry import load
from hybrid.scoring.compare import FAILED_SHARE
from hybrid.scoring.score import AnyQuestions, Scored, group_of, summary
from hybrid.types import BrokenQuestion, Metric, Outcome, Question, Score

RULES: tuple[Abstain, ...] = ("chance", "wrong")
"""Both rules of what no answer counts; every section tells both."""
PLAIN: Abstain = "wrong"
"""The rule under which `correct` is 1 for a right answer and for nothing else."""

Untested = Literal["failed", "unanswered", "units"]
"""Why nothing is tested, as `Contest.withheld` has it."""
TOO_MANY_FAILED = f"Nothing is tested where more than {FAILED_SHARE:.0%} failed; --allow-failed tests it all the same."


@dataclass(frozen=True)
class Row:
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
class SameQuestions:
    """Some solvers of one benchmark, and the questions of any of them.

    A question that one of them lacks or failed stays among them as failed for all: benchmarks then leave out what it
    belongs to (a pair of images).
    """

    solvers: tuple[Scored, ...]
    rows: Mapping[Abstain, tuple[Row, ...]]
    lost: frozenset[str]
    """Ids that all of them have and one of them failed."""
    missing: frozenset[str]
    """Ids that one of them lacks."""

    @classmethod
    def of(cls, solvers: Sequence[Scored]) -> SameQuestions:
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
    def kept(self) -> tuple[Row, ...]:
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
        benchmark: Benchmark = load("hybrid.benchmarks", self.solvers[0].benchmark)
        questions = self._questions()
        found = [
            {m.name: m for m in summary(benchmark, questions, [row.scores[place] for row in self.rows[rule]])}
            for place in range(len(self.solvers))
        ]
        name = next((n for n in benchmark.card.headline if all(n in one and one[n].cells for one in found)), None)
        return None if name is None else tuple(one[name] for one in found)

    def by_group(self, by: str | None) -> dict[str, SameQuestions]:
        """The questions with right and wrong of each task, or of each value of the group `by`; empty ones left out."""
        places: dict[str, list[int]] = {}
        for place, row in enumerate(self.rows[PLAIN]):
            # Predictions without their questions lack some groups that the other side knows.
            known = [name for name in (group_of(score, by) for score in row.scores) if name != "-"]
            places.setdefault(known[0] if known else "-", []).append(place)
        parts = {name: self._part(own) for name, own in sorted(places.items())}
        return {name: part for name, part in parts.items() if part.kept}

    def accuracy(self, rule: Abstain) -> tuple[Metric, ...]:
        """Accuracy of each solver over the questions that have right and wrong."""
        rows = [row for row in self.rows[rule] if _counts(row)]
        return tuple(accuracy("accuracy", [row.scores[place] for row in rows]) for place in range(len(self.solvers)))

    def untested(self, metrics: Sequence[Metric], *, allow_failed: bool, whole: SameQuestions) -> Untested | None:
        """Why no difference of these metrics is tested, as for a pair (`Contest.withheld`); None where it is."""
        if max(self.failed_share, whole.failed_share) > FAILED_SHARE and not allow_failed:
            return "failed"
        units = {cell.cluster for cell in metrics[0].cells}
        own = [row for row in self.rows[PLAIN] if row.first.unit in units and not row.first.outcome.failed]
        if any(all(row.scores[place].answer is None for row in own) for place in range(len(self.solvers))):
            return "unanswered"
        places = [{(cell.cluster, cell.stratum) for cell in metric.cells} for metric in metrics]
        return None if all(one == places[0] for one in places) else "units"

    def _part(self, places: Sequence[int]) -> SameQuestions:
        rows = {rule: tuple(self.rows[rule][place] for place in places) for rule in RULES}
        own = {row.first.id for row in rows[PLAIN]}
        return replace(self, rows=rows, lost=self.lost & own, missing=self.missing & own)

    def _questions(self) -> AnyQuestions:
        empty: AnyQuestions = {}
        return reduce(_over, (one.questions for one in self.solvers), empty)


def _over(first: AnyQuestions, second: AnyQuestions) -> Mapping[str, Question | BrokenQuestion]:
    return ChainMap(first, second)  # type: ignore[arg-type]  # nothing is written to it


def _rows(solvers: Sequence[Scored], rule: Abstain, every: Sequence[str], out: frozenset[str]) -> tuple[Row, ...]:
    known = [{score.id: score for score in one.counted[rule].scores} for one in solvers]
    rows = []
    for identity in every:
        some = next(one[identity] for one in known if identity in one)
        scores = tuple(one.get(identity, some) for one in known)
        if identity in out:
            scores = tuple(replace(score, outcome=Outcome.OUTAGE) for score in scores)
        rows.append(Row(scores))
    return tuple(rows)


def _counts(row: Row) -> bool:
    """Whether nobody failed the question and it has right and wrong."""
    return not row.first.outcome.failed and all(score.correct is not None for score in row.scores)
