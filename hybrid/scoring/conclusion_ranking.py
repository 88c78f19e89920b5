"""The sentences of a conclusion without a hybrid solver: which solver is the best, and which others it is ahead of.

for sentence in ranking_sentences(ConclusionRows(compare(solvers))):
    sentence.id     # "solvers.best", "ahead.some"
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from hybrid.core.types import Metric
from hybrid.display.terminal import clipped, how_many
from hybrid.scoring.conclusion_cases import Case, Sentence, case, say
from hybrid.scoring.conclusion_rows import ConclusionRows, turned
from hybrid.scoring.conclusion_words import (
    CI,
    COUNTS,
    NAME_WIDTH,
    NAMED,
    ends_of,
    format_value,
    listed,
    mean_count,
    measure,
    short_name,
    size_of,
)
from hybrid.scoring.groups import is_read_hybrid, own_command, role
from hybrid.scoring.headline_pair import NO_CLAIM, UNCLAIMED, HeadlinePair, why_no_interval
from hybrid.scoring.result import Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.metrics import of_contestants
from hybrid.scoring.tally import OTHER

ONE_SOLVER = case(
    "solvers.one", "one solver, no model with tools", "{where}{best} has {metric} {value}{again} over {n} ({interval})."
)
BEST = case(
    "solvers.best",
    "several solvers, no model with tools",
    "Of {count} solvers, {kind}, {best} has the highest {metric}, {value}{again} over {n} "
    "({interval}){answered}{ranking}.",
)
TIES = case(
    "solvers.ties",
    "several share the highest value",
    "Of {count} solvers, {kind}, {best} share the highest {metric}, {value}{again} over {n} "
    "({interval}){answered}{ranking}.",
)
NO_TOOLS = "none of them a model with tools"
# Exports that are read back lack the calls of a model with tools, so that it is ranked like any other solver.
READ_WITHOUT_CALLS = "read without their tool calls"
WAITING = case(
    "solvers.waiting",
    "a mean over tasks, or nothing in common, and questions are open",
    "The scores are not known yet, because {left} questions are not finished: {command}",
)
SILENT = case("solvers.silent", "none has a readable answer", "No solver gives a readable answer.")
NO_VALUE = case(
    "solvers.no_value",
    "some have readable answers, but these no value of a headline metric",
    "No solver with readable answers has a value of a headline metric; other metrics are in the tables.",
)
NO_INTERVAL = case(
    "solvers.no_interval",
    "none has an interval: questions of one picture, or too few questions",
    "{metric}: {values}; {why}.",
)
AHEAD: Mapping[str, Case] = {
    "some": case(
        "ahead.some", "it is ahead of some after adjustment", "{best} is ahead of {parts}, adjusted (Holm) for {tests}."
    ),
    "depends": case(
        "ahead.depends",
        "of none, and some differences support no claim, or it is behind on the questions that both have",
        "Adjusted (Holm) for {tests}, {inside} is significantly ahead of none of the others; {parts}.",
    ),
    "none": case("ahead.none", "of none", "Adjusted (Holm) for {tests}, no difference{of} to {others} is significant."),
    "untested": case(
        "ahead.untested", "no pair of it was tested", "{best} is compared with none of the others: {why}."
    ),
}


def ranking_sentences(rows: ConclusionRows) -> Iterator[Sentence]:
    """Yield the best solver by the headline metric, and the solvers that it is ahead of."""
    values = [row for row in of_contestants(rows.found, rows.of("metrics")) if row.low is not None]
    if not values:
        yield _without_interval(rows)
        return
    most = max(row.value or 0.0 for row in values)
    best = [row for row in values if (row.value or 0.0) > most - 1e-9]
    first, count = _first_tested(rows, best), len(rows.found.contestants)
    n, interval = _questions_and_interval(first, best)
    yield say(
        ONE_SOLVER if count == 1 else TIES if len(best) > 1 else BEST,
        best=listed([f"{clipped(row.a, NAME_WIDTH)}{row.note if len(best) > 1 else ''}" for row in best]),
        again=first.note if len(best) == 1 else "",
        count=count,
        kind=READ_WITHOUT_CALLS if any(map(is_read_hybrid, rows.found.contestants)) else NO_TOOLS,
        metric=measure(_headline_of(rows, rows.found.named(first.a))),
        value=f"{first.value:.3f}",
        n=n,
        interval=interval,
        where=_where_answered(rows, first.a) if count == 1 else "",
        answered=_list_answered(rows, best) if count > 1 else "",
        ranking=_list_unranked(rows, values)
        + _list_apart(rows, first.a, values, tied=len(best) > 1)
        + _other_ranking(rows, values, {row.a for row in best}),
    )
    if count > 1:
        yield _ahead(rows, first.a, tied=len(best) > 1, apart=bool(_without_common_question(rows, first.a)))


def _first_tested(rows: ConclusionRows, best: Sequence[Result]) -> Result:
    """Return the first of the best solvers with a tested difference, so that no difference of another is left out."""
    if len(best) == 1:
        return best[0]
    tested = {name for row in _tested(_all_pairs(rows)) for name in (row.a, row.b)}
    return next((row for row in best if row.a in tested), best[0])


def _questions_and_interval(first: Result, best: Sequence[Result]) -> tuple[str, str]:
    """Return the number of questions and the interval of the `first` of the best solvers.

    Solvers with the same value may differ in both, so the solver is named where they differ.
    """
    of_first = f" for {clipped(first.a, NAME_WIDTH)}"
    same_n = len({row.n for row in best}) == 1
    same_interval = len({(f"{row.low:.3f}", f"{row.high:.3f}") for row in best}) == 1
    interval = f"{CI} {first.low:.3f} to {first.high:.3f}{of_first if same_n and not same_interval else ''}"
    return f"{how_many(first.n or 0)}{'' if same_n else of_first}", interval


def _without_interval(rows: ConclusionRows) -> Sentence:
    """Say why no solver has an interval: open questions, one picture, too few questions, or no readable answer."""
    solvers, headline = rows.found.contestants, rows.found.headline
    if waiting := [solver for solver in solvers if solver.open]:
        return say(WAITING, left=sum(solver.open for solver in waiting), command=own_command(waiting))
    readable = [
        solver for solver in solvers if not all(each.answered_nothing for each in rows.found.repetitions(solver))
    ]
    by_solver = {row.a: row for row in of_contestants(rows.found, rows.of("metrics"))}
    values = [(solver, by_solver[solver.solver]) for solver in readable if solver.solver in by_solver]
    if not readable:
        return say(SILENT)
    if not values:
        return say(NO_VALUE)
    why = why_no_interval(_headline_of(rows, values[0][0])).removesuffix(" to show a difference")
    details = [how_many(row.n or 0) + row.note.replace(" (", "; ", 1).removesuffix(")") for _, row in values]
    each = [f"{short_name(solver)} {row.value:.3f} ({of})" for (solver, row), of in zip(values, details, strict=True)]
    return say(NO_INTERVAL, metric=headline, values=listed(each), why=why)


def _where_answered(rows: ConclusionRows, name: str) -> str:
    """Return the opening of a sentence on a solver: its value where it answers, before its value over all questions."""
    words = _value_where_answered(rows, name)
    return f"{words}; over all, " if words else ""


def _list_answered(rows: ConclusionRows, best: Sequence[Result]) -> str:
    """Return the value of each of the best solvers where it answers, as additions to the sentence that names them."""
    return "".join(f"; {words}" for row in best[:NAMED] if (words := _value_where_answered(rows, row.a)))


def _value_where_answered(rows: ConclusionRows, name: str) -> str:
    """Return the value of a specialist on the questions that it answers; empty if it answers all, or for other solvers.

    Over repetitions, the number of answered questions is a mean, and the value covers the answered repetitions. A
    metric over groups of questions has a value only where whole groups were answered, so the result is empty for it.
    """
    solver = rows.found.named(name)
    overlap, count = rows.found.overlap(solver), len(rows.found.finished_repetitions(solver))
    number_answered, n = float((1 - overlap.silent_share[0])[overlap.counted].sum()), int(overlap.counted.sum())
    if role(solver) != "specialist" or not 0 < number_answered < n:
        return ""
    part = overlap.with_answers()
    metrics, of_all_metrics = part.headline(rows.found.rule), overlap.headline(rows.found.rule)
    if not metrics or not of_all_metrics or metrics[0].name != of_all_metrics[0].name:
        return ""
    if metrics[0].n != part.kept.sum():
        return ""
    of_all = f"{mean_count(number_answered, n)} of {how_many(n)}"
    again = f" (mean of {count} repetitions)" if count > 1 else ""
    value = format_value(metrics[0].value)
    return f"{clipped(name, NAME_WIDTH)} answers {of_all}{again}, on these with {value}"


def _list_unranked(rows: ConclusionRows, values: Sequence[Result]) -> str:
    """Name the solvers without an interval, which are not ranked although they may have a higher value."""
    ranked = {row.a for row in values}
    names = [short_name(solver) for solver in rows.found.contestants if solver.solver not in ranked]
    return f"; not ranked (no interval): {listed(names)}" if names else ""


def _without_common_question(rows: ConclusionRows, best: str) -> list[str]:
    """Return the contestants that share no question with the best solver."""
    ids = {solver.solver: {score.id for score in solver.scores} for solver in rows.found.contestants}
    return [name for name in ids if name != best and ids[name].isdisjoint(ids[best])]


def _list_apart(rows: ConclusionRows, best: str, values: Sequence[Result], *, tied: bool) -> str:
    """Name the ranked solvers whose values are of other questions than the best one's and cannot be compared to it."""
    ranked = {row.a for row in values}
    names = [clipped(name, NAME_WIDTH) for name in _without_common_question(rows, best) if name in ranked]
    it = clipped(best, NAME_WIDTH) if tied else "it"
    return f"; not comparable, because {it} shares no question with them: {listed(names)}" if names else ""


def _other_ranking(rows: ConclusionRows, values: Sequence[Result], best: Collection[str]) -> str:
    """Name the best solvers by the other rule, or over all questions, if they differ from `best`.

    The other rule is the other way to count unanswered questions. A value over all questions can only differ if the
    metric is a mean over tasks.
    """
    rule = OTHER[rows.found.rule]
    by_rule: dict[str, float | None] = {}
    over_all: dict[str, float | None] = {}
    for row in values:
        solver = rows.found.named(row.a)
        overlap = rows.found.overlap(solver)
        metrics = overlap.headline(rule)
        by_rule[row.a] = metrics[0].value if metrics else None
        if _headline_of(rows, solver)[0].combine == "mean_of_ratios":
            over_all[row.a] = overlap.accuracy(overlap.rule)[0].value
    words = {f"with unanswered questions counted {COUNTS[rule]}": by_rule, "over all questions": over_all}
    parts = [f"{when}, it would be {first}" for when, known in words.items() if (first := _first_of(known, best))]
    return "".join(f"; {part}" for part in parts)


def _first_of(values: Mapping[str, float | None], best: Collection[str]) -> str:
    """Return the solver with the highest value, or the tie, and that value; empty if they are the same as `best`."""
    known = {name: value for name, value in values.items() if value is not None}
    most = max(known.values(), default=0.0)
    first = [name for name, value in known.items() if value > most - 1e-9]
    if not first or set(first) == set(best):
        return ""
    names = listed([clipped(name, NAME_WIDTH) for name in first])
    return f"{names}, {most:.3f}" if len(first) == 1 else f"a tie of {names} at {most:.3f}"


def _headline_of(rows: ConclusionRows, solver: Scored) -> list[Metric]:
    """Return the headline metric of the first repetition that has a value of it; empty if none has."""
    metrics = (metric for repetition in rows.found.repetitions(solver) for metric in repetition.metrics)
    valued = (metric for metric in metrics if metric.name == rows.found.headline and metric.value is not None)
    return list(itertools.islice(valued, 1))


def _all_pairs(rows: ConclusionRows) -> list[HeadlinePair]:
    return [rows.pair(rows.found.named(pair.a), rows.found.named(pair.b)) for pair in rows.found.pairs]


def _tested(pairs: Sequence[HeadlinePair]) -> list[Result]:
    """Return the differences that were tested; their p values are adjusted together."""
    return [pair.rows[0] for pair in pairs if pair.rows and pair.rows[0].p_holm is not None]


def _ahead(rows: ConclusionRows, best: str, *, tied: bool = False, apart: bool = False) -> Sentence:
    """Return the sentence on the solvers that the best one is ahead of; p values are adjusted over all tested pairs.

    The sentence names the best solver if others are tied with it; with `apart`, some share no question with it.
    """
    it = clipped(best, NAME_WIDTH) if tied else "it"
    others = "those that share its questions" if apart else "the others"
    subject = {"best": it if tied else "It", "inside": it, "of": f" of {it}" if tied else "", "others": others}
    pairs = _all_pairs(rows)
    tested = _tested(pairs)
    of_best = [
        turned(row, (row.b, row.a) if row.a == best else (row.a, row.b)) for row in tested if best in (row.a, row.b)
    ]
    if not of_best:
        return say(AHEAD["untested"], why=_why_untested(pairs, best), **subject)
    ahead, behind, unclaimed = list[str](), list[str](), list[str]()
    for row in sorted(of_best, key=lambda row: -(row.value or 0.0)):
        pair = rows.pair(rows.found.named(row.a), rows.found.named(best))
        name = clipped(row.a, NAME_WIDTH)
        if pair.claim in NO_CLAIM:
            unclaimed.append(pair.without_claim(name))
        elif row.holds and row.excludes_zero:
            # The solver with the highest value over its own questions may be behind another on the questions that both
            # have.
            is_ahead = (row.low or 0.0) > 0
            words = f"{name} by {size_of(row)} ({ends_of(row, cost=not is_ahead)}{pair.fields()['split']})"
            (ahead if is_ahead else behind).append(words)
    parts = listed(ahead) + (f"; {UNCLAIMED} its difference to {listed(unclaimed)}" if unclaimed else "")
    parts += f"; on the questions that both have, it is behind {listed(behind)}" if behind else ""
    kind = "some" if ahead else "depends" if parts else "none"
    return say(AHEAD[kind], tests=how_many(len(tested), "test"), parts=parts.removeprefix("; "), **subject)


def _why_untested(pairs: Sequence[HeadlinePair], best: str) -> str:
    """Return why no pair of the best solver was tested: the first note in the rows of these pairs."""
    notes = (row.note for pair in pairs for row in pair.rows if row.note and best in (row.a, row.b))
    # The sentence already says that nothing was compared.
    return next(notes, "no pair of it was chosen, or they share too few questions").removeprefix("not tested: ")
