"""The sentence of a conclusion about tasks: where tools are worse or better than the model alone.

for sentence in task_sentence(ConclusionRows(comparison), group):
    sentence.id     # "tasks.shown" or "tasks.none"
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybrid.display.terminal import clipped, how_many
from hybrid.scoring.conclusion_cases import Sentence, case, say
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.conclusion_words import NAME_WIDTH, ends_of, listed, short_name, signed
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.headline_pair import HeadlinePair
from hybrid.scoring.result import Result
from hybrid.scoring.score import Scored

TASKS_SHOWN = case(
    "tasks.shown", "at least one task differs significantly", "After adjustment (Holm) over {tasks} {by}: {parts}."
)
TASKS_NONE = case("tasks.none", "no task differs significantly", "{rest}.")
TASKS_UNTESTED = case("tasks.untested", "part of the two above: tasks without an interval", "not tested: {tasks}")
TASKS_UNSCORED = case(
    "tasks.unscored",
    "part of the two above: tasks whose answers are neither right nor wrong, such as scanpaths",
    "not compared, as neither right nor wrong: {tasks}",
)
TASKS_REST = case(
    "tasks.rest",
    "part of the two above: no task is significantly worse",
    "no {other}single {one} is shown to be worse ({sizes} questions each{largest})",
)
SEVERAL_TASKS = case(
    "tasks.several",
    "several solvers with tools, or several models, of which a task was tested",
    "{by} worse than alone after adjustment (Holm): {parts}.",
)


def task_sentence(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Sentence]:
    """Yield a sentence on the tasks that differ from the model alone; nothing if fewer than two tasks were tested."""
    if group.alone is None or len(tested := rows.tasks(group.alone, group.hybrid)) < 2:
        return
    significant = [row for row in tested if row.holds]
    answers = [row for row in significant if rows.is_of_answers(group.alone, group.hybrid, row)]
    others = [row for row in significant if row not in answers]
    total = rows.pair(group.alone, group.hybrid).n
    parts = _different(answers, others, total)
    missing = _missing(rows, group.alone, group.hybrid)
    worse = significant_with_sign(answers, -1)
    # A task that the sentence lists already cannot be the largest loss among the other tasks.
    left = [row for row in tested if row not in others and row not in worse]
    rest = _rest(rows, left, total, named=bool(missing or others)) if left else ""
    rest = "; ".join(filter(None, [*missing, rest]))
    if not parts:
        yield say(TASKS_NONE, rest=rest[0].upper() + rest[1:])
        return
    tail = [rest] if rest and (missing or not worse) else []
    yield say(TASKS_SHOWN, tasks=len(tested), by=_by(rows), parts="; ".join([*parts, *tail]))


def _different(answers: Sequence[Result], others: Sequence[Result], total: int) -> list[str]:
    """Return the significant differences: worse, better, and differences that depend on unanswered questions."""
    worse, better = significant_with_sign(answers, -1), significant_with_sign(answers, 1)
    words = {
        "worse on": [_name(row, total) for row in worse],
        "better on": [_name(row) for row in better],
        "different, but only with unanswered questions counted, on": [_name(row, total) for row in others],
    }
    return [f"{word} {listed(names)}" for word, names in words.items() if names]


def _rest(rows: ConclusionRows, left: Sequence[Result], total: int, *, named: bool) -> str:
    """Say that no task (or no other, if some are `named`) is significantly worse, and state the largest loss."""
    sizes, least = sorted({row.n or 0 for row in left}), min(left, key=lambda row: row.value or 0.0)
    return TASKS_REST.fill(
        one="task" if rows.found.options.by is None else "group",
        other="other " if named else "",
        sizes=sizes[0] if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}",
        largest=f"; largest loss: {_name(least, total)}" if (least.value or 0.0) < 0 else "",
    )


def _missing(rows: ConclusionRows, alone: Scored, hybrid: Scored) -> list[str]:
    """Return the clauses about tasks that were not tested: without an interval, or without right and wrong answers."""
    clauses = {TASKS_UNTESTED: _untested(rows, alone, hybrid), TASKS_UNSCORED: rows.unscored_tasks(alone, hybrid)}
    return [clause.fill(tasks=listed(tasks)) for clause, tasks in clauses.items() if tasks]


def _untested(rows: ConclusionRows, alone: Scored, hybrid: Scored) -> list[str]:
    """Return the tasks whose difference has no interval, each with its difference and number of questions."""
    differences = rows.between("differences", (alone.solver, hybrid.solver))
    untested = [row for row in differences if row.group and row.quantity == "difference" and row.low is None]
    return [
        f"{clipped(row.group, NAME_WIDTH)} ({signed(row)}, {how_many(row.n or 0)})"
        for row in untested
        if row.value is not None
    ]


def losses_sentence(rows: ConclusionRows, gains: Sequence[HeadlinePair]) -> Iterator[Sentence]:
    """Yield the tasks on which these solvers are worse than their models alone; nothing if no task was tested."""
    tested = [(pair, by_task) for pair in gains if (by_task := rows.tasks(pair.a, pair.b))]
    losses = []
    for pair, by_task in tested:
        if worse := [row for row in significant_with_sign(by_task, -1) if rows.is_of_answers(pair.a, pair.b, row)]:
            losses.append(f"{short_name(pair.b)} {listed([_name(row, pair.n) for row in worse])}")
    if tested:
        yield say(SEVERAL_TASKS, by=_by(rows).capitalize(), parts=listed(losses, "; ") if losses else "none")


def _by(rows: ConclusionRows) -> str:
    by = rows.found.options.by
    return "tasks" if by is None else f"groups of {clipped(by, NAME_WIDTH)}"


def _name(row: Result, total: int | None = None) -> str:
    """Return a task with its difference, and with its share of `total` questions if given."""
    share = "" if total is None else f"; {row.n} of {how_many(total)}"
    return f"{clipped(row.group, NAME_WIDTH)} ({signed(row)}, {ends_of(row)}{share})"


def significant_with_sign(rows: Sequence[Result], sign: int) -> list[Result]:
    """Return the differences of this sign that hold after adjustment, the largest first."""
    significant = [row for row in rows if row.holds and sign * (row.value or 0.0) > 0]
    return sorted(significant, key=lambda row: -abs(row.value or 0.0))
