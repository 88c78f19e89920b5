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
    """Yield counts for each pair; the note names differing settings."""
    for pair in comparison.pairs:
        a, b = comparison.named(pair.a), comparison.named(pair.b)
        of_a, of_b = ({score.id for score in solver.scores} for solver in (a, b))
        failed = comparison.overlap(a, b).lost.sum()
        settings_a, settings_b = a.data.settings, b.data.settings
        # Predictions have no settings.
        names = sorted({*settings_a, *settings_b}) if settings_a and settings_b else ()
        changed = [key for key in names if settings_a.get(key) != settings_b.get(key)]
        changes = "; ".join(f"{key}: {settings_a.get(key, '-')} -> {settings_b.get(key, '-')}" for key in changed)
        note = f"asked with other settings ({changes})" if changes else ""
        yield Result(NAME, "shared", QUESTIONS, float(len(of_a & of_b)), a=pair[0], b=pair[1], note=note)
        for name, count in (("only a", len(of_a - of_b)), ("only b", len(of_b - of_a)), ("failed", failed)):
            yield Result(NAME, name, QUESTIONS, float(count), a=pair[0], b=pair[1])


SECTION = statistic(rows, order=40)
