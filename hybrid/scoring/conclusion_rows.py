"""The rows of the result table that conclusions are drawn from, and how their numbers read in a sentence.

pair = ConclusionRows(compare(solvers)).pair(alone, hybrid)
pair.state, pair.right, pair.fields()       # "more", (21, 48), {"size": "+54 points", "interval": ...}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hybrid.benchmarks.base import UnansweredRule
from hybrid.display.terminal import clipped
from hybrid.scoring.compare import Comparison
from hybrid.scoring.groups import own_command
from hybrid.scoring.result import FRACTION, UNTESTED, Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections import results
from hybrid.scoring.sections.answered import SPOKEN
from hybrid.scoring.table import answered
from hybrid.scoring.tally import OTHER
from hybrid.types import Metric

# The sections that a conclusion reads.
SECTIONS = ("metrics", "differences", "helped", "gain", "effects", "outcomes", "answered")
NAME_WIDTH = 30
NAMED = 3  # So many solvers or tasks are named in a list
COUNTS: Mapping[UnansweredRule, str] = {"guess": "as a guess", "wrong": "as wrong"}

# The result of a paired difference, or why there is none; the second part of a case's id.
State = Literal["more", "less", "open", "few", "silent", "failed", "waiting", "units", "apart", "absent"]
# The state of a pair that was not tested, by the reason.
WHY_NOT: Mapping[str, State] = {"failed": "failed", "waiting": "waiting", "unanswered": "silent", "units": "units"}


@dataclass(frozen=True)
class HeadlinePair:
    """The difference b minus a of two solvers by the headline metric, as the result table has it.

    `rows` is the difference where there is one, `metrics` the metric of each over the questions that both have; `right`
    and `none` count the right and the unreadable answers of a and b to `n` questions, `right` None where these counts
    are not the metric: a mean over tasks of several sizes, credit for no answer, repetitions.
    """

    a: Scored
    b: Scored
    rows: tuple[Result, ...] = ()
    values: tuple[float | None, float | None] = (None, None)
    right: tuple[int, int] | None = None
    none: tuple[int, int] = (0, 0)
    n: int = 0
    failed: int = 0
    metrics: tuple[Metric, Metric] | None = None

    @property
    def state(self) -> State:
        """The result, or why there is none."""
        if not self.rows:
            # They share no question, or --pairs leaves them out.
            return "waiting" if not self.metrics and (self.a.open or self.b.open) else "apart"
        for key, state in WHY_NOT.items():
            if UNTESTED[key] in self.rows[0].note:
                return state
        return shown(self.rows[0])

    def fields(self) -> dict[str, object]:
        """The fields of the words that are about a tested difference."""
        row = self.rows[0] if self.rows else None
        silent = self.b if self.n and self.none[1] == self.n else self.a
        fields: dict[str, object] = {
            "n": self.n + self.failed if self.state == "failed" else self.n,
            "failed": self.failed,
            "hybrid": short_name(self.b),
            "other": short_name(self.a),
            "silent": short_name(silent),
            "left": self.a.open + self.b.open,
        }
        if self.state == "waiting":
            fields["command"] = own_command([one for one in (self.a, self.b) if one.open])
        if row is None:
            return fields
        fields |= {"metric": row.metric, "size": "", "interval": "", "open": ""}
        if row.value is not None and row.low is not None:
            ends = ends_of(row)
            fields |= {"size": signed(row), "interval": f"{CI} {ends}"}
            fields["open"] = f"no difference shown: the {CI}, {ends}{unit_of(row)}, holds 0"
        return fields


CI = "95 % CI"


def shown(row: Result) -> State:
    """The result that an interval shows of a difference."""
    if row.low is None or row.high is None:
        return "few"
    return "more" if row.low > 0 else "less" if row.high < 0 else "open"


def measure(metrics: Sequence[Metric]) -> str:
    """A metric in words, a mean over tasks as such: `accuracy (mean of 3 tasks)`."""
    metric = metrics[0]
    strata = {cell.stratum for cell in metric.cells if cell.denominator > 0}
    if metric.combine != "mean_of_ratios":
        return metric.name
    name = metric.name.removesuffix("_macro")
    return f"{name} (mean of {len(strata)} tasks)" if len(strata) > 1 else name


def short_name(scored: Scored) -> str:
    """The solver's name within `NAME_WIDTH` columns."""
    return clipped(scored.solver, NAME_WIDTH)


def listed(names: Sequence[str], between: str = ", ") -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return between.join(names[:NAMED]) + more


def how_many(count: int, what: str = "question") -> str:
    """`1 question`, `2 questions`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def number(value: float, unit: str) -> str:
    """In points of a share, without decimals unless a number that is not 0 would read as 0; else three digits."""
    if unit != FRACTION:
        return f"{value:.3g}"
    points = 100 * value
    return f"{points:z.0f}" if abs(points) >= 0.5 or abs(points) < 1e-9 else f"{points:.1g}"


def are_counts(values: Sequence[float | None], right: Sequence[int], n: int) -> bool:
    """Whether these values of a metric are right answers / questions."""
    return all(value is not None and abs(value * n - k) < 1e-6 for value, k in zip(values, right, strict=True))


def unit_of(row: Result) -> str:
    """The word behind a number of a row."""
    return " points" if row.unit == FRACTION else ""


def size_of(row: Result) -> str:
    """How large a difference is, for words that say its sign: `14 points`."""
    return f"{number(abs(row.value or 0.0), row.unit)}{unit_of(row)}"


def signed(row: Result) -> str:
    """A difference with its sign: `-14 points`."""
    return f"{'-' if (row.value or 0.0) < 0 else '+'}{size_of(row)}"


def ends_of(row: Result, *, cost: bool = False) -> str:
    """The interval, with its signs; `cost` turns that of a loss around, for words that say so."""
    low, high = row.low or 0.0, row.high or 0.0
    if cost:
        low, high = -high, -low
    return f"{number(low, row.unit)} to {number(high, row.unit)}"


class ConclusionRows:
    """The rows of a comparison that conclusions are drawn from."""

    def __init__(self, comparison: Comparison) -> None:
        self.found = comparison
        self._by_section = {made.name: made.rows for made in results(comparison, SECTIONS)}

    def of(self, section: str) -> tuple[Result, ...]:
        """The rows of one section; none where it could not be made."""
        return self._by_section.get(section, ())

    def between(self, section: str, names: tuple[str, str]) -> list[Result]:
        """The rows of a pair in a section, in this order of the two."""
        return [turned(row, names) for row in self.of(section) if {row.a, row.b} == set(names)]

    def pair(self, a: Scored, b: Scored) -> HeadlinePair:
        """The headline difference of two solvers, whichever of them is the first of the tested pair."""
        names = (a.solver, b.solver)
        differences = [row for row in self.between("differences", names) if not row.group]
        metric = next((row.metric for row in differences if row.quantity == "helped"), None)
        rows = {row.quantity: row for row in differences if row.metric == metric}
        metrics = self.found.overlap(a, b).headline(b.unanswered)
        pair = HeadlinePair(a, b, metrics=None if metrics is None else (metrics[0], metrics[1]))
        if not rows:
            return pair
        n, values = rows["helped"].n or 0, (rows["value a"].value, rows["value b"].value)
        verdicts = [(row.quantity.split(" -> "), count_of(row)) for row in self.between("helped", names)]
        right = tuple(sum(k for both, k in verdicts if both[place] == "right") for place in (0, 1))
        counted = bool(verdicts) and are_counts(values, right, n)
        # Repetitions count with their mean, which has no number of right answers.
        counted = counted and all(len(self.found.repetitions(one)) == 1 for one in (a, b))
        counts, none = (right[0], right[1]) if counted else None, (count_of(rows["none a"]), count_of(rows["none b"]))
        pair = replace(pair, rows=(rows["difference"],), values=values, right=counts, none=none)
        return replace(pair, n=n, failed=count_of(rows["failed"]))

    def where_answered(self, specialist: Scored, other: Scored) -> tuple[HeadlinePair, dict[str, Result]]:
        """The pair on the questions that the specialists answer, and by quantity the rows of those that they do not.

        Where they answer all or none, the whole pair and no row.
        """
        pair = self.pair(specialist, other)
        own = [row for row in self.of("answered") if (row.a, row.b) == (specialist.solver, other.solver)]
        spoken, silent = ({row.quantity: row for row in own if (row.group == SPOKEN) == here} for here in (True, False))
        if not (spoken and silent):
            return pair, {}
        values = (spoken["value a"].value, spoken["value b"].value)
        n = spoken.get("right a", spoken["difference"]).n or 0
        right = (count_of(spoken.get("right a")), count_of(spoken.get("right b")))
        counted = right if "right a" in spoken and are_counts(values, right, n) else None
        part = replace(pair, rows=(spoken["difference"],), values=values, right=counted, none=(0, 0), n=n)
        return part, silent

    def part(self, a: Scored, b: Scored, quantity: str) -> HeadlinePair:
        """A difference of the section `gain`, over the questions that all of a gain's solvers have."""
        pair, names = self.pair(a, b), (a.solver, b.solver)
        rows = [row for row in self.of("gain") if (row.a, row.b, row.quantity) == (*names, quantity) and not row.group]
        return replace(pair, rows=tuple(rows), n=pair.n or next((row.n or 0 for row in rows), 0))

    def called(self, solver: Scored) -> tuple[int, int]:
        """On how many of the questions that a solver answered it called a tool, and how many these are."""
        attempts = solver.folder.recorded(solver.recorded).without_steps if solver.folder else {}
        answered = [attempts[one.id] for one in solver.scores if not one.outcome.failed and one.id in attempts]
        called = (any(each.reply.usage.tool_calls for each in one.exchanges) for one in answered)
        return sum(called), len(answered)

    def otherwise(self, a: Scored, b: Scored) -> str | None:
        """How b stands to a by the other rule of what no answer counts; None where the verdict is that of this one."""
        shared = self.found.overlap(a, b)
        if all(answered(answer).all() for answer in shared.answer):
            return None
        own, other = (shared.shown(rule) for rule in (shared.rule, OTHER[shared.rule]))
        said = {1: "ahead of", -1: "behind", 0: "not shown to differ from"}
        return None if other is None or own == other else f"{short_name(b)} is {said[other]} {short_name(a)}"

    def tasks(self, a: Scored, b: Scored) -> list[Result]:
        """The tested differences b minus a within each task; their family is the tasks of the pair."""
        names = (a.solver, b.solver)
        rows = [row for row in self.between("differences", names) if row.group and row.quantity == "difference"]
        return [row for row in rows if row.low is not None]


def count_of(row: Result | None) -> int:
    """The count that a row holds; 0 where there is none."""
    return 0 if row is None else round(row.value or 0)


def turned(row: Result, names: tuple[str, str]) -> Result:
    """A row of a pair in this order of the solvers: what is of b minus a changes its sign, what is of one its side."""
    if (row.a, row.b) == names:
        return row
    mirrored = {" a": " b", " b": " a"}
    quantity = row.quantity[:-2] + mirrored.get(row.quantity[-2:], row.quantity[-2:])
    if " -> " in quantity:
        quantity = " -> ".join(reversed(quantity.split(" -> ")))
    turned = replace(row, a=row.b, b=row.a, quantity=quantity)
    if row.quantity != "difference":
        return turned
    value, low, high = (None if number is None else -number for number in (row.value, row.low, row.high))
    return replace(turned, value=value, low=high, high=low)
