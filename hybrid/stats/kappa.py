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

from hybrid.stats import Interval
from hybrid.stats.linearised import Floats, Indices, summed
from hybrid.stats.scatter import quantile_of, tail_of

# The name of the method of `kappa`'s interval.
ADDED_CELLS = "linearised with half a question added to each cell, by clusters, Student's t"

EXACT = "exact, given the wrong answers in each stratum"
# The names of the two tests of `shared_mistakes`.
OVER_CLUSTERS = "Mantel-Haenszel over clusters"

# Questions that are spread over the cells of the table of labels: half a one for each cell of two labels.
_ADDED = 2.0

# Clusters' worth of belief that the rows of a cluster are all alike, as for the interval of a metric.
_EFFECT_PRIOR = 0.25

# A share this small, next to a question's, counts as zero.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Kappa:
    """Agreement of two raters beyond chance: 1 for full agreement, 0 for that of independent raters, down to -1.

    `value` is None where both gave one and the same label to everything: chance agreement is then 1. `error`, the
    large-sample standard error of the value, and `interval` are None without a value and for fewer than two clusters.
    """

    value: float | None
    # 0 for full agreement, which the interval does not believe.
    error: float | None
    interval: Interval | None
    n: int
    # Entries with the same label from both.
    agreed: int
    # Entries on which raters with these shares of labels would agree if they were independent.
    expected: float


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
    # The method behind `p_value`, or "none".
    test: str


def kappa(a: Sequence[Hashable], b: Sequence[Hashable], clusters: Sequence[str], level: float = 0.95) -> Kappa:
    """Cohen's kappa of two raters' labels (right and wrong, or any others), with an interval over clusters.

    kappa = (p_o - p_e) / (1 - p_e): Cohen, Educational and Psychological Measurement 20 (1960) 37-46, p. 40. The
    squared error is the sum over clusters of the squares of what each adds to kappa, linearised: with one question a
    cluster it is the large-sample variance of Fleiss, Cohen and Everitt, Psychological Bulletin 72 (1969) 323-327, with
    more that of Yang and Zhou, Statistics in Medicine 33 (2014) 2612-2633; both times m / (m - 1) for m clusters.

    Where few are wrong, that error is far too small, and it is 0 without shared and without single mistakes. The
    interval is therefore that of the table with half a question added to each cell (Haldane, Annals of Human Genetics
    20 (1956) 309-311, does so for odds ratios), its centre and its error alike; a table of k labels gets 2 / k^2 for
    each cell. The questions count by their effective number: divided by the design effect, the ratio of the
    variance over clusters to that over rows, held against a quarter of a cluster whose rows are all alike. The quantile
    is Student's t with m - 1 degrees of freedom; the interval holds the value, and its ends are cut at -1 and 1.

    Args:
        a: the first rater's labels.
        b: the second's, of the same questions in the same order.
        clusters: what each question belongs to; rows of one cluster are not independent.
        level: nominal coverage, inside 0..1.

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
    # In whole numbers, so that raters with a single label are distinguished from those with nearly one.
    product = int(rows @ columns)
    expected = product / n if n else 0.0
    if product == n * n:
        return Kappa(None, None, None, n, agreed, expected)
    table = np.zeros((count, count))
    np.add.at(table, (first, second), 1.0)
    value, added = _linearised(table)
    of_rows = added[first, second] / n
    cluster = _places(clusters)
    sums, m = summed(cluster, of_rows), int(cluster.max()) + 1
    if m < 2:
        return Kappa(value, None, None, n, agreed, expected)
    error = math.sqrt(math.fsum(sums**2) * m / (m - 1))
    effect = _design_effect(sums, of_rows, np.bincount(cluster).astype(np.float64))
    ends = _with_added_cells(table / effect, value, m, tail)
    return Kappa(value, error, ends, n, agreed, expected)


def _linearised(table: Floats) -> tuple[float, Floats]:
    """Kappa of a table of counts (labels of a, labels of b), and by cell what a question there adds to it, times n."""
    shares = table / table.sum()
    of_a, of_b = shares.sum(axis=1), shares.sum(axis=0)
    agreed, by_chance = float(np.trace(shares)), float(of_a @ of_b)
    above_chance = 1 - by_chance
    # The chance agreement that a question adds: the share of the other rater's labels that equal the one it was given.
    marginals = of_b[:, None] + of_a[None, :]
    added = (np.eye(len(table)) - agreed) / above_chance - (1 - agreed) * (marginals - 2 * by_chance) / above_chance**2
    return 1 - (1 - agreed) / above_chance, added


def _design_effect(sums: Floats, of_rows: Floats, sizes: Floats) -> float:
    """How many rows stand for one independent row; `sums` and `sizes` are of the clusters, `of_rows` of the rows."""
    if len(sums) == len(of_rows):
        return 1.0
    mean_size = float((sizes**2).sum() / sizes.sum())
    by_cluster, by_row, fourth = float((sums**2).sum()), float((of_rows**2).sum()), float((sums**4).sum())
    if by_cluster <= (_ROUNDING / len(of_rows)) ** 2 or fourth == 0:
        return mean_size
    informative = by_cluster**2 / fourth
    return (informative * by_cluster / by_row + _EFFECT_PRIOR * mean_size) / (informative + _EFFECT_PRIOR)


def _with_added_cells(table: Floats, value: float, clusters: int, tail: float) -> Interval:
    """The interval of kappa from a table of effective counts, `_ADDED` questions spread over its cells."""
    smoothed = table + _ADDED / table.size
    centre, added = _linearised(smoothed)
    variance = float((smoothed * added**2).sum()) / float(smoothed.sum()) ** 2
    freedom = clusters - 1
    half = quantile_of(freedom, tail) * math.sqrt(variance * clusters / freedom)
    return Interval(max(-1.0, min(value, centre - half)), min(1.0, max(value, centre + half)), ADDED_CELLS)


def shared_mistakes(
    a_right: Sequence[bool], b_right: Sequence[bool], strata: Sequence[str], clusters: Sequence[str] | None = None
) -> SharedMistakes:
    """Count the questions that two solvers both get wrong, and test it against independent errors within strata.

    The test is the exact conditional one of stratified 2 x 2 tables: with the number of wrong answers of either solver
    in every stratum as they are, independent errors give each stratum a hypergeometric number of shared mistakes; the p
    value is the probability of all sums that are no likelier than the one found (Gart, Biometrika 57 (1970) 471-475;
    Mehta, Patel and Gray, JASA 80 (1985) 969-973; R's `mantelhaen.test(exact = TRUE)`; with one stratum Fisher's exact
    test). Where questions are grouped into clusters of several, their errors are not independent of each other: then
    the Mantel-Haenszel sum (Journal of the National Cancer Institute 22 (1959) 719-748) is divided by a standard error
    over clusters (Zhang and Boos, Biometrics 53 (1997) 1185-1198) and held against Student's t.

    Args:
        a_right: whether the first solver is right, by question.
        b_right: whether the second is, on the same questions in the same order.
        strata: what makes questions alike, such as task and number of choices.
        clusters: what each question belongs to; left out, every question stands for itself.

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
        # A stratum's own margins take a degree of freedom from it, as in the Mantel-Haenszel variance.
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
    """The probability of all numbers of shared mistakes that are no likelier than `both`; None where only one can be.

    `of_a` and `of_b` are the wrong answers by stratum, `sizes` the questions.
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
    # Equal chances differ in their last digits; the slack is R's.
    unlikely = chances[chances <= chances[both_wrong - least] * (1 + 1e-7)]
    return min(1.0, math.fsum(unlikely) / math.fsum(chances))


def _over_clusters(excess: float, sums: Floats) -> float | None:
    """The p value of an excess from what each cluster adds to it, two-sided; None where nothing varies."""
    from scipy.special import stdtr  # slow to import, and only comparisons need it

    variance = math.fsum(sums**2)
    if len(sums) < 2 or variance <= _ROUNDING**2:
        return None
    freedom = len(sums) - 1
    return float(2 * stdtr(freedom, -abs(excess) / math.sqrt(variance * len(sums) / freedom)))


def _places(names: Sequence[Hashable]) -> Indices:
    """The number of each name, in the order of their first occurrence."""
    place_of = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return np.array([place_of[name] for name in names], dtype=np.intp)


def _refuse_unequal(*lengths: int) -> None:
    if len(set(lengths)) > 1:
        raise ValueError(f"sequences of different lengths: {', '.join(map(str, lengths))}")
