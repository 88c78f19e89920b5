"""Solvers side by side on the same questions: `hybrid compare PATH... [--by GROUP]`.

A path is a run (all of its solvers), one solver's folder in it, or predictions that somebody else saved. Three tables:
accuracy by task with intervals; every pair's difference with helped and harmed counts; how the asks ended and what
they cost.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hybrid.benchmarks.base import accuracy
from hybrid.registry import names
from hybrid.report.tables import Column, Table, bounds, p_value, seconds, signed, tokens
from hybrid.report.tables import accuracy as fraction
from hybrid.score import Scored
from hybrid.stats import PairedResult, Verdict, holm, interval, paired, verdicts
from hybrid.types import Json, Metric, Outcome

ALL = "all tasks"
CONTROL = "tool output "
"""How the label of a run with a control starts (`run.py`)."""


@dataclass(frozen=True)
class Contest:
    """Solver `b` against solver `a` within one group of questions, or over all."""

    a: str
    b: str
    group: str
    result: PairedResult


def regrouped(scored: Scored, by: str | None) -> Scored:
    """The same verdicts with a reporting group in the place of the task; "-" where a question has none."""
    if by is None:
        return scored
    return replace(scored, scores=tuple(replace(s, task=s.groups.get(by, "-")) for s in scored.scores))


def contests(solvers: Sequence[Scored]) -> tuple[Contest, ...]:
    """Every pair of solvers, over all questions and within each task."""
    found = []
    ordered = sorted(solvers, key=_rank)
    for a, b in itertools.combinations(ordered, 2):
        tasks = sorted({score.task for score in (*a.scores, *b.scores)})
        for task in (ALL, *tasks) if len(tasks) > 1 else tasks:
            left, right = (_verdicts(solver, task) for solver in (a, b))
            found.append(Contest(a.solver, b.solver, task, paired(left, right, "macro" if task == ALL else "micro")))
    return tuple(found)


def _rank(scored: Scored) -> tuple[bool, bool]:
    """What another is measured against comes first in its pairs: a baseline, and a control before the real run."""
    real = not any(label.startswith(CONTROL) for label in scored.labels)
    return (scored.solver.split(" ")[0] not in names("baselines"), real)


def _verdicts(solver: Scored, task: str) -> tuple[Verdict, ...]:
    return verdicts(score for score in solver.scores if task in (ALL, score.task))


def accuracy_table(solvers: Sequence[Scored], title: str) -> Table:
    """A row for each task: k/n, accuracy and its 95 % interval, solver by solver."""
    tasks = sorted({score.task for solver in solvers for score in solver.scores})
    columns = [Column("task", "left")]
    for solver in solvers:
        columns += [Column(f"{solver.solver} k/n"), Column("acc"), Column("95 %")]
    rows = [(task, *_cells(solvers, task)) for task in tasks]
    if len(tasks) > 1:
        rows.append(("mean of tasks", *_cells(solvers, None, macro=True)))
        rows.append(("all questions", *_cells(solvers, None)))
    notes = [
        "k counts right answers; an abstention counts as chance, so k need not be whole.",
        "A failed question counts as wrong.",
    ]
    notes += [
        f"{solver.solver}: {solver.open} questions not asked yet are left out." for solver in solvers if solver.open
    ]
    return Table(title, tuple(columns), tuple(rows), tuple(notes))


def _cells(solvers: Sequence[Scored], task: str | None, *, macro: bool = False) -> list[str]:
    cells: list[str] = []
    for solver in solvers:
        metric = accuracy("", [score for score in solver.scores if task in (None, score.task)], macro=macro)
        right = sum(cell.numerator for cell in metric.cells)
        cells += [f"{right:.4g}/{metric.n}" if metric.n else "-", fraction(metric.value), bounds(interval(metric))]
    return cells


def contest_table(found: Sequence[Contest]) -> Table:
    """A row for each pair and task: the paired difference, helped, harmed, p (also Holm-adjusted over the table)."""
    columns = (
        Column("pair", "left"),
        Column("task", "left"),
        *(Column(name) for name in ("n", "difference", "95 %", "helped", "harmed", "p", "p (Holm)")),
    )
    known = [contest.result.p_value for contest in found if contest.result.p_value is not None]
    adjusted = iter(holm(known))
    rows = []
    for contest in found:
        result = contest.result
        rows.append(
            (
                f"{contest.a} -> {contest.b}",
                contest.group,
                str(result.n),
                signed(result.difference),
                bounds(result.interval),
                str(result.helped),
                str(result.harmed),
                p_value(result.p_value),
                p_value(next(adjusted) if result.p_value is not None else None),
            )
        )
    left_out = sum(len(contest.result.only_a) + len(contest.result.only_b) for contest in found if contest.group == ALL)
    notes = ["helped: the second is right where the first is wrong; harmed: the reverse."]
    if left_out:
        notes.append(f"{left_out} questions that only one solver of a pair has are left out of its differences.")
    return Table("Paired differences on the same questions", columns, tuple(rows), tuple(notes))


def outcome_table(solvers: Sequence[Scored]) -> Table:
    """A row for each solver: how its asks ended, and what they cost."""
    kinds = [kind for kind in Outcome if any(score.outcome is kind for s in solvers for score in s.scores)]
    columns = (
        Column("solver", "left"),
        *(Column(kind.value) for kind in kinds),
        *(Column(name) for name in ("model calls", "tool calls", "tokens in", "tokens out", "seconds", "cost USD")),
    )
    rows = []
    for solver in solvers:
        count, usage = Counter(score.outcome for score in solver.scores), solver.usage
        cost = "-" if usage.cost_usd is None else f"{usage.cost_usd:.4f}"
        spent = [usage.model_calls, usage.tool_calls, usage.input_tokens, usage.output_tokens]
        ends = [str(count[kind]) for kind in kinds]
        rows.append((solver.solver, *ends, *(tokens(value) for value in spent), seconds(usage.seconds), cost))
    return Table("Outcomes and cost", columns, tuple(rows))


def tables(solvers: Sequence[Scored], by: str | None = None, *, brief: bool = False) -> tuple[Table, ...]:
    """The three tables of a comparison; `brief` leaves out the differences within single tasks."""
    grouped = [regrouped(solver, by) for solver in solvers]
    name = grouped[0].benchmark if grouped else ""
    labels = shared_labels(solvers)
    title = f"{name}: accuracy by {by or 'task'}" + (f" [{'; '.join(labels)}]" if labels else "")
    found = [accuracy_table(grouped, title)]
    if len(grouped) > 1:
        pairs = contests(grouped)
        found.append(contest_table([pair for pair in pairs if pair.group == ALL] or pairs if brief else pairs))
    return (*found, outcome_table(grouped))


def as_json(solvers: Sequence[Scored], by: str | None = None) -> dict[str, Json]:
    """The comparison as one JSON object: solvers as `hybrid score --json` prints them, and every pair."""
    grouped = [regrouped(solver, by) for solver in solvers]
    return {
        "solvers": {solver.solver: _with_intervals(solver) for solver in grouped},
        "pairs": [_pair(contest) for contest in contests(grouped)],
    }


def _with_intervals(solver: Scored) -> dict[str, Json]:
    report = solver.as_json()
    report["intervals"] = {metric.name: _ends(metric) for metric in solver.metrics}
    return report


def _ends(metric: Metric) -> Json:
    found = interval(metric)
    return None if found is None else [found.low, found.high, found.method]


def _pair(contest: Contest) -> dict[str, Json]:
    result = contest.result
    return {
        "a": contest.a,
        "b": contest.b,
        "group": contest.group,
        "n": result.n,
        "difference": result.difference,
        "interval": [result.interval.low, result.interval.high] if result.interval else None,
        "helped": result.helped,
        "harmed": result.harmed,
        "p": result.p_value,
        "test": result.test,
    }


def unique(solvers: Sequence[Scored], origins: Sequence[str]) -> tuple[Scored, ...]:
    """The same solvers under names that differ: `controller [blank]` beside `controller`, else with their origin.

    A name carries the labels of its run that not all of the solvers share, so that a control stands beside the real run
    as what it is. Names that still stand twice get the origin, and a number where that does not tell them apart either.
    """
    shared = shared_labels(solvers)
    own = ["; ".join(label.removeprefix(CONTROL) for label in one.labels if label not in shared) for one in solvers]
    named = [f"{one.solver} [{label}]" if label else one.solver for one, label in zip(solvers, own, strict=True)]
    count = Counter(named)
    named = [f"{name} ({origin})" if count[name] > 1 else name for name, origin in zip(named, origins, strict=True)]
    count, seen = Counter(named), Counter[str]()
    for place, name in enumerate(named):
        seen[name] += 1
        if count[name] > 1:
            named[place] = f"{name} #{seen[name]}"
    return tuple(replace(one, solver=name) for one, name in zip(solvers, named, strict=True))


def shared_labels(solvers: Sequence[Scored]) -> tuple[str, ...]:
    """The labels that stand beside every number of a comparison."""
    first = solvers[0].labels if solvers else ()
    return tuple(label for label in first if all(label in one.labels for one in solvers))
