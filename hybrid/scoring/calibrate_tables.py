"""The numbers of `hybrid calibrate`: a headline over all routes, a table by route, and JSON.

    lines = headline(measurements(answers))    # at most 40, of 80 columns

An answer is one of a tool, or of the MLLM alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.display.tables import NONE, Column, Table, accuracy, as_narrow, bounds
from hybrid.display.terminal import NARROW, clipped, filled
from hybrid.solving.trust import MODEL, Key, Measurement
from hybrid.stats import Interval, wilson
from hybrid.types import Json

# Rows of the headline table, and columns of its names: the widest numbers leave no more.
SHOWN, NAME, BACKEND = 24, 18, 10
MORE = "More: --all has every route with its slope, --only NAME,... those of single tools."
COUNTS = (Column("right"), Column("reliability"), Column("95 %"))

Measurements = Sequence[tuple[Key, Measurement]]


@dataclass(frozen=True)
class _Pooled:
    """The answers of one tool by one backend, or of the MLLM alone, on all its routes."""

    tool: str
    backend: str
    routes: int
    right: float
    n: int

    @property
    def named(self) -> str:
        """Its name and counts, in a sentence."""
        return f"{clipped(self.tool, NAME)} ({_count(self.right, self.n, ' of ')})"


def headline(measured: Measurements) -> list[str]:
    """Sentences on which tool was right most and least often, then a table over all routes."""
    pooled = []
    for tool, backend in dict.fromkeys(key[:2] for key, _ in measured):
        own = [one for key, one in measured if key[:2] == (tool, backend)]
        pooled.append(_Pooled(tool, backend, len(own), float(sum(one.right for one in own)), sum(one.n for one in own)))
    tools = sorted((one for one in pooled if (one.tool, one.backend) != MODEL), key=lambda one: -one.right / one.n)
    said = []
    if len(tools) > 1:
        said.append(f"Right most often: {tools[0].named}; least often: {tools[-1].named}.")
    elif tools:
        said.append(f"Right: {tools[0].named}.")
    said += [f"The MLLM alone: {_count(one.right, one.n, ' of ')}." for one in pooled if one not in tools]
    columns = (Column("tool", "left"), Column("backend", "left"), Column("routes"), *COUNTS)
    rows = tuple(
        (clipped(one.tool, NAME), clipped(one.backend, BACKEND), str(one.routes), *_counts(one.right, one.n))
        for one in pooled[:SHOWN]
    )
    hidden = [f"and {len(pooled) - SHOWN} more"] if len(pooled) > SHOWN else []
    table = as_narrow(Table("", columns, rows)).strip("\n").splitlines()
    return [*(line for one in said for line in filled(one, NARROW)), "", *table, *hidden, *filled(MORE, NARROW, 2)]


def by_route(measured: Measurements) -> Table:
    """A row for each tool, or the MLLM alone, on each route."""
    columns = (*(Column(name, "left") for name in ("tool", "backend", "route")), *COUNTS)
    rows = tuple(
        (*key, *_counts(one.right, one.n), NONE if one.usually is None else f"{one.usually:+.2f}", f"{one.slope:.2f}")
        for key, one in measured
    )
    title = (
        "How often an answer was right; what it usually says of itself, in log-odds, and how much more or less tells"
    )
    return Table(title, (*columns, Column("usually"), Column("slope")), rows)


def as_json(measured: Measurements) -> list[Json]:
    """An object for each row of `by_route`, unrounded."""
    return [
        {
            "tool": tool,
            "backend": backend,
            "route": route,
            "right": one.right,
            "n": one.n,
            "reliability": one.right / one.n,
            "low": None if (ends := _interval(one.right, one.n)) is None else ends.low,
            "high": None if ends is None else ends.high,
            "usually": one.usually,
            "slope": one.slope,
        }
        for (tool, backend, route), one in measured
    ]


def _counts(right: float, n: int) -> tuple[str, str, str]:
    return (_count(right, n, "/"), accuracy(right / n), bounds(_interval(right, n)))


def _count(right: float, n: int, between: str) -> str:
    return f"{right:g}{between}{n}"


def _interval(right: float, n: int) -> Interval | None:
    # The sum of graded answers is no count of right ones.
    return wilson(int(right), n) if right.is_integer() else None
