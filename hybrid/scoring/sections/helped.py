"""Which questions does one get right and the other wrong?

n: questions that both have and neither failed, of those that are right or wrong
source: ours
values: 0 to n, in questions

- <right|partly right|wrong|no answer> -> <right|partly right|wrong|no answer> = questions with the first verdict from
  a and the second from b. wrong -> right is helped, right -> wrong is harmed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybrid.scoring.compare import Comparison, SolverPair
from hybrid.scoring.definitions import statistic
from hybrid.scoring.result import QUESTIONS, Result
from hybrid.types import Score

NAME = "helped"
VERDICTS = ("right", "partly right", "wrong", "no answer")
HELPED, HARMED = "wrong -> right", "right -> wrong"
NAMED = 4


def verdict(score: Score) -> str:
    """The outcome of an answered question; a question without a readable answer is neither right nor wrong."""
    if score.answer is None:
        return "no answer"
    return "right" if score.correct == 1 else "wrong" if score.correct == 0 else "partly right"


def rows(comparison: Comparison) -> Iterator[Result]:
    """For every pair, the main ones first, the number of questions for each two verdicts that occur."""
    others = [pair for pair in comparison.pairs if pair not in comparison.main_pairs]
    for pair in (*comparison.main_pairs, *others):
        yield from _of_pair(comparison, pair)


def _of_pair(comparison: Comparison, pair: SolverPair) -> Iterator[Result]:
    shared = comparison.overlap(comparison.named(pair.a), comparison.named(pair.b))
    ids: dict[tuple[str, str], list[str]] = {}
    for row in shared.shared:
        if not row.first.outcome.failed and all(score.correct is not None for score in row.scores):
            a, b = map(verdict, row.scores)
            ids.setdefault((a, b), []).append(row.first.id)
    n = sum(map(len, ids.values()))
    for first in VERDICTS:
        for second in VERDICTS:
            if members := ids.get((first, second)):
                name = f"{first} -> {second}"
                yield Result(NAME, name, QUESTIONS, float(len(members)), *pair, n=n, ids=tuple(members))


def lead(comparison: Comparison, made: Sequence[Result]) -> str:
    """Helped and harmed of the main pairs."""
    count = {(row.a, row.b, row.quantity): round(row.value or 0) for row in made}
    known = {(row.a, row.b) for row in made}
    parts = [
        f"{pair.a} -> {pair.b}: {count.get((*pair, HELPED), 0)} helped, {count.get((*pair, HARMED), 0)} harmed"
        for pair in comparison.main_pairs
        if tuple(pair) in known
    ]
    return f"Of the questions that both answered, {'; '.join(parts[:NAMED])}." if parts else ""


SECTION = statistic(rows, lead, chart="counts", order=50)
