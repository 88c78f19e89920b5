"""Renders rows of the result table as tables for people, csv for spreadsheets and JSON for programs.

    for section_results in results(comparison):
        tables_of(comparison, section_results)
    as_csv(comparison, results(comparison))

A table has a line for each combination of solvers, metric and group, and a column for each quantity; if it would be too
wide or mostly empty, it has a line for each number instead. This module knows no section by name; all differences
between sections are in their `Section`.

Names of solvers, tasks and groups may come from data, and a spreadsheet evaluates a cell that begins with `=`, `+`,
`-`, `@`, a tab or a line break as a formula (OWASP, CSV Injection). Such a name gets a leading apostrophe, which a
spreadsheet hides; a name that already has apostrophes before such a sign gets one more, so that removing one apostrophe
restores every name (`unescape`). Numbers, including negative ones, stay numbers, and csv never rounds.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

from hybrid.core.errors import UsageError
from hybrid.display.tables import NONE, NOTE_WIDTH, RENDERERS, Column, Table, accuracy, bounds, p_value, signed, tokens
from hybrid.display.terminal import NARROW, filled
from hybrid.scoring.compare import CONTROL, Comparison
from hybrid.scoring.groups import origin_of
from hybrid.scoring.result import Result, Section, SectionResult
from hybrid.scoring.score import Scored

KEYS = ("a", "b", "metric", "group")  # The fields that identify what a row measures
# The end of a sentence in the explanation of a section.
SENTENCE = re.compile(r"(?<=\.) ")
# How sentences on p values begin, and the headings of the columns that they are about; the first that fits counts.
P_VALUES = {
    "p (Holm, FAMILY)": r"p \(Holm, .*",
    "p (Holm in family)": r"p \(Holm in family\)",
    "p (Holm)": r"p \(Holm.*",
    "p": "p",
}
# A table with more columns of numbers, or a mostly empty one, has a line for each number instead.
WIDEST = 13


def tables_of(comparison: Comparison, result: SectionResult) -> tuple[Table, ...]:
    """Return the tables of a section: one over all questions, one by task, and so on.

    A section that failed becomes a table with the reason.
    """
    section = result.section
    if result.fault is not None:
        columns = (Column("section", "left"), Column("why", "left"))
        return (Table("This section could not be made", columns, ((section.name, result.fault),)),)
    parts: dict[tuple[tuple[str, ...], bool], list[Result]] = {}
    tested = any(row.p_holm is not None for row in result.rows)
    for row in result.rows:
        if not row.detail:
            # Tables follow the families of tests: the headline metric is a family by itself.
            head = tested and row.metric == comparison.headline
            parts.setdefault((tuple(key for key in KEYS if getattr(row, key)), head), []).append(row)
    tables = [_table(comparison, section, keys, rows) for (keys, _), rows in parts.items()]
    # Put the explanation below the first table.
    notes = tuple(_notes_about(section, tables, {row.quantity for row in result.rows if not row.detail}))
    return (*(replace(table, notes=(*table.notes, *notes)) for table in tables[:1]), *tables[1:])


def _notes_about(section: Section, tables: Sequence[Table], quantities: Collection[str]) -> Iterator[str]:
    """Yield the lines that explain a section, without sentences on columns and quantities that no table has."""
    headings = {column.name for table in tables for column in table.columns}
    for line in section.about.splitlines():
        sentences = (each for each in SENTENCE.split(line) if _is_about(each, section, headings, quantities))
        if note := " ".join(sentences):
            yield note


def _is_about(sentence: str, section: Section, headings: Collection[str], quantities: Collection[str]) -> bool:
    """Return whether a sentence does not begin with p values or quantities, or a table has some of these."""
    for column, heading in P_VALUES.items():
        if sentence.startswith(f"{column} "):
            return any(re.fullmatch(heading, name) for name in headings)
    subjects, colon, _ = sentence.partition(": ")
    known = {card.name for card in section.quantities}
    subject_names = set(subjects.split(", "))
    return not colon or not subject_names <= known or bool(subject_names & {*quantities})


def title_of(comparison: Comparison, section: Section) -> str:
    """Return a section's title: benchmark, section, and the failures and labels that qualify every number below."""
    failed = [
        f"{solver.solver}: {solver.failed} of {len(solver.scores)} failed"
        for solver in comparison.solvers
        if solver.failed
    ]
    # Labels that all solvers share.
    labels = [
        label for label in comparison.solvers[0].labels if all(label in solver.labels for solver in comparison.solvers)
    ]
    # Labels that only some solvers have and that are not part of a solver's name, each with the names of these solvers.
    whose: dict[str, list[str]] = {}
    for solver in comparison.solvers:
        for label in solver.labels:
            if label not in labels and label.removeprefix(CONTROL) not in solver.solver:
                whose.setdefault(label, []).append(solver.solver)
    notes = "; ".join([*labels, *(f"{', '.join(names)}: {label}" for label, names in whose.items())])
    title = f"{comparison.solvers[0].benchmark}: {section.name.replace('_', ' ')}"
    return title + (f" ({'; '.join(failed)})" if failed else "") + (f" [{notes}]" if notes else "")


def _title_of_table(comparison: Comparison, section: Section, keys: Sequence[str], metrics: Collection[str]) -> str:
    """Return the section's title, the metric if the rows have one, and what the rows are grouped by."""
    of = f": {next(iter(metrics))}" if "metric" in keys and len(metrics) == 1 else ""
    # A section that groups differently than the comparison has a heading of its own for its groups.
    grouping = "part of the questions" if "group" in section.headings else comparison.grouping
    return f"{title_of(comparison, section)}{of}" + (f", by {grouping}" if "group" in keys else "")


def _table(comparison: Comparison, section: Section, keys: Sequence[str], rows: Sequence[Result]) -> Table:
    """Return a table of rows that have the same key fields, such as solver and metric, or pair and task."""
    metrics = {row.metric for row in rows}
    shown_keys = [key for key in keys if key != "metric" or len(metrics) > 1]
    title = _title_of_table(comparison, section, keys, metrics)
    names = {"group": comparison.grouping, **section.headings}
    columns = [Column(names.get(key, key), "left") for key in shown_keys]
    # Rows by key, and for each key by quantity.
    lines: dict[tuple[str, ...], dict[str, Result]] = {}
    for row in rows:
        lines.setdefault(tuple(getattr(row, key) for key in keys), {}).setdefault(row.quantity, row)
    names_of = dict.fromkeys(row.quantity for row in rows)
    rows_of = {name: [row for row in rows if row.quantity == name] for name in names_of}
    extras = {name: _extras(group_rows) for name, group_rows in rows_of.items()}
    notes: dict[str, int] = {}

    def value(row: Result, n: int | None) -> str:
        """Return the value, its n if that differs from the line's, and the number of its note."""
        over = f" ({row.n})" if row.n is not None and row.n != n else ""
        note = note_of(row)
        mark = f" [{notes.setdefault(note, len(notes) + 1)}]" if note else ""
        return printed(section, row) + over + mark

    def of_line(line: Mapping[str, Result]) -> Iterator[str]:
        first, n = next(iter(line.values())), next((row.n for row in line.values() if row.n is not None), None)
        yield from (getattr(first, key) for key in shown_keys)
        yield from [NONE if n is None else str(n)] if has_counts else []
        for quantity, more in extras.items():
            row = line.get(quantity)
            yield NONE if row is None else value(row, n)
            yield from (NONE if row is None else _extra(section, row, extra) for extra in more)

    has_counts = any(row.n is not None for row in rows)
    sparse = 2 * sum(map(len, lines.values())) < len(lines) * len(extras)
    if sparse or len(extras) + sum(map(len, extras.values())) > WIDEST:
        all_extras = _extras(rows)
        columns += [Column("quantity", "left"), Column("n"), Column("value")]
        columns += [Column(_heading(extra, rows)) for extra in all_extras]
        cells = []
        for row in rows:
            n = NONE if row.n is None else str(row.n)
            ends = (_extra(section, row, extra) for extra in all_extras)
            cells.append((*(getattr(row, key) for key in shown_keys), row.quantity, n, value(row, row.n), *ends))
    else:
        columns += [Column("n")] if has_counts else []
        for quantity, more in extras.items():
            columns += [Column(quantity), *(Column(_heading(extra, rows_of[quantity])) for extra in more)]
        cells = [tuple(of_line(line)) for line in lines.values()]
    marks = tuple(f"[{number}] {text}" for text, number in notes.items())
    return Table(title, tuple(columns), tuple(cells), marks)


def _extras(rows: Sequence[Result]) -> tuple[str, ...]:
    """Return which extra columns the rows need: interval, p, adjusted p.

    A single p value has no column for the adjusted one, unless other sections have tests of its family.
    """
    adjusted_p = [row for row in rows if row.p_holm is not None]
    present = {
        "interval": any(row.low is not None for row in rows),
        "p": any(row.p is not None for row in rows),
        "p_holm": len(adjusted_p) > 1 or any(row.p_holm != row.p for row in adjusted_p),
    }
    present["family"] = present["p_holm"] and len(_families(rows)) > 1
    return tuple(name for name, is_present in present.items() if is_present)


def _families(rows: Sequence[Result]) -> list[str]:
    """Return the names of the families of tests that these rows belong to."""
    return [*dict.fromkeys(row.family for row in rows if row.family)]


def _heading(extra: str, rows: Sequence[Result]) -> str:
    """Return the heading of an extra column; an adjusted p value names its family."""
    if extra != "p_holm":
        levels = sorted({row.level for row in rows if row.low is not None})
        return {"interval": " or ".join(f"{100 * level:.0f} %" for level in levels)}.get(extra, extra)
    families = _families(rows)
    return f"p (Holm, {families[0]})" if len(families) == 1 else "p (Holm in family)"


def _extra(section: Section, row: Result, extra: str) -> str:
    if extra == "interval":
        if row.unit.startswith("points per") and row.interval is not None:
            return f"[{_rate(row.interval.low)}, {_rate(row.interval.high)}]"
        return bounds(row.interval, 3 if section.signed(row.quantity) else 2)
    if extra == "family":
        return row.family or NONE
    return p_value(row.p if extra == "p" else row.p_holm)


def note_of(row: Result) -> str:
    """Return what tables say about a row below it: its note, and why its difference supports no claim."""
    return "; ".join(filter(None, (row.note, row.no_claim and f"no claim: {row.no_claim}")))


def printed(section: Section, row: Result) -> str:
    """Return the value as tables print it: rounded by its unit, with a sign if the quantity may be below 0."""
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
        case "points per tokens" | "points per seconds":
            return _rate(value)
    return signed(value) if section.signed(row.quantity) else accuracy(value)


def _rate(value: float) -> str:
    """Format points per unit of cost with three significant digits: the unit decides how large they are."""
    return f"{value:+.3g}"


_SIDES = ("model_a", "run_a", "model_b", "run_b")
_FIELDS = tuple(field.name for field in fields(Result) if field.name not in ("ids", "detail"))
# The last column is the rule of the whole output, even in rows that the rule does not affect; the field `none` is empty
# in those rows.
COLUMNS = ("benchmark", *_FIELDS, *_SIDES, "unanswered")

# Some spreadsheets skip leading blanks and invisible characters, and accept full-width and small signs.
_SIGN = r"(?:[\s\u200b-\u200d\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]| *[\t\r\n])"
_FORMULA = re.compile(f"'*{_SIGN}")
_NAMED = re.compile(f"'+{_SIGN}")


def as_csv(solvers: Sequence[Scored], rows: Iterable[Result]) -> str:
    r"""Return a heading and a line per row (RFC 4180 quoting, lines end in \n), with each solver's model and run."""
    benchmark, rule = (solvers[0].benchmark, solvers[0].unanswered) if solvers else ("", "")
    origins = {solver.solver: origin_of(solver) for solver in solvers}

    lines = (
        [benchmark, *(getattr(row, name) for name in _FIELDS), *map(sides(origins, row).get, _SIDES), rule]
        for row in rows
    )
    return lines_of(COLUMNS, lines)


def lines_of(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a heading and a line per row; names that a spreadsheet would evaluate are escaped, numbers unrounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_cell, row) for row in rows)
    return text.getvalue()


@contextmanager
def needing(package: str) -> Iterator[None]:
    """Turn a failed import of a data frame package within this context into a `UsageError`."""
    try:
        yield
    except ImportError as error:
        message = f"to_{package} needs the package {package}, which is not installed: pip install {package}"
        raise UsageError(message) from error


def sides(origins: Mapping[str, Mapping[str, str | None]], row: Result) -> dict[str, str | None]:
    """Return `model_a`, `run_a`, `model_b` and `run_b` of a row from the origins (`origin_of`) of its solvers."""
    pair = (("a", row.a), ("b", row.b))
    return {f"{key}_{side}": value for side, name in pair for key, value in origins.get(name, {}).items()}


def neutral(name: str) -> str:
    """Return a name escaped so that no spreadsheet evaluates it."""
    return f"'{name}" if _FORMULA.match(name) else name


def unescape(cell: str) -> str:
    """Return the name behind an escaped cell, the inverse of `neutral`."""
    return cell[1:] if _NAMED.match(cell) else cell


def _cell(value: str | float | None) -> str:
    """Return an escaped name, or a number with all digits; an integer has no decimal point."""
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


# How to write the heading of a section, by form.
HEADINGS: Mapping[str, Callable[[str], str]] = {
    "text": lambda heading: f"{heading}\n{'=' * len(heading)}\n",
    "narrow": lambda heading: "\n".join([*filled(heading, NARROW), "=" * min(len(heading), NARROW), ""]),
    "markdown": lambda heading: f"## {heading}\n",
    "latex": lambda heading: f"% {heading}\n",
}


def pieces(block: Block, form: str) -> Iterator[str]:
    """Yield heading, conclusion and tables of one section."""
    yield HEADINGS[form](block.heading)
    if block.lead and form in ("text", "narrow", "markdown"):
        yield "\n".join(filled(block.lead, NARROW if form == "narrow" else NOTE_WIDTH)) + "\n"
    yield from map(RENDERERS[form], block.tables)
