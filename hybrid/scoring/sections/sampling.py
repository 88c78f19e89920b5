"""What does voting over samples gain?

single sample: the mean over samples, each scored as if it were the reply. best of samples: any sample is right, the
upper limit of any vote. A sample has no verdict if the dialogue would have continued differently after it, or if the
budget ended before it.

n: samples of all votes
source: ours

- vote = the metric of the answer with most votes [n: questions that were voted on; source: Wang et al., ICLR 2023]
- single sample = mean of the metric over the samples, each as if it had been the reply [n: questions that were voted
  on; source: ours: the result of one run at the same temperature]
- best of samples = the metric, right if any sample is right [n: questions that were voted on; source: ours: a
  perfect choice among the samples]
- share of refusals = model calls that ended in a refusal / samples
- share of unreadable samples = samples without a readable answer / samples, in the last votes
- mean share of the winner = mean over questions of votes for the winner / readable samples
- samples without a verdict (0 to n, in samples) = samples after which the dialogue would have continued differently
- accuracy by share of the winner = right votes / questions whose winner has a share in this bin [n: questions of the
  bin; source: ours: shows whether the share indicates how reliable a vote is]
- claimed by share of the winner = mean probability that the vote claims for its winner [n: questions of the bin]

Every sample is scored as if it alone had been the reply (`hybrid/scoring/votes.py`). Best of K is the share of
questions that any sample gets right: a perfect choice among them would reach it.

Only solvers that are sampled as a whole are included. Solvers that sample the MLLM themselves (the registry knows
them) use the vote as one of two answers, and their reply need not be its winner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from statistics import fmean

from hybrid.benchmarks.base import Benchmark, accuracy
from hybrid.core.types import Metric, Outcome, Score
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.result import FRACTION, Result, with_interval
from hybrid.scoring.score import Scored, group_of, grouped
from hybrid.scoring.votes import VotedQuestion, voted_questions

NAME = "sampling"
ACCURACY = "accuracy"
VOTE, SINGLE, BEST = "vote", "single sample", "best of samples"
UNANIMOUS = 0.999
# Bins of the winner's share: lower end excluded, upper end included; the last bin is unanimous votes.
SHARES = (
    (0.0, 0.5, "above 0% to 50%"),
    (0.5, 0.75, "above 50% to 75%"),
    (0.75, UNANIMOUS, "above 75%, not all"),
    (UNANIMOUS, 1.0, "all agree"),
)


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield vote, single sample and best sample, by headline metric and by task, for each solver that voted."""
    for solver in comparison.solvers:
        if questions := voted_questions(solver):
            yield from _headline(comparison.benchmark, solver, questions)
            judged = [question for question in questions if question.vote.correct is not None]
            for name, members in grouped(
                judged, lambda question: group_of(question.vote, comparison.options.by)
            ).items():
                row = Result(NAME, VOTE, FRACTION, None, solver.solver, metric=ACCURACY, group=name, n=len(members))
                yield replace(row, value=_mean(member.vote.correct for member in members))
                yield replace(row, quantity=SINGLE, value=_mean(member.single for member in members))
                yield replace(row, quantity=BEST, value=_mean(member.best for member in members))
            yield from _totals(solver, questions)


def _headline(benchmark: Benchmark, solver: Scored, questions: Sequence[VotedQuestion]) -> Iterator[Result]:
    """Yield the headline metric of the vote, of a single sample and of the best sample.

    For a single sample, the metric is computed over the first sample of every question, then over the second, and so
    on, and averaged.
    """
    votes = _headlines(benchmark, [question.vote for question in questions])
    name = next((name for name in benchmark.card.headline if name in votes), None)
    if name is None:
        return
    missing = [replace(question.vote, outcome=Outcome.OUTAGE) for question in questions]
    columns = zip_longest(*(question.samples for question in questions))
    tables = [_headlines(benchmark, [s or none for s, none in zip(column, missing, strict=True)]) for column in columns]
    pairs = zip(questions, missing, strict=True)
    best = [max(question.decided, key=lambda score: score.correct or 0.0, default=none) for question, none in pairs]
    row = Result(NAME, VOTE, FRACTION, None, solver.solver, metric=name, n=votes[name].n)
    yield replace(row, value=votes[name].value)
    yield replace(row, quantity=SINGLE, value=_mean(table[name].value for table in tables if name in table))
    yield replace(
        row, quantity=BEST, value=_mean(metric.value for metric in [_headlines(benchmark, best).get(name)] if metric)
    )


def _headlines(benchmark: Benchmark, scores: Sequence[Score]) -> dict[str, Metric]:
    return {metric.name: metric for metric in benchmark.summarise(scores) if metric.cells and metric.value is not None}


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None without such values."""
    present = [value for value in values if value is not None]
    return fmean(present) if present else None


def _totals(solver: Scored, questions: Sequence[VotedQuestion]) -> Iterator[Result]:
    """Yield counts of refused and unreadable samples, and the accuracy by the winner's share."""
    sampled, last = sum(question.sample_count for question in questions), sum(question.last for question in questions)
    row = Result(NAME, "", FRACTION, None, solver.solver, n=sampled)
    refused = sum(question.refused for question in questions)
    yield replace(row, quantity="share of refusals", value=refused / sampled if sampled else None)
    unreadable = sum(question.unreadable for question in questions)
    yield replace(row, quantity="share of unreadable samples", value=unreadable / last if last else 0.0)
    yield replace(row, quantity="mean share of the winner", value=_mean(question.share for question in questions))
    without = [question for question in questions if None in question.samples]
    if without:
        count, ids = (
            sum(score is None for question in without for score in question.samples),
            [question.vote.id for question in without],
        )
        name = "samples without a verdict"
        yield replace(row, quantity=name, unit="samples", value=float(count), ids=tuple(ids))
    judged = [question for question in questions if question.vote.correct is not None]
    for low, high, name in SHARES:
        if inside := [question for question in judged if question.share is not None and low < question.share <= high]:
            row = Result(NAME, "", FRACTION, None, solver.solver, metric=ACCURACY, group=name)
            metric = accuracy(ACCURACY, [question.vote for question in inside])
            yield replace(with_interval(row, metric), quantity="accuracy by share of the winner", n=len(inside))
            value = _mean(question.confidence for question in inside)
            yield replace(row, quantity="claimed by share of the winner", value=value, n=len(inside), detail=True)


def lead(_: Comparison, section_rows: Sequence[Result]) -> str:
    """Compare the vote with a single sample by the headline metric."""
    votes = {row.a: row for row in section_rows if row.quantity == VOTE and not row.group}
    singles = {row.a: row for row in section_rows if row.quantity == SINGLE and not row.group}
    parts = [
        f"{name}: the vote scores {vote.value:.3f} ({vote.metric}), a single sample {singles[name].value:.3f}"
        for name, vote in votes.items()
        if vote.value is not None and singles[name].value is not None
    ]
    return f"{'; '.join(parts)}." if parts else ""


SECTION = statistic(rows, lead, headings={"a": "solver"}, order=190)
