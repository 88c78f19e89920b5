"""The probability that an answer is right: its source's accuracy, adjusted by the confidence stated for this answer.

AnswerConfidence(rate=0.81, said=0.55).worth                             # nothing was measured
AnswerConfidence(rate=0.81, said=0.55, usually=1.1, slope=0.8).worth     # relative to its usual confidence
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hybrid.core.types import Json

# Weight of a stated confidence's deviation, in log-odds, if nothing was measured. A confidence ranks answers less well
# on new pictures than on the pictures that were counted for a card: the right weight is between 1 (it ranks equally
# well) and 0 (it does not rank at all), so the midpoint is off by at most a half.
CLAIM = 0.5
# Probabilities are clipped this far from 0 and 1, so that no source is ever treated as certain.
CERTAIN = 1e-4


def log_odds(probability: float) -> float:
    """Return the log-odds, ln(p / (1 - p)), with p clipped to [`CERTAIN`, 1 - `CERTAIN`]."""
    clipped = min(max(probability, CERTAIN), 1 - CERTAIN)
    return math.log(clipped / (1 - clipped))


def probability(log_odds: float) -> float:
    """Return the probability, 0..1, for these log-odds."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-log_odds))
    raised = math.exp(log_odds)
    return raised / (1 + raised)


# Number of standard deviations by which the log-odds of a tool's answer must exceed those of the MLLM's answer to
# replace this answer. Chosen on simulated counts (`bench/arbiter.py`) as the largest tried value that costs at most
# 0.001 of all answers in every setting. This margin prevents 17 to 36 % of the losses that occur when a better answer
# is replaced.
LIKELY = 0.25


@dataclass(frozen=True)
class AnswerConfidence:
    """The known accuracy of a tool or an MLLM and its stated confidence in one answer, as probabilities of being right.

    For graded answers (a scanpath), accuracy and confidence are expected scores.
    """

    # Accuracy over all of its answers.
    rate: float
    # Stated confidence in this answer; None if none was stated.
    said: float | None = None
    # Mean log-odds of the confidences that the tool or the MLLM states; if None (not measured), the log-odds of `rate`
    # are used.
    usually: float | None = None
    # Weight of the deviation from `usually`, at least 0.
    slope: float = CLAIM
    # Number of answers from which the rate was computed; infinite if the rate is certain.
    n: float = math.inf
    # The questions on which a card's rate and curve were counted; empty without a card.
    counted_on: str = ""

    @property
    def apart(self) -> float:
        """Deviation, in log-odds, of the stated confidence in this answer from the usual confidence."""
        if self.said is None:
            return 0.0
        return log_odds(self.said) - (log_odds(self.rate) if self.usually is None else self.usually)

    @property
    def log_odds(self) -> float:
        """Log-odds that this answer is right."""
        return log_odds(self.rate) + self.slope * self.apart

    @property
    def deviation(self) -> float:
        """Standard deviation of the log-odds, from the number of answers behind the rate."""
        rate = probability(log_odds(self.rate))
        return 0.0 if math.isinf(self.n) else 1 / math.sqrt(self.n * rate * (1 - rate))

    def lead_over(self, other: AnswerConfidence) -> float:
        """Return the lead of this answer's log-odds over another's, in standard deviations of the difference."""
        lead = self.log_odds - other.log_odds
        deviation = math.hypot(self.deviation, other.deviation)
        return lead / deviation if deviation > 0 else math.copysign(math.inf, lead) if lead else 0.0

    @property
    def worth(self) -> float:
        """Probability, 0..1, that this answer is right, or its expected score."""
        return probability(self.log_odds)

    def as_json(self) -> dict[str, Json]:
        """Return the worth and every number from which it was computed."""
        return {
            "rate": self.rate,
            "n": None if math.isinf(self.n) else self.n,
            "said": self.said,
            **({"counted_on": self.counted_on} if self.counted_on else {}),
            "usually": self.usually,
            "slope": self.slope,
            "worth": self.worth,
        }
