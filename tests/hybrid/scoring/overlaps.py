"""Comparisons of solvers by letters, and the questions that they share: r right, w wrong, a no answer, f failed."""

from dataclasses import replace

from hybrid.core.types import Score
from hybrid.scoring.compare import Comparison, ComparisonOptions, compare
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.score import Scored
from tests.hybrid.scoring.solvers import solver

VALUES = {"r": 1.0, "w": 0.0, "a": 0.5}
ANSWERS = {"r": "A", "w": "B"}


def compared(*words: str, allow_failed: bool = True, **more: str) -> Comparison:
    """Return solvers `a`, `b`, ... and named solvers, which gave these letters to the questions of one task."""
    word_by_name = dict(zip("abcd", words, strict=False)) | {
        name.replace("_", "@"): word for name, word in more.items()
    }
    options = ComparisonOptions(allow_failed=allow_failed)
    return compare([solver(name, {"Jigsaw": word}) for name, word in word_by_name.items()], options)


def shared_of(comparison: Comparison, *names: str) -> Overlap:
    return comparison.overlap(*map(comparison.named, names))


def on_pictures(scored: Scored) -> Scored:
    """Return the scores with their questions on five pictures."""

    def moved(score: Score) -> Score:
        return replace(score, cluster=f"picture {int(score.id.rsplit('_', 1)[1]) % 5}")

    of_rules = {rule: replace(value, scores=tuple(map(moved, value.scores))) for rule, value in scored.counted.items()}
    return replace(scored, counted=of_rules)
