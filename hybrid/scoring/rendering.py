"""Rows of the result table as tables for a person, as csv for a spreadsheet, as JSON for a program.

    for made in results(found):
        tables_of(found, made)
    as_csv(found, results(found))

A table has a line for each combination of solvers, metric and group, and a column for each quantity; where that would
be too wide or mostly empty it has a line for each number. No section is known here: what differs between them stands in
`Section`.

Names of solvers, tasks and groups may come from data, and a spreadsheet takes a cell for a formula that begins with
`=`, `+`, `-`, `@`, a tab or a line break (OWASP, CSV Injection). Such a name gets an apostrophe in front, which a
spreadsheet does not show; so does one that has apostrophes before such a sign, so that taking one away gives back
every name (`named`). Numbers are numbers, negative ones too, and nothing in csv is rounded.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from hybrid.display.tables import (
    NONE,
    NOTE_WIDTH,
    RENDERERS,
    Column,
    Table,
    accuracy,
    bounds,
    p_value,
    signed,
    tokens,
)
from hybrid.display.terminal import NARROW, filled
from hybrid.errors import UsageError
from hybrid.scoring.compare import CONTROL, Comparison, shared_labels
from hybrid.scoring.groups import origin_of
from hybrid.scoring.result import Result, Section, SectionResult
from hybrid.scoring.score import Scored

KEYS = ("a", "b", "metric", "group")
"""The fields of a row that say what it is of."""
WIDEST = 13
"""A table with more columns of numbers has a line for each number instead, as has one that would be mostly empty."""
NAMED = {"interval": "95 %", "p": "p", "p_holm": "p (Holm)"}
"""The headings of what a number may have besides its value."""


def tables_of(comparison: Comparison, made: SectionResult) -> tuple[Table, ...]:
    """The tables of a section: one over all questions, one by task, and so on.

    A section that could not be made is a table that says why.
    """
    section = made.section
    if made.fault is not None:
        columns = (Column("section", "left"), Column("why", "left"))
        return (Table("This section could not be made", columns, ((section.name, made.fault),)),)
    parts: dict[tuple[tuple[str, ...], bool], list[Result]] = {}
    tested = any(row.p_holm is not None for row in made.rows)
    for row in made.rows:
        if not row.detail:
            # What is adjusted together stands in one table: the headline metric is a family of its own.
            head = tested and row.metric == comparison.headline
            parts.setdefault((tuple(key for key in KEYS if getattr(row, key)), head), []).append(row)
    tables = [_table(comparison, section, keys, rows) for (keys, _), rows in parts.items()]
    return tuple(
        Table(one.title, one.columns, one.rows, (*one.notes, *(section.about.splitlines() if place == 0 else ())))
        for place, one in enumerate(tables)
    )


def title_of(comparison: Comparison, section: Section) -> str:
    """Benchmark, failures and labels: what must be known of every number below."""
    failed = [f"{one.solver}: {one.failed} of {len(one.scores)} failed" for one in comparison.solvers if one.failed]
    shared = shared_labels(comparison.solvers)
    labels = [*shared, *_unnamed_labels(comparison.solvers, shared)]
    title = f"{comparison.solvers[0].benchmark}: {section.name.replace('_', ' ')}"
    return title + (f" ({'; '.join(failed)})" if failed else "") + (f" [{'; '.join(labels)}]" if labels else "")


def _unnamed_labels(solvers: Sequence[Scored], shared: Sequence[str]) -> list[str]:
    """The labels of some of the solvers that their names do not say, and whose they are."""
    whose: dict[str, list[str]] = {}
    for one in solvers:
        for label in one.labels:
            if label not in shared and label.removeprefix(CONTROL) not in one.solver:
                whose.setdefault(label, []).append(one.solver)
    return [f"{', '.join(names)}: {label}" for label, names in whose.items()]


@dataclass
class _Notes:
    """The notes of a table and their numbers."""

    texts: dict[str, int]

    def mark(self, note: str) -> str:
        """The number of a note, which it gets where it is met first."""
        return f" [{self.texts.setdefault(note, len(self.texts) + 1)}]" if note else ""

    def lines(self) -> tuple[str, ...]:
        return tuple(f"[{number}] {text}" for text, number in self.texts.items())


def _table(comparison: Comparison, section: Section, keys: Sequence[str], rows: Sequence[Result]) -> Table:
    """Rows that all are of the same things: of a solver and a metric, of a pair and a task."""
    metrics = {row.metric for row in rows}
    shown = [key for key in keys if key != "metric" or len(metrics) > 1]
    title = title_of(comparison, section)
    if "metric" in keys and "metric" not in shown:
        title += f": {metrics.pop()}"
    if "group" in keys:
        title += f", by {comparison.grouping}"
    names = {"group": comparison.grouping, **section.headings}
    heads = [Column(names.get(key, key), "left") for key in shown]
    notes = _Notes({})
    quantities = _quantities(section, rows)
    cells = len({tuple(getattr(row, key) for key in (*keys, "quantity")) for row in rows})
    lines_of_things = len({tuple(getattr(row, key) for key in keys) for row in rows})
    sparse = 2 * cells < lines_of_things * len(quantities)
    if sparse or sum(len(one.columns) for one in quantities) > WIDEST:
        columns, lines = _long(section, heads, shown, rows, notes)
    else:
        columns, lines = _wide(heads, keys, shown, rows, quantities, notes)
    return Table(title, tuple(columns), tuple(lines), notes.lines())


@dataclass(frozen=True)
class _Quantity:
    """A quantity of a table and the columns that it takes: its value, and what any of its rows has besides."""

    section: Section
    name: str
    columns: tuple[str, ...]
    extras: tuple[str, ...]
    """Of `interval`, `p`, `p_holm` those that stand in columns of their own."""

    def holds(self, row: Result) -> bool:
        """Whether a row stands in these columns."""
        return row.quantity == self.name

    def cells(self, row: Result | None, n: int | None, notes: _Notes) -> Iterator[str]:
        """The cells of one line; a value over another n than the line's says over how many."""
        if row is None:
            yield from (NONE,) * len(self.columns)
            return
        over = f" ({row.n})" if row.n is not None and row.n != n else ""
        yield printed(self.section, row) + over + notes.mark(row.note)
        for extra in self.extras:
            yield _extra(self.section, row, extra)


def _quantities(section: Section, rows: Sequence[Result]) -> list[_Quantity]:
    """The quantities in the order of the rows."""
    quantities = []
    for name in dict.fromkeys(row.quantity for row in rows):
        extras = tuple(_extras([row for row in rows if row.quantity == name]))
        quantities.append(_Quantity(section, name, (name, *(NAMED[extra] for extra in extras)), extras))
    return quantities


def _extras(rows: Sequence[Result]) -> Iterator[str]:
    if any(row.low is not None for row in rows):
        yield "interval"
    if any(row.p is not None for row in rows):
        yield "p"
    if len([row for row in rows if row.p_holm is not None]) > 1:
        yield "p_holm"


def _extra(section: Section, row: Result, extra: str) -> str:
    if extra == "interval":
        return bounds(row.interval, 3 if section.signed(row.quantity) else 2)
    return p_value(row.p if extra == "p" else row.p_holm)


def _wide(
    heads: Sequence[Column],
    keys: Sequence[str],
    shown: Sequence[str],
    rows: Sequence[Result],
    quantities: Sequence[_Quantity],
    notes: _Notes,
) -> tuple[list[Column], list[tuple[str, ...]]]:
    lines: dict[tuple[str, ...], list[Result]] = {}
    for row in rows:
        lines.setdefault(tuple(getattr(row, key) for key in keys), []).append(row)
    counted = any(row.n is not None for row in rows)
    columns = [*heads, *([Column("n")] if counted else [])]
    columns += [Column(name) for one in quantities for name in one.columns]
    cells = []
    for members in lines.values():
        n = next((row.n for row in members if row.n is not None), None)
        line = [getattr(members[0], key) for key in shown]
        line += [NONE if n is None else str(n)] if counted else []
        for one in quantities:
            line += one.cells(next(filter(one.holds, members), None), n, notes)
        cells.append(tuple(line))
    return columns, cells


def _long(
    section: Section, heads: Sequence[Column], shown: Sequence[str], rows: Sequence[Result], notes: _Notes
) -> tuple[list[Column], list[tuple[str, ...]]]:
    extras = list(_extras(rows))
    columns = [*heads, Column("quantity", "left"), Column("n"), Column("value"), *(Column(NAMED[e]) for e in extras)]
    cells = [
        (
            *(getattr(row, key) for key in shown),
            row.quantity,
            NONE if row.n is None else str(row.n),
            printed(section, row) + notes.mark(row.note),
            *(_extra(section, row, extra) for extra in extras),
        )
        for row in rows
    ]
    return columns, cells


def printed(section: Section, row: Result) -> str:
    """The value of a row as tables print it: rounded by its unit, with a sign where it may be below 0."""
    value = row.value
    if value is None:
        return NONE
    match row.unit:
        case "questions" | "calls" | "samples":
            return f"{value:.0f}" if value == round(value) else f"{value:.1f}"
        case "tokens":
            return tokens(round(value))
        case "seconds":
            return f"{value:,.1f} s" if value >= 10 else f"{value:.3f} s"
        case "USD":
            return f"{value:.4f}"
        case "ratio" | "kappa":
            return f"{value:z.2f}"
        case "probability":
            return p_value(value)
        case _:
            return signed(value) if section.signed(row.quantity) else accuracy(value)


_SIDES = ("model_a", "run_a", "model_b", "run_b")
_FIELDS = tuple(field.name for field in fields(Result) if field.name not in ("ids", "detail"))
COLUMNS = ("benchmark", *_FIELDS, *_SIDES, "no_answer")
"""The last is the rule of the whole output, also of rows in which it makes no difference (`none`)."""

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NAMED = re.compile(r"'+[=+\-@\t\r\n]")


def as_csv(solvers: Sequence[Scored], rows: Iterable[Result]) -> str:
    r"""A heading and a line for each row (RFC 4180 quoting, lines end in \n), with model and run of its solvers."""
    benchmark, rule = (solvers[0].benchmark, solvers[0].abstain) if solvers else ("", "")
    origins = {one.solver: origin_of(one) for one in solvers}

    def lines() -> Iterator[list[Any]]:
        for row in rows:
            of = sides(origins, row)
            yield [benchmark, *(getattr(row, name) for name in _FIELDS), *map(of.get, _SIDES), rule]

    return lines_of(COLUMNS, lines())


def lines_of(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A heading and a line for each row: names that a spreadsheet would compute made harmless, numbers not rounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_cell, row) for row in rows)
    return text.getvalue()


@contextmanager
def needing(package: str) -> Iterator[None]:
    """Inside, a package that makes frames is imported. Raises `UsageError` where it is not installed."""
    try:
        yield
    except ImportError as error:
        message = f"to_{package} needs the package {package}, which is not installed: pip install {package}"
        raise UsageError(message) from error


def sides(origins: Mapping[str, Mapping[str, str | None]], row: Result) -> dict[str, str | None]:
    """`model_a`, `run_a`, `model_b` and `run_b` of a row: the origins (`origin_of`) of the solvers that it names."""
    pair = (("a", row.a), ("b", row.b))
    return {f"{key}_{side}": value for side, name in pair for key, value in origins.get(name, {}).items()}


def neutral(name: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{name}" if _FORMULA.match(name) else name


def named(cell: str) -> str:
    """The name that a cell was written for: `neutral` the other way round."""
    return cell[1:] if _NAMED.match(cell) else cell


def _cell(value: str | float | None) -> str:
    """A name made harmless; a number with all its digits, a whole one without a point."""
    if value is None:
        return ""
    if isinstance(value, str):
        return neutral(value)
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


@dataclass(frozen=True)
class Block:
    """The tables of one section under its heading."""

    name: str
    heading: str
    lead: str
    tables: tuple[Table, ...]


HEADINGS: Mapping[str, Callable[[str], str]] = {
    "text": lambda heading: f"{heading}\n{'=' * len(heading)}\n",
    "narrow": lambda heading: "\n".join([*filled(heading, NARROW), "=" * min(len(heading), NARROW), ""]),
    "markdown": lambda heading: f"## {heading}\n",
    "latex": lambda heading: f"% {heading}\n",
}
"""The heading above the tables of a section, by form."""


def pieces(block: Block, form: str) -> Iterator[str]:
    """Heading, conclusion and tables of one section."""
    yield HEADINGS[form](block.heading)
    if block.lead and form in ("text", "narrow", "markdown"):
        yield "\n".join(filled(block.lead, NARROW if form == "narrow" else NOTE_WIDTH)) + "\n"
    yield from map(RENDERERS[form], block.tables)
