"""Whether a hybrid solver is not worse, by more than a stated margin, than its specialist and than its MLLM alone.

    section(compare(solvers, Choice(margin=0.03)))

The headline metric of the benchmark, over the questions that both have and neither failed, as `compare` aligns them;
the interval is the one that `compare` prints. Where `compare` withholds the test, all is undecided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hybrid.scoring.compare import Comparison, Contest, head_to_head
from hybrid.scoring.roles import companies
from hybrid.scoring.told import Number, Told
from hybrid.stats import NonInferiority, noninferiority
from hybrid.tables import Column, Table, accuracy, bounds, number, p_value, signed
from hybrid.types import Json

NAME = "noninferior"

COLUMNS = (
    Column("hybrid solver", "left"),
    Column("measured against", "left"),
    Column("metric", "left"),
    Column("n"),
    Column("its value"),
    Column("hybrid"),
    Column("difference"),
    Column("95 % interval"),
    Column("p"),
    Column("verdict", "left"),
)


@dataclass(frozen=True)
class _Row:
    """A hybrid solver, the second of the contest's pair, against one of its parts, the first."""

    part: str
    """`alone` or `specialist`."""
    contest: Contest
    tested: NonInferiority

    def cells(self) -> tuple[str, ...]:
        measured = self.contest.contrast
        return (
            self.contest.pair.b,
            self.contest.pair.a,
            self.contest.metric,
            number(self.contest.n),
            accuracy(measured.value_a),
            accuracy(measured.value_b),
            signed(self.tested.difference),
            bounds(self.tested.interval, 3),
            p_value(self.tested.p_value),
            self.tested.verdict,
        )

    def as_json(self) -> dict[str, Json]:
        ends = self.tested.interval
        return {
            "hybrid": self.contest.pair.b,
            "against": self.contest.pair.a,
            "part": self.part,
            "metric": self.contest.metric,
            "n": self.contest.n,
            "margin": self.tested.margin,
            "difference": self.tested.difference,
            "interval": [ends.low, ends.high] if ends else None,
            "p": self.tested.p_value,
            "verdict": self.tested.verdict,
            "withheld": self.contest.withheld,
        }

    def numbers(self) -> Iterator[Number]:
        ends, pair = self.tested.interval, self.contest.pair
        low, high = (ends.low, ends.high) if ends else (None, None)
        found = (
            ("difference", "fraction", self.tested.difference, low, high),
            ("margin", "fraction", self.tested.margin, None, None),
            ("one-sided p of a loss of the margin or more", "probability", self.tested.p_value, None, None),
        )
        for quantity, unit, value, below, above in found:
            yield Number(
                NAME,
                quantity,
                unit,
                value,
                a=pair.a,
                b=pair.b,
                metric=self.contest.metric,
                n=self.contest.n,
                low=below,
                high=above,
            )


def section(found: Comparison) -> Told | None:
    """A row for each hybrid solver and each of its parts; None without a hybrid solver next to a part.

    Raises `UsageError` for a margin that is not above 0.
    """
    rows = tuple(_rows(found))
    if not rows:
        return None
    margin = found.choice.margin
    notes = _notes(margin, tested=not any(row.contest.withheld for row in rows))
    table = Table("", COLUMNS, tuple(row.cells() for row in rows), notes)
    numbers = tuple(one for row in rows for one in row.numbers())
    title = f"Is the hybrid solver at most {margin:g} worse than each of its parts?"
    return Told(NAME, title, (table,), tuple(row.as_json() for row in rows), numbers)


def _notes(margin: float, *, tested: bool) -> tuple[str, ...]:
    meaning = (
        f"A hybrid solver is not inferior where the whole interval is above -{margin:g}, superior where it is above 0, "
        f"inferior where it is below -{margin:g}; else it is undecided."
    )
    p_values = (
        "p is one-sided, of a loss of the margin or more, and not adjusted: it is below 0.025 where not inferior."
    )
    withheld = "Where too many questions failed, or one side answered nothing, nothing is tested."
    return (meaning, p_values) if tested else (meaning, p_values, withheld)


def _rows(found: Comparison) -> Iterator[_Row]:
    for company in companies(found.solvers):
        for part, reference in (("alone", company.alone), ("specialist", company.specialist)):
            if reference is None:
                continue
            met = head_to_head(reference, company.hybrid, found.choice)
            if met is None:
                continue
            measured = met.contest.contrast
            if met.contest.withheld is None:
                tested = noninferiority(met.a, met.b, found.choice.margin)
            else:
                tested = NonInferiority(found.choice.margin, measured.difference, None, None, "undecided")
            yield _Row(part, met.contest, tested)
