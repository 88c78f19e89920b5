"""How right is each solver?

How a question without a readable answer (abstained, unparsed, out of budget, tool fault) counts is in the column `none`
of csv and json: as a guess on average (guess), or as wrong, as in the papers. A failed question is missing, not wrong:
it is in no n; only metrics whose names begin with with_failed count it, as wrong.

n: as the metric's
source: the benchmark's card
values: in the metric's own unit

- value = the metric of the column `metric`
- value where answered = the metric over the questions that a specialist, which abstains by design, answers (each
  repetition by itself)
- coverage (0 to 1) = questions that it answers / questions (each repetition by itself)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hybrid.display.tables import accuracy
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import role
from hybrid.scoring.result import FRACTION, Result, gated, unit_of, with_interval
from hybrid.scoring.score import JUDGED, WITH_FAILED, Scored

NAME = "metrics"
COUNTS = {"guess": "as a guess would on average", "wrong": "as wrong"}


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield a row for each solver and metric; metrics that are not on the benchmark's card are marked as details."""
    rule = comparison.rule
    for solver in comparison.solvers:
        yield from _where_answered(comparison, solver)
        for metric in solver.metrics:
            row = Result(NAME, "value", unit_of((metric,)), None, solver.solver, metric=metric.name, none=rule)
            # Tables show the metrics that the card reports, and the headline metric with failed questions as wrong.
            if metric.name.startswith(WITH_FAILED):
                is_shown = metric.name.removeprefix(WITH_FAILED) in (comparison.benchmark.card.headline or ("",))
            else:
                is_shown = not metric.name.startswith(JUDGED) and comparison.is_shown(metric.name)
            row = replace(with_interval(row, metric), detail=not is_shown)
            waiting = "waiting" if solver.open and metric.combine == "mean_of_ratios" else None
            yield replace(row, low=None, high=None) if solver.answered_nothing else next(gated([row], waiting))


def _where_answered(comparison: Comparison, solver: Scored) -> Iterator[Result]:
    """Yield a specialist's value on the questions that it answers, and the share of these, if it answers only some."""
    overlap = comparison.overlap(solver, repeated=False)
    by_all = overlap.answered_by_all
    if role(solver) != "specialist" or not 0 < by_all.sum() < overlap.n:
        return
    metrics = overlap.with_failed(by_all).headline(comparison.rule)
    if metrics is None:
        return
    row = Result(NAME, "value where answered", unit_of(metrics), None, solver.solver, metric=metrics[0].name)
    waiting = "waiting" if solver.open and metrics[0].combine == "mean_of_ratios" else None
    yield next(gated([with_interval(row, metrics[0])], waiting))
    share = float(by_all.sum()) / overlap.n
    yield replace(row, quantity="coverage", unit=FRACTION, value=share, n=overlap.n)


def of_contestants(comparison: Comparison, section_rows: Sequence[Result]) -> list[Result]:
    """Return the headline metric of each contestant; for a repeated solver, the mean with the range as a note."""
    rows = {row.a: replace(row, note="") for row in section_rows if is_value(row, comparison)}
    contestant_rows = []
    for contestant in comparison.contestants:
        # A repetition that failed entirely has no value, so any other may be the first with one.
        repetitions = comparison.repetitions(contestant)
        of_repeats = [rows[scored.solver] for scored in repetitions if scored.solver in rows]
        if of_repeats:
            of_first = replace(of_repeats[0], a=contestant.solver)
            contestant_rows.append(
                of_first if len(repetitions) == 1 else _mean_row(comparison, contestant, of_first, of_repeats)
            )
    return contestant_rows


def _mean_row(comparison: Comparison, contestant: Scored, row: Result, of_repeats: Sequence[Result]) -> Result:
    """Return the mean over the repetitions with a value, in place of the `row` of the first of these."""
    metrics = comparison.overlap(contestant).headline(comparison.rule)
    if not metrics:
        return row
    values, count = [each.value or 0.0 for each in of_repeats], len(of_repeats)
    ends = f" (mean of {count} repetitions, {min(values):.3f} to {max(values):.3f})"
    mean_row = with_interval(replace(row, note=ends if count > 1 else ""), metrics[0])
    # A repetition without any answer has no interval, but the mean has one if another repetition was answered.
    tested = row.low is not None or (not contestant.open and any(each.low is not None for each in of_repeats))
    return mean_row if tested else replace(mean_row, low=None, high=None)


def is_value(row: Result, comparison: Comparison) -> bool:
    """Return whether a row is a solver's value of the headline metric over all questions."""
    return row.quantity == "value" and row.metric == comparison.headline and row.value is not None


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """Name the highest value of the headline metric."""
    first = of_contestants(comparison, section_rows)
    if not first:
        return ""
    # Like the conclusion, rank only values with an interval, if there are any.
    ranked = [row for row in first if row.low is not None] or first
    unranked = [row.a for row in first if row not in ranked]
    row = max(ranked, key=lambda row: row.value or 0.0)
    best = [other for other in ranked if (other.value or 0.0) > (row.value or 0.0) - 1e-9]
    # If several solvers share the highest value, each name gets the note on that solver's repetitions.
    names, note = ([row.a], row.note) if len(best) == 1 else ([f"{other.a}{other.note}" for other in best], "")
    limits = "" if len(best) > 1 or row.low is None else f" (95% CI [{row.low:.2f}, {row.high:.2f}])"
    verb, highest = "have" if len(best) > 1 else "has", "" if len(first) == 1 else "the highest "
    value = f"{accuracy(row.value)}{note}{limits}"
    # Each solver's own number: the conclusion names that of another solver, whose difference was tested.
    of_each = " and ".join(f"{other.n} for {other.a}" for other in best)
    n = str(row.n) if len({other.n for other in best}) == 1 else of_each
    without = f"; not ranked (no interval): {', '.join(unranked)}" if unranked else ""
    opening = f"{' and '.join(names)} {verb} {highest}{row.metric}, {value}, over n = {n}{without}."
    sentence = f"{opening} A question without a readable answer counts {COUNTS[comparison.rule]}."
    answered = [{score.id for score in solver.scores if not score.outcome.failed} for solver in comparison.solvers]
    same_questions = len(first) == 1 or all(ids == answered[0] for ids in answered)
    return sentence if same_questions else f"{sentence} {NOT_ALIKE}"


NOT_ALIKE = "Not all solvers answered the same questions: pairs are compared over those that both answered."


SECTION = statistic(rows, lead, headings={"a": "solver"}, chart="bars", charted=("value",), order=10)
