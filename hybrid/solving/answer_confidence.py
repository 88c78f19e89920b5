"""The probability that one answer is right: how often its giver is, moved by what it says of this answer.

AnswerConfidence(rate=0.81, said=0.55).worth                             # nothing was measured
AnswerConfidence(rate=0.81, said=0.55, usually=1.1, slope=0.8).worth     # next to what it says of others
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hybrid.core.types import Json

# Where nothing was measured: how much of the distance, in log-odds, to what is said of an answer is believed.
#
# A confidence orders answers less well elsewhere than on the pictures that a card counts: from 1 (as well) to 0 (not at
# all). Half-way is never off by more than a half.
CLAIM = 0.5
# No probability is taken to be nearer to 0 or 1: one unforeseen case must be able to outweigh any giver.
CERTAIN = 1e-4


def log_odds(probability: float) -> float:
    """Natural logarithm of p / (1 - p), p kept `CERTAIN` away from 0 and 1."""
    clipped = min(max(probability, CERTAIN), 1 - CERTAIN)
    return math.log(clipped / (1 - clipped))


def probability(log_odds: float) -> float:
    """The probability, 0..1, of these log-odds."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-log_odds))
    raised = math.exp(log_odds)
    return raised / (1 + raised)


# Standard deviations by which the log-odds of a tool's answer must exceed those of the MLLM's to replace it.
#
# Chosen on simulated counts (`bench/arbiter.py`): of the leads tried the largest that costs at most 0.001 of all
# answers in every setting. It averts 17 to 36 % of what is lost by replacing a better answer.
LIKELY = 0.25


@dataclass(frozen=True)
class AnswerConfidence:
    """The known accuracy of a tool or an MLLM, and what it says of one answer, both probabilities 0..1 of being right.

    For graded answers (a scanpath) they are expected scores.
    """

    # Over all of its answers.
    rate: float
    # Of this answer; None where it says nothing of it.
    said: float | None = None
    # Mean log-odds of what it says of its answers; None where that was not measured: those of its rate.
    usually: float | None = None
    # How much of the distance between the two is believed, never below 0.
    slope: float = CLAIM
    # How many answers the rate rests on; infinite where it is certain.
    n: float = math.inf
    # The questions that a card's rate and curve were counted on; empty where they are of no card.
    counted_on: str = ""

    @property
    def apart(self) -> float:
        """How far, in log-odds, what it says of this answer lies above what it usually says."""
        if self.said is None:
            return 0.0
        return log_odds(self.said) - (log_odds(self.rate) if self.usually is None else self.usually)

    @property
    def log_odds(self) -> float:
        """Of this answer."""
        return log_odds(self.rate) + self.slope * self.apart

    @property
    def deviation(self) -> float:
        """Standard deviation of the log-odds, from the number of answers that the rate was counted on."""
        rate = probability(log_odds(self.rate))
        return 0.0 if math.isinf(self.n) else 1 / math.sqrt(self.n * rate * (1 - rate))

    def lead_over(self, other: AnswerConfidence) -> float:
        """By how many standard deviations of the difference this answer's log-odds exceed those of another."""
        lead = self.log_odds - other.log_odds
        deviation = math.hypot(self.deviation, other.deviation)
        return lead / deviation if deviation > 0 else math.copysign(math.inf, lead) if lead else 0.0

    @property
    def worth(self) -> float:
        """Probability, 0..1, that this answer is right, or the score that is expected of it."""
        return probability(self.log_odds)

    def as_json(self) -> dict[str, Json]:
        """Every number that the worth was reckoned from, and the worth."""
        return {
            "rate": self.rate,
            "n": None if math.isinf(self.n) else self.n,
            "said": self.said,
            **({"counted_on": self.counted_on} if self.counted_on else {}),
            "usually": self.usually,
            "slope": self.slope,
            "worth": self.worth,
        }
