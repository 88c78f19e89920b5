"""Prior accuracy of an MLLM without a measurement, and the expected score of a guess.

prior = load("hybrid.benchmarks", "blink").card.prior_accuracy
prior.usual(prompt)     # 0.595 for a question of the route Relative_Depth
prior.guess(prompt)     # 0.5 for one of two choices

The accuracies by route are on the card of a benchmark. This module contains the values that need no card: `chance`, and
the prior accuracy of an MLLM on a route without a published row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hybrid.core.types import Kind, Prompt

# Default for routes without a published row. It is the mean of (accuracy - chance) / (1 - chance) over the tasks whose
# labels have not been corrected since (Fu et al., ECCV 2024, arXiv:2404.12390, Table 1).
ABOVE_CHANCE: Final = 0.195
# Chance of an answer without given options (a number, parts of an image): small, but not below the chance of guessing
# a small number.
OPEN: Final = 0.1


def chance(prompt: Prompt) -> float:
    """Return the probability, 0..1, that a guess at a prompt of this form is right."""
    number = len(prompt.choices)
    match prompt.kind:
        case Kind.CHOICE:
            return 1 / number if number else OPEN
        case Kind.YES_NO | Kind.CONTINUE:
            return 0.5
        case Kind.ORDER:
            return 1 / math.factorial(number) if number else OPEN
        case _:
            return OPEN


@dataclass(frozen=True)
class PriorAccuracy:
    """The published accuracy of MLLMs on a benchmark, and that of a guess. Both are empty if no rows are published."""

    # Mean accuracy of MLLMs by route, 0..1; for a scanpath their mean score.
    accuracy: Mapping[str, float] = field(default_factory=dict)
    # Expected score, 0..1, of a guessed scanpath by route.
    guessed: Mapping[str, float] = field(default_factory=dict)

    def guess(self, prompt: Prompt) -> float:
        """Return the expected score of a guess: its probability, 0..1, of being right; for a scanpath its score."""
        if prompt.kind is Kind.SCANPATH:
            return self.guessed.get(prompt.route, OPEN)
        return chance(prompt)

    def usual(self, prompt: Prompt) -> float:
        """Return the accuracy, 0..1, to assume on this prompt for an unmeasured MLLM; for a scanpath, its mean score.

        This is the published mean of the route, but (except for a scanpath) at least the accuracy of a guess. Without a
        published row, it is the accuracy of a guess, plus the fraction `ABOVE_CHANCE` of the distance to 1.
        """
        guess = self.guess(prompt)
        published = self.accuracy.get(prompt.route)
        if published is None:
            return guess + ABOVE_CHANCE * (1 - guess)
        return published if prompt.kind is Kind.SCANPATH else max(guess, published)
