"""The result table: the one form in which scoring hands a number on.

    Result("differences", "difference", FRACTION, 0.12, a="mllm", b="controller", low=0.05, high=0.19, n=120)

A statistic is a file of `sections/` that exports `SECTION`: its title, its quantities and a function from a comparison
to rows. `rendering.py` turns the rows of any section into tables and csv, `hybrid/report` into charts; neither knows a
section by name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from hybrid.benchmarks.base import UnansweredRule
from hybrid.benchmarks.card import MetricCard
from hybrid.core.types import Json, Metric
from hybrid.stats import EXACT, FEW, SWAPPED, Contrast, Interval, contrast, ends_of, holm, interval

if TYPE_CHECKING:
    from hybrid.scoring.compare import Comparison

# The unit of a share; of a metric that is none (pixels, degrees, counts); of a count of questions.
FRACTION, OWN_UNIT, QUESTIONS = "fraction", "the metric's own", "questions"

LEVEL = 0.05  # Two-sided error of a test
COVERAGE = 0.95  # Of an interval, where a row names no other

USUAL = ("level", COVERAGE)  # The field that JSON leaves out, as nearly every row has it

# How a page draws a section: dots with intervals around 0, bars by task, counts in a grid that open their questions,
# parts that add up, one quantity by another, steps from the accuracy of `a` to that of `b`.
ChartKind = Literal["intervals", "bars", "counts", "stack", "scatter", "waterfall"]


@dataclass(frozen=True, slots=True)
class Result:
    """One number of a comparison.

    `quantity` names it (`difference`, `kappa`, `over-trust rate`) in `unit`. `a` and `b` are the solvers that it is of
    (a difference is b minus a), `metric` is what was measured, `group` the task or value of `--by`, empty for all.
    `low` and `high` are the ends of the interval (95 %, or `level`), `p` is two-sided, `p_holm` adjusted within its
    `family`. `n` says how many units the number is over; `none` is what a question without a readable answer counts,
    empty where that makes no difference. `note` says in words what limits it; `ids` are the questions behind a count.
    """

    section: str
    quantity: str
    unit: str
    value: float | None
    a: str = ""
    b: str = ""
    metric: str = ""
    group: str = ""
    n: int | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    family: str = ""  # Name of the family of tests that `p_holm` is adjusted within (`families.py`)
    none: UnansweredRule | Literal[""] = ""
    note: str = ""
    ids: tuple[str, ...] = ()
    detail: bool = False  # Whether tables leave it out; JSON and csv have every row
    # Coverage of the interval: 0.9 in `equivalence`, whose two tests at 5 % it is the same as.
    level: float = COVERAGE

    def as_json(self) -> dict[str, Json]:
        """The fields with a value; `section`, `quantity`, `unit` and `value` always."""
        always = ("section", "quantity", "unit", "value")
        return {
            name: list(value) if isinstance(value, tuple) else value
            # Not `asdict`, which copies every value deeply: a comparison has thousands of rows.
            for name, value in ((name, getattr(self, name)) for name in self.__dataclass_fields__)
            # A 0 is a value: an interval may begin there, and a p value may be one.
            if name in always or not (value is None or value is False or value in ("", ()) or (name, value) == USUAL)
        }

    def noted(self, *notes: str) -> Result:
        """The row with these notes besides its own; empty ones are left out."""
        return replace(self, note="; ".join(filter(None, (self.note, *notes))))

    @property
    def interval(self) -> Interval | None:
        """The interval, its method not kept."""
        return None if self.low is None or self.high is None else Interval(self.low, self.high, "")

    @property
    def holds(self) -> bool:
        """Whether the adjusted p value is below `LEVEL`; False without one."""
        return self.p_holm is not None and self.p_holm < LEVEL

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0; False without an interval."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


class Family(NamedTuple):
    """A family of tests: its name in the heads of tables, and what tells it from others of that name."""

    name: str
    key: Hashable = ()


Rows = Callable[["Comparison"], Iterable[Result]]
Lead = Callable[["Comparison", Sequence[Result]], str]


def no_lead(*_: object) -> str:
    """The conclusion of a section that draws none."""
    return ""


@dataclass(frozen=True)
class Section:
    """A statistic: which question it answers, of which quantities, and how its rows are made."""

    name: str  # The stem of its file: the key in `--json`, the word of `--only`
    title: str  # The question that it answers, as a heading
    quantities: tuple[MetricCard, ...]  # How each quantity is reckoned; every row has one of these
    rows: Rows  # No row where the comparison lacks what the section needs: a blank control, traces, repetitions
    lead: Lead = no_lead  # The conclusion in one or two sentences; empty for none
    about: str = ""  # Whole sentences that explain the table, printed below it; each line is a paragraph
    # Headings of the columns `a`, `b`, `metric` and `group`, where they hold something else than their names say.
    headings: Mapping[str, str] = field(default_factory=dict)
    chart: ChartKind | None = None
    charted: tuple[str, ...] = ()  # The quantities that the chart shows; all that tables show where it is empty
    # Of a waterfall: how each of `charted` enters, 0 the accuracy that it starts from, 1 a step up, -1 a step down.
    signs: tuple[int, ...] = ()
    order: int = 100  # Sections are read in this order, equal ones by name

    def card(self, quantity: str) -> MetricCard | None:
        """How a quantity is reckoned."""
        return next((card for card in self.quantities if card.describes(quantity)), None)

    def signed(self, quantity: str) -> bool:
        """Whether a quantity may be below 0 and is printed with its sign."""
        card = self.card(quantity)
        return card is not None and card.values.startswith("-")


@dataclass(frozen=True)
class SectionResult:
    """The rows of one section, or why they could not be computed."""

    section: Section
    rows: tuple[Result, ...]
    lead: str = ""
    fault: str | None = None  # A trace that is damaged, a file that cannot be read

    @property
    def name(self) -> str:
        """The section's."""
        return self.section.name


def unit_of(metrics: Iterable[Metric]) -> str:
    """`FRACTION` where the metrics are shares, every cluster worth 0 to 1 of 1; else `OWN_UNIT`."""
    with_cells = [metric for metric in metrics if metric.cells]
    shares = all(metric.share and metric.combine != "root_of_ratio" for metric in with_cells)
    cells = (cell for metric in with_cells for cell in metric.cells)
    inside = all(-1e-9 <= cell.numerator <= cell.denominator + 1e-9 for cell in cells)
    return FRACTION if with_cells and shares and inside else OWN_UNIT


def with_interval(row: Result, metric: Metric) -> Result:
    """The row with value, n and 95 % interval of a metric."""
    low, high = ends_of(interval(metric))
    return replace(row, value=metric.value, n=metric.n, low=low, high=high)


# The note of a row by the reason why nothing was tested.
UNTESTED: Mapping[str, str] = {
    "failed": "not tested: more than 1 % of the questions failed (--allow-failed tests all the same)",
    "waiting": "not tested: a mean over tasks, of which questions are not finished yet",
    "unanswered": "not tested: one of the solvers answered nothing",
    "units": "not tested: the metric does not count the same units for both",
}


EXACTLY = (
    f"exact test: of fewer than {FEW} single questions (Suissa and Shuster 1991; with several strata or partial "
    "credit, of swapping the answers); the interval, which is approximate, reaches 0 where p >= 0.05"
)


def contrasted(row: Result, a: Metric, b: Metric, untested: str | None) -> tuple[Result, Result, Result]:
    """Three rows: the difference b minus a, the value of a, the value of b.

    The difference has interval and p value unless it is not to be tested; its note says how, or why not.
    """
    if untested is None:
        estimate = contrast(a, b)
    else:
        difference = None if a.value is None or b.value is None else b.value - a.value
        estimate = Contrast(a.value, b.value, difference, None, None, "none", 0)
    note = UNTESTED[untested] if untested else EXACTLY if estimate.test in (EXACT, SWAPPED) else ""
    low, high = ends_of(estimate.interval)
    tested = replace(row, value=estimate.difference, p=estimate.p_value, low=low, high=high).noted(note)
    values = {"value a": estimate.value_a, "value b": estimate.value_b}
    of_a, of_b = (replace(row, quantity=name, value=value) for name, value in values.items())
    return tested, of_a, of_b


def gated(rows: Iterable[Result], untested: str | None) -> Iterator[Result]:
    """The rows as they are, or where nothing is to be tested without intervals and p values, with the reason."""
    for row in rows:
        if untested is None or (row.low is None and row.p is None):
            yield row
        else:
            yield replace(row, low=None, high=None, p=None).noted(UNTESTED[untested])


def adjusted(rows: Sequence[Result], family: Callable[[Result], Family]) -> list[Result]:
    """The rows with p values adjusted after Holm among the rows of one family, whose name they get."""
    places: dict[Family, dict[int, float]] = {}
    for place, row in enumerate(rows):
        if row.p is not None:
            places.setdefault(family(row), {})[place] = row.p
    ready = list(rows)
    for name, members in places.items():
        for place, p_holm in zip(members, holm(list(members.values())), strict=True):
            ready[place] = replace(rows[place], p_holm=p_holm, family=name.name)
    return ready
