"""The headline of a comparison: one table of solvers, and one of tasks by solvers.

    headline_tables(compare(solvers))

Both are views of rows that the sections made: value and interval of `metrics`, differences of `differences`, accuracy
of `tasks`, counts of `outcomes`.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hybrid.benchmarks.base import UnansweredRule
from hybrid.display.tables import (
    NONE,
    NOTE_WIDTH,
    RENDERERS,
    Column,
    Table,
    accuracy,
    as_narrow,
    bounds,
    p_value,
    share,
    signed,
)
from hybrid.display.terminal import NARROW, clipped, filled, how_many, one_line, pasteable
from hybrid.log.folder import LOG
from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion import Sentence
from hybrid.scoring.conclusion_rows import turned
from hybrid.scoring.faults import noted
from hybrid.scoring.groups import own_command
from hybrid.scoring.result import FRACTION, Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections import results
from hybrid.scoring.tally import OTHER
from hybrid.secrets import redact
from hybrid.types import Outcome

SECTIONS = ("metrics", "differences", "tasks", "outcomes")
# Columns that the name of a solver, of a task, and of a solver above a column may take.
NAME, TASK, HEADING = 36, 28, 24
SHOWN_WARNINGS = 4
COST = ("outcomes", "cost")
COUNTED: Mapping[UnansweredRule, str] = {"guess": "as a guess on average", "wrong": "as wrong"}
MORE = "More: --all, or --only NAME: differences, helped, gain, evidence, chance, ..."
WHERE_ANSWERED = "*: over the questions that the specialists answer; differences are over all questions."
MARKS = "+ -: the difference holds after adjustment (Holm) over the tasks of its pair."


def headline_tables(comparison: Comparison) -> tuple[Table, ...]:
    """The table of solvers, then that of tasks where there are two or more."""
    rows = {made.name: made.rows for made in results(comparison, SECTIONS)}
    baseline = _baselines(comparison)
    differences = [row for row in rows.get("differences", ()) if row.quantity == "difference" and not row.detail]
    tasks = _tasks(comparison, rows.get("tasks", ()), differences, baseline)
    solvers = _solvers(comparison, rows, [row for row in differences if not row.group], baseline)
    return (solvers, tasks) if len(tasks.rows) > 1 else (solvers,)


def warnings(solvers: Sequence[Scored]) -> tuple[str, ...]:
    """Limits of every number: labels, failed and open questions, damage of the runs."""
    labels: dict[str, list[str]] = {}
    for one in solvers:
        for label in one.labels:
            labels.setdefault(label, []).append(one.solver)
    lines = [label if len(of) == len(solvers) else f"{', '.join(of)}: {label}" for label, of in labels.items()]
    for one in solvers:
        if one.failed:
            of = f"{one.failed} of {how_many(len(one.scores))} failed"
            lines.append(f"{one.solver}: {of}; they are missing, not wrong")
        if one.open:
            asked = {score.id for score in one.scores}
            every = Counter(question.task for question in one.questions.values())
            waiting = Counter(question.task for name, question in one.questions.items() if name not in asked)
            named = [f"{task} {count} of {every[task]}" for task, count in waiting.most_common(SHOWN_WARNINGS)]
            named += [f"{len(waiting) - len(named)} more tasks"] if len(waiting) > len(named) else []
            lines.append(f"{one.solver}: {how_many(one.open)} not finished yet, left out ({', '.join(named)})")
        lines += [f"{one.solver}: {faults}: {faults.error}" for faults in noted(one)]
        if one.reasons:
            lines.append(f"{one.solver}: {how_many(len(one.reasons), 'answer')} cannot be scored")
    return tuple(dict.fromkeys((*lines, *(line for one in solvers for line in one.damage))))


def rule_line(solvers: Sequence[Scored]) -> str:
    """The worth of no answer in every number of an output; empty where every question has one."""
    if all(score.answer is not None or score.outcome.failed for one in solvers for score in one.scores):
        return ""
    rule = solvers[0].unanswered
    other = OTHER[rule]
    return f"No answer counts {COUNTED[rule]} in every number here (--unanswered {other}: {COUNTED[other]})."


def rule_head(solvers: Sequence[Scored], form: str) -> str:
    """The rule as the first lines of an output."""
    lines = filled(rule_line(solvers), NARROW if form in ("text", "narrow") else NOTE_WIDTH)
    return "".join(f"{'% ' if form == 'latex' else ''}{line}\n" for line in lines if line)


def as_summary(comparison: Comparison, sentences: Sequence[Sentence], more: str, form: str) -> str:
    """Warnings, conclusion, the two tables and what else can be asked; as text within `NARROW` columns."""
    if form not in ("text", "narrow"):
        listed = "" if form == "latex" else "".join(f"- {one_line(each.text)}\n" for each in sentences)
        head = rule_head(comparison.solvers, form)
        return "\n".join(filter(None, (head, listed, *map(RENDERERS[form], headline_tables(comparison)))))
    faults = (f"{made.name} could not be made: {made.fault}" for made in comparison.computed.values() if made.fault)
    noted = (*faults, *warnings(comparison.solvers))
    hidden = [f"and {len(noted) - SHOWN_WARNINGS} more warnings"] if len(noted) > SHOWN_WARNINGS else []
    shown = [f"warning: {one_line(line)}" for line in noted[:SHOWN_WARNINGS]]
    warned = [part for line in shown for part in filled(line, NARROW, 2)] + hidden
    concluded: list[str] = []
    for each in sentences:
        concluded += filled(one_line(each.text.removesuffix(each.command)), NARROW)
        # It stands on lines of its own, to be pasted.
        command = pasteable(shlex.split(each.command), "narrow", "  ") if each.command else ""
        concluded += command.splitlines()
    parts = ["\n".join([*rule_head(comparison.solvers, form).splitlines(), *warned, *concluded])]
    for place, table in enumerate(headline_tables(comparison)):
        title = "" if place else "\n".join(filled(table.title, NARROW)) + "\n"
        parts.append(title + as_narrow(replace(table, title="")).replace("\n\n" + MARKS, "\n" + MARKS).rstrip("\n"))
    rows = [row for made in results(comparison, SECTIONS) for row in made.rows if (made.name, row.quantity) == COST]
    costs = [f"{clipped(row.a, NAME)} {row.value:.4f} USD" for row in rows if row.value]
    last = [f"cost: {', '.join(costs)}", more] if costs else [more]
    foot = [line for text in last for line in filled(text, NARROW, 2)]
    return "\n\n".join(parts) + "\n" + "\n".join(foot) + "\n"


def _baselines(comparison: Comparison) -> Mapping[str, str]:
    """By solver the other that it is measured against: as --baseline or --pairs say, else its own model alone."""
    baseline: dict[str, str] = {}
    if comparison.options.pairs is not None:
        for pair in comparison.options.pairs:
            baseline.setdefault(pair.b, pair.a)
        return baseline
    for group in comparison.groups:
        for one in (group.hybrid, group.blank, group.shuffled, group.specialist):
            if one is not None and group.alone is not None:
                baseline.setdefault(one.solver, group.alone.solver)
    first = next(iter(baseline.values()), comparison.pairs[0].a if comparison.pairs else None)
    if first is not None:
        paired = {name for pair in comparison.pairs for name in pair} - set(baseline.values())
        for one in comparison.solvers:
            if one.solver in paired:
                baseline.setdefault(one.solver, first)
    return {name: other for name, other in baseline.items() if name != other}


def _against(rows: Iterable[Result], baseline: Mapping[str, str]) -> dict[tuple[str, str], Result]:
    """By solver and task the difference to its baseline, whichever of the two is the first of the pair."""
    known: dict[tuple[str, str], Result] = {}
    for row in rows:
        for name, other in ((row.b, row.a), (row.a, row.b)):
            if baseline.get(name) == other:
                known.setdefault((name, row.group), turned(row, (other, name)))
    return known


def _solvers(
    comparison: Comparison,
    rows: Mapping[str, Sequence[Result]],
    differences: Sequence[Result],
    baseline: Mapping[str, str],
) -> Table:
    rule = comparison.solvers[0].unanswered
    of_metric = [row for row in rows.get("metrics", ()) if row.metric == comparison.headline]
    values = {row.a: row for row in of_metric if (row.quantity, row.none) == ("value", rule)}
    where_answered = {row.a: row for row in of_metric if row.quantity == "value where answered"}
    answered = {row.a: row for row in rows.get("outcomes", ()) if row.quantity == Outcome.ANSWERED.value}
    differing = _against([row for row in differences if row.metric == comparison.headline], baseline)
    title = f"{comparison.benchmark.card.name}: {comparison.headline or 'no metric'}"
    columns = [Column("solver", "left"), Column("value"), Column("95 %"), Column("answered")]
    if baseline:
        others = set(baseline.values())
        title += f", differences to {clipped(others.pop(), NAME) if len(others) == 1 else 'the model alone'}"
        columns += [Column("diff."), Column("95 %"), Column("p (Holm, claim)")]
    lines = []
    for one in comparison.solvers:
        value, count = values.get(one.solver), answered.get(one.solver)
        line = [clipped(one.solver, NAME), NONE, NONE, NONE if count is None else _answered(one, count)]
        if value is not None:
            line[1:3] = _number(value), bounds(value.interval)
        if (own := where_answered.get(one.solver)) is not None:
            line[1:3] = f"{_number(own)}*", bounds(own.interval)
        if (row := differing.get((one.solver, ""))) is not None:
            ends = row.interval
            # Three decimals where two would not tell on which side of 0 an end is.
            decimals = 3 if ends is not None and min(abs(ends.low), abs(ends.high)) < 0.005 else 2
            line += [signed(row.value), bounds(ends, decimals), p_value(row.p_holm)]
        elif baseline:
            line += [NONE] * 3
        lines.append(tuple(line))
    return Table(title, tuple(columns), tuple(lines), (WHERE_ANSWERED,) if where_answered else ())


def _answered(scored: Scored, count: Result) -> str:
    """Answered questions of all that were asked; of predictions of a part of the data also of how many there are."""
    if not (left_out := scored.without_prediction):
        return share(count.value, count.n)
    answered, asked = int(count.value or 0), int(count.n or 0)
    predicted = "" if answered == asked else f", {asked} predicted"
    return f"{answered} of {asked + left_out} questions{predicted}"


def _number(row: Result) -> str:
    return accuracy(row.value) if row.unit == FRACTION or row.value is None else f"{row.value:.4g}"


def _tasks(
    comparison: Comparison, accuracies: Sequence[Result], differences: Sequence[Result], baseline: Mapping[str, str]
) -> Table:
    rule, by = comparison.solvers[0].unanswered, comparison.grouping
    values = {(row.a, row.group): row for row in accuracies if (row.quantity, row.none) == ("accuracy", rule)}
    differing = _against([row for row in differences if row.group], baseline)
    lines = []
    for group in sorted({row.group for row in values.values()}):
        line = [clipped(group, TASK)]
        for one in comparison.solvers:
            value, row = values.get((one.solver, group)), differing.get((one.solver, group))
            # + or - where the difference holds after adjustment over the tasks of all pairs.
            mark = " " if row is None or not row.holds or not row.value else "+" if row.value > 0 else "-"
            line.append(f"{NONE if value is None else _number(value)}{mark}")
        lines.append(tuple(line))
    marked = any(not cell.endswith(" ") for line in lines for cell in line[1:])
    if not marked:
        lines = [tuple(cell.rstrip() for cell in line) for line in lines]
    columns = (Column(clipped(by, TASK), "left"), *(Column(clipped(one.solver, HEADING)) for one in comparison.solvers))
    title = f"{comparison.benchmark.card.name}: accuracy by {clipped(by, TASK)}"
    return Table(title, columns, tuple(lines), (MARKS,) if marked else ())


def nothing_answered_by(solvers: Sequence[Scored]) -> str | None:
    """Three lines, that no solver finished a question, why, and what to do; None where one did."""
    if not solvers or any(not score.outcome.failed for one in solvers for score in one.scores):
        return None
    names = ", ".join(dict.fromkeys(one.solver for one in solvers))
    asked, waiting = sum(len(one.scores) for one in solvers), sum(one.open for one in solvers)
    unasked = f"{waiting} {'was' if waiting == 1 else 'were'} not asked"
    lines = [f"Nothing was answered by {names}: {how_many(asked)} failed, {unasked}."]
    folders = {one.folder.path: one.folder for one in solvers if one.folder is not None}
    recorded = [one.folder.recorded(one.recorded) for one in solvers if one.folder is not None]
    reasons = Counter(why for attempts in recorded for why in attempts.unfinished.values() if why)
    lines += [f"The reason of {count}: {why}" for why, count in reasons.most_common(1)]
    if not reasons:
        logs = [folder.path / LOG for folder in folders.values() if (folder.path / LOG).is_file()]
        lines += [f"{path} says what happened." for path in logs]
    lines.append(f"Mend that, then ask again: {own_command(solvers)}")
    return redact("\n".join(lines) + "\n")
