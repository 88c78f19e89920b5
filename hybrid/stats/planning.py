"""How many questions a difference needs, and which difference so many questions can show."""

from __future__ import annotations

import math
from statistics import NormalDist

from hybrid.errors import UsageError

TYPICAL_DISCORDANT = 0.4
"""Assumed share of questions on which exactly one of two solvers is right: the recorded answers of four models to 1,901
BLINK val questions give 0.37 to 0.49 over the six pairs."""


def sample_size(difference: float, discordant: float | None = None, power: float = 0.8, level: float = 0.05) -> int:
    """Questions needed for McNemar's test to find a `difference` between two solvers on the same questions.

    n = (z(level / 2) sqrt(psi) + z(1 - power) sqrt(psi - d^2))^2 / d^2, rounded up, with d the difference of
    accuracies and psi the share of questions on which exactly one is right: Connor, Biometrics 43 (1987) 207-211,
    p. 209. `level` is the two-sided error, not a coverage. Without `discordant` it is `TYPICAL_DISCORDANT`, or the
    difference where that is larger. For the normal approximation: the exact test needs a few questions more. Raises
    `UsageError` unless 0 < |difference| <= discordant <= 1 and 0 < level < power < 1.
    """
    size = abs(difference)
    share = max(TYPICAL_DISCORDANT, size) if discordant is None else discordant
    if not 0 < size <= share <= 1:
        raise UsageError(f"--difference {difference} at {share} discordant: needs 0 < |difference| <= discordant <= 1")
    if not 0 < level < power < 1:
        raise UsageError(f"power {power} at level {level}: needs 0 < level < power < 1")
    z_level, z_power = NormalDist().inv_cdf(1 - level / 2), NormalDist().inv_cdf(power)
    root = z_level * math.sqrt(share) + z_power * math.sqrt(share - size * size)
    return max(1, math.ceil(root * root / (size * size)))


def detectable_difference(
    questions: int, discordant: float | None = None, power: float = 0.8, level: float = 0.05
) -> float:
    """The least difference of accuracies that McNemar's test finds among so many `questions`: `sample_size` inverted.

    Connor's formula (Biometrics 43 (1987) 207-211, p. 209), squared, is quadratic in d: with u = z(level / 2) and
    v = z(1 - power), d = sqrt(psi) (u sqrt(n) + v sqrt(n + v^2 - u^2)) / (n + v^2).
    Without `discordant`, psi is `TYPICAL_DISCORDANT`, or d itself where d is larger. Raises `UsageError` where so few
    questions cannot show any difference, and unless 0 < discordant <= 1 and 0 < level < power < 1.
    """
    if discordant is not None and not 0 < discordant <= 1:
        raise UsageError(f"--discordant {discordant}: needs 0 < discordant <= 1")
    if not 0 < level < power < 1:
        raise UsageError(f"power {power} at level {level}: needs 0 < level < power < 1")
    z_level, z_power = NormalDist().inv_cdf(1 - level / 2), NormalDist().inv_cdf(power)
    share = TYPICAL_DISCORDANT if discordant is None else discordant
    room = questions + z_power**2 - z_level**2
    if questions >= z_level**2:
        size = z_level * math.sqrt(questions) + z_power * math.sqrt(room)
        least = math.sqrt(share) * size / (questions + z_power**2)
        if least <= share:
            return least
        if discordant is None:
            # All discordant answers favour one solver: psi = d, and the equation is quadratic in sqrt(1 - d).
            root = (math.sqrt(questions * room) - z_level * z_power) / (questions + z_power**2)
            return 1 - root**2
    known = "" if discordant is None else f" at {discordant} discordant"
    raise UsageError(f"--questions {questions}{known}: too few to find any difference")
