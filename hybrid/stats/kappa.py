"""Measures whether two solvers are right and wrong about the same questions.

    kappa([True, False, True], [True, False, False], ["q1", "q2", "q3"]).value
    shared_mistakes([True, False], [True, False], ["depth, 2 choices", "depth, 2 choices"]).ratio

Pure functions over plain sequences with one entry per question; the order does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from hybrid.stats import Interval
from hybrid.stats.linearised import Floats, Indices, summed
from hybrid.stats.scatter import quantile_of, tail_of

# Name of the method of `kappa`'s interval.
ADDED_CELLS = "linearised with half a question added to each cell, by clusters, Student's t"

EXACT = "exact, given the wrong answers in each stratum"
# Name of the test of `shared_mistakes` for clusters; `EXACT` is for single questions.
OVER_CLUSTERS = "Mantel-Haenszel over clusters"

# Total number of questions that are added to a table, spread evenly over its cells: half a question per cell of a 2 x 2
# table.
_ADDED = 2.0

# Weight, in clusters, of the prior belief that rows of a cluster are all alike, as for the interval of a metric.
_EFFECT_PRIOR = 0.25

# A sum whose size, relative to the contribution of one question, is this small counts as zero.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Kappa:
    """Agreement of two raters beyond chance: 1 for full agreement, 0 for independent raters, down to -1.

    `value` is None if both gave the same single label to everything, because chance agreement is then 1. `error`, the
    large-sample standard error of the value, and `interval` are None without a value and for fewer than two clusters.
    """

    value: float | None
    # The large-sample error is 0 for full agreement; `interval` is not based on it.
    error: float | None
    interval: Interval | None
    n: int
    # Number of entries to which both raters gave the same label.
    agreed: int
    # Expected number of agreements if raters with these shares of labels were independent.
    expected: float


@dataclass(frozen=True, slots=True)
class SharedMistakes:
    """The number of questions that two solvers both get wrong, and the number expected if their errors are independent.

    `expected` is `wrong_a * wrong_b / n`, for independence over all questions together; it is too small if some
    questions are hard for every solver. `expected_within` is the sum of this product over the strata, for independence
    among questions of one task and number of choices. `ratio` is `both_wrong / expected_within`, None if that is 0.
    `p_value` is two-sided, for independence within every stratum; None if the margins allow only one number of shared
    mistakes.
    """

    n: int
    wrong_a: int
    wrong_b: int
    both_wrong: int
    expected: float
    expected_within: float
    ratio: float | None
    p_value: float | None
    # The method of `p_value`, or "none".
    test: str


def kappa(a: Sequence[Hashable], b: Sequence[Hashable], clusters: Sequence[str], level: float = 0.95) -> Kappa:
    """Return Cohen's kappa of two raters' labels (right and wrong, or other labels), with an interval over clusters.

    kappa = (p_o - p_e) / (1 - p_e): Cohen, Educational and Psychological Measurement 20 (1960) 37-46, p. 40. The
    squared error is the sum over clusters of the squared linearised contributions to kappa. With one question per
    cluster it is the large-sample variance of Fleiss, Cohen and Everitt, Psychological Bulletin 72 (1969) 323-327. With
    several questions per cluster it is the variance of Yang and Zhou, Statistics in Medicine 33 (2014) 2612-2633. Both
    variances are multiplied by m / (m - 1) for m clusters.

    If few answers are wrong, that error is far too small, and without any mistakes it is 0. Both the centre and the
    error of the interval are therefore computed from the table with half a question added to each cell, as Haldane,
    Annals of Human Genetics 20 (1956) 309-311, does for odds ratios; a table of k labels gets 2 / k^2 per cell. The
    questions count by their effective number, which is their number divided by the design effect. The design effect is
    the ratio of the variance over clusters to that over rows, shrunk with the weight of a quarter cluster toward rows
    that are all alike. The quantile is Student's t with m - 1 degrees of freedom; the interval includes the value, and
    its ends are clipped to -1 and 1.

    Args:
        a: the first rater's labels.
        b: the second rater's labels of the same questions in the same order.
        clusters: the cluster of each question; rows of one cluster are not independent.
        level: nominal coverage, between 0 and 1.

    Raises:
        ValueError: sequences of different lengths, or a level outside 0..1.
    """
    _refuse_unequal(len(a), len(b), len(clusters))
    tail = tail_of(level)
    places = _places([*a, *b])
    first, second = places[: len(a)], places[len(a) :]
    count = int(places.max(initial=0)) + 1
    n, agreed = len(a), int((first == second).sum())
    rows, columns = (np.bincount(side, minlength=count) for side in (first, second))
    # Integer arithmetic distinguishes raters who give a single label from raters who nearly always give the same label.
    product = int(rows @ columns)
    expected = product / n if n else 0.0
    if product == n * n:
        return Kappa(None, None, interval=None, n=n, agreed=agreed, expected=expected)
    table = np.zeros((count, count))
    np.add.at(table, (first, second), 1.0)
    value, added = _linearised(table)
    of_rows = added[first, second] / n
    cluster = _places(clusters)
    sums, m = summed(cluster, of_rows), int(cluster.max()) + 1
    if m < 2:
        return Kappa(value, None, interval=None, n=n, agreed=agreed, expected=expected)
    error = math.sqrt(math.fsum(sums**2) * m / (m - 1))
    effect = _design_effect(sums, of_rows, np.bincount(cluster).astype(np.float64))
    ends = _with_added_cells(table / effect, value, m, tail)
    return Kappa(value, error, interval=ends, n=n, agreed=agreed, expected=expected)


def _linearised(table: Floats) -> tuple[float, Floats]:
    """Return kappa of a table of counts (rows: labels of a, columns: labels of b), and each cell's contribution.

    The second value is an array of the table's shape: n times the contribution to kappa of one question in each cell.
    """
    shares = table / table.sum()
    of_a, of_b = shares.sum(axis=1), shares.sum(axis=0)
    agreed, by_chance = float(np.trace(shares)), float(of_a @ of_b)
    above_chance = 1 - by_chance
    # A question's contribution to chance agreement: the other rater's share of the label that the question was given.
    marginals = of_b[:, None] + of_a[None, :]
    added = (np.eye(len(table)) - agreed) / above_chance - (1 - agreed) * (marginals - 2 * by_chance) / above_chance**2
    return 1 - (1 - agreed) / above_chance, added


def _design_effect(sums: Floats, of_rows: Floats, sizes: Floats) -> float:
    """Return how many rows count as one independent row, from sums by cluster and by row."""
    if len(sums) == len(of_rows):
        return 1.0
    mean_size = float((sizes**2).sum() / sizes.sum())
    by_cluster, by_row, fourth = float((sums**2).sum()), float((of_rows**2).sum()), float((sums**4).sum())
    if by_cluster <= (_ROUNDING / len(of_rows)) ** 2 or fourth == 0:
        return mean_size
    informative = by_cluster**2 / fourth
    return (informative * by_cluster / by_row + _EFFECT_PRIOR * mean_size) / (informative + _EFFECT_PRIOR)


def _with_added_cells(table: Floats, value: float, clusters: int, tail: float) -> Interval:
    """Return the interval of kappa from effective counts, with `_ADDED` questions spread over the cells."""
    smoothed = table + _ADDED / table.size
    centre, added = _linearised(smoothed)
    variance = float((smoothed * added**2).sum()) / float(smoothed.sum()) ** 2
    freedom = clusters - 1
    half = quantile_of(freedom, tail) * math.sqrt(variance * clusters / freedom)
    return Interval(max(-1.0, min(value, centre - half)), min(1.0, max(value, centre + half)), ADDED_CELLS)


def shared_mistakes(
    a_right: Sequence[bool], b_right: Sequence[bool], strata: Sequence[str], clusters: Sequence[str] | None = None
) -> SharedMistakes:
    """Count the questions that both solvers get wrong, and test this number against independent errors within strata.

    The test is the exact conditional test of stratified 2 x 2 tables: given each solver's number of wrong answers in
    each stratum, independent errors give each stratum a hypergeometric number of shared mistakes. The p value is the
    probability of all sums that are no likelier than the observed one (Gart, Biometrika 57 (1970) 471-475; Mehta, Patel
    and Gray, JASA 80 (1985) 969-973; R's `mantelhaen.test(exact = TRUE)`; with one stratum Fisher's exact test). If
    clusters have several questions, the errors within a cluster are not independent. Then the Mantel-Haenszel sum
    (Journal of the National Cancer Institute 22 (1959) 719-748) is divided by a standard error over clusters (Zhang and
    Boos, Biometrics 53 (1997) 1185-1198) and compared with Student's t.

    Args:
        a_right: whether the first solver is right, by question.
        b_right: the same for the second solver, for the same questions in the same order.
        strata: the stratum of each question, such as task and number of choices.
        clusters: the cluster of each question; None if every question is independent.

    Raises:
        ValueError: sequences of different lengths.
    """
    _refuse_unequal(len(a_right), len(b_right), len(strata), len(a_right if clusters is None else clusters))
    n = len(a_right)
    wrong_a, wrong_b = (np.array([not right for right in column], dtype=np.float64) for column in (a_right, b_right))
    stratum = _places(strata)
    sizes, of_a, of_b = (summed(stratum, values) for values in (np.ones(n), wrong_a, wrong_b))
    both_wrong = int(wrong_a @ wrong_b)
    total_a, total_b = int(wrong_a.sum()), int(wrong_b.sum())
    within = math.fsum(of_a * of_b / sizes)
    if clusters is None or len(set(clusters)) == n:
        p_value, test = _exact(of_a, of_b, sizes, both_wrong), EXACT
    else:
        scatter = (wrong_a - (of_a / sizes)[stratum]) * (wrong_b - (of_b / sizes)[stratum])
        # Each stratum loses a degree of freedom because its margins are estimated, as in the Mantel-Haenszel variance.
        scale = np.sqrt(sizes / np.maximum(sizes - 1, 1))[stratum]
        p_value, test = _over_clusters(both_wrong - within, summed(_places(clusters), scatter * scale)), OVER_CLUSTERS
    return SharedMistakes(
        n=n,
        wrong_a=total_a,
        wrong_b=total_b,
        both_wrong=both_wrong,
        expected=total_a * total_b / n if n else 0.0,
        expected_within=within,
        ratio=both_wrong / within if within else None,
        p_value=p_value,
        test="none" if p_value is None else test,
    )


def _exact(of_a: Floats, of_b: Floats, sizes: Floats, both_wrong: int) -> float | None:
    """Return the p value of `both_wrong` or less likely counts of shared mistakes; None if only one count can occur.

    `of_a` and `of_b` are each solver's numbers of wrong answers by stratum, and `sizes` the numbers of questions.
    """
    from scipy.special import gammaln  # slow to import, and only comparisons need it

    def ways(all_of: Floats, some: Floats) -> Floats:
        log_ways: Floats = gammaln(all_of + 1) - gammaln(some + 1) - gammaln(all_of - some + 1)
        return log_ways

    chances = np.ones(1)
    least = 0
    for a, b, size in zip(of_a, of_b, sizes, strict=True):
        shared = np.arange(max(0, a + b - size), min(a, b) + 1)
        probabilities = np.exp(ways(a, shared) + ways(size - a, b - shared) - ways(size, b))
        chances = np.convolve(chances, probabilities / probabilities.sum())
        least += int(shared[0])
    if len(chances) == 1:
        return None
    # Equal probabilities may differ in their last digits; the tolerance is R's.
    unlikely = chances[chances <= chances[both_wrong - least] * (1 + 1e-7)]
    return min(1.0, math.fsum(unlikely) / math.fsum(chances))


def _over_clusters(excess: float, sums: Floats) -> float | None:
    """Return the two-sided p value of an excess from each cluster's contribution; None if nothing varies."""
    from scipy.special import stdtr  # slow to import, and only comparisons need it

    variance = math.fsum(sums**2)
    if len(sums) < 2 or variance <= _ROUNDING**2:
        return None
    freedom = len(sums) - 1
    return float(2 * stdtr(freedom, -abs(excess) / math.sqrt(variance * len(sums) / freedom)))


def _places(names: Sequence[Hashable]) -> Indices:
    """Number the distinct names in order of first occurrence."""
    place_of = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return np.array([place_of[name] for name in names], dtype=np.intp)


def _refuse_unequal(*lengths: int) -> None:
    if len(set(lengths)) > 1:
        raise ValueError(f"the sequences have different lengths: {', '.join(map(str, lengths))}")
