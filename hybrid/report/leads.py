"""What is to be seen in a section, in one or two sentences made of its numbers; empty for nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hybrid.benchmarks.base import Abstain
from hybrid.report.charts import HARMED, HELPED, headline, help_matrix, main_pairs
from hybrid.report.payload import Scatter
from hybrid.scoring.compare import Comparison, Contest
from hybrid.scoring.compare_tables import OTHER
from hybrid.scoring.groups import companies
from hybrid.scoring.score import Scored
from hybrid.stats import interval
from hybrid.tables import accuracy, bounds
from hybrid.types import Metric

LEVEL = 0.05
"""Below this adjusted p value a difference is named."""
NAMED = 4
"""So many differences are named at most; the chart has all."""
COUNTS = {"chance": "as a guess would on average", "wrong": "as wrong"}
NOT_THE_SAME = "Not all solvers answered the same questions: the pairs below are over those that both answered."


def result_lead(found: Comparison) -> str:
    """The highest value of the headline metric under either rule of what no answer counts."""
    name, rule = headline(found), found.solvers[0].abstain
    first, second = (_highest(found, name, each) for each in (rule, OTHER[rule]))
    if first is None:
        return ""
    metric = first.metric
    limits = f" (95 % interval {bounds(interval(metric))})" if len(first.solvers) == 1 and first.measured else ""
    opening = f"{first.named} {'' if first.alone else 'the highest '}{name}, {accuracy(metric.value)}{limits}"
    if second is None or second.solvers == first.solvers:
        otherwise = "the last column counts it the other way."
    else:
        highest = f"{second.named} the highest, {accuracy(second.metric.value)}"
        otherwise = f"counted {COUNTS[OTHER[rule]]}, as in the last column, {highest}."
    lead = f"{opening}, over n = {metric.n}. A question without a readable answer counts {COUNTS[rule]}; {otherwise}"
    return lead if first.alone or _asked_the_same(found) else f"{lead} {NOT_THE_SAME}"


@dataclass(frozen=True)
class _Highest:
    """Who has the highest value of a metric, the metric of the first of these, and whether nobody else has one."""

    solvers: tuple[str, ...]
    metric: Metric
    alone: bool
    measured: bool
    """Whether the first of these has answered anything."""

    @property
    def named(self) -> str:
        return f"{' and '.join(self.solvers)} {'have' if len(self.solvers) > 1 else 'has'}"


def _highest(found: Comparison, name: str | None, rule: Abstain) -> _Highest | None:
    metrics = {one.solver: metric for one in found.solvers if (metric := _value(one, name, rule)) is not None}
    if not metrics:
        return None
    most = max(metric.value or 0.0 for metric in metrics.values())
    best = tuple(solver for solver, metric in metrics.items() if metric.value == most)
    measured = not next(one for one in found.solvers if one.solver == best[0]).answered_nothing
    return _Highest(best, metrics[best[0]], len(metrics) == 1, measured)


def _value(scored: Scored, name: str | None, rule: Abstain) -> Metric | None:
    metrics = scored.counted[rule].metrics
    return next((metric for metric in metrics if metric.name == name and metric.value is not None), None)


def _asked_the_same(found: Comparison) -> bool:
    """Whether all solvers answered the same questions, those that failed left out."""
    answered = [{score.id for score in one.scores if not score.outcome.failed} for one in found.solvers]
    return all(one == answered[0] for one in answered)


def difference_lead(found: Comparison) -> str:
    """Which pairs differ by the headline metric after adjustment, and of how many tests."""
    contests = found.family("headline")
    tested = [contest for contest in contests if contest.p_holm is not None]
    if not contests:
        return ""
    if not tested:
        return "No pair was tested; the notes below the table say why."
    seen = [contest for contest in tested if contest.p_holm is not None and contest.p_holm < LEVEL]
    seen.sort(key=lambda contest: -abs(contest.contrast.difference or 0.0))
    pairs = f"{len(tested)} pairs were" if len(tested) > 1 else "One pair was"
    opening = f"{pairs} tested by {tested[0].metric}, adjusted after Holm at {LEVEL}."
    if not seen:
        return f"{opening} No difference is established, which does not say that there is none."
    more = f", and {len(seen) - NAMED} more" if len(seen) > NAMED else ""
    return f"{opening} Established: {'; '.join(map(_said, seen[:NAMED]))}{more}."


def _said(contest: Contest) -> str:
    """The better solver of a pair first, and the interval of its lead."""
    difference, pair, found = contest.contrast.difference or 0.0, contest.pair, contest.contrast.interval
    better, worse = (pair.b, pair.a) if difference > 0 else (pair.a, pair.b)
    if found is not None and difference < 0:
        found = replace(found, low=-found.high, high=-found.low)
    limits = "" if found is None else f" {bounds(found, 3)}"
    return f"{better} over {worse} by {accuracy(abs(difference))}{limits}"


def task_lead(found: Comparison) -> str:
    """On how many tasks each hybrid solver is above and below its parts."""
    by = found.choice.by or "task"
    lines = []
    for company in companies(found.solvers):
        for part in company.parts:
            contests = [c for c in found.family("tasks") if set(c.pair) == {company.hybrid.solver, part.solver}]
            signs = [
                (c.contrast.difference or 0.0) * (1 if c.pair.b == company.hybrid.solver else -1) for c in contests
            ]
            if signs:
                lines.append(
                    f"{company.hybrid.solver} is above {part.solver} on {sum(s > 0 for s in signs)} of {len(signs)} "
                    f"{by}s and below on {sum(s < 0 for s in signs)}"
                )
    return f"{'; '.join(lines)}, before any test." if lines else ""


def help_lead(found: Comparison) -> str:
    """Helped and harmed of the main pairs."""
    matrix = help_matrix(found)
    if matrix is None:
        return ""
    counts = {(cell.panel, cell.name): cell.n for cell in matrix.cells if cell.name}
    shown = [pair for pair in main_pairs(found) if (f"{pair.a} -> {pair.b}", HELPED) in counts][:NAMED]
    said = [
        f"from {pair.a} to {pair.b} {counts[f'{pair.a} -> {pair.b}', HELPED]} are helped and "
        f"{counts[f'{pair.a} -> {pair.b}', HARMED]} harmed"
        for pair in shown
    ]
    return f"Of the questions that both answered, {'; '.join(said)}." if said else ""


def cost_lead(found: Comparison, chart: Scatter | None) -> str:
    """Which solvers have no dot, because nobody recorded what they cost."""
    if chart is None:
        return ""
    left_out = [one.solver for one in found.solvers if one.solver not in {dot.solver for dot in chart.dots}]
    opening = f"Cost is in {chart.x_label}, the first of USD, tokens and seconds that is known for all shown."
    return f"{opening} Not recorded: {', '.join(left_out)}." if left_out else opening


def outcome_lead(found: Comparison) -> str:
    """How many questions ended without an answer, and how many failed."""
    everything = sum(len(one.scores) for one in found.solvers)
    none = sum(score.answer is None and not score.outcome.failed for one in found.solvers for score in one.scores)
    failed = sum(one.failed for one in found.solvers)
    waiting = sum(one.open for one in found.solvers)
    parts = [f"Of {everything} answers asked for, {none} could not be read or were none, and {failed} failed"]
    if waiting:
        parts.append(f"{waiting} are still to be asked for")
    return f"{'; '.join(parts)}."
