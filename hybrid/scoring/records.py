"""A row a question and solver: what `hybrid.table`, `--to table` and `--to parquet` hold, from the scores and the log.

- benchmark (string) = whose question
- split (string) = of which split
- model (string) = the MLLM of the run; null for a run without one
- solver (string) = who answered
- tool_output (string) = `real`, or the control in force
- repetition (int32) = which of several asks, from 1 [table]
- id (string) = the question's id with its variant
- base (string) = the id without the variant
- rotation (int32) = by how many places its options are turned [table]
- cluster (string) = questions that statistics resample as one
- task (string) = the reporting group
- groups (map<string, string>) = further groups, as `--by` takes them [parquet]
- kind (string) = the form of reply; null for a question that could not be read
- question (string) = its text [parquet]
- choices (list<string>) = the options, in order [parquet]
- target (string) = what the scorer needs, JSON [parquet]
- image_sha256 (list<string>) = the images, by the hash of their bytes [parquet]
- prompts (list<string>) = the text of every ask [parquet]
- replies (list<string>) = the reply to every ask; empty where there is no answer [parquet]
- outcome (string) = how it ended; `not_recorded`, `outage` and `broken` are failures
- answer (string) = what the parser read
- rule (string) = the rule of the parser that fired [parquet]
- correct (double) = 0..1, no readable answer counted as wrong; null for a failure
- correct_or_chance (double) = the same, no readable answer counted as a guess
- values (map<string, double>) = further numbers of the score [parquet]
- tools (string) = the tools that answered a call, `a + b`; null where no call is known [table]
- finding (string) = `right`, `wrong`, `none` or `unread`, of the answer that the tools' findings come to; null
  without a call [table]
- model_calls (int32) = calls of the MLLM
- tool_calls (int32) = calls of tools
- tool_faults (int32) = of these, ended in a timeout or an error
- tokens (int64) = read and written by the MLLM; null where not known [table]
- input_tokens (int64) = as the provider counts [parquet]
- output_tokens (int64) = as the provider counts [parquet]
- reasoning_tokens (int64) = as the provider counts [parquet]
- cached_tokens (int64) = of the input tokens, those the provider had [parquet]
- cost_usd (double) = null where no price is known
- call_seconds (double) = running time of model and tool calls
- seconds (double) = from the first ask to the last reply
- started (timestamp[us, UTC]) = when the first ask began [parquet]

Columns marked `table` or `parquet` are in one of the two alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hybrid.errors import UsageError
from hybrid.rotation import ROTATED
from hybrid.scoring.findings import Heard, heard
from hybrid.scoring.groups import repetition
from hybrid.scoring.rendering import lines_of
from hybrid.scoring.score import Scored
from hybrid.types import Attempt, BrokenQuestion, Question, Score, Usage, base_id

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Row:
    """One question of one solver."""

    solver: SolverRows
    wrong: Score
    """The score where no answer is wrong."""
    guess: Score
    question: Question | BrokenQuestion
    attempt: Attempt | None
    """None where it was not recorded."""

    @cached_property
    def usage(self) -> Usage | None:
        """What the asks took together."""
        asks = () if self.attempt is None else self.attempt.exchanges
        return None if self.attempt is None else sum((one.reply.usage for one in asks), Usage())

    def asked(self, name: str) -> Any:
        """A field of the question; None for one that could not be read."""
        return None if isinstance(self.question, BrokenQuestion) else getattr(self.question, name)

    @property
    def heard(self) -> Heard | None:
        """What its tools said; None where none was called."""
        found = self.solver.heard.get(self.wrong.id)
        return found if found is not None and (found.calls or found.no_trace) else None


@dataclass(frozen=True, eq=False)
class SolverRows:
    """The rows of a solver, in the order of its questions."""

    scored: Scored

    @cached_property
    def heard(self) -> Mapping[str, Heard]:
        """By question what tools said."""
        return heard(self.scored)

    @property
    def split(self) -> str | None:
        """The split that was asked; None for predictions as they lie on disk."""
        return None if self.scored.folder is None else str(self.scored.manifest["identity"]["split"])

    def __iter__(self) -> Iterator[Row]:
        scored = self.scored
        wrong, guess = ({one.id: one for one in scored.counted[rule].scores} for rule in ("wrong", "chance"))
        attempts = {} if scored.folder is None else scored.folder.recorded(scored.recorded).without_steps
        for question in scored.questions.values():
            if question.id in wrong:
                name = question.id
                yield Row(self, wrong[name], guess[name], question, attempts.get(name))


@dataclass(frozen=True)
class Column:
    """A column: its name, its type in the words of Arrow, what it holds, and which of the two forms has it alone."""

    name: str
    type: str
    about: str
    form: str

    def of(self, row: Row) -> Any:
        """Its value."""
        return MADE[self.name](row)


def _used(name: str) -> Callable[[Row], Any]:
    return lambda row: None if row.usage is None else getattr(row.usage, name)


def _tokens(row: Row) -> int | None:
    # A model that was called and reports no token: their number is not known, and not 0.
    used = row.usage
    total = 0 if used is None else used.input_tokens + used.output_tokens
    return None if used is None or used.uncounted_calls or (used.model_calls and not total) else total


def _credit(score: Score) -> float | None:
    return None if score.outcome.failed else score.correct


def _started(row: Row) -> datetime | None:
    at = None if row.attempt is None else row.attempt.started
    return None if at is None else datetime.fromtimestamp(at, UTC)


def _texts(part: str) -> Callable[[Row], list[str]]:
    def texts(row: Row) -> list[str]:
        return [getattr(one, part).text for one in (() if row.attempt is None else row.attempt.exchanges)]

    return texts


def _rotation(row: Row) -> int:
    found = ROTATED.search(row.question.id)
    return int(found[1]) if found else 0


def _images(row: Row) -> list[str] | None:
    return None if (found := row.asked("images")) is None else [image.sha256 for image in found]


def _target(row: Row) -> str | None:
    broken = isinstance(row.question, BrokenQuestion)
    return None if broken else json.dumps(row.asked("target"), ensure_ascii=False)


def _tools(row: Row) -> str | None:
    return None if row.heard is None or row.heard.no_trace else " + ".join(row.heard.tools)


MADE: Mapping[str, Callable[[Row], Any]] = {
    "benchmark": lambda row: row.solver.scored.benchmark,
    "split": lambda row: row.solver.split,
    "model": lambda row: row.solver.scored.model,
    "solver": lambda row: row.solver.scored.solver,
    "tool_output": lambda row: row.solver.scored.tool_output,
    "repetition": lambda row: repetition(row.solver.scored),
    "id": lambda row: row.question.id,
    "base": lambda row: base_id(row.question.id),
    "rotation": _rotation,
    "cluster": lambda row: row.question.unit,
    "task": lambda row: row.question.task,
    "groups": lambda row: list(row.question.groups.items()),
    "kind": lambda row: kind.value if (kind := row.asked("kind")) else None,
    "question": lambda row: row.asked("text"),
    "choices": lambda row: None if (found := row.asked("choices")) is None else list(found),
    "target": _target,
    "image_sha256": _images,
    "prompts": _texts("prompt"),
    "replies": _texts("reply"),
    "outcome": lambda row: row.wrong.outcome.value,
    "answer": lambda row: row.wrong.answer,
    "rule": lambda row: row.wrong.rule,
    "correct": lambda row: _credit(row.wrong),
    "correct_or_chance": lambda row: _credit(row.guess),
    "values": lambda row: list(row.wrong.values.items()),
    "tools": _tools,
    "finding": lambda row: None if row.heard is None else row.heard.finding,
    "tokens": _tokens,
    "call_seconds": _used("seconds"),
    "seconds": lambda row: None if row.attempt is None else row.attempt.seconds,
    "started": _started,
    **{
        name: _used(name)
        for name in (
            *("model_calls", "tool_calls", "tool_faults", "input_tokens", "output_tokens", "reasoning_tokens"),
            *("cached_tokens", "cost_usd"),
        )
    },
}
"""How each column is made of a row."""
_ITEM = re.compile(
    r"^- (?P<name>\w+) \((?P<type>[^()]+)\) = (?P<about>.+?)(?: \[(?P<form>\w+)\])?(?=\n- |\n\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
COLUMNS = tuple(
    Column(found["name"], found["type"], " ".join(found["about"].split()), found["form"] or "")
    for found in _ITEM.finditer(__doc__ or "")
)
"""The columns, in order, as the docstring has them."""
PARQUET = tuple(one for one in COLUMNS if one.form != "table")
TABLE = tuple(one for one in COLUMNS if one.form != "parquet")
GROUP = "group."
"""How the columns of a table begin that hold further groups."""


class QuestionTable(Sequence[Mapping[str, Any]]):
    """A row a question and solver, over `TABLE` and a column `group.NAME` for each further group."""

    def __init__(self, solvers: Sequence[Scored]) -> None:
        every = [(scored, row) for scored in solvers for row in SolverRows(scored)]
        groups = dict.fromkeys(name for _, row in every for name in row.question.groups)
        self.columns: Mapping[str, str] = {
            **{one.name: one.type for one in TABLE},
            **dict.fromkeys((f"{GROUP}{name}" for name in groups), "string"),
        }
        """Name and type."""
        self._rows = [
            {one.name: one.of(row) for one in TABLE}
            | {f"{GROUP}{name}": row.question.groups.get(name) for name in groups}
            for _, row in every
        ]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    def __repr__(self) -> str:
        return f"<table of {len(self)} rows: {', '.join(self.columns)}>"

    def to_pandas(self) -> pd.DataFrame:
        """A data frame. Raises `UsageError` where pandas is not installed."""
        try:
            import pandas as pd
        except ImportError as error:
            raise UsageError(_needs("to_pandas", "pandas")) from error
        return pd.DataFrame(self._rows, columns=list(self.columns))

    def to_polars(self) -> Any:
        """A data frame of polars. Raises `UsageError` where polars is not installed."""
        try:
            import polars as pl
        except ImportError as error:
            raise UsageError(_needs("to_polars", "polars")) from error
        return pl.DataFrame(self._rows, infer_schema_length=None)

    def as_csv(self) -> str:
        """A heading and a line for each row; a name that a spreadsheet would compute gets an apostrophe."""
        return lines_of(self.columns, (row.values() for row in self._rows))


def _needs(what: str, package: str) -> str:
    return f"{what} needs the package {package}, which is not installed: pip install {package}"
