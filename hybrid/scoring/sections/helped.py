"""Which questions does one solver get right and the other wrong?

n: questions that both have and neither failed, of those that are right or wrong
source: ours
values: 0 to n, in questions

- <right|partly right|wrong|no answer> -> <right|partly right|wrong|no answer> = questions with the first verdict from
  a and the second from b. wrong -> right is helped, right -> wrong is harmed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.parts import parts
from hybrid.scoring.result import Result
from hybrid.scoring.score import answered

NAME = "helped"
VERDICTS = ("right", "partly right", "wrong", "no answer")
HELPED, HARMED = "wrong -> right", "right -> wrong"
NAMED = 4


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield for every pair, main pairs first, the number of questions for each combination of verdicts."""
    others = [pair for pair in comparison.pairs if pair not in comparison.main_pairs]
    for pair in (*comparison.main_pairs, *others):
        part = next(parts(comparison, NAME, *map(comparison.named, pair), notes=False))
        # A question without a readable answer is neither right nor wrong.
        first, second = (
            np.select([~answered(answer), correct == 1, correct == 0], ["no answer", "right", "wrong"], "partly right")
            for answer, correct in zip(part.seen.answer, part.seen.correct(), strict=True)
        )
        for a, b in itertools.product(VERDICTS, repeat=2):
            if (flags := (first == a) & (second == b)).any():
                yield part.count(f"{a} -> {b}", flags, none="")


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """State the helped and harmed counts of the main pairs."""
    count = {(row.a, row.b, row.quantity): round(row.value or 0) for row in section_rows}
    pairs = {(row.a, row.b) for row in section_rows}
    parts = [
        f"{pair.a} -> {pair.b}: {count.get((*pair, HELPED), 0)} helped, {count.get((*pair, HARMED), 0)} harmed"
        for pair in comparison.main_pairs
        if tuple(pair) in pairs
    ]
    return f"Of the questions that both answered, {'; '.join(parts[:NAMED])}." if parts else ""


SECTION = statistic(rows, lead, chart="counts", order=50)
