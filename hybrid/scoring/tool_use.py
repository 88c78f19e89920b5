"""Which tools were called, how often, with what faults, and how right the answers were then.

    hybrid compare RUN --json        # `tool_use`: a record for each solver, tool and group

Right with a tool and right without it are of different questions: a tool is called where a question seems to need it.
The difference says nothing of what the tool did; the blank control and `evidence.py` do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hybrid.registry import names
from hybrid.scoring.compare import Comparison
from hybrid.scoring.findings import Called, Heard, heard
from hybrid.scoring.roles import role
from hybrid.scoring.score import Scored, group_of
from hybrid.scoring.told import Number, Told
from hybrid.tables import NONE, Column, Table, share
from hybrid.types import Fault, Json, Score

NAME: Final = "tool_use"
NO_SUCH: Final = "(no such tool)"
"""Stands for every name that no tool has: these are a model's words."""
FAULTS: Final = (
    Fault.UNKNOWN_TOOL,
    Fault.UNKNOWN_IMAGE,
    Fault.BAD_ARGUMENTS,
    Fault.TOOL_ERROR,
    Fault.TIMEOUT,
    Fault.ABSENT,
)
"""Of a tool call, as a table lists them; the last is none of the tool's or the solver's."""
CALLS: Final = (
    "n: questions answered. mean, most: calls a question. right with, right without: of the questions with and without "
    "a call."
)
ERRORS: Final = (
    "questions: those with a call. error: the tool could not answer. absent: it has no weights here, so that nothing "
    "ran. mean s: running time of a call; a finding that was known already takes none."
)
NO_CAUSE: Final = (
    "That is no claim about what the call did: tools are called about some questions, and not about others."
)
SHOWN_IDS: Final = 5
"""So many ids are named in a note; the data has all."""


@dataclass(frozen=True)
class Asked:
    """One answered question, and the tools that were called about it."""

    score: Score
    group: str
    calls: tuple[Called, ...]
    """In order; a name that no tool has is `NO_SUCH`."""

    def calls_to(self, tool: str) -> tuple[Called, ...]:
        """Those to one tool; all for the empty name."""
        return tuple(call for call in self.calls if tool in ("", call.tool))


@dataclass(frozen=True)
class Used:
    """How one tool was used by one solver, over all questions or in one group.

    `right` of the `judged` among the questions that called it are right, `right_without` of `judged_without` others.
    Graded answers (a scanpath) are not judged. `first` counts questions whose first call it was; `seconds` is the mean
    running time of a call, None without one.
    """

    solver: str
    tool: str
    """Empty for any tool."""
    group: str
    asked: int
    questions: int
    calls: int
    faults: tuple[tuple[Fault, int], ...]
    right: int
    judged: int
    right_without: int
    judged_without: int
    first: int
    seconds: float | None
    most: int
    """Calls about one question, at most."""

    def record(self) -> dict[str, Json]:
        """Its entry in `hybrid compare --json`."""
        return {
            "solver": self.solver,
            "tool": self.tool,
            "group": self.group,
            "asked": self.asked,
            "questions": self.questions,
            "calls": self.calls,
            "faults": {fault.value: count for fault, count in self.faults},
            "right": self.right,
            "n": self.judged,
            "right_without": self.right_without,
            "n_without": self.judged_without,
            "first": self.first,
            "most": self.most,
            "seconds": self.seconds,
        }


def section(found: Comparison) -> Told | None:
    """A row for each solver that may call tools, and each tool that it called; None where no tool was called."""
    by = found.choice.by
    rows: list[Used] = []
    unread: dict[str, tuple[str, ...]] = {}
    for solver in found.solvers:
        if solver.folder is None or role(solver) not in ("hybrid", "specialist"):
            continue
        said = heard(solver)
        rows += uses(solver.solver, asked(solver, said, by))
        unread[solver.solver] = tuple(name for name, one in said.items() if one.no_trace)
    if not any(row.calls for row in rows):
        return None
    lost = {name: ids for name, ids in unread.items() if ids}
    return Told(
        NAME,
        "Which tools are called, and how right are the answers then?",
        (solver_table(rows, lost), tool_table(rows), *_group_table(rows, by or "task")),
        (*(row.record() for row in rows), *(_lost_record(name, ids) for name, ids in lost.items())),
        tuple(number for row in rows for number in _numbers(row)),
    )


def _lost_record(solver: str, ids: Sequence[str]) -> dict[str, Json]:
    return {"solver": solver, "unread": len(ids), "ids": list(ids)}


def asked(scored: Scored, said: Mapping[str, Heard], by: str | None) -> tuple[Asked, ...]:
    """The questions that a solver answered, with their calls; those without a readable trace are left out."""
    known = frozenset(names("tools"))
    return tuple(
        Asked(score, group_of(score, by), tuple(_named(call, known) for call in said[score.id].calls))
        for score in scored.scores
        if score.id in said and not said[score.id].no_trace
    )


def _named(call: Called, known: Collection[str]) -> Called:
    """The call under the name of its tool; `NO_SUCH` for a name that no tool has, or a call that cannot be read."""
    strange = call.fault is Fault.UNKNOWN_TOOL or (call.fault is Fault.BAD_ARGUMENTS and call.tool not in known)
    return replace(call, tool=NO_SUCH) if strange else call


def uses(solver: str, questions: Sequence[Asked]) -> list[Used]:
    """For any tool and for each tool that a solver called: over all questions, and in each group where it was."""
    tools = sorted({call.tool for question in questions for call in question.calls})
    groups = sorted({question.group for question in questions})
    parts = {"": questions} | {name: [one for one in questions if one.group == name] for name in groups}
    rows = [_used(solver, tool, group, inside) for tool in ("", *tools) for group, inside in parts.items()]
    return [row for row in rows if row.questions or not row.tool]


def _used(solver: str, tool: str, group: str, questions: Sequence[Asked]) -> Used:
    calls = [one.calls_to(tool) for one in questions]
    faults = Counter(call.fault for of_one in calls for call in of_one if call.fault is not None)
    verdicts = [
        (bool(of_one), one.score.correct == 1.0)
        for one, of_one in zip(questions, calls, strict=True)
        if one.score.correct is not None
    ]
    times = [call.seconds for of_one in calls for call in of_one]
    return Used(
        solver=solver,
        tool=tool,
        group=group,
        asked=len(questions),
        questions=sum(map(bool, calls)),
        calls=len(times),
        faults=tuple((fault, faults[fault]) for fault in FAULTS if faults[fault]),
        right=sum(right for called, right in verdicts if called),
        judged=sum(called for called, _ in verdicts),
        right_without=sum(right for called, right in verdicts if not called),
        judged_without=sum(not called for called, _ in verdicts),
        first=sum(tool in ("", one.calls[0].tool) for one in questions if one.calls),
        seconds=math.fsum(times) / len(times) if times else None,
        most=max(map(len, calls), default=0),
    )


def _numbers(row: Used) -> list[Number]:
    def number(quantity: str, unit: str, value: float | None, n: int) -> Number:
        return Number(NAME, quantity, unit, value, row.solver, metric=row.tool, group=row.group, n=n)

    found = [
        number("questions with a call", "questions", row.questions, row.asked),
        number("calls", "calls", row.calls, row.asked),
        *(number(f"faults: {_words(fault)}", "calls", count, row.calls) for fault, count in row.faults),
    ]
    if row.judged:
        found.append(number("right when called", "fraction", row.right / row.judged, row.judged))
    if row.judged_without:
        share_without = row.right_without / row.judged_without
        found.append(number("right when not called", "fraction", share_without, row.judged_without))
    return found if row.seconds is None else [*found, number("seconds a call", "seconds", row.seconds, row.calls)]


def _words(fault: Fault) -> str:
    return fault.value.replace("_", " ")


def solver_table(rows: Sequence[Used], lost: Mapping[str, Sequence[str]]) -> Table:
    """How many calls each solver makes about a question, and how right it is with and without one."""
    found = []
    for row in (row for row in rows if not row.tool and not row.group):
        own = [one for one in rows if one.solver == row.solver and one.tool and not one.group]
        first = max(own, key=lambda one: one.first, default=None)
        found.append(
            (
                row.solver,
                str(row.asked),
                str(row.questions),
                str(row.calls),
                f"{row.calls / row.asked:.2f}" if row.asked else NONE,
                str(row.most),
                f"{first.tool} {share(first.first, row.questions)}" if first and first.first else NONE,
                share(row.right, row.judged),
                share(row.right_without, row.judged_without),
            )
        )
    columns = ("solver", "n", "with a call", "calls", "mean", "most", "mostly first", "right with", "right without")
    notes = [
        f"Left out, without a readable trace: {len(ids)} of {name} ({', '.join(ids[:SHOWN_IDS])}"
        f"{', ...' if len(ids) > SHOWN_IDS else ''})."
        for name, ids in lost.items()
    ]
    return Table(
        "Tool calls",
        tuple(Column(name, "left" if place in (0, 6) else "right") for place, name in enumerate(columns)),
        tuple(found),
        (
            f"{CALLS} {NO_CAUSE}",
            *notes,
        ),
    )


def tool_table(rows: Sequence[Used]) -> Table:
    """A row for each solver and tool that it called, with the faults."""
    shown = [row for row in rows if row.tool and not row.group]
    return Table(
        "Tools, and how right the answers were when they were called",
        (Column("solver", "left"), Column("tool", "left"), *map(Column, COUNTS)),
        tuple((row.solver, row.tool, *_counts(row)) for row in shown),
        (f"{ERRORS} {NO_CAUSE}",),
    )


def _group_table(rows: Sequence[Used], by: str) -> list[Table]:
    """A row for each solver, group and tool; none where there is one group only."""
    shown = sorted((row for row in rows if row.tool and row.group), key=lambda row: (row.solver, row.group, row.tool))
    if len({row.group for row in rows if row.group}) < 2:
        return []
    columns = ("n", "questions", "calls", "faults", "right with", "right without")
    return [
        Table(
            f"Tools by {by}",
            (Column("solver", "left"), Column(by, "left"), Column("tool", "left"), *map(Column, columns)),
            tuple(
                (
                    row.solver,
                    row.group,
                    row.tool,
                    str(row.asked),
                    str(row.questions),
                    str(row.calls),
                    str(sum(count for fault, count in row.faults if fault is not Fault.ABSENT)),
                    share(row.right, row.judged),
                    share(row.right_without, row.judged_without),
                )
                for row in shown
            ),
        )
    ]


COUNTS: Final = (
    "questions",
    "calls",
    "unknown tool",
    "unknown image",
    "bad arguments",
    "error",
    "timeout",
    "absent",
    "mean s",
    "right with",
    "right without",
)


def _counts(row: Used) -> tuple[str, ...]:
    faults = dict(row.faults)
    return (
        str(row.questions),
        str(row.calls),
        *(str(faults.get(fault, 0)) for fault in FAULTS),
        NONE if row.seconds is None else f"{row.seconds:.3f}",
        share(row.right, row.judged),
        share(row.right_without, row.judged_without),
    )
