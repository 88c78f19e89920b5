"""Which tools are called, and how right are the answers then?

right when called does not measure the effect of the call: tools are called about some questions, and not about others.
tool error: the tool could not answer. seconds a call: cached tool output takes no time.

n: calls of the tool
source: docs/evidence.md
values: 0 to n, in calls

- questions with a call (0 to n, in questions) = answered questions about which the tool was called [n: answered
  questions]
- calls (0 and above, in calls) = calls of the tool [n: answered questions]
- most calls a question (0 and above, in calls) = the largest number of calls about one question [n: answered questions]
- called first (0 to n, in questions) = questions whose first call was of the tool [n: answered questions]
- faults: <bad arguments|unreadable call|unknown tool|unknown image|tool error|timeout> = calls with this fault
- read from text (<dialect>) (0 to n, in calls) = calls that were written in the text of a reply
- repaired: <kind> = calls that needed this repair to be parsed
- absent = calls that ran nothing, because the tool has no weights here
- right when called (0 to 1) = right answers / questions, of those about which the tool was called. This does not
  measure the effect of the call: a tool is called if a question seems to need it. [n: such questions with a verdict]
- right when not called (0 to 1) = right answers / questions, of those about which the tool was not called [n: such
  questions with a verdict]
- seconds a call (0 and above, in seconds) = mean running time of a call; cached tool output takes no time
- without a readable trace (0 to n, in questions) = answered questions whose calls are unknown [n: not given]

Right with a tool and right without it cover different questions: a tool is called if a question seems to need it. The
difference does not measure the effect of the tool; the blank control and `evidence.py` do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from hybrid.benchmarks.base import UnansweredRule
from hybrid.core.types import Fault, Score
from hybrid.plugins.registry import names
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.faults import resolve_name
from hybrid.scoring.findings import Called, outputs_by_question
from hybrid.scoring.groups import role
from hybrid.scoring.result import FRACTION, QUESTIONS, Result
from hybrid.scoring.score import group_of, grouped

NAME: Final = "tool_use"
# Faults of a tool call in the order of tables; neither the tool nor the solver is to blame for the last one.
LISTED: Final = ("unreadable_call", "unknown_tool", "unknown_image", "bad_arguments", "tool_error", "timeout", "absent")
FAULTS: Final = tuple(map(Fault, LISTED))


def fault_row(fault: Fault) -> str:
    """Return the name of the quantity that counts calls with a fault."""
    words = fault.value.replace("_", " ")
    return words if fault is Fault.ABSENT else f"faults: {words}"


FAULT_ROWS: Final = frozenset(map(fault_row, FAULTS))


# An answered question and its calls in order; the tool of a call with an unknown name is `NO_SUCH`.
CallsOfQuestion = tuple[Score, Sequence[Called]]


def rows(comparison: Comparison) -> list[Result]:
    """Return counts for each solver that may call tools and each tool that it called; none if no tool was called."""
    section_rows: list[Result] = []
    tool_names, by = frozenset(names("tools")), comparison.options.by
    for solver in comparison.solvers:
        if solver.folder is not None and role(solver) in ("hybrid", "specialist"):
            findings = outputs_by_question(solver)
            questions: list[CallsOfQuestion] = [
                (
                    score,
                    [
                        replace(call, tool=resolve_name(call.tool, call.fault, tool_names))
                        for call in findings[score.id].calls
                    ],
                )
                for score in solver.scores
                # Questions without a readable trace are left out.
                if score.id in findings and not findings[score.id].no_trace
            ]
            parts = {"": questions, **grouped(questions, lambda entry: group_of(entry[0], by))}
            # For all tools together ("") and each called tool: over all questions, and in each group where it was
            # called.
            for tool in ("", *sorted({call.tool for _, calls in questions for call in calls})):
                for group, inside in parts.items():
                    if not tool or any(call.tool == tool for _, calls in inside for call in calls):
                        row = Result(NAME, "", QUESTIONS, None, solver.solver, metric=tool, group=group)
                        section_rows += _used(row, tool, inside, solver.unanswered)
            if untraced := tuple(name for name, verdict in findings.items() if verdict.no_trace):
                count = float(len(untraced))
                section_rows.append(
                    Result(NAME, "without a readable trace", QUESTIONS, count, solver.solver, ids=untraced)
                )
    return section_rows if any(row.quantity == "calls" and row.value for row in section_rows) else []


def _used(row: Result, tool: str, questions: Sequence[CallsOfQuestion], rule: UnansweredRule) -> Iterator[Result]:
    calls = [[call for call in question_calls if tool in ("", call.tool)] for _, question_calls in questions]
    times = [call.seconds for of_one in calls for call in of_one]
    faults = Counter(call.fault for of_one in calls for call in of_one if call.fault is not None)
    per_question, first = (
        replace(row, n=len(questions)),
        sum(tool in ("", question_calls[0].tool) for _, question_calls in questions if question_calls),
    )
    for quantity, unit, count, detail in (
        ("questions with a call", QUESTIONS, sum(map(bool, calls)), False),
        ("calls", "calls", len(times), False),
        ("most calls a question", "calls", max(map(len, calls), default=0), True),
        ("called first", QUESTIONS, first, True),
    ):
        yield replace(per_question, quantity=quantity, unit=unit, value=float(count), detail=detail)
    as_read = Counter(note for of_one in calls for call in of_one for note in call.as_read)
    counts = {fault_row(fault): faults[fault] for fault in FAULTS if faults[fault]} | dict(sorted(as_read.items()))
    for quantity, count in counts.items():
        yield replace(row, quantity=quantity, unit="calls", value=float(count), n=len(times))
    verdicts = [
        (bool(of_one), score.correct if score.answer is None else float(score.correct == 1))
        for (score, _), of_one in zip(questions, calls, strict=True)
        if score.correct is not None
    ]
    for quantity, with_call in (("right when called", True), ("right when not called", False)):
        judged = [right for has_call, right in verdicts if has_call is with_call]
        if judged:
            share = replace(row, quantity=quantity, unit=FRACTION, value=sum(judged) / len(judged), n=len(judged))
            yield replace(share, none=rule)
    if times:
        mean = math.fsum(times) / len(times)
        yield replace(row, quantity="seconds a call", unit="seconds", value=mean, n=len(times))


def lead(_: Comparison, section_rows: Sequence[Result]) -> str:
    """State about how many questions each solver called a tool, and its most frequent tool."""
    parts = []
    for row in section_rows:
        if row.quantity == "questions with a call" and not row.metric and not row.group:
            calls = [
                call_row
                for call_row in section_rows
                if (call_row.a, call_row.group, call_row.quantity) == (row.a, "", "calls") and call_row.metric
            ]
            most = max(calls, key=lambda call_row: call_row.value or 0.0, default=None)
            mostly = f", {most.metric} most often" if most is not None else ""
            faults = math.fsum(
                call_row.value or 0.0
                for call_row in section_rows
                if (call_row.a, call_row.group, call_row.metric) == (row.a, "", "") and call_row.quantity in FAULT_ROWS
            )
            failed = f"; {faults:.0f} of its calls ended in faults" if faults else ""
            parts.append(f"{row.a} called a tool about {row.value:.0f} of {row.n} questions{mostly}{failed}")
    return f"{'; '.join(parts)}." if parts else ""


SECTION = statistic(
    rows, lead, headings={"a": "solver", "metric": "tool"}, chart="stack", charted=("calls",), order=150
)
