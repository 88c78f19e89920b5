"""The either-right ceiling: what an MLLM alone or its specialist gets right, and how far a hybrid solver comes to it.

    hybrid compare RUN

A solver that always knew which of its two parts to believe would be right on every question that either of them gets
right. The better part is right on fewer; the share of the way from there to the ceiling is

    (right of the hybrid - right of the better part) / (right of either - right of the better part)

It is negative where the hybrid is behind its better part, above 1 where it is right on questions that neither part gets
right, and undefined where the better part reaches the ceiling. Only right answers count: no answer is not one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hybrid.scoring.compare import ALL, FAILED_SHARE, Comparison
from hybrid.scoring.roles import Company, companies
from hybrid.scoring.same_questions import TOO_MANY_FAILED, Row, SameQuestions
from hybrid.scoring.told import Number, Told
from hybrid.stats import Interval, interval
from hybrid.tables import NONE, Column, Table, accuracy, bounds, number
from hybrid.types import Cell, Json, Metric

TITLE = "How much of what its parts know does the hybrid reach?"
HOW = (
    "ceiling: questions that the MLLM alone or the specialist gets right. reached: the hybrid's share of the way from "
    "the better part (*) to the ceiling; below 0 it is behind that part. only hybrid: right where neither part is. "
    "missed: wrong where one part is right. Only right answers count: no answer is not one, under either rule."
)
INTERVAL = "The interval takes the part that is better here for the better one."

HYBRID, ALONE, SPECIALIST = 0, 1, 2


@dataclass(frozen=True)
class Ceiling:
    """One hybrid solver next to its parts, over the questions of one group or all."""

    company: Company
    group: str
    same: SameQuestions
    """Of hybrid, alone and specialist, in this order."""
    withheld: bool
    """Whether too much failed for an interval."""

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The questions that count."""
        return self.same.kept

    def count(self, place: int) -> int:
        """How many questions one of the three gets right."""
        return sum(row.right[place] for row in self.rows)

    @property
    def n(self) -> int:
        """Questions that all three have and none failed."""
        return len(self.rows)

    @property
    def better(self) -> int:
        """The place of the part that is right more often; the MLLM alone of two that are equal."""
        return max((ALONE, SPECIALIST), key=self.count)

    @property
    def either(self) -> int:
        """Questions that one part gets right."""
        return sum(_either(row) for row in self.rows)

    def ids(self, right: bool, either: bool) -> list[str]:
        """The questions that the hybrid gets right or not, and one of its parts or neither."""
        return [row.first.id for row in self.rows if (row.right[HYBRID], _either(row)) == (right, either)]

    @cached_property
    def reached(self) -> Metric:
        """The share of the way: a ratio of sums over the questions, with the clusters that it is resampled by.

        A question adds right(hybrid) - right(better part) above, and below 1 where only the other part is right.
        """
        better = self.better
        cells = tuple(
            Cell(
                "",
                row.first.unit,
                float(row.right[HYBRID] - row.right[better]),
                float(_either(row) - row.right[better]),
            )
            for row in self.rows
        )
        below = sum(cell.denominator for cell in cells)
        value = sum(cell.numerator for cell in cells) / below if below else None
        return Metric("reached", value, len(cells), "ratio", cells, share=False)

    @cached_property
    def ends(self) -> Interval | None:
        """The 95 % interval of the share, from its linearised clusters.

        A ratio of two means of the same questions: Cochran, Sampling Techniques (1977), section 6.3, equation 6.9, by
        clusters as in Binder (1983); `hybrid.stats.interval` has the details.
        """
        return interval(self.reached) if self.reached.value is not None and not self.withheld else None

    def as_json(self) -> dict[str, Json]:
        """One record of the section."""
        company, ends = self.company, self.ends
        assert company.alone is not None  # noqa: S101 - a ceiling has both parts
        assert company.specialist is not None  # noqa: S101
        return {
            "hybrid": company.hybrid.solver,
            "alone": company.alone.solver,
            "specialist": company.specialist.solver,
            "group": self.group,
            "n": self.n,
            "failed": sorted(self.same.lost),
            "missing": sorted(self.same.missing),
            "right_hybrid": self.count(HYBRID),
            "right_alone": self.count(ALONE),
            "right_specialist": self.count(SPECIALIST),
            "right_either": self.either,
            "better": "alone" if self.better == ALONE else "specialist",
            "reached": self.reached.value,
            "interval": [ends.low, ends.high] if ends else None,
            "method": ends.method if ends else "none",
            "withheld": "failed" if self.withheld else None,
            "clusters": len({row.first.unit for row in self.rows}),
            "only_hybrid": self.ids(right=True, either=False),
            "missed": self.ids(right=False, either=True),
            "neither": self.ids(right=False, either=False),
        }

    def numbers(self) -> list[Number]:
        """The record as lines of the tidy table."""
        group = "" if self.group == ALL else self.group
        parts = [one.solver for one in self.company.parts]
        hybrid, ends = self.company.hybrid.solver, self.ends
        low, high = (ends.low, ends.high) if ends else (None, None)
        counts = {
            "right in either part": self.either,
            "right in the better part": self.count(self.better),
            "right": self.count(HYBRID),
            "only hybrid": len(self.ids(right=True, either=False)),
            "missed": len(self.ids(right=False, either=True)),
        }
        named = {"right in either part": " | ".join(parts), "right in the better part": parts[self.better - 1]}
        return [
            *(
                Number("ceiling", name, "questions", float(count), named.get(name, hybrid), group=group, n=self.n)
                for name, count in counts.items()
            ),
            Number(
                "ceiling", "reached", "fraction", self.reached.value, hybrid, group=group, n=self.n, low=low, high=high
            ),
        ]


def section(found: Comparison) -> Told | None:
    """A row for each company with both parts, overall and by task; None without one."""
    ceilings = [
        ceiling for company in companies(found.solvers) for ceiling in _ceilings(company, found) if ceiling.rows
    ]
    if not ceilings:
        return None
    numbers = tuple(line for ceiling in ceilings for line in ceiling.numbers())
    overall, by_group = ([one for one in ceilings if (one.group == ALL) is whole] for whole in (True, False))
    tables = [_table("The either-right ceiling", overall, found)]
    if by_group:
        tables.append(_table(f"The either-right ceiling, by {found.choice.by or 'task'}", by_group, found))
    return Told("ceiling", TITLE, tuple(tables), tuple(one.as_json() for one in ceilings), numbers)


def _ceilings(company: Company, found: Comparison) -> list[Ceiling]:
    """Over all questions that the three have, then within each task."""
    if company.alone is None or company.specialist is None:
        return []
    whole = SameQuestions.of((company.hybrid, company.alone, company.specialist))
    parts = {ALL: whole, **whole.by_group(found.choice.by)}
    allowed = 1.0 if found.choice.allow_failed else FAILED_SHARE
    return [
        Ceiling(company, group, same, max(same.failed_share, whole.failed_share) > allowed)
        for group, same in parts.items()
    ]


def _either(row: Row) -> bool:
    return row.right[ALONE] or row.right[SPECIALIST]


def _table(title: str, ceilings: Sequence[Ceiling], found: Comparison) -> Table:
    columns = (
        Column("hybrid", "left"),
        Column(found.choice.by or "task", "left"),
        *map(Column, ("n", "with tools", "alone", "specialist", "ceiling", "reached", "95 %", "only hybrid", "missed")),
    )
    rows = tuple(_row(ceiling) for ceiling in ceilings)
    notes = [HOW, INTERVAL] if ceilings[0].group == ALL else []
    if any(ceiling.withheld for ceiling in ceilings):
        notes.append(TOO_MANY_FAILED)
    for ceiling in ceilings:
        if ceiling.same.left_out and ceiling.group == ALL:
            names = " / ".join(one.solver for one in ceiling.same.solvers)
            notes.append(f"Questions left out of {names}: {ceiling.same.left_out}.")
    return Table(title, columns, rows, tuple(notes))


def _row(ceiling: Ceiling) -> tuple[str, ...]:
    def part(place: int) -> str:
        return accuracy(ceiling.count(place) / ceiling.n) + ("*" if place == ceiling.better else " ")

    reached = ceiling.reached.value
    return (
        ceiling.company.hybrid.solver,
        ceiling.group,
        number(ceiling.n),
        accuracy(ceiling.count(HYBRID) / ceiling.n),
        part(ALONE),
        part(SPECIALIST),
        accuracy(ceiling.either / ceiling.n),
        NONE if reached is None else f"{reached:z.2f}",
        bounds(ceiling.ends),
        number(len(ceiling.ids(right=True, either=False))),
        number(len(ceiling.ids(right=False, either=True))),
    )
