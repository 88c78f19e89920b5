"""A witness: one whose answer is right with some probability, reckoned in log-odds and recalibrated on real cases.

    AnswerConfidence(rate=0.81, said=0.55).worth        # a tool: its card's overall rate, its curve here
    AnswerConfidence(rate=0.57, said=6 / 7).worth       # an MLLM: its accuracy, its share of the votes
    fit([(0.4, 1.0), (0.9, 0.0)])                               # what two real cases make of such log-odds

A confidence that a witness states about one answer is a claim that was never measured on such pictures. It is therefore
pulled half-way, in log-odds, to what is known of the witness as a whole (`CLAIM`). Real cases then move the result by
an intercept and a slope: Platt's logistic recalibration (1999), each with a normal prior around "nothing to correct",
so that a few cases change little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.types import Json

CLAIM = 0.5
"""How much of the distance, in log-odds, between what is known of a witness and what it says of one answer is believed.

A confidence orders answers less well on photographs than on the generated pictures that a card counts. Half-way is a
round number. That a curve is too steep was first seen on 62 photographs of BLINK (odd items of Relative_Depth, val): on
these the arbiter without a trust file is not blind to them."""
SPREAD = 0.5
"""Standard deviation of the normal priors of intercept and slope: a witness is expected to be off by half a unit of
log-odds (0.80 stands for 0.71 to 0.87), and its confidence to count half as much too much or too little."""
CERTAIN = 1e-4
"""No probability is taken to be nearer to 0 or 1: one unforeseen case must be able to outweigh any witness."""


def log_odds(probability: float) -> float:
    """Natural logarithm of p / (1 - p), p kept `CERTAIN` away from 0 and 1."""
    kept = min(max(probability, CERTAIN), 1 - CERTAIN)
    return math.log(kept / (1 - kept))


def probability(log_odds: float) -> float:
    """The probability, 0..1, of these log-odds."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-log_odds))
    raised = math.exp(log_odds)
    return raised / (1 + raised)


@dataclass(frozen=True)
class Recalibration:
    """The recalibration of a witness' log-odds x on real cases: `intercept + slope * x`. The slope is never below 0."""

    intercept: float = 0.0
    slope: float = 1.0

    def __call__(self, log_odds: float) -> float:
        """The recalibrated log-odds."""
        return self.intercept + self.slope * log_odds


AS_CLAIMED = Recalibration()
"""Nothing was measured: log-odds stay as they are."""


@dataclass(frozen=True)
class AnswerConfidence:
    """The known accuracy of a witness and its confidence in one answer, both as probabilities 0..1 of being right.

    For graded answers (a scanpath) they are expected scores.
    """

    rate: float
    """Over all of its answers."""
    said: float | None = None
    """Of this answer; None where it says nothing of it."""
    recalibration: Recalibration = AS_CLAIMED
    counted_on: str = ""
    """What a card's rate and curve were counted on; empty where they are of no card."""

    @property
    def claimed(self) -> float:
        """Log-odds before any real case."""
        known = log_odds(self.rate)
        return known if self.said is None else known + CLAIM * (log_odds(self.said) - known)

    @property
    def log_odds(self) -> float:
        """Log-odds after the real cases."""
        return self.recalibration(self.claimed)

    @property
    def worth(self) -> float:
        """Probability, 0..1, that this answer is right, or the score that is expected of it."""
        return probability(self.log_odds)

    def as_json(self) -> dict[str, Json]:
        """Every number that the worth was reckoned from, and the worth."""
        return {
            "rate": self.rate,
            "said": self.said,
            **({"counted_on": self.counted_on} if self.counted_on else {}),
            "log_odds_claimed": self.claimed,
            "intercept": self.recalibration.intercept,
            "slope": self.recalibration.slope,
            "worth": self.worth,
        }


def fit(cases: Sequence[tuple[float, float]]) -> Recalibration:
    """The most probable intercept and slope for cases of (log-odds before recalibration, score 0..1).

    Maximises sum(score * ln p + (1 - score) * ln(1 - p)) - intercept^2 / (2 SPREAD^2) - (slope - 1)^2 / (2 SPREAD^2) by
    Newton's method; the function is concave, so there is one maximum. Where it lies at a slope below 0, more confidence
    would mean less: the slope is then 0 and the intercept the most probable one for it.
    """
    best = _maximum(cases, fixed_slope=None)
    return best if best.slope >= 0 else _maximum(cases, fixed_slope=0.0)


TIGHT = 1 / SPREAD**2
STEPS = 100


def _maximum(cases: Sequence[tuple[float, float]], fixed_slope: float | None) -> Recalibration:
    """Newton's method, each step halved until it does not lose; with `fixed_slope` over the intercept alone."""
    at = Recalibration(0.0, 1.0 if fixed_slope is None else fixed_slope)
    height = _posterior(at, cases)
    for _ in range(STEPS):
        step = _newton(at, cases, free=fixed_slope is None)
        size = 1.0
        while (tried := _moved(at, step, size)) and (reached := _posterior(tried, cases)) < height and size > CERTAIN:
            size /= 2
        if not reached > height:
            return at
        at, height = tried, reached
    return at


def _moved(at: Recalibration, step: tuple[float, float], size: float) -> Recalibration:
    return Recalibration(at.intercept + size * step[0], at.slope + size * step[1])


def _posterior(at: Recalibration, cases: Sequence[tuple[float, float]]) -> float:
    """The logarithm that `fit` maximises."""
    total = -TIGHT * (at.intercept**2 + (at.slope - 1) ** 2) / 2
    for x, score in cases:
        z = at(x)
        # ln p = -ln(1 + exp(-z)), without an overflow.
        total += score * z - max(z, 0.0) - math.log1p(math.exp(-abs(z)))
    return total


def _newton(at: Recalibration, cases: Sequence[tuple[float, float]], *, free: bool) -> tuple[float, float]:
    """The Newton step of intercept and slope, of the intercept alone where the slope is not free."""
    by_intercept, by_slope = -TIGHT * at.intercept, -TIGHT * (at.slope - 1)
    both, slope, intercept = 0.0, TIGHT, TIGHT
    for x, score in cases:
        p = probability(at(x))
        by_intercept += score - p
        by_slope += (score - p) * x
        weight = p * (1 - p)
        intercept, both, slope = intercept + weight, both + weight * x, slope + weight * x * x
    if not free:
        return by_intercept / intercept, 0.0
    area = intercept * slope - both * both
    return (slope * by_intercept - both * by_slope) / area, (intercept * by_slope - both * by_intercept) / area
