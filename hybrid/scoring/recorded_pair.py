"""Reads two files with another program's results by question, without and with tools, for the decomposition.

    pair = read_pair(Path("without.csv"), Path("with.csv"))
    pair.questions, pair.missing             # ToolQuestions, and what the files lack

A file is CSV with a header, JSON lines, or a JSON list of objects. Columns, in upper or lower case: `id` and `correct`
(0 to 1), optionally `calls` (number of tool calls; only in the file with tools), `task`, `cluster` and `outcome`. A
question is without an answer if its outcome is abstained, unparsed, budget or tool_fault, as in exported tables; such
questions have parts of their own. Two columns that are read as the same one of these are an error. If every question
has a task, tasks have equal weight, as in a run; a note then gives the gain over all questions. A question whose
`correct` or `calls` is empty is left out. `hybrid export RUN/SOLVER --to table` writes such a file. The trajectories
that MED writes (github.com/GAIR-NLP/Med, `recipe/med/analysis_plot/create_csv.py`) have `accuracy_reward` and
`tool_call_counts`, and pair by line number.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hybrid.core.errors import DataError
from hybrid.core.types import Combine, Json, Outcome, base_id
from hybrid.display.tables import Table, signed
from hybrid.display.terminal import how_many
from hybrid.log.lines import json_lines
from hybrid.scoring.headline_pair import HeadlinePair, is_uneven
from hybrid.scoring.rendering import as_csv
from hybrid.scoring.reports import Report
from hybrid.scoring.result import FRACTION, Result
from hybrid.scoring.sections.decomposition import ANSWERING, GAIN, NAME, PARTS, ToolQuestion, rows_of
from hybrid.scoring.study_tables import decomposition_table

# Names of the columns that are used.
COLUMNS = ("id", "correct", "calls", "task", "cluster", "outcome")
# Outcomes without an answer; any other text in this column, such as another program's own words, is an answer.
UNANSWERED = frozenset((Outcome.ABSTAINED, Outcome.UNPARSED, Outcome.BUDGET, Outcome.TOOL_FAULT))
# Other names of these columns: in MED's trajectories, and in exported question tables.
ALIASES = {"accuracy_reward": "correct", "tool_call_counts": "calls", "tool_calls": "calls"}
# Placeholder for the tools of a question whose calls were only counted.
CALLED, NOT_CALLED = ("calls",), ()

Row = Mapping[str, object]


@dataclass(frozen=True)
class RecordedPair:
    """The questions that both files have, in the order of the first file."""

    questions: tuple[ToolQuestion, ...]
    # Whether gain and harm can be split by whether a tool was called.
    has_calls: bool
    # Number of questions that one of the files lacks.
    only_one: int
    # Number of questions without `correct` in a file, or without `calls` in a file with that column.
    empty: int = 0
    # Number of questions without a task, if other questions have a task.
    without_task: int = 0

    @property
    def how(self) -> Combine:
        """Average over tasks if every question has a task, else over questions."""
        return "mean_of_ratios" if all(question.task for question in self.questions) else "ratio"

    @property
    def missing(self) -> tuple[str, ...]:
        """One sentence for each thing that the files lack."""
        uncounted = "The file with tools has no column calls: gain and harm are not split by calls."
        lacking = f"{how_many(self.only_one, verb=('is', 'are'))} in only one of the files and left out."
        left_out = "is left out" if self.empty == 1 else "are left out"
        empty = f"{how_many(self.empty, verb=('has', 'have'))} an empty cell in correct or calls and {left_out}."
        without_task = how_many(self.without_task, verb=("has", "have"))
        no_task = f"{without_task} no task: every question weighs the same, not every task."
        one = len({question.cluster for question in self.questions}) == 1
        single = f"{how_many(len(self.questions), verb=('is', 'are'))} of one cluster: no interval."
        limits = (
            "These files have no controls, repetitions or traces, so presence, result, loop and luck are not computed."
        )
        return (
            *([] if self.has_calls else [uncounted]),
            *([lacking] if self.only_one else []),
            *([empty] if self.empty else []),
            *([no_task] if self.without_task else []),
            *([single] if one else []),
            limits,
        )


# Names of quantities for files without calls: all their questions count as having no call, so only two parts remain.
UNSPLIT = {PARTS[1]: "gains", PARTS[3]: "harms"}


@dataclass(frozen=True, repr=False)
class RecordedReport(Report):
    """The decomposition of another program's results: rows of the result table, with the files' names."""

    results: tuple[Result, ...]

    def tables(self) -> tuple[Table, ...]:
        """Return one table: a line per part with value, interval and its three shares."""
        return (decomposition_table(self.results),)

    def render(self, form: str = "text") -> str:
        """Render the table; csv has every row of the result table unrounded, with its note, as JSON does."""
        return as_csv((), self.results) if form == "csv" else super().render(form)

    def as_json(self) -> dict[str, Json]:
        """Return every row of the result table."""
        return {"results": [row.as_json() for row in self.results]}

    def rows(self) -> list[dict[str, Json]]:
        """Return a record for each row."""
        return [asdict(row) for row in self.results]


def decomposed(pair: RecordedPair, without: str, with_tools: str) -> RecordedReport:
    """Return the decomposition of a pair of files under these names, averaged over tasks if the files have them."""
    row = Result(NAME, GAIN, FRACTION, None, a=without, b=with_tools)
    rows = [*rows_of(row, pair.questions, pair.how)]
    note = _note_on_tasks(pair, rows[0])
    rows = [replace(row, note=note) for row in rows]
    if not pair.has_calls:
        parts = (row for row in rows if row.quantity in (GAIN, *UNSPLIT, *ANSWERING))
        rows = [replace(row, quantity=UNSPLIT.get(row.quantity, row.quantity)) for row in parts]
    return RecordedReport(tuple(rows))


def _note_on_tasks(pair: RecordedPair, gain: Result) -> str:
    """Return the note on a mean over tasks: how tasks weigh, and the gain over all questions; else an empty text.

    A small task can carry a mean over tasks. A gain that `hybrid compare` would not claim for this reason (`is_uneven`)
    is not claimed here either.
    """
    tasks = len({question.task for question in pair.questions})
    if pair.how != "mean_of_ratios" or tasks == 1:
        return ""
    over_all = next(rows_of(gain, pair.questions, "ratio"))
    ends = "" if over_all.low is None else f" [{over_all.low:.3f}, {over_all.high:.3f}]"
    note = f"mean over {tasks} tasks, each weighing the same"
    note += f"; over all {how_many(len(pair.questions))} the gain is {signed(over_all.value)}{ends}"
    # The state of a pair that has a row does not depend on its solvers, which recorded results lack.
    no_solver: Any = None
    is_claimed = not is_uneven(HeadlinePair(no_solver, no_solver, rows=(gain,)), over_all)
    return note if is_claimed else f"{note}; the conclusions differ, so neither a gain nor a loss is claimed"


def read_pair(without: Path, with_tools: Path) -> RecordedPair:
    """Read the questions of two files.

    Raises:
        DataError: an unreadable file, two columns that are read as the same one, a row without a usable `correct` or
            `calls`, a duplicate id, two files without a common id, or files without ids and of different lengths.
    """
    alone, hybrid = _by_id(without), _by_id(with_tools)
    shared = [identity for identity in alone if identity in hybrid]
    if not shared:
        raise DataError(f"{without} and {with_tools} have no id in common")
    has_calls = any(not _is_empty(row, "calls") for row in hybrid.values())
    needed = ("correct", "calls") if has_calls else ("correct",)
    numbers = [
        name
        for name in shared
        if not _is_empty(alone[name], "correct") and not any(_is_empty(hybrid[name], column) for column in needed)
    ]
    if not numbers:
        raise DataError(f"{without} and {with_tools}: no question has a value of {' and '.join(needed)} in both")
    questions = []
    for identity in numbers:
        alone_row, hybrid_row = alone[identity], hybrid[identity]
        task, cluster = (_shared_cell(identity, name, alone_row, hybrid_row) for name in ("task", "cluster"))
        has_call = has_calls and _number(with_tools, identity, hybrid_row, "calls") > 0
        questions.append(
            ToolQuestion(
                identity,
                task,
                cluster or base_id(identity),
                alone=_share(without, identity, alone_row),
                with_tools=_share(with_tools, identity, hybrid_row),
                tools=CALLED if has_call else NOT_CALLED,
                answered=_is_answered(alone_row) and _is_answered(hybrid_row),
            )
        )
    no_task = sum(not question.task for question in questions)
    without_task = no_task if no_task < len(questions) else 0
    return RecordedPair(
        tuple(questions), has_calls, len({*alone} ^ {*hybrid}), len(shared) - len(numbers), without_task
    )


def _is_empty(row: Row, name: str) -> bool:
    return row.get(name) is None or str(row[name]).strip() == ""


def _is_answered(row: Row) -> bool:
    return str(row.get("outcome") or "").strip().casefold() not in UNANSWERED


def _shared_cell(identity: str, name: str, alone_row: Row, hybrid_row: Row) -> str:
    """Return the text of a cell that either file may have; empty if both lack it. Raises `DataError` if they differ."""
    values = {str(row[name]).strip() for row in (alone_row, hybrid_row) if not _is_empty(row, name)}
    if len(values) > 1:
        raise DataError(f"{identity}: its {name} is {' in one file and '.join(sorted(values))} in the other")
    return next(iter(values), "")


def _by_id(path: Path) -> dict[str, Row]:
    """Return the rows of a file by id, or by line number if it has no ids."""
    rows: dict[str, Row] = {}
    for number, raw in enumerate(_rows(path), 1):
        columns = _columns(path, raw)
        row = {columns[name]: value for name, value in raw.items()}
        # In JSON, an id may be the number 0.
        identity = f"line {number}" if _is_empty(row, "id") else str(row["id"])
        if identity in rows:
            raise DataError(f"{path}: the id {identity!r} occurs twice")
        rows[identity] = row
    if not rows:
        raise DataError(f"{path}: the file contains no row")
    return rows


def _columns(path: Path, names: Collection[str | None]) -> dict[str | None, str]:
    """Return each column's name as used here. Raises `DataError` if two columns have the same used name."""
    columns: dict[str | None, str] = {}
    by_column: dict[str, str | None] = {}
    for name in names:
        column = _column(name, names)
        if column in COLUMNS and column in by_column:
            raise DataError(f"{path}: the columns {by_column[column]!r} and {name!r} are both read as {column!r}")
        columns[name] = column
        by_column[column] = name
    return columns


def _column(name: str | None, names: Collection[str | None]) -> str:
    """Return a column's name as used here: in lower case without outer spaces, and for an alias the name it stands for.

    If another column has this name exactly, the column is not used and keeps its own. Cells beyond the header have no
    name in CSV.
    """
    name = name or ""
    plain = name.strip().casefold()
    column = ALIASES.get(plain, plain)
    return name if any(exact in names for exact in (plain, column) if exact != name) else column


def _rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a CSV file, of JSON lines, or of a JSON list. Raises `DataError` if it cannot be read."""
    try:
        data = path.read_bytes()
        if not path.name.endswith((".jsonl", ".json")):
            reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
            # Of two columns with exactly the same name, a row has only the last.
            _columns(path, reader.fieldnames or ())
            yield from reader
            return
        rows = json.loads(data) if data.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"[" else None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {error}") from error
    if rows is None:
        yield from (row for row, _ in json_lines(path, data))
        return
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise DataError(f"{path}: element {number} of the list is not an object")
        yield row


def _number(path: Path, identity: str, row: Row, name: str) -> float:
    try:
        value = float(str(row[name]))
    except (KeyError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{path}, {identity}: {name} is {row.get(name)!r}, not a number")
    if value < 0:
        raise DataError(f"{path}, {identity}: {name} is {row.get(name)!r}, less than 0")
    return value


def _share(path: Path, identity: str, row: Row) -> float:
    words = {"true": 1.0, "false": 0.0}
    text = str(row.get("correct")).lower()
    value = words[text] if text in words else _number(path, identity, row, "correct")
    if not 0 <= value <= 1:
        raise DataError(f"{path}, {identity}: correct is {value}, not in 0 to 1")
    return value
