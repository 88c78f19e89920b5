"""The result table: the common form of all numbers that scoring produces.

    Result("differences", "difference", FRACTION, 0.12, a="mllm", b="controller", low=0.05, high=0.19, n=120)

A statistic is a module of `sections/` that exports `SECTION`: its title, its quantities and a function from a
comparison to rows. `rendering.py` turns the rows of any section into tables and csv, `hybrid/report` turns them into
charts; neither knows a section by name.
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

# Units of a share, of any other metric (pixels, degrees, counts), and of a count of questions.
FRACTION, OWN_UNIT, QUESTIONS = "fraction", "the metric's own", "questions"

LEVEL = 0.05  # Two-sided significance level of a test
COVERAGE = 0.95  # Coverage of an interval, unless its row names another

# A field and its usual value: JSON omits the field if it has this value, as in nearly every row
USUAL = ("level", COVERAGE)

# Chart of a section on a page: dots with intervals around 0, bars by task, a grid of counts that link to their
# questions, parts that add up, one quantity against another, or steps from the accuracy of `a` to that of `b`.
ChartKind = Literal["intervals", "bars", "counts", "stack", "scatter", "waterfall"]


@dataclass(frozen=True, slots=True)
class Result:
    """One number of a comparison.

    `quantity` names the number (`difference`, `kappa`, `over-trust rate`), and `unit` is its unit. `a` and `b` are the
    solvers that it describes (a difference is b minus a), `metric` is the measured metric, and `group` is the task or
    value of `--by` (empty for all questions). `low` and `high` are the ends of the interval (95 %, or `level`), `p` is
    two-sided, `p_holm` is adjusted within its `family`. `n` is the number of units behind the number; `none` is the
    rule for questions without a readable answer, empty if it makes no difference. `note` says what limits the number;
    `ids` are the questions behind a count.
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
    family: str = ""  # Name of the family of tests within which `p_holm` is adjusted (`families.py`)
    none: UnansweredRule | Literal[""] = ""
    note: str = ""
    no_claim: str = ""  # Why a tested difference counts as neither gain nor loss (`headline_pair.NO_CLAIM`)
    ids: tuple[str, ...] = ()
    detail: bool = False  # Whether tables omit the row; JSON and csv have every row
    # Coverage of the interval; 0.9 in `equivalence`, where it agrees with the two tests at 5 %.
    level: float = COVERAGE

    def as_json(self) -> dict[str, Json]:
        """Return the fields that have a value, and always `section`, `quantity`, `unit` and `value`."""
        always = ("section", "quantity", "unit", "value")
        return {
            name: list(value) if isinstance(value, tuple) else value
            # `asdict` would copy every value deeply, and a comparison has thousands of rows.
            for name, value in ((name, getattr(self, name)) for name in self.__dataclass_fields__)
            # A 0 is a value: an interval may begin at 0, and a p value may be 0.
            if name in always or not (value is None or value is False or value in ("", ()) or (name, value) == USUAL)
        }

    def noted(self, *notes: str) -> Result:
        """Return the row with these notes added; empty notes are skipped."""
        return replace(self, note="; ".join(filter(None, (self.note, *notes))))

    @property
    def interval(self) -> Interval | None:
        """The interval, without the name of its method."""
        return None if self.low is None or self.high is None else Interval(self.low, self.high, "")

    @property
    def holds(self) -> bool:
        """Whether the adjusted p value is below `LEVEL`; False without an adjusted p value."""
        return self.p_holm is not None and self.p_holm < LEVEL

    @property
    def excludes_zero(self) -> bool:
        """Return whether the interval is on one side of 0; False without an interval."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


class Family(NamedTuple):
    """A family of tests: its name in table headings, and a key that distinguishes families of the same name."""

    name: str
    key: Hashable = ()


Rows = Callable[["Comparison"], Iterable[Result]]
Lead = Callable[["Comparison", Sequence[Result]], str]


def no_lead(*_: object) -> str:
    """Return an empty conclusion, for a section that draws none."""
    return ""


@dataclass(frozen=True)
class Section:
    """A statistic: the question that it answers, its quantities, and how its rows are computed."""

    name: str  # The stem of its file: the key in `--json` and the argument of `--only`
    title: str  # The question that it answers, as a heading
    quantities: tuple[MetricCard, ...]  # Definition of each quantity; every row has one of these
    rows: Rows  # Yields nothing if the comparison lacks what the section needs: a blank control, traces, repetitions
    lead: Lead = no_lead  # The conclusion in one or two sentences; may be empty
    about: str = ""  # Full sentences that explain the table, printed below it; each line is a paragraph
    # Headings of the columns `a`, `b`, `metric` and `group`, if they hold something other than their names say.
    headings: Mapping[str, str] = field(default_factory=dict)
    chart: ChartKind | None = None
    charted: tuple[str, ...] = ()  # The quantities that the chart shows; if empty, all that tables show
    # For a waterfall, the role of each of `charted`: 0 the initial accuracy, 1 a step up, -1 a step down.
    signs: tuple[int, ...] = ()
    order: int = 100  # Sections are sorted by this number, then by name

    def card(self, quantity: str) -> MetricCard | None:
        """Return the definition of a quantity."""
        return next((card for card in self.quantities if card.describes(quantity)), None)

    def signed(self, quantity: str) -> bool:
        """Return whether a quantity may be below 0 and is printed with its sign."""
        card = self.card(quantity)
        return card is not None and card.values.startswith("-")


@dataclass(frozen=True)
class SectionResult:
    """The rows of one section, or the reason why they could not be computed."""

    section: Section
    rows: tuple[Result, ...]
    lead: str = ""
    fault: str | None = None  # For example a damaged trace or an unreadable file

    @property
    def name(self) -> str:
        """The section's name."""
        return self.section.name


def unit_of(metrics: Iterable[Metric]) -> str:
    """Return `FRACTION` if the metrics are shares with every cluster between 0 and 1; else `OWN_UNIT`."""
    with_cells = [metric for metric in metrics if metric.cells]
    shares = all(metric.share and metric.combine != "root_of_ratio" for metric in with_cells)
    cells = (cell for metric in with_cells for cell in metric.cells)
    inside = all(-1e-9 <= cell.numerator <= cell.denominator + 1e-9 for cell in cells)
    return FRACTION if with_cells and shares and inside else OWN_UNIT


def with_interval(row: Result, metric: Metric) -> Result:
    """Return the row with value, n and 95 % interval of a metric."""
    low, high = ends_of(interval(metric))
    return replace(row, value=metric.value, n=metric.n, low=low, high=high)


# The note of an untested row, by the reason why it was not tested.
UNTESTED: Mapping[str, str] = {
    "failed": "not tested: more than 1 % of the questions failed (--allow-failed tests all the same)",
    "waiting": "not tested: a mean over tasks with questions that are not finished yet",
    "unanswered": "not tested: one of the solvers answered nothing",
    "units": "not tested: the metric does not count the same units for both",
}


EXACTLY = (
    f"exact test: of fewer than {FEW} single questions (Suissa and Shuster 1991; with several strata or partial "
    "credit, of swapping the answers); the interval, which is approximate, reaches 0 where p >= 0.05"
)


def contrasted(row: Result, a: Metric, b: Metric, untested: str | None) -> tuple[Result, Result, Result]:
    """Return three rows: the difference b minus a, the value of a, the value of b.

    The difference has interval and p value unless `untested` gives a reason; its note names the test or the reason.
    """
    if untested is None:
        estimate = contrast(a, b)
    else:
        difference = None if a.value is None or b.value is None else b.value - a.value
        estimate = Contrast(
            a.value, b.value, difference=difference, interval=None, p_value=None, test="none", clusters=0
        )
    note = UNTESTED[untested] if untested else EXACTLY if estimate.test in (EXACT, SWAPPED) else ""
    low, high = ends_of(estimate.interval)
    tested = replace(row, value=estimate.difference, p=estimate.p_value, low=low, high=high).noted(note)
    values = {"value a": estimate.value_a, "value b": estimate.value_b}
    of_a, of_b = (replace(row, quantity=name, value=value) for name, value in values.items())
    return tested, of_a, of_b


def gated(rows: Iterable[Result], untested: str | None) -> Iterator[Result]:
    """Yield the rows; if nothing may be tested, without intervals and p values but with the reason as a note."""
    for row in rows:
        if untested is None or (row.low is None and row.p is None):
            yield row
        else:
            yield replace(row, low=None, high=None, p=None).noted(UNTESTED[untested])


def adjusted(rows: Sequence[Result], family: Callable[[Result], Family]) -> list[Result]:
    """Return the rows with p values adjusted after Holm within each family; rows get their family's name."""
    places: dict[Family, dict[int, float]] = {}
    for place, row in enumerate(rows):
        if row.p is not None:
            places.setdefault(family(row), {})[place] = row.p
    ready = list(rows)
    for name, members in places.items():
        for place, p_holm in zip(members, holm(list(members.values())), strict=True):
            ready[place] = replace(rows[place], p_holm=p_holm, family=name.name)
    return ready
