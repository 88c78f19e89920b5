"""How the metrics are computed that any benchmark may have: those of rotations, failures, judges and agreement.

    card_of("with_failed.accuracy_macro", (*benchmark.card.metrics, *FURTHER))

The metrics of a benchmark are on its card; `hybrid benchmarks show NAME` prints those and `FURTHER`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hybrid.benchmarks.card import MetricCard

FURTHER: Final = (
    MetricCard(
        "rotation.accuracy",
        "right answers / asks, over all rotations of the options",
        "questions that were rotated, none of whose rotations failed",
        "ours (--rotate), after the circular protocol of MMBench (Liu et al. 2023) and MVP-Bench",
    ),
    MetricCard(
        "rotation.consistency",
        "questions whose chosen option, by its words, is the same in every rotation / questions",
        "questions that were rotated, none of whose rotations failed",
        "ours (--rotate)",
    ),
    MetricCard(
        "rotation.all_correct",
        "questions right in every rotation / questions",
        "questions that were rotated, none of whose rotations failed",
        "ours (--rotate), as MVP-Bench's circular accuracy",
    ),
    MetricCard(
        "rotation.says.<letter>",
        "asks that are answered with the letter / asks, over all rotations: even, where no letter is liked",
        "questions that were rotated, none of whose rotations failed",
        "ours (--rotate)",
    ),
    MetricCard(
        "rotation.excluded_in.<task>",
        "number of questions of a task that has no rotation",
        "all questions",
        "ours (--rotate)",
        values="0 to n, in questions",
    ),
    MetricCard(
        "rotation.excluded",
        "number of questions without a rotation",
        "all questions",
        "ours (--rotate)",
        "Letters are drawn in the picture, or the text does not show the options in a known form.",
        "0 to n, in questions",
    ),
    MetricCard(
        "with_failed.<metric>",
        "the metric, every failed question counted as wrong",
        "as the metric's, and the failed questions",
        "ours: the second denominator; printed where a question failed",
        values="as the metric's",
    ),
    MetricCard(
        "judged.<metric>",
        "the metric, unreadable replies counted as the judge read them",
        "as the metric's",
        "ours (hybrid score --verdicts), in the place of the judges of BLINK's and MVP-Bench's code",
        values="as the metric's",
    ),
    MetricCard(
        "agreement",
        "predictions that our parser reads as the authors' extraction did / predictions",
        "predictions with a stored answer",
        "ours (hybrid score --field text)",
        "Where neither finds an answer they agree.",
    ),
    MetricCard(
        "undecided",
        "predictions in which our parser reads no answer / predictions",
        "predictions",
        "ours (hybrid score --field text)",
    ),
)
"""Metrics that any benchmark may have besides its own."""


def card_of(name: str, cards: Iterable[MetricCard]) -> MetricCard | None:
    """The first card that describes a metric of this name; None where no card does."""
    return next((card for card in cards if card.describes(name)), None)
