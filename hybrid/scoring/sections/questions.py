"""How many questions each pair of solvers shares, and how many only one of them has."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.benchmarks.card import MetricCard
from hybrid.scoring.compare import Comparison
from hybrid.scoring.result import QUESTIONS, Result, Section
from hybrid.scoring.score import Scored

NAME = "questions"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Counts for each pair; the note says which settings differ."""
    for pair in comparison.pairs:
        a, b = comparison.named(pair.a), comparison.named(pair.b)
        shared, of_a, of_b = (
            comparison.overlap(a, b),
            {score.id for score in a.scores},
            {score.id for score in b.scores},
        )
        counts = {
            "shared": len(of_a & of_b),
            "only a": len(of_a - of_b),
            "only b": len(of_b - of_a),
            "failed": len(shared.lost),
        }
        note = _settings(a, b)
        for name, count in counts.items():
            yield Result(NAME, name, QUESTIONS, float(count), *pair, note=note if name == "shared" else "")


def _settings(a: Scored, b: Scored) -> str:
    """The settings that differ. Predictions have none."""
    before, after = a.data.settings, b.data.settings
    if not (before and after):
        return ""
    changed = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    told = "; ".join(f"{key}: {before.get(key, '-')} -> {after.get(key, '-')}" for key in changed)
    return f"asked with other settings ({told})" if told else ""


COUNT = "0 to n, in questions"

SECTION = Section(
    NAME,
    "Which questions do two solvers share?",
    (
        MetricCard("shared", "questions that both have", "not given", "ours", values=COUNT),
        MetricCard("only a", "questions that only a has", "not given", "ours", values=COUNT),
        MetricCard("only b", "questions that only b has", "not given", "ours", values=COUNT),
        MetricCard("failed", "shared questions that one of the two failed", "not given", "ours", values=COUNT),
    ),
    rows,
    order=40,
)
