"""Exact tests that compare two solvers' right and wrong answers to the same single questions by enumerating all tables.

unconditional(helped=5, harmed=0, questions=10)    # 0.027: over all tables of 10 questions
mcnemar(helped=5, harmed=0)                        # 0.063: given that the two differ on 5
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

# Number of values tried in each of the three rounds of the search for the worst share of differing questions.
_STEPS = 400


@cache
def unconditional(helped: int, harmed: int, questions: int) -> float:
    """Return the two-sided exact p value for equal accuracy of both solvers on randomly drawn questions.

    Suissa and Shuster, Biometrics 47 (1991) 361-372: tables count as extreme if |helped - harmed| / sqrt(helped +
    harmed) is at least the observed value; p is the probability of these tables, at the share of differing questions
    that maximises this probability. The test thus keeps its level whatever that share is, and has more power than
    `mcnemar`, which conditions on the number of differing questions. Meant for some dozens of questions: the number of
    tables is quadratic in the number of questions. Raises `ValueError` for counts that are negative or exceed the
    questions.
    """
    _refuse_negative(helped, harmed)
    if helped + harmed > questions:
        raise ValueError(f"the discordant counts {helped} and {harmed} do not fit {questions} questions")
    squared, discordant = (helped - harmed) ** 2, helped + harmed
    if not squared:
        return 1.0
    as_far = np.zeros(questions + 1)
    for differ in range(1, questions + 1):
        ways = (
            math.comb(differ, k) for k in range(differ + 1) if (2 * k - differ) ** 2 * discordant >= squared * differ
        )
        as_far[differ] = math.comb(questions, differ) * (sum(ways) / (1 << differ))
    powers, low, high = np.arange(questions + 1), 0.0, 1.0
    worst = 0.0
    for _ in range(3):
        shares = np.linspace(low, high, _STEPS + 1)[:, None]
        p_values = (shares**powers * (1 - shares) ** (questions - powers)) @ as_far
        place, worst = int(p_values.argmax()), max(worst, float(p_values.max()))
        low, high = float(shares[max(0, place - 1), 0]), float(shares[min(_STEPS, place + 1), 0])
    return min(1.0, worst)


def mcnemar(helped: int, harmed: int) -> float:
    """Return the two-sided exact (conditional) McNemar p value of the two discordant counts; 1 if both are 0.

    McNemar, Psychometrika 12 (1947) 153-157; the exact form as in Fagerland, Lydersen and Laake, BMC Medical Research
    Methodology 13 (2013) 91. Raises `ValueError` for a negative count.
    """
    _refuse_negative(helped, harmed)
    discordant, ways, lower_tail = helped + harmed, 1, 0
    # Integer arithmetic is exact, and importing scipy.stats takes longer than this loop does for any number of
    # questions.
    for count in range(min(helped, harmed) + 1):
        lower_tail += ways
        ways = ways * (discordant - count) // (count + 1)
    return min(1.0, 2 * lower_tail / (1 << discordant))


def _refuse_negative(helped: int, harmed: int) -> None:
    if helped < 0 or harmed < 0:
        raise ValueError(f"the discordant counts {helped} and {harmed} must not be negative")


@cache
def _tables(questions: int, *, conditional: bool, level: float) -> tuple[tuple[int, int], ...]:
    """Return the helped and harmed counts of each table with helped > harmed for which the test rejects."""
    return tuple(
        (helped, harmed)
        for helped in range(1, questions + 1)
        for harmed in range(min(helped, questions - helped + 1))
        if (mcnemar(helped, harmed) if conditional else unconditional(helped, harmed, questions)) < level
    )


def power(difference: float, discordant: float, questions: int, *, conditional: bool, level: float = 0.05) -> float:
    """Return the power of `unconditional` (`mcnemar` if `conditional`) to detect a true difference above 0.

    Questions are independent. `discordant` is the share of questions on which exactly one solver is right; it is at
    least the difference.
    """
    up, down, same = (discordant + difference) / 2, (discordant - difference) / 2, 1 - discordant
    return math.fsum(
        math.comb(questions, helped)
        * math.comb(questions - helped, harmed)
        * (up**helped * max(0.0, down) ** harmed * max(0.0, same) ** (questions - helped - harmed))
        for helped, harmed in _tables(questions, conditional=conditional, level=level)
    )
