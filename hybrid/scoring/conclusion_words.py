"""The words of names, numbers and differences in the sentences of a conclusion.

signed(row), ends_of(row)       # "-14 points", "-25 to -3"
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hybrid.benchmarks.base import UnansweredRule
from hybrid.core.types import Metric
from hybrid.display.terminal import clipped, how_many
from hybrid.scoring.result import FRACTION, Result
from hybrid.scoring.score import Scored

NAME_WIDTH = 30
NAMED = 3  # Maximum number of solvers or tasks named in a list
COUNTS: Mapping[UnansweredRule, str] = {"guess": "as a guess", "wrong": "as wrong"}
# What questions that cannot be right or wrong (scanpaths) count by the rule `wrong`.
SUBSTITUTE = "as the benchmark's substitute"
CI = "95% CI"


def measure(metrics: Sequence[Metric]) -> str:
    """Return a metric in words; a mean over tasks or other parts says so: `accuracy (mean of 3 tasks)`."""
    metric = metrics[0]
    if metric.combine != "mean_of_ratios":
        return metric.name
    name, tasks = metric.name.removesuffix("_macro"), number_of_tasks(metric)
    # ActiView's average is over ways of asking, not over tasks.
    parts = "tasks" if name != metric.name else "parts"
    return f"{name} (mean of {tasks} {parts})" if tasks > 1 else name


def number_of_tasks(metric: Metric) -> int:
    """Return the number of tasks that a metric averages over; 1 if the metric is not a mean over tasks."""
    is_mean = metric.combine == "mean_of_ratios"
    return len({cell.stratum for cell in metric.cells if cell.denominator > 0}) if is_mean else 1


def short_name(scored: Scored) -> str:
    """Return the solver's name within `NAME_WIDTH` columns."""
    return clipped(scored.solver, NAME_WIDTH)


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Return the first items as a list, and the number of the others."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return between.join(names[:NAMED]) + more


def number(value: float, unit: str) -> str:
    """Format a share in whole points (decimals only if it would read as 0), any other number with three digits."""
    if unit != FRACTION:
        return f"{value:.3g}"
    # Drop the error of floats and round halves away from 0, so that equal differences print alike with either sign.
    points = round(100 * value, 9)
    if abs(points) >= 0.5 or points == 0:
        return f"{math.copysign(math.floor(abs(points) + 0.5), points):z.0f}"
    return f"{points:.1g}"


def mean_count(count: float, whole: float = math.inf) -> str:
    """Return a mean over counts with one decimal, or with more if it would otherwise read as 0 or as the `whole`."""
    if count in (0, whole):
        return f"{count:.0f}"
    decimals = next((places for places in range(1, 9) if 0 < round(count, places) < whole), 9)
    return f"{count:.{decimals}f}".rstrip("0").rstrip(".")


def format_value(value: float | None) -> str:
    """Return a metric's value with three decimals, or `no value` for None."""
    return "no value" if value is None else f"{value:.3f}"


def count_units(units: int, questions: int | None) -> str:
    """Return the number of units that a value of a metric covers: questions, or groups of several questions."""
    return how_many(units) if questions in (None, units) else f"{how_many(units, 'group')} of questions"


def unit_of(row: Result) -> str:
    """Return the unit that follows a row's number: ` points` for a share, otherwise nothing."""
    return " points" if row.unit == FRACTION else ""


def size_of(row: Result) -> str:
    """Return the size of a difference without its sign, which the words state: `14 points`."""
    return f"{number(abs(row.value or 0.0), row.unit)}{unit_of(row)}"


def signed(row: Result) -> str:
    """Return a difference with its sign: `-14 points`."""
    return f"{'-' if (row.value or 0.0) < 0 else '+'}{size_of(row)}"


def ends_of(row: Result, *, cost: bool = False) -> str:
    """Return the interval with signs; `cost` negates the interval of a loss, for words that state a loss."""
    low, high = row.low or 0.0, row.high or 0.0
    if cost:
        low, high = -high, -low
    plus = "+" if low < 0 < high else ""
    return f"{number(low, row.unit)} to {plus}{number(high, row.unit)}"
