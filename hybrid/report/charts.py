"""The charts of an overview, each made of the same numbers as the table below it.

    forest(found, "headline")      # paired differences
    task_bars(found, lines)        # accuracy by task, next to chance and people
    help_matrix(found)             # right and wrong of every pair, with ids
    cost_scatter(found)            # what it cost against how right it was
    outcome_stack(found)           # how questions ended
    told_charts(told)              # what a section of a comparison says, where its records are of a form known here

A chart without a number is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hybrid.benchmarks.base import Benchmark, accuracy
from hybrid.registry import load
from hybrid.report.payload import (
    BarRow,
    Bars,
    Chart,
    Forest,
    ForestRow,
    Mark,
    Matrix,
    MatrixCell,
    Scatter,
    ScatterDot,
    Stack,
    StackPart,
)
from hybrid.scoring.compare import Comparison, Family, Pair
from hybrid.scoring.reference import ReferenceLine
from hybrid.scoring.groups import companies
from hybrid.scoring.score import Scored, group_of, nothing_answered
from hybrid.scoring.told import Told
from hybrid.stats import interval
from hybrid.types import Metric, Outcome, Score, Usage

RIGHT, PARTLY, WRONG, NO_ANSWER = "right", "partly right", "wrong", "no answer"
VERDICTS = (RIGHT, PARTLY, WRONG, NO_ANSWER)
HELPED, HARMED = "helped", "harmed"


def headline(found: Comparison) -> str | None:
    """The metric that the solvers are tested by: the first of the card's that one of them has."""
    benchmark: Benchmark = load("hybrid.benchmarks", found.solvers[0].benchmark)
    known = {metric.name for one in found.solvers for metric in one.metrics if metric.value is not None}
    return next((name for name in benchmark.card.headline if name in known), None)


def metric_named(scored: Scored, name: str | None) -> Metric | None:
    """A metric of a solver by the chosen rule; None where it has no value."""
    return next((one for one in scored.metrics if one.name == name and one.value is not None), None)


def main_pairs(found: Comparison) -> tuple[Pair, ...]:
    """The pairs that are read first: each hybrid solver against its parts and controls; all where there is none."""
    wanted = {
        frozenset((company.hybrid.solver, other.solver))
        for company in companies(found.solvers)
        for other in (*company.parts, company.blank, company.shuffled)
        if other is not None
    }
    known = [meeting.pair for meeting in found.meetings]
    return tuple(pair for pair in known if frozenset(pair) in wanted) or tuple(known)


def forest(found: Comparison, family: Family) -> Forest | None:
    """The differences of a family; by task only those of the main pairs, as the table has all."""
    pairs = set(main_pairs(found))
    rows = []
    for contest in found.family(family):
        measured = contest.contrast
        if measured.difference is None or (family == "tasks" and contest.pair not in pairs):
            continue
        low, high = (None, None) if measured.interval is None else (measured.interval.low, measured.interval.high)
        group = contest.group if family == "tasks" else contest.metric
        rows.append(ForestRow(*contest.pair, group, measured.difference, low, high, contest.p_holm, contest.n))
    return Forest(tuple(rows)) if rows else None


def task_bars(found: Comparison, lines: Sequence[ReferenceLine]) -> Bars | None:
    """A bar for each solver on each task that has right and wrong, and on the headline metric over all of them."""
    name, by = headline(found), found.choice.by
    bars = [_metric_bar(one, name) for one in found.solvers]
    groups: dict[str, dict[str, list[Score]]] = {}
    for one in found.solvers:
        for score in one.scores:
            if score.correct is not None:
                groups.setdefault(group_of(score, by), {}).setdefault(one.solver, []).append(score)
    for group, of_solvers in sorted(groups.items()):
        bars += [_bar(group, solver, accuracy("", scores), scores) for solver, scores in of_solvers.items()]
    rows = [row for row in bars if row is not None]
    shown = {row.task for row in rows}
    marks = tuple(Mark(one.task, one.label, one.kind, one.value, one.note) for one in lines if one.task in shown)
    return Bars(tuple(rows), marks) if rows else None


def _metric_bar(scored: Scored, name: str | None) -> BarRow | None:
    metric = metric_named(scored, name)
    return None if metric is None else _bar(metric.name, scored.solver, metric, scored.scores)


def _bar(task: str, solver: str, metric: Metric, scores: Sequence[Score]) -> BarRow | None:
    # What is no fraction (an error in pixels) has no place on an axis of accuracies.
    if metric.value is None or not 0 <= metric.value <= 1:
        return None
    # Nothing was measured where nothing was answered.
    low, high = (None, None) if nothing_answered(scores) else _ends(metric)
    return BarRow(task, solver, metric.value, low, high, metric.n)


def _ends(metric: Metric) -> tuple[float | None, float | None]:
    found = interval(metric)
    return (None, None) if found is None else (found.low, found.high)


def verdict_of(score: Score) -> str:
    """What an answered question came to; a question without a readable answer is neither right nor wrong."""
    if score.answer is None:
        return NO_ANSWER
    return RIGHT if score.correct == 1 else WRONG if score.correct == 0 else PARTLY


def help_matrix(found: Comparison) -> Matrix | None:
    """For every pair a, b, the main ones first: what the questions came to that both have and nobody failed."""
    known = {one.solver: {score.id: score for score in one.scores} for one in found.solvers}
    main = main_pairs(found)
    pairs = (*main, *(meeting.pair for meeting in found.meetings if meeting.pair not in main))
    cells = [cell for pair in pairs for cell in _pair_cells(pair, *map(known.get, pair))]
    return Matrix(tuple(cells)) if cells else None


def _pair_cells(
    pair: Pair, of_a: Mapping[str, Score] | None, of_b: Mapping[str, Score] | None
) -> tuple[MatrixCell, ...]:
    ids: dict[tuple[str, str], list[str]] = {}
    for identity, a in (of_a or {}).items():
        b = (of_b or {}).get(identity)
        if b is None or a.outcome.failed or b.outcome.failed or a.correct is None or b.correct is None:
            continue
        ids.setdefault((verdict_of(a), verdict_of(b)), []).append(identity)
    named = {(WRONG, RIGHT): HELPED, (RIGHT, WRONG): HARMED}
    shown = [verdict for verdict in VERDICTS if verdict != PARTLY or any(PARTLY in place for place in ids)]
    if not ids:
        return ()
    return tuple(
        MatrixCell(
            f"{pair.a} -> {pair.b}",
            f"{pair.a}: {row}",
            f"{pair.b}: {column}",
            len(ids.get((row, column), ())),
            tuple(ids.get((row, column), ())),
            named.get((row, column), ""),
        )
        for row in shown
        for column in shown
    )


Price = Callable[[Usage], float | None]


def _usd(usage: Usage) -> float | None:
    return 0.0 if usage.model_calls == 0 else usage.cost_usd


def _tokens(usage: Usage) -> float | None:
    total = usage.input_tokens + usage.output_tokens
    # A recorded model was called and reports no token: their number is not known, and not 0.
    return None if usage.model_calls and not total else float(total)


def _seconds(usage: Usage) -> float | None:
    return usage.seconds


COSTS: tuple[tuple[str, Price], ...] = (
    ("USD per question", _usd),
    ("tokens per question", _tokens),
    ("seconds of model and tools per question", _seconds),
)
"""In the order in which they are preferred. A solver that calls no model costs no dollar and no token."""


def cost_scatter(found: Comparison) -> Scatter | None:
    """A dot for each solver whose cost is recorded, all on the first axis that is known for all of these and not 0.

    The cost is that of a question which was asked and finished.
    """
    name = headline(found)
    known = [
        (one, one.usage, answered)
        for one in found.solvers
        if one.usage is not None and metric_named(one, name) is not None and (answered := _finished(one))
    ]
    for label, price in COSTS:
        prices = [price(usage) for _, usage, _ in known]
        if any(prices) and None not in prices:
            dots = [
                _dot(one, metric_named(one, name), (spent or 0.0) / answered)
                for (one, _, answered), spent in zip(known, prices, strict=True)
            ]
            return Scatter(tuple(dot for dot in dots if dot is not None), label, name or "")
    return None


def _finished(scored: Scored) -> int:
    """How many questions were asked and finished: those that the usage is of."""
    return sum(score.outcome not in (Outcome.OUTAGE, Outcome.BROKEN) for score in scored.scores)


def _dot(scored: Scored, metric: Metric | None, x: float) -> ScatterDot | None:
    if metric is None or metric.value is None:
        return None
    low, high = (None, None) if scored.answered_nothing else _ends(metric)
    return ScatterDot(scored.solver, x, metric.value, low, high)


def outcome_stack(found: Comparison) -> Stack:
    """How many questions of each solver ended in each way, those not asked yet among them."""
    parts = []
    for one in found.solvers:
        counts = {kind.value: sum(score.outcome is kind for score in one.scores) for kind in Outcome}
        counts["open"] = one.open
        parts += [StackPart(one.solver, part, n) for part, n in counts.items() if n]
    return Stack(tuple(parts), "questions")


EVIDENCE = frozenset({"hybrid", "alone", "group", "alone_right", "finding", "hybrid_right", "class", "n", "ids"})
TOOL_CALLS = frozenset({"solver", "tool", "group", "calls"})
"""The fields by which records are known; over all tasks `group` is empty, for any tool `tool` is."""


def told_charts(told: Told) -> tuple[Chart, ...]:
    """The charts of a section's records: counts of right and wrong as a matrix, calls of tools as a stack.

    Records of single tasks, of rates and of what was left out are in the tables.
    """
    judged = [record for record in told.data if set(record) >= EVIDENCE and not record["group"]]
    called = [record for record in told.data if set(record) >= TOOL_CALLS and not record["group"] and record["tool"]]
    matrix = (_evidence_matrix(judged),) if judged else ()
    return (*matrix, *((_call_stack(called),) if called else ()))


def _evidence_matrix(records: Sequence[Mapping[str, Any]]) -> Matrix:
    """A panel for each solver and what its MLLM alone said, a row for the finding."""
    return Matrix(
        tuple(
            MatrixCell(
                f"{record['hybrid']}, where {record['alone']} is {_word(record['alone_right'])}",
                f"finding {_word(record['finding'])}",
                f"{record['hybrid']} {_word(record['hybrid_right'])}",
                int(record["n"]),
                tuple(map(str, record["ids"])),
                str(record["class"]),
            )
            for record in records
        )
    )


def _word(value: object) -> str:
    """What a record says of right and wrong: a truth value, or a word."""
    return (RIGHT if value else WRONG) if isinstance(value, bool) else str(value)


def _call_stack(records: Sequence[Mapping[str, Any]]) -> Stack:
    parts = (StackPart(str(record["solver"]), str(record["tool"]), int(record["calls"])) for record in records)
    return Stack(tuple(parts), "tool calls")
