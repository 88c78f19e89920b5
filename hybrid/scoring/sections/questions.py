"""Which questions do two solvers share?

n: not given
source: ours
values: 0 to n, in questions

- shared = questions that both have
- only a = questions that only a has
- only b = questions that only b has
- failed = shared questions that one of the two failed
"""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.result import QUESTIONS, Result

NAME = "questions"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Counts for each pair; the note says which settings differ."""
    for pair in comparison.pairs:
        a, b = comparison.named(pair.a), comparison.named(pair.b)
        of_a, of_b = ({score.id for score in one.scores} for one in (a, b))
        lost = comparison.overlap(a, b).lost.sum()
        before, after = a.data.settings, b.data.settings
        # Predictions have none.
        names = sorted({*before, *after}) if before and after else ()
        changed = [key for key in names if before.get(key) != after.get(key)]
        changes = "; ".join(f"{key}: {before.get(key, '-')} -> {after.get(key, '-')}" for key in changed)
        note = f"asked with other settings ({changes})" if changes else ""
        yield Result(NAME, "shared", QUESTIONS, float(len(of_a & of_b)), *pair, note=note)
        for name, count in (("only a", len(of_a - of_b)), ("only b", len(of_b - of_a)), ("failed", lost)):
            yield Result(NAME, name, QUESTIONS, float(count), *pair)


SECTION = statistic(rows, order=40)
