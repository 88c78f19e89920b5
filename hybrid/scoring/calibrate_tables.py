"""The output of `hybrid calibrate`: a headline over all routes, a table by route, and JSON.

    lines = headline(measurements(answers))    # at most 40 lines of 80 columns

Each counted answer comes from a tool or from the MLLM alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.core.types import Json
from hybrid.display.tables import NONE, Column, Table, accuracy, as_narrow, bounds
from hybrid.display.terminal import NARROW, clipped, filled
from hybrid.solving.trust import MODEL, Key, Measurement
from hybrid.stats import Interval, ends_of, wilson

# Maximum number of rows of the headline table, and the widths of its name columns; the widest numbers leave no more
# room.
SHOWN, NAME, BACKEND = 24, 18, 10
MORE = "More: --all shows every route with its slope; --only NAME,... shows single tools."
COUNTS = (Column("right"), Column("reliability"), Column("95 %"))

Measurements = Sequence[tuple[Key, Measurement]]


def headline(measured: Measurements) -> list[str]:
    """Return sentences on which tools were right most and least often, then a table over all routes."""
    # By tool and backend (including the MLLM alone): number of routes, right answers and answers.
    pooled: dict[tuple[str, str], tuple[int, float, int]] = {}
    for (tool, backend, _), measurement in measured:
        routes, right, n = pooled.get((tool, backend), (0, 0.0, 0))
        pooled[tool, backend] = routes + 1, right + measurement.right, n + measurement.n
    of = {key: _count(right, n, " of ") for key, (_, right, n) in pooled.items()}
    tools = sorted(of.keys() - {MODEL}, key=lambda key: (-pooled[key][1] / pooled[key][2], [*pooled].index(key)))
    labels = [f"{clipped(key[0], NAME)} ({of[key]})" for key in tools]
    most = f"Right most often: {labels[0]}; least often: {labels[-1]}." if len(labels) > 1 else ""
    sentences = [most] if most else [f"Right: {name}." for name in labels]
    sentences += [f"The MLLM alone: {of[MODEL]}."] if MODEL in of else []
    columns = (Column("tool", "left"), Column("backend", "left"), Column("routes"), *COUNTS)
    rows = tuple(
        (clipped(tool, NAME), clipped(backend, BACKEND), str(routes), *_counts(right, n))
        for (tool, backend), (routes, right, n) in [*pooled.items()][:SHOWN]
    )
    hidden = [f"and {len(pooled) - SHOWN} more"] if len(pooled) > SHOWN else []
    table = as_narrow(Table("", columns, rows)).strip("\n").splitlines()
    return [
        *(line for sentence in sentences for line in filled(sentence, NARROW)),
        "",
        *table,
        *hidden,
        *filled(MORE, NARROW, 2),
    ]


def by_route(measured: Measurements) -> Table:
    """Return a row for each tool, or the MLLM alone, on each route."""
    columns = (*(Column(name, "left") for name in ("tool", "backend", "route")), *COUNTS)
    rows = tuple(
        (
            *key,
            *_counts(measurement.right, measurement.n),
            NONE if measurement.usually is None else f"{measurement.usually:+.2f}",
            f"{measurement.slope:.2f}",
        )
        for key, measurement in measured
    )
    title = (
        "How often an answer was right, its usual confidence in log-odds, and how much a change in its confidence means"
    )
    return Table(title, (*columns, Column("usually"), Column("slope")), rows)


def as_json(measured: Measurements) -> list[Json]:
    """Return an object for each row of `by_route`, unrounded."""
    names = ("tool", "backend", "route", "right", "n", "reliability", "low", "high", "usually", "slope")
    rows = (
        (
            *key,
            measurement.right,
            measurement.n,
            measurement.right / measurement.n,
            *ends_of(_interval(measurement.right, measurement.n)),
            measurement.usually,
            measurement.slope,
        )
        for key, measurement in measured
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


def _counts(right: float, n: int) -> tuple[str, str, str]:
    return (_count(right, n, "/"), accuracy(right / n), bounds(_interval(right, n)))


def _count(right: float, n: int, between: str) -> str:
    return f"{right:g}{between}{n}"


def _interval(right: float, n: int) -> Interval | None:
    # Wilson's interval needs a count of right answers; a sum of grades is not one.
    return wilson(int(right), n) if right.is_integer() else None
