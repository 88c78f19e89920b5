"""The headline of a comparison: its first line, a table of solvers, and a table of tasks by solvers.

    head_of(solvers)       # ("openai:gpt-4o", "BLINK val", "105 questions", "2026-11-28")
    headline_tables(compare(solvers))

Both tables show rows that the sections computed: value and interval from `metrics`, differences from `differences`,
accuracy from `tasks`, and counts from `outcomes`.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from hybrid.benchmarks.base import UnansweredRule
from hybrid.benchmarks.card import BenchmarkCard
from hybrid.core.secrets import redact
from hybrid.core.types import Outcome
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
from hybrid.log.folder import LOG, RunFolder
from hybrid.plugins.registry import load
from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_cases import Sentence
from hybrid.scoring.conclusion_rows import is_of_answers, turned
from hybrid.scoring.conclusion_words import SUBSTITUTE
from hybrid.scoring.faults import noted
from hybrid.scoring.groups import AGAIN, is_imported, model_of, own_command, repeated_as, repetition, role, word
from hybrid.scoring.result import FRACTION, Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections import results
from hybrid.scoring.sections.tasks import WHERE_ANSWERED as TASK_WHERE_ANSWERED
from hybrid.scoring.tally import OTHER

SECTIONS = ("metrics", "differences", "tasks", "outcomes")
# Maximum width, in characters, of a solver's name, a task's name, and a solver's name as a heading.
NAME, TASK, HEADING = 36, 28, 24
SHOWN_WARNINGS = 4
COST = ("outcomes", "cost")
COUNTED: Mapping[UnansweredRule, str] = {"guess": "as a guess on average", "wrong": "as wrong"}
MORE_COMMAND = "More: "
MORE = f"{MORE_COMMAND}--all, or --only NAME: differences, helped, gain, evidence, chance, ..."
SHARED = "Differences cover only questions that both solvers have and neither failed"
WHERE_ANSWERED = "*: over the questions that the specialists answer; differences are over all questions."
WITHOUT_DIFFERENCES = "*: over the questions that the specialists answer."
TASKS_WHERE_ANSWERED = "*: over the questions of the task that the specialists answer."
MARKS = "+ -: the difference holds after adjustment (Holm) over the tasks of its pair."


def headline_tables(comparison: Comparison) -> tuple[Table, ...]:
    """Return the table of solvers, then the table of tasks if there are two or more tasks."""
    rows = {result.name: result.rows for result in results(comparison, SECTIONS)}
    baseline = _baselines(comparison)
    differences = [row for row in rows.get("differences", ()) if row.quantity == "difference" and not row.detail]
    tasks = _tasks(comparison, rows.get("tasks", ()), differences, baseline)
    solvers = _solvers(comparison, rows, [row for row in differences if not row.group], baseline)
    return (solvers, tasks) if len(tasks.rows) > 1 else (solvers,)


def warnings(solvers: Sequence[Scored]) -> tuple[str, ...]:
    """Return warnings that apply to every number: labels, failed and open questions, and damage of the runs."""
    labels: dict[str, list[str]] = {}
    for solver in solvers:
        for label in solver.labels:
            labels.setdefault(label, []).append(solver.solver)
    lines = [label if len(of) == len(solvers) else f"{', '.join(of)}: {label}" for label, of in labels.items()]
    for solver in solvers:
        if solver.failed:
            of = f"{solver.failed} of {how_many(len(solver.scores))} failed"
            lines.append(f"{solver.solver}: {of}; they are missing, not wrong")
        if solver.open:
            scored_ids = {score.id for score in solver.scores}
            totals = Counter(question.task for question in solver.questions.values())
            waiting = Counter(question.task for name, question in solver.questions.items() if name not in scored_ids)
            parts = [f"{task} {count} of {totals[task]}" for task, count in waiting.most_common(SHOWN_WARNINGS)]
            parts += [f"{len(waiting) - len(parts)} more tasks"] if len(waiting) > len(parts) else []
            lines.append(f"{solver.solver}: {how_many(solver.open)} not finished yet, left out ({', '.join(parts)})")
        if solver.usage is not None and (reused := solver.usage.reused_calls):
            of = f"{reused:,} of {how_many(solver.usage.model_calls, 'model call')}"
            lines.append(f"{solver.solver}: {of} answered by replies of earlier runs; cost and seconds leave them out")
        lines += [f"{solver.solver}: {faults}: {faults.error}" for faults in noted(solver)]
        if solver.reasons:
            lines.append(f"{solver.solver}: {how_many(len(solver.reasons), 'answer')} cannot be scored")
    return tuple(dict.fromkeys((*lines, *(line for solver in solvers for line in solver.damage))))


def rule_line(solvers: Sequence[Scored]) -> str:
    """Return the rule for unanswered questions; empty if every question has an answer."""
    silent = [
        score for solver in solvers for score in solver.scores if score.answer is None and not score.outcome.failed
    ]
    if not silent:
        return ""
    rule = solvers[0].unanswered
    other = OTHER[rule]
    # A scanpath is neither right nor wrong; the benchmark scores a fixed path in its place.
    words = COUNTED if any(score.correct is not None for score in silent) else {**COUNTED, "wrong": SUBSTITUTE}
    return f"Unanswered questions count {words[rule]} in every number here (--unanswered {other}: {words[other]})."


def rule_head(solvers: Sequence[Scored], form: str) -> str:
    """Return the rule as the first lines of an output."""
    lines = filled(rule_line(solvers), NARROW if form in ("text", "narrow") else NOTE_WIDTH)
    return "".join(f"{'% ' if form == 'latex' else ''}{line}\n" for line in lines if line)


def as_summary(comparison: Comparison, sentences: Sequence[Sentence], more: str, form: str) -> str:
    """Return warnings, conclusion, the tables of `headline_tables`, and `more`; text fits `NARROW` columns."""
    if form not in ("text", "narrow"):
        bullets = "" if form == "latex" else "".join(f"- {one_line(sentence.text)}\n" for sentence in sentences)
        head = rule_head(comparison.solvers, form)
        return "\n".join(filter(None, (head, bullets, *map(RENDERERS[form], headline_tables(comparison)))))
    faults = (
        f"{result.name} could not be made: {result.fault}" for result in comparison.computed.values() if result.fault
    )
    noted = (*faults, *warnings(comparison.solvers))
    hidden = [f"and {len(noted) - SHOWN_WARNINGS} more warnings"] if len(noted) > SHOWN_WARNINGS else []
    lines = [f"warning: {one_line(line)}" for line in noted[:SHOWN_WARNINGS]]
    warned = [part for line in lines for part in filled(line, NARROW, 2)] + hidden
    concluded: list[str] = []
    for sentence in sentences:
        concluded += filled(one_line(sentence.text.removesuffix(sentence.command)), NARROW)
        # The command gets lines of its own, so that it can be pasted.
        command = pasteable(shlex.split(sentence.command), "narrow", "  ") if sentence.command else ""
        concluded += command.splitlines()
    parts = ["\n".join([*rule_head(comparison.solvers, form).splitlines(), *warned, *concluded])]
    for place, table in enumerate(headline_tables(comparison)):
        title = "" if place else "\n".join(filled(table.title, NARROW)) + "\n"
        parts.append(title + as_narrow(replace(table, title="")).replace("\n\n" + MARKS, "\n" + MARKS).rstrip("\n"))
    rows = [
        row for result in results(comparison, SECTIONS) for row in result.rows if (result.name, row.quantity) == COST
    ]
    costs = [f"{clipped(row.a, NAME)} {row.value:.4f} USD" for row in rows if row.value]
    foot = filled(f"cost: {', '.join(costs)}", NARROW, 2) if costs else []
    return "\n\n".join(parts) + "\n" + "\n".join([*foot, *_more_lines(more)]) + "\n"


def _more_lines(more: str) -> list[str]:
    """Return the lines of the last paragraph of a summary; a command is broken such that it can be pasted."""
    words = more.removeprefix(MORE_COMMAND)
    if words.startswith("hybrid "):
        return pasteable(shlex.split(words), "narrow", MORE_COMMAND).splitlines()
    return filled(more, NARROW, 2)


def _baselines(comparison: Comparison) -> Mapping[str, str]:
    """Return each solver's baseline: from --baseline or --pairs, else its own model alone."""
    baseline: dict[str, str] = {}
    if comparison.options.pairs is not None:
        for pair in comparison.options.pairs:
            baseline.setdefault(pair.b, pair.a)
        return baseline
    for group in comparison.groups:
        for solver in (group.hybrid, group.blank, group.shuffled, group.specialist):
            if solver is not None and group.alone is not None:
                baseline.setdefault(solver.solver, group.alone.solver)
    # Without pairs, `paired` is empty and this default is not used.
    first = next(iter(baseline.values()), comparison.pairs[0].a if comparison.pairs else "")
    paired = {name for pair in comparison.pairs for name in pair} - set(baseline.values())
    for solver in comparison.solvers:
        if solver.solver in paired:
            # If no model alone is a baseline, the first solver becomes its own baseline, and no difference is shown for
            # it.
            baseline.setdefault(solver.solver, first)
    return baseline


def _against(rows: Iterable[Result], baseline: Mapping[str, str]) -> dict[tuple[str, str], Result]:
    """Return the difference of each solver and task from its baseline, in either order of the pair."""
    differences: dict[tuple[str, str], Result] = {}
    for row in rows:
        for name, other in ((row.b, row.a), (row.a, row.b)):
            if baseline.get(name) == other:
                differences.setdefault((name, row.group), turned(row, (other, name)))
    return differences


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
    for solver in comparison.solvers:
        value, count = values.get(solver.solver), answered.get(solver.solver)
        line = [clipped(solver.solver, NAME), NONE, NONE, NONE if count is None else _answered(solver, count)]
        if value is not None:
            line[1:3] = _number(value), bounds(value.interval)
        if (answered_row := where_answered.get(solver.solver)) is not None:
            line[1:3] = f"{_number(answered_row)}*", bounds(answered_row.interval)
        if (row := differing.get((solver.solver, ""))) is not None:
            ends = row.interval
            # Use three decimals if two would not show on which side of 0 an end is.
            decimals = 3 if ends is not None and min(abs(ends.low), abs(ends.high)) < 0.005 else 2
            line += [signed(row.value), bounds(ends, decimals), p_value(row.p_holm)]
        elif baseline:
            line += [NONE] * 3
        lines.append(tuple(line))
    notes = [WHERE_ANSWERED if baseline else WITHOUT_DIFFERENCES] if where_answered else []
    notes += _shared_note(differing.values(), values)
    notes += _counted_note(comparison)
    return Table(title, tuple(columns), tuple(lines), (*notes, *(_means_note(comparison) if baseline else ())))


def _shared_note(differences: Iterable[Result], values: Mapping[str, Result]) -> list[str]:
    """Return a note on solvers whose difference covers fewer questions or units than a value beside it."""
    fewer = [
        f"{clipped(row.b, NAME)}: {row.n}"
        for row in differences
        if any(name in values and values[name].n != row.n for name in (row.a, row.b))
    ]
    return [f"{SHARED} ({', '.join(fewer)})."] if fewer else []


def _counted_note(comparison: Comparison) -> list[str]:
    """Return a note if the headline metric counts fewer questions than the column `answered`."""
    overlaps = (comparison.overlap(solver) for solver in comparison.solvers)
    fewer = [f"{overlap.counted.sum()} of {how_many(overlap.n)}" for overlap in overlaps if not overlap.all_counted]
    return [f"{comparison.headline} counts {fewer[0]}; answered counts all."] if fewer else []


def _means_note(comparison: Comparison, subject: str = "Differences") -> tuple[str, ...]:
    """Return a note on repeated solvers: their differences and marks belong to a mean over repetitions."""
    counts = {solver.solver: len(comparison.finished_repetitions(solver)) for solver in comparison.solvers}
    repeated = [f"{clipped(name, NAME)} {count}" for name, count in counts.items() if count > 1]
    return (f"{subject} compare means over repetitions ({', '.join(repeated)}).",) if repeated else ()


def _answered(scored: Scored, count: Result) -> str:
    """Return the share of answered questions; for partial predictions also the total number of questions."""
    if not (left_out := scored.without_prediction):
        return share(count.value, count.n)
    answered, total = int(count.value or 0), int(count.n or 0)
    predicted = "" if answered == total else f", {total} predicted"
    return f"{answered} of {total + left_out} questions{predicted}"


def _number(row: Result) -> str:
    return accuracy(row.value) if row.unit == FRACTION or row.value is None else f"{row.value:.4g}"


def _mark(comparison: Comparison, row: Result | None) -> str:
    """Return + or - for a task's difference that holds after adjustment, and " " for any other.

    Like the conclusion, do not mark a difference that depends on how unanswered questions count.
    """
    if row is None or not row.holds or not row.value:
        return " "
    by_name = {solver.solver: solver for solver in comparison.solvers}
    if not is_of_answers(comparison, by_name[row.a], by_name[row.b], row):
        return " "
    return "+" if row.value > 0 else "-"


def _tasks(
    comparison: Comparison, accuracies: Sequence[Result], differences: Sequence[Result], baseline: Mapping[str, str]
) -> Table:
    rule, by = comparison.solvers[0].unanswered, comparison.grouping
    values = {(row.a, row.group): row for row in accuracies if (row.quantity, row.none) == ("accuracy", rule)}
    where_answered = {(row.a, row.group): row for row in accuracies if row.quantity == TASK_WHERE_ANSWERED}
    unanswered = {(row.a, row.group): row for row in accuracies if row.quantity == "none" and row.value == row.n}
    differing = _against(differences, baseline)
    lines = []
    for group in sorted({row.group for row in values.values()}):
        line = [clipped(group, TASK)]
        for solver in comparison.solvers:
            key = (solver.solver, group)
            if role(solver) == "specialist" and (key in where_answered or key in unanswered):
                # Show no mark: unanswered questions count in the difference, so the difference says nothing about the
                # answers.
                line.append(f"{_number(where_answered[key])}*" if key in where_answered else f"{NONE} ")
                continue
            value, row = values.get(key), differing.get(key)
            mark = _mark(comparison, row)
            line.append(f"{NONE if value is None else _number(value)}{mark}")
        lines.append(tuple(line))
    signs = {cell[-1] for line in lines for cell in line[1:]}
    if signs == {" "}:
        lines = [tuple(cell.rstrip() for cell in line) for line in lines]
    columns = (
        Column(clipped(by, TASK), "left"),
        *(Column(clipped(solver.solver, HEADING)) for solver in comparison.solvers),
    )
    notes = (
        *((TASKS_WHERE_ANSWERED,) if "*" in signs else ()),
        *((MARKS, *_means_note(comparison, "Marks")) if signs & {"+", "-"} else ()),
        *_accuracy_note(comparison),
    )
    title = f"{comparison.benchmark.card.name}: accuracy by {clipped(by, TASK)}"
    return Table(title, columns, tuple(lines), notes)


def _accuracy_note(comparison: Comparison) -> tuple[str, ...]:
    """Return a note if tasks have plain accuracy and the solvers above another metric, such as one over pairs."""
    headline = comparison.headline
    if headline is None or "accuracy" in headline:
        return ()
    return (f"By {clipped(comparison.grouping, TASK)}: the accuracy of single questions, not {headline}.",)


def nothing_answered_by(solvers: Sequence[Scored]) -> str | None:
    """Return a message with cause and remedy if no solver finished a question; None if any solver did."""
    if not solvers or _any_answered(solvers):
        return None
    names = ", ".join(dict.fromkeys(solver.solver for solver in solvers))
    # Solvers with equal counts share one statement, because they usually failed the same questions.
    by_counts: dict[tuple[int, int], list[str]] = defaultdict(list)
    for solver in solvers:
        by_counts[len(solver.scores), solver.open].append(clipped(solver.solver, NAME))
    parts = [
        f"{', '.join(dict.fromkeys(members))}: {how_many(failed)} failed, "
        f"{waiting} {'was' if waiting == 1 else 'were'} not asked."
        for (failed, waiting), members in by_counts.items()
    ]
    # If there is only one statement, it already contains all names.
    lines = [f"Nothing was answered by {' '.join(parts if len(parts) == 1 else [f'{names}.', *parts])}"]
    folders = {solver.folder.path: solver.folder for solver in solvers if solver.folder is not None}
    recorded = [solver.folder.recorded(solver.recorded) for solver in solvers if solver.folder is not None]
    reasons = Counter(reason for attempts in recorded for reason in attempts.unfinished.values() if reason)
    lines += [f"The reason of {count}: {reason}" for reason, count in reasons.most_common(1)]
    if not reasons:
        logs = [folder.path / LOG for folder in folders.values() if (folder.path / LOG).is_file()]
        lines += [f"{path} says what happened." for path in logs]
    command = own_command(solvers)
    lines.append(f"Fix that, then {AGAIN}." if command == AGAIN else f"Fix that, then ask again: {command}")
    return redact("\n".join(lines) + "\n")


def _any_answered(solvers: Sequence[Scored]) -> bool:
    return any(not score.outcome.failed for solver in solvers for score in solver.scores)


# Printed in place of the split, because numbers on generated questions are not benchmark results.
GENERATED: Final = "generated questions"
# Name of the only split of a data set, which adds nothing to the benchmark's name.
WHOLE: Final = "all"
# Longer lists of models, and of files, are cut.
SHOWN_MODELS: Final = 3
SHOWN_FILES: Final = 3
_CAPTION: Final = re.compile(r"^(\\caption\{.*)\}$", re.MULTILINE)


def head_of(solvers: Sequence[Scored]) -> tuple[str, ...]:
    """Return the models, the benchmark with its split (or `GENERATED`), the number of questions, and the run dates.

    If the solvers have different questions, the number of questions that all of them have follows. If nothing was
    answered, the questions that were not asked count too. There is at least one solver; all are of one benchmark.
    """
    models = _models_in_head(solvers)
    id_sets = [{score.id for score in solver.scores} for solver in solvers]
    questions = _count(len(set.union(*id_sets)), len(set.intersection(*id_sets)))
    folders = {solver.folder.path: solver.folder for solver in solvers if solver.folder is not None}
    if not _any_answered(solvers):
        total = len(set.union(*id_sets, *(set(folder.questions().by_id) for folder in folders.values())))
        questions = _count(total, total)
    splits = {GENERATED if solver.data.generated else solver.data.split for solver in solvers}
    return _parts(models, solvers[0].benchmark, splits, questions, [*folders.values()])


def _models_in_head(solvers: Sequence[Scored]) -> list[str]:
    """Return the models of the solvers. Predictions are named after their file, whose repetitions are of one model.

    Files of one name in several folders need not be of one model, so they have the names of their solvers.
    """
    folders: dict[str, set[Path | None]] = defaultdict(set)
    named = []
    for solver in solvers:
        model = model_of(solver)
        of_file = is_imported(solver) and model == solver.recorded
        name = word(solver) if of_file else model
        if of_file:
            folders[word(solver)].add(repeated_as(solver)[0])
        named.append((solver, name, of_file))
    told_apart = (
        solver.solver if of_file and name and len(folders[name]) > 1 else name
        for solver, name, of_file in named
        if not (of_file and repetition(solver) > 1)
    )
    return list(dict.fromkeys(filter(None, told_apart)))


def head_of_run(folder: RunFolder, questions: int) -> tuple[str, ...]:
    """Return the parts of `head_of` from the manifest of a run, without scoring its answers."""
    identity = folder.manifest["identity"]
    model = identity.get("model")
    generated = (identity.get("data") or {}).get("kind") == "sample"
    split = GENERATED if generated else str(identity["split"])
    models = [str(model["model"])] if model else []
    return _parts(models, identity["benchmark"], {split}, _count(questions, questions), [folder])


def flag_captions(latex: str, solvers: Sequence[Scored]) -> str:
    """Add `GENERATED` to LaTeX captions if questions were generated, because the head is only a LaTeX comment."""
    if not any(solver.data.generated for solver in solvers):
        return latex
    return _CAPTION.sub(lambda match: f"{match[1]} ({GENERATED})}}", latex)


def _parts(
    models: Sequence[str], benchmark: str, splits: set[str], count: str, folders: Sequence[RunFolder]
) -> tuple[str, ...]:
    more = [f"and {len(models) - SHOWN_MODELS} more models"] if len(models) > SHOWN_MODELS else []
    card: BenchmarkCard = load("hybrid.benchmarks", benchmark).card
    split_names = ", ".join(sorted(splits - {GENERATED, WHOLE}))
    # If there is a split, only part of the questions were generated.
    generated = f"and {GENERATED}" if splits - {GENERATED} else GENERATED
    return (
        ", ".join([*models[:SHOWN_MODELS], *more]) or "no model",
        f"{card.short_title}{_files_of(folders)} {split_names}".rstrip(),
        *([generated] if GENERATED in splits else []),
        count,
        _days(folders) or "date not recorded",
    )


def _files_of(folders: Sequence[RunFolder]) -> str:
    """Return the names of the runs' own files of questions (`: a.csv, b.csv`); empty for a benchmark's data.

    Different files of one name are told apart by their folders, and by their sha256 if that is not enough.
    """
    given: dict[str, Path] = {}
    for folder in folders:
        data, options = folder.manifest["identity"].get("data") or {}, folder.manifest.get("options") or {}
        name = options.get("data") or options.get("benchmark")
        if data.get("kind") == "file" and isinstance(name, str) and Path(name).name:
            given.setdefault(str(data.get("sha256", "")), Path(name))
    ways: tuple[Callable[[str, Path], str], ...] = (
        lambda _, path: path.name,
        lambda _, path: f"{path.parent.name}/{path.name}".removeprefix("/"),
        lambda sha256, path: f"{path.name} ({sha256[:8]})",
    )
    for way in ways:
        names = [way(*item) for item in given.items()]
        if len(set(names)) == len(names):
            break
    more = [f"and {len(names) - SHOWN_FILES} more files"] if len(names) > SHOWN_FILES else []
    return f": {', '.join([*(clipped(name, NAME) for name in names[:SHOWN_FILES]), *more])}" if names else ""


def _count(questions: int, shared: int) -> str:
    text = f"{questions:,} question{'s' * (questions != 1)}"
    return text if shared == questions else f"{text}, {shared:,} of them put to every solver"


def _days(folders: Sequence[RunFolder]) -> str:
    """Return the dates of the runs' last commands, in UTC: `2026-11-27 to 2026-11-28`; empty without a run."""
    days = set()
    for folder in folders:
        commands = folder.manifest.get("commands", ())
        if commands:
            days.add(datetime.fromisoformat(commands[-1]["at"]).date().isoformat())
    return " to ".join(dict.fromkeys([min(days), max(days)])) if days else ""
