"""How did the questions end, and what did they cost?

lost: tool calls that ended in an error or a timeout; what was answered then was answered without them. busy: time of
the model and of the tools, added up; wall: time with at least one question open.

n: questions of the solver
source: ours
values: 0 to n, in questions

- answered = questions that ended so
- abstained = questions that ended so
- unparsed = questions that ended so
- budget = questions that ended so
- tool_fault = questions that ended so
- not_recorded = questions that ended so: a failure, which is no answer
- outage = questions that ended so: a failure, which is no answer
- broken = questions that ended so: a failure, which is no answer
- open = questions that are not finished yet, and in no other number [n: not given]
- unreadable call (0 to n) = asks in which the model wrote a call that could not be read [source: recorded]
- model calls (0 and above, in calls) = calls of the MLLM [source: recorded]
- tool calls (0 and above, in calls) = calls of tools [source: recorded]
- calls that ended in faults: <bad arguments|unreadable call|unknown tool|unknown image|tool
  error|timeout|absent|empty reply|refusal|loop|budget> (0 to n, in calls) = calls of the tool in the column tool that
  ended so [n: calls of the tool; source: recorded]
- replies that ended otherwise: <cut|context full|filtered|refused|broken off|unfinished|malformed call|unknown> (0 and
  above, in replies) = replies of the MLLM that did not simply end; the note has the provider's word. Broken off are
  those of which the request was sent again, unknown those with a word that is in no table: they count as ended [n:
  model calls; source: recorded]
- lost (0 and above, in calls) = tool calls that ended in a timeout or an error of the tool [source: recorded]
- tokens <in|out> (0 and above, in tokens) = tokens sent to the MLLM, and written by it [source: as the provider
  reports them; empty where it reports none]
- busy (0 and above, in seconds) = running time of model and tools, added up [source: measured]
- wall (0 and above, in seconds) = time with at least one question open [source: measured]
- cost (0 and above, in USD) = tokens * price [source: --model-arg price=IN/OUT; empty without]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hybrid.core.types import Outcome, Usage
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.faults import reply_ends, tool_faults
from hybrid.scoring.result import QUESTIONS, Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.cost import tokens, uncounted

NAME = "outcomes"
BATCHES = "asked in batches, which tell no latency"
OPEN = "open"
UNREADABLE = "unreadable call"
FAULTS = "calls that ended in faults"
ENDS = "replies that ended otherwise"
# What can be done about replies that ended so.
REMEDIES = {
    "cut": "raise --max-tokens, or ask for less with --reasoning-effort",
    "context_full": "send smaller pictures (--max-pixels), or start the server with a longer context",
}


def rows(comparison: Comparison) -> Iterator[Result]:
    """Counts of every outcome, calls, tokens, seconds and cost of each solver; what was not recorded has no value."""
    for solver in comparison.solvers:
        count = Counter(score.outcome for score in solver.scores)
        row = Result(NAME, "", QUESTIONS, None, solver.solver, n=len(solver.scores))
        for kind in Outcome:
            yield replace(row, quantity=kind.value, value=float(count[kind]), detail=not count[kind])
        if solver.open:
            yield replace(row, quantity=OPEN, value=float(solver.open))
        if solver.usage is not None:
            yield from _spent(solver, solver.usage, row)


def _spent(solver: Scored, usage: Usage, row: Result) -> Iterator[Result]:
    if usage.unreadable:
        yield replace(row, quantity=UNREADABLE, unit="asks", value=float(usage.unreadable))
    sent, got = tokens(usage) or (None, None)
    yield from _ends(solver, replace(row, unit="replies", n=usage.model_calls))
    spent: tuple[tuple[str, str, float | None], ...] = (
        ("model calls", "calls", usage.model_calls),
        ("tool calls", "calls", usage.tool_calls),
        ("lost", "calls", usage.tool_faults),
        ("tokens in", "tokens", sent),
        ("tokens out", "tokens", got),
        ("busy", "seconds", None if solver.in_batches else usage.seconds),
        ("wall", "seconds", None if solver.in_batches else solver.wall_s),
        ("cost", "USD", None if usage.uncounted_calls else usage.cost_usd),
    )
    for tool_fault in tool_faults(solver):
        for fault, calls in tool_fault.kinds.items():
            line = replace(
                row, quantity=f"{FAULTS}: {fault.value.replace('_', ' ')}", unit="calls", metric=tool_fault.tool
            )
            yield replace(
                line, value=float(calls), n=tool_fault.calls, note=tool_fault.error if tool_fault.never_ran else ""
            )
    for name, unit, value in spent:
        note = uncounted(usage) if name in ("tokens in", "tokens out", "cost") else ""
        note = BATCHES if solver.in_batches and unit == "seconds" else note
        yield replace(row, quantity=name, unit=unit, value=value, note=note)


def _ends(solver: Scored, row: Result) -> Iterator[Result]:
    """A row for each way in which replies ended, with the provider's words for it and what can be done."""
    by_kind: dict[str, dict[str, int]] = {}
    for (kind, reason), replies in reply_ends(solver).items():
        by_kind.setdefault(kind, {})[reason or "no reason given"] = replies
    for kind, reasons in by_kind.items():
        words = ", ".join(f"{reason} ({count})" for reason, count in reasons.items())
        note = "; ".join(filter(None, (f"finish reason {words}", REMEDIES.get(kind, ""))))
        yield replace(row, quantity=f"{ENDS}: {kind.replace('_', ' ')}", value=float(sum(reasons.values())), note=note)


def lead(comparison: Comparison, _: Sequence[Result]) -> str:
    """How many questions ended without an answer, and how many failed."""
    everything = sum(len(solver.scores) for solver in comparison.solvers)
    none = sum(
        score.answer is None and not score.outcome.failed for solver in comparison.solvers for score in solver.scores
    )
    failed, waiting = (
        sum(solver.failed for solver in comparison.solvers),
        sum(solver.open for solver in comparison.solvers),
    )
    parts = [f"Of {everything} answers asked for, {none} could not be read or were none, and {failed} failed"]
    if waiting:
        parts.append(f"{waiting} are still to be asked for")
    return f"{'; '.join(parts)}."


SECTION = statistic(
    rows,
    lead,
    headings={"a": "solver", "metric": "tool"},
    chart="stack",
    charted=(*(outcome.value for outcome in Outcome), OPEN),
    order=300,
)
