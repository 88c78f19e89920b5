"""Whether two solvers are right about the same questions, and wrong about the same ones.

    kappa([True, False, True], [True, False, False], ["q1", "q2", "q3"]).value
    shared_mistakes([True, False], [True, False], ["depth, 2 choices", "depth, 2 choices"]).ratio

Pure functions over plain sequences, one entry a question; their order does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.stats import Interval

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

CLUSTERED = "linearised over clusters, Student's t"
"""The name of the method of `kappa`'s interval."""

_ROUNDING = 1e-12
"""Shares and probabilities this near to each other, relatively, are the same."""


@dataclass(frozen=True, slots=True)
class Kappa:
    """Agreement of two raters beyond chance: 1 for full agreement, 0 for that of independent raters, down to -1.

    `value` is None where both gave one and the same label to everything: chance agreement is then 1. `interval` is
    None without a value, for fewer than two clusters, and where no cluster's share varies (full agreement among them).
    """

    value: float | None
    interval: Interval | None
    n: int
    agreed: int
    """Entries with the same label from both."""
    expected: float
    """Entries on which raters with these shares of labels would agree if they were independent."""


@dataclass(frozen=True, slots=True)
class SharedMistakes:
    """How many questions two solvers both get wrong, next to what independent errors would give.

    `expected` is `wrong_a * wrong_b / n`, independence over all questions at once. `expected_within` is the sum of that
    over the strata: independence among questions of one task and number of choices. What is hard for every solver makes
    the first too small. `ratio` is `both_wrong / expected_within`, None where that is 0. `p_value` is two-sided, of
    independence within every stratum; None where the margins leave only one possible number of shared mistakes.
    """

    n: int
    wrong_a: int
    wrong_b: int
    both_wrong: int
    expected: float
    expected_within: float
    ratio: float | None
    p_value: float | None
    test: str
    """The method behind `p_value`, or "none"."""


def kappa(a: Sequence[Hashable], b: Sequence[Hashable], clusters: Sequence[str], level: float = 0.95) -> Kappa:
    """Cohen's kappa of two raters' labels (of right and wrong, or any others) with an interval over clusters.

    kappa = (p_o - p_e) / (1 - p_e): Cohen, Educational and Psychological Measurement 20 (1960) 37-46, equation 1. The
    variance is the sum over clusters of what each adds to kappa, linearised: for one question a cluster it is that of
    Fleiss, Cohen and Everitt, Psychological Bulletin 72 (1969) 323-327, equation 13, and for larger ones that of Yang
    and Zhou, Statistics in Medicine 33 (2014) 2612-2633, either times m / (m - 1) for m clusters. The quantile is
    Student's t with m - 1 degrees of freedom; ends are cut at -1 and 1.

    Args:
        a: the first rater's labels.
        b: the second's, of the same questions in the same order.
        clusters: what each question belongs to; rows of one cluster are not independent.
        level: nominal coverage, inside 0..1.

    Raises:
        ValueError: sequences of different lengths, or a level outside 0..1.
    """
    _refuse_unequal(len(a), len(b), len(clusters))
    raise NotImplementedError


def shared_mistakes(
    a_right: Sequence[bool], b_right: Sequence[bool], strata: Sequence[str], clusters: Sequence[str] | None = None
) -> SharedMistakes:
    """Count the questions that two solvers both get wrong, and test it against independent errors within strata."""
    raise NotImplementedError


def _refuse_unequal(*lengths: int) -> None:
    if len(set(lengths)) > 1:
        raise ValueError(f"sequences of different lengths: {', '.join(map(str, lengths))}")
