"""Metrics of each tool in a run, by solver and route: calls, faults, seconds, and share of right answers.

    rows = tool_metrics(scored)          # of one solver
    metrics_table(folder, rows)          # `hybrid tools metrics RUN`

A question counts once for each tool that was called about it. If the solver recorded which tool answered (a rule of the
specialists), the verdict is that tool's, and the other tools gave no answer. Otherwise the verdict of
`hybrid.scoring.findings` counts for all tools that were called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

from hybrid.core.errors import DataError
from hybrid.core.types import Attempt, Exchange, Json
from hybrid.display.tables import Column, Table
from hybrid.log.folder import RunFolder
from hybrid.scoring.findings import outputs_by_question
from hybrid.scoring.score import Scored
from hybrid.solving.rules import counted_route


@dataclass
class ToolMetrics:
    """Counts of one tool on one route of a solver's questions."""

    solver: str
    tool: str
    route: str
    calls: int = 0
    # Number of calls that ended in a fault.
    faults: int = 0
    # Running time of the calls.
    seconds: float = 0.0
    # Number of questions about which the tool was called.
    questions: int = 0
    right: int = 0
    wrong: int = 0
    # Number of questions for which the tool's output led to no answer.
    abstained: int = 0
    # Number of questions with an unknown verdict: no rule reads the tool's output, or answers are graded.
    unknown: int = 0


def tool_metrics(scored: Scored) -> list[ToolMetrics]:
    """Return the metrics of each tool that a solver called, by tool and route; none for imported predictions."""
    if scored.folder is None:
        return []
    recorded, verdicts = scored.folder.recorded(scored.recorded), outputs_by_question(scored)
    rows: dict[tuple[str, str], ToolMetrics] = {}
    for identity, verdict in verdicts.items():
        try:
            attempt = recorded.by_id[identity]
        except (DataError, KeyError):
            continue
        of_question: dict[tuple[str, str], None] = {}
        for tool, exchange, seconds, failed in _calls(attempt):
            key = tool, counted_route(exchange.prompt, tool)
            row = rows.setdefault(key, ToolMetrics(scored.solver, *key))
            row.calls += 1
            row.faults += failed
            row.seconds += seconds
            of_question[key] = None
        answering = _answering(attempt)
        for key in of_question:
            _count(rows[key], verdict.finding if answering in (None, key[0]) else "none")
    return [rows[key] for key in sorted(rows)]


def _calls(attempt: Attempt) -> Iterator[tuple[str, Exchange, float, bool]]:
    for exchange in attempt.exchanges:
        for step in exchange.reply.steps:
            if step.kind == "tool":
                yield step.name, exchange, step.seconds, step.fault is not None


def _answering(attempt: Attempt) -> str | None:
    """Return the tool whose answer the solver recorded last; None if it recorded no answering tool."""
    name = None
    for exchange in attempt.exchanges:
        for step in exchange.reply.steps:
            answer = step.data.get("specialist_answer")
            if isinstance(answer, Mapping):
                name = str(answer.get("tool"))
    return name


def _count(row: ToolMetrics, verdict: str) -> None:
    row.questions += 1
    row.right += verdict == "right"
    row.wrong += verdict == "wrong"
    row.abstained += verdict == "none"
    row.unknown += verdict == "unread"


def as_json(rows: Iterable[ToolMetrics]) -> list[dict[str, Json]]:
    """Return the rows with all their numbers."""
    return [asdict(row) for row in rows]


def metrics_table(folder: RunFolder, rows: Iterable[ToolMetrics]) -> Table:
    """Return the rows as a table."""
    names = ("solver", "tool", "route")
    counts = ("questions", "calls", "faults", "right", "wrong", "abstained", "unknown")
    columns = (*(Column(name, "left") for name in names), *map(Column, (*counts, "seconds")))
    cells = tuple((*(str(getattr(row, name)) for name in (*names, *counts)), f"{row.seconds:.2f}") for row in rows)
    note = "A question counts once for each tool that was called about it."
    return Table(f"{folder.path}: what each tool did", columns, cells, (note,) if cells else ("No tool was called.",))
