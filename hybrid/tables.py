"""One small table value and its four forms: terminal text, Markdown, CSV, LaTeX; and how numbers are printed.

`hybrid compare RUN --markdown` prints some. Cells are strings already formatted (by
`accuracy`, `bounds`, ...); they may hold what a model or a data set said, so each form escapes what it would interpret.
"""

from __future__ import annotations

import csv
import io
import re
import textwrap
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from hybrid.stats import Interval

Align = Literal["left", "right"]

NONE = "-"
"""What is printed for a number that does not exist."""

NOTE_WIDTH = 100
"""Notes are broken at so many characters, or at the width of a wider table."""


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and the side its cells are set to; numbers go to the right."""

    name: str
    align: Align = "right"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of strings under columns; every row as long as the columns.

    `notes` are whole sentences printed below. Raises `ValueError` for no columns, or naming the row of another length.
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
    """Columns aligned with spaces, for a terminal; two spaces between columns, wide (East Asian) characters as two.

    Control and formatting characters, terminal escapes among them, become U+FFFD; line breaks become spaces.
    """
    lines = [[_line(cell) for cell in row] for row in (table.names, *table.rows)]
    widths = [max(_width(row[place]) for row in lines) for place in range(len(table.columns))]
    rule = ["-" * width for width in widths]
    body = [_padded(row, widths, table) for row in (lines[0], rule, *lines[1:])]
    head = [_line(table.title), ""] if table.title else []
    wide = max(NOTE_WIDTH, sum(widths) + 2 * len(widths) - 2)
    foot = ["", *(part for note in table.notes for part in _wrapped(note, wide))] if table.notes else []
    return "\n".join([*head, *body, *foot]) + "\n"


def as_markdown(table: Table) -> str:
    """A GitHub-flavoured table under the title in bold; what Markdown or HTML would interpret is escaped."""
    marks = {"left": ":---", "right": "---:"}
    lines = [table.names, *table.rows]
    rows = ["| " + " | ".join(_markdown(cell) for cell in row) + " |" for row in lines]
    rows.insert(1, "| " + " | ".join(marks[column.align] for column in table.columns) + " |")
    head = [f"**{_markdown(table.title)}**", ""] if table.title else []
    foot = [line for note in table.notes for line in ("", _markdown(note))]
    return "\n".join([*head, *rows, *foot]) + "\n"


def as_csv(table: Table) -> str:
    r"""Heading and rows as comma-separated values (RFC 4180 quoting, lines end in \n), cells exactly as they are.

    The title and the notes are left out: every line is a record.
    """
    return "".join(_csv_line(row) for row in (table.names, *table.rows))


def as_latex(table: Table) -> str:
    """A `table` environment with the rules of the booktabs package; what LaTeX would interpret is escaped."""
    sides = "".join(column.align[0] for column in table.columns)
    lines = [" & ".join(_latex(cell) for cell in row) + r" \\" for row in (table.names, *table.rows)]
    body = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    caption = [rf"\caption{{{_latex(table.title)}}}"] if table.title else []
    notes = [rf"\par\footnotesize {_latex(note)}" for note in table.notes]
    tabular = [rf"\begin{{tabular}}{{{sides}}}", *body, r"\end{tabular}"]
    return "\n".join([r"\begin{table}", r"\centering", *caption, *tabular, *notes, r"\end{table}"]) + "\n"


RENDERERS: Mapping[str, Callable[[Table], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
}


def accuracy(value: float | None) -> str:
    """A fraction with three decimals: 0.742."""
    return NONE if value is None else f"{value:z.3f}"


def bounds(found: Interval | None, decimals: int = 2) -> str:
    """An interval with two decimals: [0.66, 0.81]; of a difference three are needed to tell which side 0 is on."""
    return NONE if found is None else f"[{found.low:z.{decimals}f}, {found.high:z.{decimals}f}]"


def share(k: float | None, n: int | None) -> str:
    """Credit out of a count: 92/124, 12345/18000; a fraction of a point with one decimal: 57.5/75."""
    if k is None or n is None:
        return NONE
    return f"{k:z.0f}/{n}" if abs(k - round(k)) < 1e-6 else f"{k:z.1f}/{n}"


def number(value: int | None) -> str:
    """A count: 1901."""
    return NONE if value is None else str(value)


def signed(value: float | None) -> str:
    """A difference with its sign and three decimals: +0.081; what rounds to nothing is +0.000."""
    return NONE if value is None else f"{value:+z.3f}"


def p_value(value: float | None) -> str:
    """A p value with three decimals, from 0.001 on; below it <0.001."""
    if value is None:
        return NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def seconds(value: float | None) -> str:
    """Seconds with one decimal and separated thousands: 1,234.5 s."""
    return NONE if value is None else f"{value:z,.1f} s"


def tokens(value: int | None) -> str:
    """A whole number with separated thousands: 12,345."""
    return NONE if value is None else f"{value:,}"


def _line(text: str) -> str:
    """The text on one line, without characters that steer a terminal or reorder what is read."""
    joined = " ".join(text.split())
    return "".join("\ufffd" if unicodedata.category(char).startswith("C") else char for char in joined)


def _wrapped(note: str, width: int) -> list[str]:
    return textwrap.wrap(_line(note), width, break_long_words=False, break_on_hyphens=False) or [""]


def _width(text: str) -> int:
    """Terminal columns that the text takes."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def _padded(cells: list[str], widths: list[int], table: Table) -> str:
    padded = []
    for cell, width, column in zip(cells, widths, table.columns, strict=True):
        gap = " " * (width - _width(cell))
        padded.append(cell + gap if column.align == "left" else gap + cell)
    return "  ".join(padded).rstrip()


def _markdown(text: str) -> str:
    escaped = re.sub(r"([\\`*_<>&~$|])", r"\\\1", _line(text))
    # An interval reads as plain text; only brackets that would open a link, a reference or a definition matter.
    return re.sub(r"\](?=[(\[:])", r"\\]", escaped)


def _csv_line(cells: tuple[str, ...]) -> str:
    """One record. The writer quotes the characters of its own line end, so it must know both to quote a lone one."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue().removesuffix("\r\n") + "\n"


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # After a row's end these would be read as its optional arguments.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
}


def _latex(text: str) -> str:
    escaped = "".join(_LATEX.get(char, char) for char in _line(text))
    return escaped.replace("--", "-{}-").replace("--", "-{}-")
