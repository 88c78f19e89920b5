"""A comparison as tables: the benchmark's metrics, accuracy by task, paired differences, outcomes and cost.

hybrid compare RUN --markdown

Each number is under a heading that says what a question without a readable answer counts there (`none = chance` or
`none = wrong`), and no row holds a number of other questions than its own `n`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hybrid.benchmarks.base import Abstain, Benchmark, accuracy
from hybrid.errors import UsageError
from hybrid.registry import load
from hybrid.scoring.compare import (
    CONTROL,
    FAILED_SHARE,
    Choice,
    Comparison,
    Contest,
    Family,
    Meeting,
    Pair,
    compare,
    how_tested,
    is_reported,
    shared_labels,
)
from hybrid.scoring.published import published
from hybrid.scoring.published_tables import published_tables
from hybrid.scoring.roles import behind, model_of
from hybrid.scoring.score import WITH_FAILED, Scored, group_of, nothing_answered
from hybrid.stats import interval
from hybrid.tables import NONE, Column, Table, bounds, number, p_value, seconds, share, signed, tokens
from hybrid.tables import accuracy as fraction
from hybrid.types import Metric, Outcome, Score

OTHER: dict[Abstain, Abstain] = {"chance": "wrong", "wrong": "chance"}

COUNTED = (
    "none: questions without a readable answer (abstained, unparsed, out of budget, tool fault). They count as a guess "
    "would on average (none = chance), or as wrong, as in the papers (none = wrong)."
)
MISSING = "A failed question is missing, not wrong: it is in no n. with_failed counts it as wrong."
HELPED = (
    "Of the questions that both answered: helped, b is right and a wrong; harmed, the reverse. a none, b none: "
    "questions without a readable answer from a, from b. n counts the metric's own units."
)
LOST = "lost: tool calls that ended in an error or a timeout; what was answered then was answered without them."
SPENT = "busy: time of the model and of the tools, added up; wall: time with at least one question open."

FAMILIES: dict[Family, str] = {
    "headline": "Paired differences on the same questions",
    "metrics": "Paired differences on the same questions: other metrics",
    "tasks": "Paired differences on the same questions, by {by}",
}


def tables(
    solvers: Sequence[Scored], choice: Choice | None = None, *, brief: bool = False, printed: bool = False
) -> tuple[Table, ...]:
    """The tables of some solvers; `brief` has of the paired differences only those of the headline metric.

    `printed` adds what papers printed of the same metrics and tasks.

    Raises:
        UsageError: see `compare`; or printed numbers next to generated questions.
    """
    if not solvers:
        return ()
    found = compare(solvers, choice)
    own = [table for block in own_blocks(found, brief=brief) for table in block.tables]
    return (*own, *(published_below(found) if printed else ()))


@dataclass(frozen=True)
class Block:
    """Tables that are read together, under a heading; empty where their own titles are enough."""

    name: str
    heading: str
    tables: tuple[Table, ...]


def own_blocks(found: Comparison, *, brief: bool = False) -> tuple[Block, ...]:
    """The tables that every comparison has; `brief` as for `tables`."""
    families: tuple[Family, ...] = ("headline",) if brief else ("headline", "metrics", "tasks")
    models = model_table(found)
    blocks = [
        Block("models", "", () if models is None else (models,)),
        Block("metrics", "", (metric_table(found),)),
        Block("tasks", "", (accuracy_table(found),)),
        Block("differences", "", _paired(found, families)),
        Block("outcomes", "", (outcome_table(found.solvers),)),
    ]
    return tuple(block for block in blocks if block.tables)


def _paired(found: Comparison, families: Sequence[Family]) -> tuple[Table, ...]:
    return tuple(paired_table(found, family) for family in families if found.family(family))


def model_table(found: Comparison) -> Table | None:
    """A row for each solver that asks a model, a column for each task, or group; None where all ask the same one."""
    asking = [one for one in found.solvers if model_of(one) is not None]
    if len({model_of(one) for one in asking}) < 2:
        return None
    rule, by = found.solvers[0].abstain, found.choice.by
    card = load("hybrid.benchmarks", found.solvers[0].benchmark).card
    known = {metric.name for one in asking for metric in one.metrics if metric.cells}
    heads = [name for name in card.headline if name in known][:1]
    groups = sorted({group_of(score, by) for one in asking for score in one.scores if score.correct is not None})
    columns = (*(Column(name, "left") for name in ("model", "solver", "run")), *map(Column, (*heads, *groups)))
    rows = []
    for one in asking:
        whole = (_metric(one, name, rule) for name in heads)
        members = ([score for score in one.scores if group_of(score, by) == group] for group in groups)
        values = [None if metric is None else metric.value for metric in whole]
        values += [accuracy("", scores).value for scores in members]
        run = behind(one)["run"] or NONE
        rows.append((model_of(one) or NONE, one.recorded or one.solver, run, *map(fraction, values)))
    return Table(_title(found, f"models by {by or 'task'}, none = {rule}"), columns, tuple(rows), _notes(found))


def metric_table(found: Comparison) -> Table:
    """A row for each metric of the benchmark and each solver."""
    rule = found.solvers[0].abstain
    names = dict.fromkeys(metric.name for one in found.solvers for metric in one.metrics)
    shown = [name for name in names if _is_shown(name, found)]
    rows = [row for name in shown for solver in found.solvers for row in _metric_row(name, solver)]
    columns = (
        Column("metric", "left"),
        Column("solver", "left"),
        *map(Column, ("n", f"none = {rule}", "95 %", f"none = {OTHER[rule]}")),
    )
    return Table(_title(found, "metrics"), columns, tuple(rows), _notes(found))


def _is_shown(name: str, found: Comparison) -> bool:
    """Whether the table has the metric: what the card reports, and the headline with failed questions as wrong."""
    card = load("hybrid.benchmarks", found.solvers[0].benchmark).card
    if name.startswith(WITH_FAILED):
        return name.removeprefix(WITH_FAILED) in (card.headline or ("",))
    return not name.startswith("judged.") and is_reported(name, card.reported)


def _metric_row(name: str, solver: Scored) -> list[tuple[str, ...]]:
    metric, other = (_metric(solver, name, rule) for rule in (solver.abstain, OTHER[solver.abstain]))
    if metric is None:
        return []
    second = fraction(other.value) if other is not None else NONE
    ends = None if solver.answered_nothing else interval(metric)
    return [(name, solver.solver, number(metric.n), fraction(metric.value), bounds(ends), second)]


def _metric(solver: Scored, name: str, rule: Abstain) -> Metric | None:
    return next((metric for metric in solver.counted[rule].metrics if metric.name == name), None)


def accuracy_table(found: Comparison) -> Table:
    """A row for each task, or group, and each solver: credit out of questions, accuracy by both rules, none."""
    rule, by = found.solvers[0].abstain, found.choice.by
    groups = sorted({group_of(score, by) for solver in found.solvers for score in solver.scores})
    rows = [row for group in groups for solver in found.solvers for row in _accuracy_row(group, solver, by)]
    columns = (
        Column(by or "task", "left"),
        Column("solver", "left"),
        *map(Column, ("k/n", f"acc, none = {rule}", "95 %", "none", f"acc, none = {OTHER[rule]}")),
    )
    return Table(_title(found, f"accuracy by {by or 'task'}"), columns, tuple(rows), _notes(found))


def _accuracy_row(group: str, solver: Scored, by: str | None) -> list[tuple[str, ...]]:
    """No row where there is no right and wrong (a scanpath), or no question."""
    members, others = (
        [score for score in solver.counted[rule].scores if group_of(score, by) == group and score.correct is not None]
        for rule in (solver.abstain, OTHER[solver.abstain])
    )
    if not members:
        return []
    metric, other = accuracy("", members), accuracy("", others)
    right = sum(cell.numerator for cell in metric.cells)
    none = sum(_is_none(score) for score in members)
    return [
        (
            group,
            solver.solver,
            share(right, metric.n) if metric.n else NONE,
            fraction(metric.value),
            # Nothing was measured where nothing was answered.
            NONE if nothing_answered(members) else bounds(interval(metric)),
            number(none),
            fraction(other.value),
        )
    ]


def _is_none(score: Score) -> bool:
    return score.answer is None and not score.outcome.failed


def paired_table(found: Comparison, family: Family) -> Table:
    """A row for each pair and metric or task of one family."""
    contests = found.family(family)
    tasks = family == "tasks"
    by = found.choice.by or "task"
    columns = (
        Column("a -> b", "left"),
        Column(by if tasks else "metric", "left"),
        *map(Column, ("n", f"b - a, none = {found.solvers[0].abstain}", "95 %", "p", "p (Holm)")),
        *map(Column, () if family == "metrics" else ("both answered", "helped", "harmed", "a none", "b none")),
    )
    rows = tuple(_paired_row(contest, family) for contest in contests)
    return Table(FAMILIES[family].format(by=by), columns, rows, _paired_notes(found, family, contests))


def _paired_row(contest: Contest, family: Family) -> tuple[str, ...]:
    measured, counts = contest.contrast, contest.counts
    row = (
        _arrow(contest.pair),
        contest.group if family == "tasks" else contest.metric,
        number(contest.n),
        signed(measured.difference),
        bounds(measured.interval, 3),
        p_value(measured.p_value),
        p_value(contest.p_holm),
    )
    if family == "metrics":
        return row
    questions = (counts.both_answered, counts.helped, counts.harmed, counts.none_a, counts.none_b)
    return (*row, *map(number, questions))


def _paired_notes(found: Comparison, family: Family, contests: Sequence[Contest]) -> tuple[str, ...]:
    tested = sum(contest.p_holm is not None for contest in contests)
    notes = [] if family == "metrics" else [HELPED]
    if tested:
        tests = f"the {tested} tests" if tested > 1 else "the one test"
        notes.append(f"p and interval are of the difference in the row; Holm over {tests} of this table.")
    notes += how_tested(contest.contrast for contest in contests)
    if any(contest.withheld == "failed" for contest in contests):
        notes.append(
            f"Nothing is tested where more than {FAILED_SHARE:.0%} failed; --allow-failed tests it all the same."
        )
    if any(contest.withheld == "unanswered" for contest in contests):
        notes.append("Nothing is tested where one of the two answered nothing.")
    if any(contest.withheld == "units" for contest in contests):
        notes.append("Nothing is tested where a metric does not count the same units for both.")
    return (*notes, *(_sharing(found.meetings) if family == "headline" else ()))


def _sharing(meetings: Sequence[Meeting]) -> list[str]:
    """Which questions the pairs share; one line where all is the same."""
    if len({meeting.shared for meeting in meetings}) == 1 and not any(m.only_a or m.only_b for m in meetings):
        lines = [f"Every pair shares all of its {number(meetings[0].shared)} questions."]
    else:
        lines = [
            f"{_arrow(m.pair)}: {number(m.shared)} questions shared; only a has {number(m.only_a)}, "
            f"only b {number(m.only_b)}."
            for m in meetings
        ]
    lost = [f"{_arrow(m.pair)} {m.failed} of {m.shared}" for m in meetings if m.failed]
    if lost:
        lines.append(f"Left out, because one of the two failed: {'; '.join(lost)}.")
    return lines + [
        f"{_arrow(m.pair)}: asked with other settings ({'; '.join(m.settings)})." for m in meetings if m.settings
    ]


def _arrow(pair: Pair) -> str:
    return f"{pair.a} -> {pair.b}"


def outcome_table(solvers: Sequence[Scored]) -> Table:
    """A row for each solver: how its questions ended, and what they cost; "-" where nobody recorded it."""
    kinds = [kind for kind in Outcome if any(score.outcome is kind for s in solvers for score in s.scores)]
    columns = (
        Column("solver", "left"),
        *(Column(kind.value) for kind in kinds),
        *map(Column, ("model calls", "tool calls", "lost", "tokens in", "tokens out", "busy", "wall", "cost USD")),
    )
    rows = []
    for solver in solvers:
        count = Counter(score.outcome for score in solver.scores)
        rows.append((solver.solver, *(number(count[kind]) for kind in kinds), *_spent(solver)))
    return Table("Outcomes and cost", columns, tuple(rows), (LOST, SPENT))


def _spent(solver: Scored) -> tuple[str, ...]:
    usage = solver.usage
    if usage is None:
        return (NONE,) * 8
    # A recorded model was called and reports no token: their number is not known, and not 0.
    unknown = usage.model_calls > 0 and usage.input_tokens == usage.output_tokens == 0
    counts = (None, None) if unknown else (usage.input_tokens, usage.output_tokens)
    cost = NONE if usage.cost_usd is None else f"{usage.cost_usd:.4f}"
    spent = (usage.model_calls, usage.tool_calls, usage.tool_faults, *counts)
    return (*map(tokens, spent), seconds(usage.seconds), seconds(solver.wall_s), cost)


def published_below(found: Comparison) -> tuple[Table, ...]:
    """What papers printed of the metrics and tasks that were measured, with what limits comparison.

    Raises:
        UsageError: the questions were generated, or nothing of this kind is printed anywhere.
    """
    first = found.solvers[0]
    if any(solver.data.generated for solver in found.solvers):
        raise UsageError("--published: the questions were generated; no paper printed a number of them")
    benchmark: Benchmark = load("hybrid.benchmarks", first.benchmark)
    measured = {metric.name for solver in found.solvers for metric in solver.metrics if _is_shown(metric.name, found)}
    measured |= {score.task for solver in found.solvers for score in solver.scores}
    splits = {solver.data.split for solver in found.solvers}
    cells = [cell for cell in published(benchmark.card.name) if cell.metric in measured and cell.split in splits]
    if not cells:
        raise UsageError(f"--published: nothing is printed of these metrics of {benchmark.card.name}")
    how = (
        "As printed: percent, unless a note says fraction. Other subsets, checkpoints and prompts than yours are noted."
    )
    first_table, *others = published_tables(cells)
    return (replace(first_table, notes=(how, *first_table.notes)), *others)


def _title(found: Comparison, what: str) -> str:
    """Benchmark, failures and labels: what must be known of every number below."""
    failed = [
        f"{one.solver}: {number(one.failed)} of {number(len(one.scores))} failed" for one in found.solvers if one.failed
    ]
    shared = shared_labels(found.solvers)
    labels = [*shared, *_unnamed_labels(found.solvers, shared)]
    title = f"{found.solvers[0].benchmark}: {what}"
    return title + (f" ({'; '.join(failed)})" if failed else "") + (f" [{'; '.join(labels)}]" if labels else "")


def _unnamed_labels(solvers: Sequence[Scored], shared: Sequence[str]) -> list[str]:
    """The labels of some of the solvers that their names do not say, and whose they are."""
    whose: dict[str, list[str]] = {}
    for one in solvers:
        for label in one.labels:
            if label not in shared and label.removeprefix(CONTROL) not in one.solver:
                whose.setdefault(label, []).append(one.solver)
    return [f"{', '.join(names)}: {label}" for label, names in whose.items()]


def _notes(found: Comparison) -> tuple[str, ...]:
    missing = [MISSING] if any(solver.failed for solver in found.solvers) else []
    waiting = [f"{one.solver}: {one.open} questions not asked yet are left out." for one in found.solvers if one.open]
    return (COUNTED, *missing, *waiting)
