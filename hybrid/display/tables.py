"""A small table and its output forms: terminal text (wide, narrow), Markdown, CSV, LaTeX; and formats of numbers.

`hybrid compare RUN --markdown` prints such tables. Cells are strings that are already formatted (by `accuracy`,
`bounds`, ...). They may contain text of a model or a data set, so each form escapes its special characters.
"""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any, Literal

from hybrid.display.terminal import NARROW, display_width, filled, one_line
from hybrid.stats import Interval

Align = Literal["left", "right"]

NONE = "-"  # Printed for a missing number

NOTE_WIDTH = 100  # Notes are wrapped at this width, or at the width of a wider table


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, and the alignment of its cells; numbers are right-aligned."""

    name: str
    align: Align = "right"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of strings under columns; every row has one cell per column.

    `notes` are whole sentences, printed below. Raises `ValueError` if there are no columns, or a row has another
    length.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError(f"table {self.title!r} has no columns")
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.title!r}, row {number}: {len(row)} cells for {len(self.columns)} columns"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The headings."""
        return tuple(column.name for column in self.columns)


def as_text(table: Table) -> str:
    """Align columns with spaces, for a terminal; wide (East Asian) characters count as two.

    Control and formatting characters, such as terminal escapes, become U+FFFD; line breaks become spaces.
    """
    lines = [[one_line(cell) for cell in row] for row in (table.names, *table.rows)]
    widths = [max(display_width(row[place]) for row in lines) for place in range(len(table.columns))]
    rule = ["-" * width for width in widths]
    body = [_padded(row, widths, table.columns) for row in (lines[0], rule, *lines[1:])]
    head = [one_line(table.title), ""] if table.title else []
    wide = max(NOTE_WIDTH, sum(widths) + 2 * len(widths) - 2)
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    notes = (textwrap.wrap(one_line(note), wide, **options) or [""] for note in table.notes)
    foot = ["", *chain.from_iterable(notes)] if table.notes else []
    return "\n".join([*head, *body, *foot]) + "\n"


def as_narrow(table: Table) -> str:
    """Return the table as text of at most `NARROW` columns without omissions; headings and long names may be folded.

    Rows with the same first name are grouped below that name. If that is not enough, the columns are printed in blocks
    below each other. Each block begins with the same names: the leftmost columns, if there is room for them. A number
    is broken only if it is wider than its block.
    """
    rows = as_text(replace(table, title="", notes=())).splitlines()
    if max(map(display_width, rows)) <= NARROW:
        blocks: list[list[str]] = [rows]
    else:
        # Repeated first names become separate lines if folding the headings is not enough.
        names, sides = [row[0] for row in table.rows], [column.align for column in table.columns]
        runs = sum(name != previous for name, previous in zip(names, [None, *names], strict=False))
        wide = _total([_widths(table, place).most for place in range(len(sides))])
        grouped = sides[:2] == ["left", "left"] and wide > NARROW and 2 * runs <= len(names)
        blocks = [list(_block(table, widths, grouped=grouped)) for widths in _blocks(table, grouped=grouped)]
    head = [*filled(one_line(table.title), NARROW, 2), ""] if table.title else []
    foot = ["", *(line for note in table.notes for line in filled(one_line(note), NARROW))] if table.notes else []
    body = "\n\n".join("\n".join(block) for block in blocks)
    return "\n".join([*head, body, *foot]) + "\n"


def as_markdown(table: Table) -> str:
    """Return a GitHub-flavoured table below the title in bold; special characters of Markdown and HTML are escaped."""
    marks = {"left": ":---", "right": "---:"}
    lines = [table.names, *table.rows]
    rows = ["| " + " | ".join(_markdown(cell) for cell in row) + " |" for row in lines]
    rows.insert(1, "| " + " | ".join(marks[column.align] for column in table.columns) + " |")
    head = [f"**{_markdown(table.title)}**", ""] if table.title else []
    foot = [line for note in table.notes for line in ("", _markdown(note))]
    return "\n".join([*head, *rows, *foot]) + "\n"


def as_csv(table: Table) -> str:
    r"""Return heading and rows as comma-separated values (RFC 4180 quoting, lines end in \n), with unchanged cells.

    The title and the notes are left out: every line is a record.
    """
    lines = []
    for row in (table.names, *table.rows):
        # The writer quotes the characters of its line end, so this must be \r\n for a lone \r or \n to be quoted.
        line = io.StringIO()
        csv.writer(line, lineterminator="\r\n").writerow(row)
        lines.append(line.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


def as_latex(table: Table) -> str:
    """Return a `table` environment with the rules of the booktabs package; special characters of LaTeX are escaped."""
    sides = "".join(column.align[0] for column in table.columns)
    lines = [" & ".join(_latex(cell) for cell in row) + r" \\" for row in (table.names, *table.rows)]
    body = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    caption = [rf"\caption{{{_latex(table.title)}}}"] if table.title else []
    notes = [rf"\par\footnotesize {_latex(note)}" for note in table.notes]
    tabular = [rf"\begin{{tabular}}{{{sides}}}", *body, r"\end{tabular}"]
    return "\n".join([r"\begin{table}", r"\centering", *caption, *tabular, *notes, r"\end{table}"]) + "\n"


RENDERERS: Mapping[str, Callable[[Table], str]] = {
    "text": as_text,
    "narrow": as_narrow,
    "markdown": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
}


def accuracy(value: float | None) -> str:
    """Format a fraction with three decimals: 0.742."""
    return NONE if value is None else f"{value:z.3f}"


def bounds(interval: Interval | None, decimals: int = 2) -> str:
    """Format an interval with two decimals: [0.66, 0.81].

    The interval of a difference needs three decimals, to show whether it contains 0.
    """
    return NONE if interval is None else f"[{interval.low:z.{decimals}f}, {interval.high:z.{decimals}f}]"


def share(k: float | None, n: int | None) -> str:
    """Format credit out of a count: 92/124, 12345/18000; with one decimal if it is not an integer: 57.5/75."""
    if k is None or n is None:
        return NONE
    return f"{k:z.0f}/{n}" if abs(k - round(k)) < 1e-6 else f"{k:z.1f}/{n}"


def signed(value: float | None) -> str:
    """Format a difference with its sign and three decimals: +0.081; a value that rounds to zero is +0.000."""
    return NONE if value is None else f"{value:+z.3f}"


def p_value(value: float | None) -> str:
    """Format a p value with three decimals, or as <0.001."""
    if value is None:
        return NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def tokens(value: int | None) -> str:
    """Format an integer with thousands separators: 12,345."""
    return NONE if value is None else f"{value:,}"


MIN_WIDTH = 16  # Width to which long names are folded if they do not fit
NAMED = 44  # Maximum total width of the names at the left of every block
GAP = 2
HEAD_LINES = 3  # Maximum number of lines of a folded heading, if its words allow it


@dataclass(frozen=True, slots=True)
class _Widths:
    """Widths of one table column: `most` puts every cell on one line, and `least` is the minimum."""

    most: int
    least: int


def _blocks(table: Table, *, grouped: bool) -> Iterator[dict[int, int]]:
    """Yield, for each block of a narrow table, its columns as index and width; a grouped first column is left out."""
    # Lines below a group are indented, so they have less room.
    start, total = (1, NARROW - GAP) if grouped else (0, NARROW)
    widths = [_widths(table, place) for place in range(len(table.columns))]
    # Every block begins with the columns of names: at least one, more if there is room.
    sides = [column.align for column in table.columns[start:]]
    count = sides.index("right") if "right" in sides else len(sides)
    while count > 1 and _total([width.least for width in widths[start : start + count]]) > NAMED:
        count -= 1
    names = range(start, start + max(1, count))
    first = {place: widths[place] for place in names}
    room = total - _total([column.least for column in first.values()]) - GAP
    block = dict(first)
    for place in range(names.stop, len(widths)):
        fitting = _Widths(min(widths[place].most, room), min(widths[place].least, room))
        if len(block) > len(names) and _total([column.least for column in (*block.values(), fitting)]) > total:
            yield _shrunk(block, total)
            block = dict(first)
        block[place] = fitting
    yield _shrunk(block, total)


def _widths(table: Table, place: int) -> _Widths:
    name = one_line(table.names[place])
    # No line of a heading may begin with an equals sign.
    head = max((display_width(word) for word in name.replace(" =", "\0=").split()), default=0)
    while head >= GAP and len(filled(name, head)) > HEAD_LINES:
        head += 1
    most = max(2, head, *(display_width(one_line(row[place])) for row in table.rows))
    return _Widths(most, most if table.columns[place].align == "right" else min(most, MIN_WIDTH))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _shrunk(block: Mapping[int, _Widths], total: int) -> dict[int, int]:
    """Return widths that fit together, as wide as possible; the widest is folded first."""
    widths = {place: min(column.most, total) for place, column in block.items()}
    while (over := _total(list(widths.values())) - total) > 0:
        wide = max(widths, key=lambda place: (widths[place] > block[place].least, widths[place]))
        others = [width for place, width in widths.items() if place != wide]
        widths[wide] = max(block[wide].least, widths[wide] - over, min(widths[wide] - 1, max(others, default=0)))
    return widths


def _block(table: Table, widths: Mapping[int, int], *, grouped: bool) -> Iterator[str]:
    """Yield heading, rule and rows of some columns; a row has as many lines as its tallest cell."""
    columns = [table.columns[place] for place in widths]
    heads = [filled(one_line(column.name), width) for column, width in zip(columns, widths.values(), strict=True)]
    most = max(map(len, heads))
    inset = " " * GAP if grouped else ""
    if grouped:
        yield from filled(one_line(table.names[0]), NARROW)

    def padded(cells: Sequence[Sequence[str]]) -> Iterator[str]:
        for line in zip_longest(*cells, fillvalue=""):
            yield inset + _padded(line, [*widths.values()], columns)

    yield from padded([[""] * (most - len(head)) + head for head in heads])
    yield from padded([["-" * width] for width in widths.values()])
    previous = None
    for row in table.rows:
        if grouped and row[0] != previous:
            previous = row[0]
            yield from filled(one_line(row[0]), NARROW)
        cells = [
            filled(one_line(row[place]), width, GAP if column.align == "left" and width > MIN_WIDTH // 2 else 0)
            for (place, width), column in zip(widths.items(), columns, strict=True)
        ]
        yield from padded(cells)


def _padded(cells: Sequence[str], widths: Sequence[int], columns: Sequence[Column]) -> str:
    padded = []
    for cell, width, column in zip(cells, widths, columns, strict=True):
        gap = " " * (width - display_width(cell))
        padded.append(cell + gap if column.align == "left" else gap + cell)
    return "  ".join(padded).rstrip()


def _markdown(text: str) -> str:
    escaped = re.sub(r"([\\`*_<>&~$|])", r"\\\1", one_line(text))
    # An interval can stay as it is; only brackets that would open a link, a reference or a definition matter.
    return re.sub(r"\](?=[(\[:])", r"\\]", escaped)


_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "{}$&#%_"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        # After the line break at the end of a row, LaTeX would read these signs as arguments of the line break.
        **{sign: f"{{{sign}}}" for sign in "[]*"},
    }
)


def _latex(text: str) -> str:
    escaped = one_line(text).translate(_LATEX)
    return escaped.replace("--", "-{}-").replace("--", "-{}-")
