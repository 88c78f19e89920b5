"""How the questions of each solver ended, and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hybrid.benchmarks.card import MetricCard
from hybrid.scoring.compare import Comparison
from hybrid.scoring.faults import tool_faults
from hybrid.scoring.result import QUESTIONS, Result, Section
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.cost import uncounted
from hybrid.types import Fault, Outcome

NAME = "outcomes"
BATCHES = "asked in batches, which tell no latency"
OPEN = "open"
UNREADABLE = "unreadable call"
FAULTS = "calls that ended in faults"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Counts of every outcome, calls, tokens, seconds and cost of each solver; what was not recorded has no value."""
    for solver in comparison.solvers:
        yield from _of_solver(solver)


def _of_solver(solver: Scored) -> Iterator[Result]:
    count = Counter(score.outcome for score in solver.scores)
    row = Result(NAME, "", QUESTIONS, None, solver.solver, n=len(solver.scores))
    for kind in Outcome:
        yield replace(row, quantity=kind.value, value=float(count[kind]), detail=not count[kind])
    if solver.open:
        yield replace(row, quantity=OPEN, value=float(solver.open))
    usage = solver.usage
    if usage is None:
        return
    if usage.unreadable:
        yield replace(row, quantity=UNREADABLE, unit="asks", value=float(usage.unreadable))
    # A recorded model was called and reports no token: their number is not known, and not 0.
    unknown = usage.uncounted_calls > 0 or (usage.model_calls > 0 and usage.input_tokens == usage.output_tokens == 0)
    spent: tuple[tuple[str, str, float | None], ...] = (
        ("model calls", "calls", usage.model_calls),
        ("tool calls", "calls", usage.tool_calls),
        ("lost", "calls", usage.tool_faults),
        ("tokens in", "tokens", None if unknown else usage.input_tokens),
        ("tokens out", "tokens", None if unknown else usage.output_tokens),
        ("busy", "seconds", None if solver.in_batches else usage.seconds),
        ("wall", "seconds", None if solver.in_batches else solver.wall_s),
        ("cost", "USD", None if usage.uncounted_calls else usage.cost_usd),
    )
    for one in tool_faults(solver):
        for fault, calls in one.kinds.items():
            line = replace(row, quantity=f"{FAULTS}: {fault.value.replace('_', ' ')}", unit="calls", metric=one.tool)
            yield replace(line, value=float(calls), n=one.calls, note=one.error if one.never_ran else "")
    for name, unit, value in spent:
        note = uncounted(usage) if name in ("tokens in", "tokens out", "cost") else ""
        note = BATCHES if solver.in_batches and unit == "seconds" else note
        yield replace(row, quantity=name, unit=unit, value=value, note=note)


def lead(comparison: Comparison, made: Sequence[Result]) -> str:
    """How many questions ended without an answer, and how many failed."""
    del made
    everything = sum(len(one.scores) for one in comparison.solvers)
    none = sum(score.answer is None and not score.outcome.failed for one in comparison.solvers for score in one.scores)
    failed, waiting = sum(one.failed for one in comparison.solvers), sum(one.open for one in comparison.solvers)
    parts = [f"Of {everything} answers asked for, {none} could not be read or were none, and {failed} failed"]
    if waiting:
        parts.append(f"{waiting} are still to be asked for")
    return f"{'; '.join(parts)}."


ONE = "questions of the solver"
COUNT, CALLS = "0 to n, in questions", "0 and above, in calls"

SECTION = Section(
    NAME,
    "How did the questions end, and what did they cost?",
    (
        *(
            MetricCard(
                outcome.value,
                f"questions that ended so{': a failure, which is no answer' if outcome.failed else ''}",
                ONE,
                "ours",
                values=COUNT,
            )
            for outcome in Outcome
        ),
        MetricCard(OPEN, "questions that are not asked yet, and in no other number", "not given", "ours", values=COUNT),
        MetricCard(
            UNREADABLE, "asks in which the model wrote a call that could not be read", ONE, "recorded", values="0 to n"
        ),
        MetricCard("model calls", "calls of the MLLM", ONE, "recorded", values=CALLS),
        MetricCard("tool calls", "calls of tools", ONE, "recorded", values=CALLS),
        MetricCard(
            f"{FAULTS}: <{'|'.join(kind.value.replace('_', ' ') for kind in Fault)}>",
            "calls of the tool in the column tool that ended so",
            "calls of the tool",
            "recorded",
            values="0 to n, in calls",
        ),
        MetricCard("lost", "tool calls that ended in a timeout or an error of the tool", ONE, "recorded", values=CALLS),
        MetricCard(
            "tokens <in|out>",
            "tokens sent to the MLLM, and written by it",
            ONE,
            "as the provider reports them; empty where it reports none",
            values="0 and above, in tokens",
        ),
        MetricCard(
            "busy", "running time of model and tools, added up", ONE, "measured", values="0 and above, in seconds"
        ),
        MetricCard("wall", "time with at least one question open", ONE, "measured", values="0 and above, in seconds"),
        MetricCard(
            "cost", "tokens * price", ONE, "--model-arg price=IN/OUT; empty without", values="0 and above, in USD"
        ),
    ),
    rows,
    lead,
    about=(
        "lost: tool calls that ended in an error or a timeout; what was answered then was answered without them. busy: "
        "time of the model and of the tools, added up; wall: time with at least one question open."
    ),
    headings={"a": "solver", "metric": "tool"},
    chart="stack",
    charted=(*(outcome.value for outcome in Outcome), OPEN),
    order=300,
)
