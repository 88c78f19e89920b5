"""One row per question and solver, from scores and log, for `hybrid.table`, `--to table` and `--to parquet`.

- benchmark (string) = the benchmark of the question
- split (string) = the split of the question
- model (string) = the MLLM of the run; null for a run without one
- solver (string) = the solver that answered
- tool_output (string) = `real`, or the control in force
- repetition (int32) = the number of the repeated ask, from 1 [table]
- id (string) = the question's id with its variant
- base (string) = the id without the variant
- rotation (int32) = the number of places by which the options are rotated [table]
- cluster (string) = the group of questions that statistics resample together
- task (string) = the reporting group
- kind (string) = the form of the reply; null for a question that could not be read
- question (string) = its text [parquet]
- choices (list<string>) = the options, in order [parquet]
- target (string) = the target for the scorer, as JSON [parquet]
- image_sha256 (list<string>) = the SHA-256 of the bytes of each image [parquet]
- prompts (list<string>) = the text of every prompt [parquet]
- replies (list<string>) = the reply to every prompt; empty if there is no answer [parquet]
- outcome (string) = how the attempt ended; `not_recorded`, `outage` and `broken` are failures
- answer (string) = the answer that the parser read
- rule (string) = the rule of the parser that matched [parquet]
- correct (double) = 0 to 1; an unreadable answer counts as wrong; null for a failure
- correct_or_chance (double) = like `correct`, but an unreadable answer counts as a guess
- tools (string) = the tools that answered a call, as `a + b`; null if no call is known [table]
- finding (string) = `right`, `wrong`, `none` or `unread`: the answer that follows from the tool output; null without a
  call [table]
- model_calls (int32) = number of calls of the MLLM
- tool_calls (int32) = number of calls that a tool received, including those that ended in a fault
- tool_faults (int32) = number of tool calls that ended in a timeout or an error
- tokens (int64) = input and output tokens of the MLLM; null if unknown [table]
- input_tokens (int64) = input tokens, as counted by the provider [parquet]
- output_tokens (int64) = output tokens, as counted by the provider [parquet]
- reasoning_tokens (int64) = reasoning tokens, as counted by the provider [parquet]
- cached_tokens (int64) = input tokens that the provider read from its cache [parquet]
- cost_usd (double) = cost in US dollars; null if no price is known
- call_seconds (double) = total duration of the model and tool calls
- seconds (double) = time from the first prompt to the last reply
- started (timestamp[us, UTC]) = the time of the first prompt [parquet]
- group.NAME (string) = the value of the additional grouping NAME, an argument of `--by`
- value.NAME (double) = the additional number NAME of the score [parquet]

Tokens, cost and seconds are null if a reply of an earlier run was reused (`--cache-replies`), because the reused reply
would not be counted.

Columns marked `table` or `parquet` are only in that one of the two. The pages of a report read the same list, and add
columns for people. No column is a map, because the library `datasets` cannot read maps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from hybrid.core.machine_paths import hide_paths
from hybrid.core.option_rotation import ROTATED
from hybrid.core.types import COST_FIELDS, Attempt, BrokenQuestion, Question, Score, Usage, base_id
from hybrid.display.html import as_html, joined, paragraph, stored_picture
from hybrid.display.tables import Column, Table
from hybrid.log.attempts import Recorded
from hybrid.scoring.attempt_facts import AskFacts, asks_of
from hybrid.scoring.findings import OutputVerdict, outputs_by_question
from hybrid.scoring.groups import repetition
from hybrid.scoring.rendering import lines_of, needing
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.cost import tokens as known_tokens

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class SolverRows:
    """The rows of a solver, in the order of its questions; with `steps`, attempts include their steps."""

    scored: Scored
    steps: bool = False

    @cached_property
    def outputs(self) -> Mapping[str, OutputVerdict]:
        """Verdicts on the tool output, by question."""
        return outputs_by_question(self.scored)

    @cached_property
    def scores(self) -> Mapping[str, Mapping[str, Score]]:
        """Every score, by rule for unanswered questions and by id."""
        return {rule: {score.id: score for score in counts.scores} for rule, counts in self.scored.counted.items()}

    @cached_property
    def recorded(self) -> Recorded | None:
        """The attempts in the solver's run; None for predictions scored directly from their file."""
        return None if self.scored.folder is None else self.scored.folder.recorded(self.scored.recorded)

    def row(self, name: str) -> Row | None:
        """Return the row of a question; None if it has no score."""
        return Row(self, self.scored.questions[name]) if name in self.scores[self.scored.unanswered] else None

    def __iter__(self) -> Iterator[Row]:
        return filter(None, map(self.row, self.scored.questions))


@dataclass(frozen=True, eq=False)
class Row:
    """One question of one solver."""

    solver: SolverRows
    question: Question | BrokenQuestion

    @cached_property
    def attempt(self) -> Attempt | None:
        """The attempt; None if it was not recorded. Raises `DataError` if it is no longer readable."""
        recorded = self.solver.recorded
        attempts = {} if recorded is None else recorded.by_id if self.solver.steps else recorded.without_steps
        return attempts.get(self.question.id)

    @cached_property
    def asks(self) -> AskFacts | None:
        """Cost and time of the attempt; None if it was not recorded. Raises what `attempt` raises."""
        recorded, name = self.solver.recorded, self.question.id
        return (
            None
            if recorded is None or name not in recorded.by_id
            else asks_of(recorded, name, parse_steps=self.solver.steps)
        )

    @cached_property
    def usage(self) -> Usage | None:
        """The total usage of all exchanges."""
        if self.asks is None:
            return None
        # Avoid the sum over a single usage, which would take as long as the rest of the row.
        return self.asks.usages[0] if len(self.asks.usages) == 1 else sum(self.asks.usages, Usage())

    @property
    def output(self) -> OutputVerdict | None:
        """The verdict on the tool output; None if no tool was called."""
        verdict = self.solver.outputs.get(self.question.id)
        return verdict if verdict is not None and (verdict.calls or verdict.no_trace) else None

    def score(self, rule: str = "wrong") -> Score:
        """Return the score under a rule for unanswered questions."""
        return self.solver.scores[rule][self.question.id]

    def correct(self, rule: str) -> float | None:
        """Return the correctness, 0..1; None for a failure, or if an answer is neither right nor wrong."""
        score = self.score(rule)
        return None if score.outcome.failed else score.correct

    def fact(self, name: str) -> Any:
        """Return the value of a column."""
        if compute := MADE.get(name):
            return compute(self)
        if name in OF_QUESTION:
            return None if isinstance(self.question, BrokenQuestion) else OF_QUESTION[name](self.question)
        if name in OF_ASKS:
            part = OF_ASKS[name]
            return [
                getattr(exchange, part).text for exchange in (() if self.attempt is None else self.attempt.exchanges)
            ]
        # The values of all other columns are fields of the usage, with the same names except for `call_seconds`.
        field = {"call_seconds": "seconds"}.get(name, name)
        if self.usage is None or (field in COST_FIELDS and not self.usage.is_complete):
            return None
        return getattr(self.usage, field)


def _tokens(row: Row) -> int | None:
    tokens = known_tokens(row.usage) if row.usage is not None and row.usage.is_complete else None
    return None if tokens is None else sum(tokens)


# How to compute each column from a row. A name that ends with `NAME` stands for one column per key of the computed
# mapping.
MADE: Mapping[str, Callable[[Row], Any]] = {
    "benchmark": lambda row: row.solver.scored.data.name,
    "split": lambda row: _split(row.solver.scored),
    "model": lambda row: row.solver.scored.model and hide_paths(row.solver.scored.model),
    "solver": lambda row: row.solver.scored.solver,
    "tool_output": lambda row: row.solver.scored.tool_output,
    "repetition": lambda row: repetition(row.solver.scored),
    "id": lambda row: row.question.id,
    "base": lambda row: base_id(row.question.id),
    "rotation": lambda row: int(match[1]) if (match := ROTATED.search(row.question.id)) else 0,
    "cluster": lambda row: row.question.unit,
    "task": lambda row: row.question.task,
    "outcome": lambda row: row.score().outcome.value,
    "answer": lambda row: row.score().answer,
    "rule": lambda row: row.score().rule,
    "correct": lambda row: row.correct("wrong"),
    "correct_or_chance": lambda row: row.correct("guess"),
    "tools": lambda row: " + ".join(row.output.tools) if row.output and not row.output.no_trace else None,
    "finding": lambda row: row.output.finding if row.output else None,
    "tokens": _tokens,
    "seconds": lambda row: row.asks.seconds if row.asks and row.usage and row.usage.is_complete else None,
    "started": lambda row: (
        datetime.fromtimestamp(at, UTC) if row.asks and (at := row.asks.started) is not None else None
    ),
    "group.NAME": lambda row: row.question.groups,
    "value.NAME": lambda row: row.score().values,
}
# Columns that are missing for a question that could not be read.
OF_QUESTION: Mapping[str, Callable[[Question], Any]] = {
    "kind": lambda question: question.kind.value,
    "question": lambda question: question.text,
    "choices": lambda question: list(question.choices),
    "target": lambda question: json.dumps(question.target, ensure_ascii=False),
    "image_sha256": lambda question: [image.sha256 for image in question.images],
}
OF_ASKS = {"prompts": "prompt", "replies": "reply"}


@dataclass(frozen=True)
class RecordColumn:
    """A column of the records: its name, its Arrow type, and a description.

    `form` is the only form of the records that has the column, or empty if both forms have it.
    """

    name: str
    type: str
    about: str
    form: str


_ITEM = re.compile(
    r"^- (?P<name>[\w.]+) \((?P<type>[^()]+)\) = (?P<about>.+?)(?: \[(?P<form>\w+)\])?(?=\n- |\n\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
# The columns, in order, parsed from this module's docstring.
COLUMNS = tuple(
    RecordColumn(match["name"], match["type"], " ".join(match["about"].split()), match["form"] or "")
    for match in _ITEM.finditer(__doc__ or "")
)
PARQUET = tuple(column for column in COLUMNS if column.form != "table")
# What a notebook shows of a table: this many of its first questions, and these columns for each solver.
SHOWN_QUESTIONS = 10
SHOWN_COLUMNS = ("solver", "answer", "outcome", "correct", "tools", "cost_usd")
TABLE = tuple(column for column in COLUMNS if column.form != "parquet")
NAME = "NAME"


class QuestionTable(Sequence[Mapping[str, Any]]):
    """A row per question and solver, with these columns (default: `TABLE`); `group.NAME` becomes a column per group."""

    def __init__(self, solvers: Sequence[Scored], columns: Sequence[RecordColumn] = TABLE) -> None:
        rows = [row for scored in solvers for row in SolverRows(scored)]
        self._questions = {row.question.id: row.question for row in rows}
        # Maps the name of each column to its fact and, if the fact is a mapping, to the key of the column's value.
        places: dict[str, tuple[str, str | None]] = {}
        self.columns: dict[str, str] = {}  # Maps the name of each column to its type
        for column in columns:
            several = column.name.endswith(NAME)
            keys = dict.fromkeys(key for row in rows for key in row.fact(column.name)) if several else (None,)
            for key in keys:
                name = column.name if key is None else column.name.removesuffix(NAME) + key
                self.columns[name], places[name] = column.type, (column.name, key)
        self._rows = []
        for row in rows:
            facts = {column.name: row.fact(column.name) for column in columns}
            self._rows.append(
                {name: facts[of] if key is None else facts[of].get(key) for name, (of, key) in places.items()}
            )

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    def __repr__(self) -> str:
        return f"<table of {len(self)} rows: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        """Return the first rows with the question's text and pictures, for a notebook."""
        columns = tuple(Column(name, "left") for name in SHOWN_COLUMNS)
        by_id: dict[str, list[tuple[str, ...]]] = {name: [] for name in self._questions}
        for row in self._rows:
            cells = tuple("" if row.get(name) is None else str(row[name]) for name in SHOWN_COLUMNS)
            by_id[row["id"]].append(cells)
        parts = [paragraph(repr(self))]
        for name, rows in islice(by_id.items(), SHOWN_QUESTIONS):
            parts += _question_html(self._questions[name])
            parts.append(as_html(Table("", columns, tuple(rows))))
        if len(by_id) > SHOWN_QUESTIONS:
            parts.append(paragraph(f"and {len(by_id) - SHOWN_QUESTIONS:,} more questions"))
        return joined(parts)

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas data frame. Raises `UsageError` if pandas is not installed."""
        with needing("pandas"):
            import pandas as pd
        return pd.DataFrame(self._rows, columns=list(self.columns))

    def to_polars(self) -> Any:
        """Return a polars data frame. Raises `UsageError` if polars is not installed."""
        with needing("polars"):
            import polars as pl
        return pl.DataFrame(self._rows, infer_schema_length=None)

    def as_csv(self) -> str:
        """Return a heading and a line per row; a name that a spreadsheet would evaluate gets an apostrophe."""
        return lines_of(self.columns, (row.values() for row in self._rows))


def _question_html(question: Question | BrokenQuestion) -> list[str]:
    """Return the id, text and pictures of a question."""
    if isinstance(question, BrokenQuestion):
        return [paragraph(f"{question.id}: {hide_paths(question.error)}")]
    pictures = [stored_picture(image, f"img:{place}") for place, image in enumerate(question.images, 1)]
    return [paragraph(f"{question.id}: {question.text}"), *pictures]


def _split(scored: Scored) -> str | None:
    """Return the split of a run's questions; None for predictions, which name no split."""
    if scored.data.generated:
        return scored.data.named_split
    split: str | None = scored.identity.get("split")
    return split
