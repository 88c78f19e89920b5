"""A table with a row a question and solver, for pandas, polars, DuckDB or the Hugging Face hub's viewer.

    hybrid export RUN --to parquet -o run.parquet

`COLUMNS` lists the columns with type and meaning; `docs/exchange.md` prints them. Rows come in the order of the
solvers, then of the questions. The file's metadata holds `hybrid_version`, `run_sha256` and `identity` (the run's
configuration as JSON).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hybrid.errors import UsageError, needed_by
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written
from hybrid.scoring.score import Scored
from hybrid.types import Attempt, BrokenQuestion, Question, Score, Usage, base_id
from hybrid.version import __version__


@dataclass(frozen=True)
class Column:
    """A column: its name, its type in the words of Arrow, and what it holds."""

    name: str
    type: str
    about: str


COLUMNS = (
    Column("benchmark", "string", "whose question"),
    Column("split", "string", "of which split"),
    Column("model", "string", "the MLLM of the run; null for a run without one"),
    Column("solver", "string", "who answered"),
    Column("tool_output", "string", "`real`, or the control in force"),
    Column("id", "string", "the question's id with its variant"),
    Column("base", "string", "the id without the variant"),
    Column("cluster", "string", "questions that statistics resample as one"),
    Column("task", "string", "the reporting group"),
    Column("groups", "map<string, string>", "further groups, as `--by` takes them"),
    Column("kind", "string", "the form of reply; null for a question that could not be read"),
    Column("question", "string", "its text"),
    Column("choices", "list<string>", "the options, in order"),
    Column("target", "string", "what the scorer needs, JSON"),
    Column("image_sha256", "list<string>", "the images, by the hash of their bytes"),
    Column("prompts", "list<string>", "the text of every ask"),
    Column("replies", "list<string>", "the reply to every ask; empty where there is no answer"),
    Column("outcome", "string", "how it ended; `not_recorded`, `outage` and `broken` are failures"),
    Column("answer", "string", "what the parser read"),
    Column("rule", "string", "the rule of the parser that fired"),
    Column("correct", "double", "0..1, no readable answer counted as wrong; null for a failure"),
    Column("correct_or_chance", "double", "the same, no readable answer counted as a guess"),
    Column("values", "map<string, double>", "further numbers of the score"),
    Column("model_calls", "int32", "calls of the MLLM"),
    Column("tool_calls", "int32", "calls of tools"),
    Column("tool_faults", "int32", "of these, ended in a timeout or an error"),
    Column("input_tokens", "int64", "as the provider counts"),
    Column("output_tokens", "int64", "as the provider counts"),
    Column("reasoning_tokens", "int64", "as the provider counts"),
    Column("cached_tokens", "int64", "of the input tokens, those the provider had"),
    Column("cost_usd", "double", "null where no price is known"),
    Column("call_seconds", "double", "running time of model and tool calls"),
    Column("seconds", "double", "from the first ask to the last reply"),
    Column("started", "timestamp[us, UTC]", "when the first ask began"),
)
"""The columns, in order."""


class Parquet(Exporter):
    """One file."""

    form = "parquet"
    about = "a table with a row a question and solver, typed columns; all solvers, every ask, no images"

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`."""
        del options
        with needed_by("--to parquet"):
            import pyarrow as pa
            import pyarrow.parquet as pq

        rows = [row for scored in run.scored for row in _rows(run, scored)]
        if not rows:
            raise UsageError(f"{run.folder.path} has no question that was asked")
        metadata = {
            "hybrid_version": __version__,
            "run_sha256": run.sha256,
            "identity": json.dumps(run.identity),
            "conclusion": json.dumps([sentence.text for sentence in run.conclusion]),
        }
        schema = pa.schema([(column.name, _type(column)) for column in COLUMNS], metadata=metadata)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return Written((path,))


def _type(column: Column) -> Any:
    import pyarrow as pa

    text = pa.string()
    return {
        "string": text,
        "list<string>": pa.list_(text),
        "map<string, string>": pa.map_(text, text),
        "map<string, double>": pa.map_(text, pa.float64()),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "timestamp[us, UTC]": pa.timestamp("us", "UTC"),
    }[column.type]


def _rows(run: ExportedRun, scored: Scored) -> Iterator[Mapping[str, Any]]:
    """A row for each question that the solver was asked, or that could not be."""
    wrong, guess = ({one.id: one for one in scored.counted[rule].scores} for rule in ("wrong", "chance"))
    attempts = run.folder.recorded(scored.recorded).without_steps
    for question in scored.questions.values():
        if question.id in wrong:
            yield {
                "benchmark": scored.benchmark,
                "split": run.split,
                "model": scored.model,
                "solver": scored.solver,
                "tool_output": scored.tool_output,
                **_asked(question),
                **_asks_of(attempts.get(question.id)),
                **_verdict(wrong[question.id], guess[question.id]),
            }


def _asked(question: Question | BrokenQuestion) -> Mapping[str, Any]:
    known = {
        "id": question.id,
        "base": base_id(question.id),
        "cluster": question.unit,
        "task": question.task,
        "groups": list(question.groups.items()),
    }
    if isinstance(question, BrokenQuestion):
        return known
    return known | {
        "kind": question.kind.value,
        "question": question.text,
        "choices": list(question.choices),
        "target": json.dumps(question.target, ensure_ascii=False),
        "image_sha256": [image.sha256 for image in question.images],
    }


def _asks_of(attempt: Attempt | None) -> Mapping[str, Any]:
    if attempt is None:
        return {"prompts": [], "replies": []}
    usage = sum((exchange.reply.usage for exchange in attempt.exchanges), Usage())
    return {
        "prompts": [exchange.prompt.text for exchange in attempt.exchanges],
        "replies": [exchange.reply.text for exchange in attempt.exchanges],
        "model_calls": usage.model_calls,
        "tool_calls": usage.tool_calls,
        "tool_faults": usage.tool_faults,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost_usd,
        "call_seconds": usage.seconds,
        "seconds": attempt.seconds,
        "started": None if attempt.started is None else datetime.fromtimestamp(attempt.started, UTC),
    }


def _verdict(wrong: Score, guess: Score) -> Mapping[str, Any]:
    failed = wrong.outcome.failed
    return {
        "outcome": wrong.outcome.value,
        "answer": wrong.answer,
        "rule": wrong.rule,
        "correct": None if failed else wrong.correct,
        "correct_or_chance": None if failed else guess.correct,
        "values": list(wrong.values.items()),
    }


EXPORTER = Parquet()
