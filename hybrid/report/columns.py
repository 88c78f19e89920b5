"""The columns of the list of questions; file, list, search and filters all follow from the definitions here.

listed = QuestionList(solvers=3, by="task")
listed.add(page)
listed.values(starts)        # the content of data/BENCHMARK/list.js
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

from hybrid.core.types import Outcome
from hybrid.report.payload import QuestionPage, SolverEntry

TEXT_SHOWN = 200  # Characters of a question that a row shows
TEXT_READ = 1000  # Characters of a question that the list stores; shared openings are searched only within these
ANSWER_SHOWN = 120  # Characters of an answer that the list stores: usually a letter, sometimes a plan or a path
OPEN = "open"  # The outcome of a question that a solver has not finished

# Kinds of filter: "choice" is a menu of values; "any" a menu of the values of one solver, or of any; "search" the
# search field; "flag" a checkbox; "none" no filter.
Filter = Literal["choice", "any", "search", "flag", "none"]
WORDS = "words"
# Minimum length of a shared opening, and minimum number of texts that share it, for the list to omit it.
MIN_SHARED, MIN_SHARERS = 24, 3


@dataclass(frozen=True)
class ReportColumn:
    """A column: its name in URLs, its heading, its filter, and its value.

    `width` is a CSS grid width (`minmax(6rem, 11rem)`), empty for a hidden column. Visible columns of a solver share
    the solver's cell, as a `sign` or as `words`.
    """

    name: str
    title: str
    filter: Filter
    width: str
    value: Callable[[Any], Hashable]  # Computed from a page, or from a solver's entry


def state(entry: SolverEntry) -> str:
    """Return the verdict as a word. Only an answer can be right or wrong, whatever credit an abstention gets."""
    if entry.outcome in ("", OPEN):
        return entry.outcome or "absent"
    if Outcome(entry.outcome).failed:
        return "failed"
    if entry.outcome != Outcome.ANSWERED.value:
        return "none"
    if entry.correct is None:
        return "unscored"
    return "right" if entry.correct >= 1 else "partly" if entry.correct > 0 else "wrong"


QUESTION_COLUMNS = (
    ReportColumn("task", "Task", "choice", "minmax(5rem, 9rem)", attrgetter("task")),
    ReportColumn(WORDS, "Text", "search", "minmax(12rem, 1fr)", lambda page: cut(words_of(page), TEXT_READ)),
    ReportColumn(
        "expected", "Right answer", "search", "minmax(4rem, 9rem)", lambda page: cut(page.target, ANSWER_SHOWN)
    ),
    ReportColumn("picture", "Picture", "none", "", lambda page: page.pictures[0].file or "" if page.pictures else ""),
    ReportColumn("sampled", "on the error sheet", "flag", "", attrgetter("sampled")),
    # These columns are hidden; the list can be sorted by them.
    ReportColumn("seconds", "Seconds", "none", "", lambda page: total(entry.wall_s for entry in page.solvers)),
    ReportColumn("cost", "Cost", "none", "", lambda page: total(cost_usd(entry) for entry in page.solvers)),
)
SOLVER_COLUMNS = (
    ReportColumn("verdict", "Verdict", "choice", "sign", state),
    ReportColumn("answer", "Answer", "search", "words", lambda entry: cut(entry.answer, ANSWER_SHOWN)),
    ReportColumn("tool", "Tool called", "any", "", attrgetter("tools")),
    ReportColumn("outcome", "Outcome", "any", "", attrgetter("outcome")),
)


def total(values: Iterable[float | None]) -> float | None:
    """Return the sum of the known values with four significant digits, or None if none is known."""
    numbers = [value for value in values if value is not None]
    return float(f"{sum(numbers):.4g}") if numbers else None


def cost_usd(entry: SolverEntry) -> float | None:
    """Return what a solver's answer cost in USD, or None if that is unknown."""
    return total(ask.cost_usd for ask in entry.asks)


def words_of(page: QuestionPage) -> str:
    """Return the question without its benchmark's standard opening, plus any choices that the text lacks."""
    text = page.own_words or page.text or page.error
    choices = "" if all(choice in text for choice in page.choices) else " / ".join(page.choices)
    return " · ".join(filter(None, (text, choices)))


def cut(text: str, most: int) -> str:
    """Return the text on one line, with at most `most` characters."""
    # Slice first, to avoid splitting a reply of a megabyte into words.
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def without_shared_openings(texts: Sequence[str]) -> list[str]:
    """Return the texts without shared openings, because benchmarks use the same wording within a task."""
    ordered = sorted(set(texts))
    sharers = max(MIN_SHARERS, len(ordered) // 10)
    # In sorted order, an opening shared by the first and the last text is shared by all between them.
    shared = [_shared_length(*ends) for ends in zip(ordered, ordered[sharers - 1 :], strict=False)]
    longest: dict[str, int] = {}
    # Starts of the groups that include the text, in order of ever shorter openings: the first has the longest.
    starts = deque[int]()
    for place, text in enumerate(ordered):
        if place < len(shared):
            while starts and shared[starts[-1]] <= shared[place]:
                starts.pop()
            starts.append(place)
        if starts and starts[0] <= place - sharers:
            starts.popleft()
        longest[text] = shared[starts[0]] if starts else 0
    return [
        f"… {text[text.rfind(' ', 0, most) + 1 :]}" if (most := longest[text]) >= MIN_SHARED else text for text in texts
    ]


def _shared_length(text: str, other: str) -> int:
    """Return the length of the opening that two texts share."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(text), len(other)))


@dataclass
class Coded:
    """A column with many equal cells: each distinct value once, and for each row the index of its value."""

    codes: list[int] = field(default_factory=list)
    _places: dict[Hashable, int] = field(default_factory=dict)

    def add(self, value: Hashable) -> None:
        """Add a row."""
        self.codes.append(self._places.setdefault(value, len(self._places)))

    @property
    def values(self) -> list[Hashable]:
        """The distinct values, in the order of their first row."""
        return list(self._places)


class QuestionList:
    """The list of questions by column, filled while their pages are written.

    Args:
        solvers: number of solver entries per question.
        by: a group to include as a column in addition to tasks; `task` for none.
    """

    def __init__(self, solvers: int, by: str) -> None:
        group = ReportColumn(
            by, by, "choice", "", lambda page: {entry.name: entry.value for entry in page.groups}.get(by, "-")
        )
        self._columns = (*QUESTION_COLUMNS, *(() if by == "task" else (group,)))
        self.ids: list[str] = []
        # Number of questions asked, summed over solvers; number of questions on the error sheet.
        self.answers = self.sampled = 0
        self._cells = {column.name: Coded() for column in self._columns}
        self._of_solvers = [{column.name: Coded() for column in SOLVER_COLUMNS} for _ in range(solvers)]

    def add(self, page: QuestionPage) -> None:
        """Add a question. Raises `ValueError` unless it has one entry for each solver."""
        if len(page.solvers) != len(self._of_solvers):
            raise ValueError(f"question {page.id!r}: {len(page.solvers)} entries for {len(self._of_solvers)} solvers")
        self.ids.append(page.id)
        self.sampled += page.sampled
        for column in self._columns:
            self._cells[column.name].add(column.value(page))
        for entry, cells in zip(page.solvers, self._of_solvers, strict=True):
            self.answers += entry.outcome not in ("", OPEN)
            for column in SOLVER_COLUMNS:
                cells[column.name].add(column.value(entry))

    def values(self, starts: Sequence[int]) -> dict[str, Any]:
        """Return the list in the format of the pages; `starts` has the first row of each file of questions."""
        cells = _encode_cells(self._cells)
        texts = [cut(text, TEXT_SHOWN) for text in without_shared_openings(cells[WORDS]["values"])]
        heads = [
            [{key: getattr(column, key) for key in ("name", "title", "filter", "width")} for column in columns]
            for columns in (self._columns, SOLVER_COLUMNS)
        ]
        return {
            "ids": self.ids,
            "starts": list(starts),
            "columns": heads[0],
            "solver_columns": heads[1],
            "cells": {**cells, WORDS: {**cells[WORDS], "shown": texts}},
            "solvers": [_encode_cells(cells) for cells in self._of_solvers],
        }


def _encode_cells(cells: dict[str, Coded]) -> dict[str, Any]:
    return {name: {"values": column.values, "codes": column.codes} for name, column in cells.items()}
