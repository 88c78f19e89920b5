"""Shared mistakes of two solvers against independence, with kappa.

    hybrid compare RUN OTHER-RUN

Two solvers that are wrong about the same questions more often than independent errors would be have something in
common: hard questions, the same training data, the same weakness. A vote of the two, or a rule that asks the second
where the first is unsure, gains little from such a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from hybrid.scoring.compare import FAILED_SHARE, Comparison, Pair
from hybrid.scoring.same_questions import TOO_MANY_FAILED, Row, SameQuestions
from hybrid.scoring.score import Scored
from hybrid.scoring.told import Number, Told
from hybrid.stats import holm
from hybrid.stats.kappa import Kappa, SharedMistakes, kappa, shared_mistakes
from hybrid.tables import NONE, Column, Table, bounds, number, p_value
from hybrid.types import Json, Question

TITLE = "Do two solvers make the same mistakes?"
WRONG = (
    "A question is wrong here where it is not answered rightly; no answer is not right, under either rule. expected: "
    "both wrong if their errors were independent, over all questions at once; within: the same within each task and "
    "number of choices, so that what is hard for everybody is not taken for something shared. ratio: both wrong / "
    "within. kappa: agreement in right and wrong beyond chance."
)
TESTED = "p is of independence within tasks; Holm over the tests of this table."


@dataclass(frozen=True)
class Agreement:
    """Two solvers on the questions that both have and neither failed."""

    pair: Pair
    rows: tuple[Row, ...]
    strata: tuple[str, ...]
    """Task and number of choices of each question."""
    lost: frozenset[str]
    withheld: bool = False
    """Whether too much failed for a test or an interval."""
    p_holm: float | None = None

    @cached_property
    def mistakes(self) -> SharedMistakes:
        """How many both get wrong, next to what independent errors give."""
        a, b = ([row.right[place] for row in self.rows] for place in (0, 1))
        found = shared_mistakes(a, b, self.strata, [row.first.unit for row in self.rows])
        return replace(found, p_value=None, test="none") if self.withheld else found

    @cached_property
    def kappa(self) -> Kappa:
        """Agreement in right and wrong."""
        a, b = ([row.right[place] for row in self.rows] for place in (0, 1))
        found = kappa(a, b, [row.first.unit for row in self.rows])
        return replace(found, interval=None) if self.withheld else found

    def ids(self, a: bool, b: bool, *, answered: bool = False) -> list[str]:
        """The questions that the first and the second get right or not; `answered`: with an answer from both."""
        return [
            row.first.id
            for row in self.rows
            if row.right == (a, b) and not (answered and any(score.answer is None for score in row.scores))
        ]

    @property
    def same_answer(self) -> list[str]:
        """Questions that both answer with the same wrong answer."""
        return [
            row.first.id
            for row in self.rows
            if row.right == (False, False) and row.scores[0].answer == row.scores[1].answer is not None
        ]

    def as_json(self) -> dict[str, Json]:
        """One record of the section; `helped` and `harmed` are of questions that both answered, as in `pairs`."""
        mistakes, ends = self.mistakes, self.kappa.interval
        return {
            **self.pair._asdict(),
            "n": mistakes.n,
            "failed": sorted(self.lost),
            "wrong_a": mistakes.wrong_a,
            "wrong_b": mistakes.wrong_b,
            "both_wrong": mistakes.both_wrong,
            "expected": mistakes.expected,
            "expected_within": mistakes.expected_within,
            "ratio": mistakes.ratio,
            "p": mistakes.p_value,
            "p_holm": self.p_holm,
            "test": mistakes.test,
            "withheld": "failed" if self.withheld else None,
            "kappa": self.kappa.value,
            "kappa_interval": [ends.low, ends.high] if ends else None,
            "kappa_method": ends.method if ends else "none",
            "both_wrong_ids": self.ids(a=False, b=False),
            "same_answer_ids": self.same_answer,
            "helped_ids": self.ids(a=False, b=True, answered=True),
            "harmed_ids": self.ids(a=True, b=False, answered=True),
        }

    def numbers(self) -> list[Number]:
        """The record as lines of the tidy table."""
        mistakes, ends = self.mistakes, self.kappa.interval
        counts = {
            "wrong, a": mistakes.wrong_a,
            "wrong, b": mistakes.wrong_b,
            "both wrong": mistakes.both_wrong,
            "expected": mistakes.expected,
            "expected within tasks": mistakes.expected_within,
            "same wrong answer": len(self.same_answer),
        }
        lines = [Number("agreement", name, "questions", float(value), *self.pair) for name, value in counts.items()]
        lines.append(
            Number("agreement", "both wrong / expected within tasks", "ratio", mistakes.ratio, *self.pair,
                   p=mistakes.p_value, p_holm=self.p_holm)
        )  # fmt: skip
        low, high = (ends.low, ends.high) if ends else (None, None)
        lines.append(Number("agreement", "kappa", "kappa", self.kappa.value, *self.pair, low=low, high=high))
        return [replace(line, n=mistakes.n) for line in lines]


def section(found: Comparison) -> Told | None:
    """A row for each pair of solvers; None for a single one, or where nothing is right or wrong."""
    known = {one.solver: one for one in found.solvers}
    allowed = 1.0 if found.choice.allow_failed else FAILED_SHARE
    pairs = [_agreement(pair, known[pair.a], known[pair.b], allowed) for pair in (m.pair for m in found.meetings)]
    told = _adjusted([one for one in pairs if one.rows])
    if not told:
        return None
    numbers = tuple(line for one in told for line in one.numbers())
    return Told("agreement", TITLE, (_table(told),), tuple(one.as_json() for one in told), numbers)


def _agreement(pair: Pair, a: Scored, b: Scored, allowed: float) -> Agreement:
    same = SameQuestions.of((a, b))
    rows = same.kept
    return Agreement(pair, rows, tuple(_stratum(row, a, b) for row in rows), same.lost, same.failed_share > allowed)


def _stratum(row: Row, a: Scored, b: Scored) -> str:
    asked = [one.questions.get(row.first.id) for one in (a, b)]
    choices = max((len(question.choices) for question in asked if isinstance(question, Question)), default=0)
    return f"{row.first.task}, {choices} choices"


def _adjusted(told: Sequence[Agreement]) -> tuple[Agreement, ...]:
    tested = [place for place, one in enumerate(told) if one.mistakes.p_value is not None]
    p_values = [p for place in tested if (p := told[place].mistakes.p_value) is not None]
    adjusted = dict(zip(tested, holm(p_values), strict=True))
    return tuple(replace(one, p_holm=adjusted.get(place)) for place, one in enumerate(told))


def _table(told: Sequence[Agreement]) -> Table:
    columns = (
        Column("a, b", "left"),
        *map(
            Column,
            ("n", "a wrong", "b wrong", "both wrong", "expected", "within", "ratio", "p", "p (Holm)", "kappa", "95 %"),
        ),
    )
    rows = tuple(_row(one) for one in told)
    lost = [f"{one.pair.a}, {one.pair.b} {len(one.lost)}" for one in told if one.lost]
    left_out = [f"Left out, because one of the two failed: {'; '.join(lost)}."] if lost else []
    left_out += [TOO_MANY_FAILED] if any(one.withheld for one in told) else []
    return Table("Shared mistakes", columns, rows, (WRONG, TESTED, *left_out))


def _row(one: Agreement) -> tuple[str, ...]:
    mistakes, agreed = one.mistakes, one.kappa
    return (
        f"{one.pair.a}, {one.pair.b}",
        *map(number, (mistakes.n, mistakes.wrong_a, mistakes.wrong_b, mistakes.both_wrong)),
        f"{mistakes.expected:.1f}",
        f"{mistakes.expected_within:.1f}",
        NONE if mistakes.ratio is None else f"{mistakes.ratio:.2f}",
        p_value(mistakes.p_value),
        p_value(one.p_holm),
        NONE if agreed.value is None else f"{agreed.value:z.2f}",
        bounds(agreed.interval),
    )
