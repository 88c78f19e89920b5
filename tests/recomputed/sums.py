"""Values, intervals and tests, recomputed: sums in plain Python, Student's t and a root from SciPy."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.recomputed.runs import Cell, JsonObject


def value(mode: str, cells: Sequence[Cell]) -> float:
    strata = _strata(cells)
    if mode == "ratio":
        return sum(c.above for c in cells) / sum(c.below for c in cells)
    return sum(sum(c.above for c in current) / sum(c.below for c in current) for current in strata.values()) / len(
        strata
    )


def _strata(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    results: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        results[cell.stratum].append(cell)
    return results


class Linear(NamedTuple):
    """Shares of the clusters in the error, the weight of an effective cluster, degrees of freedom, and the strata."""

    shares: dict[str, float]
    # For each stratum, the parts of its clusters, their weights in the value, and its degrees of freedom.
    parts: dict[str, tuple[dict[str, float], list[float], float]]
    unit: float
    freedom: float
    # Ratio, weight and effective number of clusters of each stratum.
    strata: list[tuple[float, float, float]]


def linear(mode: str, cells: Sequence[Cell]) -> Linear:
    shares: dict[str, float] = defaultdict(float)
    strata, parts, free = _strata(cells), [], []
    results, by_stratum = [], {}
    for name, current in strata.items():
        below = sum(c.below for c in current)
        weight = 1 / len(strata) if mode == "macro" else below / sum(c.below for c in cells)
        ratio = sum(c.above for c in current) / below
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for c in current:
            sums[c.cluster][0] += c.above
            sums[c.cluster][1] += c.below
        assert len(sums) > 1
        moved = {}
        for cluster, (above, of) in sums.items():
            moved[cluster] = weight / below * (above - ratio * of) / math.sqrt(1 - of / below)
            shares[cluster] += moved[cluster]
        squares, fourth = (sum(of**power for _, of in sums.values()) for power in (2, 4))
        size = below**2 / squares
        free.append(squares**2 / fourth - 1)
        by_stratum[name] = (moved, [weight * of / below for _, of in sums.values()], max(free[-1], 1))
        parts.append(weight**2 / size)
        results.append((ratio, weight, size))
    count = len({c.cluster for c in cells if c.below > 0})
    satterthwaite = sum(parts) ** 2 / sum(p**2 / max(f, 1) for p, f in zip(parts, free, strict=True))
    return Linear(shares, by_stratum, sum(parts), max(1.0, min(satterthwaite, count - 1)), results)


def t_quantile(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t."""
    from scipy.special import stdtrit  # scipy.stats takes three times as long to import

    return float(stdtrit(freedom, 0.975))


def t_beyond(t: float, freedom: float) -> float:
    """Return the probability of Student's t above `t`."""
    from scipy.special import stdtr

    return float(stdtr(freedom, -t))


class Skewed(NamedTuple):
    """Variance and skew of a value, from its clusters' shares and two added clusters that differ, with degrees of
    freedom."""

    variance: float
    skew: float
    freedom: float

    def ends(self, result: float) -> list[float]:
        q = t_quantile(self.freedom)
        down, up = max(0.0, -self.skew) * q * q / 2, max(0.0, self.skew) * q * q / 2
        reach = [math.sqrt(shift**2 + q * q * self.variance) + shift for shift in (down, up)]
        return [result - reach[0], result + reach[1]]

    def beyond(self, distance: float) -> float:
        """Return the probability of a value at least this far from the truth, on the side of the distance's sign."""
        return t_beyond(abs(distance) / math.sqrt(self.variance + max(0.0, -self.skew * distance)), self.freedom)


def skewed(
    shares: Iterable[float], full: float, share: float, freedom: float, pooled: tuple[float, float] = (0.0, 0.0)
) -> Skewed:
    shares = list(shares)
    variance = sum(s**2 for s in shares)
    jump = 2 * (sum(s**4 for s in shares) + 0.1 * full**2) / (variance + 0.1 * full)
    variance += pooled[0]
    total = variance + jump
    freedom = freedom * (total / variance) ** 2 if variance else 1e300
    selected = total / (1 + 2 * share) ** 2
    return Skewed(selected, (sum(s**3 for s in shares) + pooled[1]) / selected, freedom)


def pooling(of_a: Linear, of_b: Linear) -> tuple[float, float]:
    """Return the increase of the second and third moments if each stratum includes a cluster of all strata."""
    strata = []
    for name, (parts_a, weights_a, free_a) in of_a.parts.items():
        parts_b, weights_b, free_b = of_b.parts[name]
        parts = [parts_b[cluster] - parts_a[cluster] for cluster in parts_a]
        strata.append((parts, [weights_a, weights_b], min(free_a, free_b)))
    gains = []
    for power in (2, 3):
        scales = [max(sum(w**power for w in weights) for weights in pair) for _, pair, _ in strata]
        moments = [sum(p**power for p in parts) / scale for (parts, _, _), scale in zip(strata, scales, strict=True)]
        free = [item for _, _, item in strata]
        mean = sum(f * m for f, m in zip(free, moments, strict=True)) / sum(free)
        gains.append(sum(s * (mean - m) / (f + 1) for s, m, f in zip(scales, moments, free, strict=True)))
    return (gains[0], gains[1]) if gains[0] > 0 else (0.0, 0.0)


def scatter(mode: str, a: Sequence[Cell], b: Sequence[Cell]) -> Skewed:
    """Return the variance and skew of the difference b minus a over the same units."""
    of_a, of_b = linear(mode, a), linear(mode, b)
    shares = [of_b.shares[name] - of_a.shares[name] for name in of_a.shares]
    share = max(of_a.unit, of_b.unit)
    return skewed(shares, share**2, share, min(of_a.freedom, of_b.freedom), pooling(of_a, of_b))


def contrast(mode: str, a: Sequence[Cell], b: Sequence[Cell]) -> JsonObject:
    difference, around = value(mode, b) - value(mode, a), scatter(mode, a, b)
    low, high = around.ends(difference)
    return {"difference": difference, "interval": [max(-1.0, low), min(1.0, high)], "p": 2 * around.beyond(difference)}


def loss_of(margin: float, mode: str, a: Sequence[Cell], b: Sequence[Cell]) -> float:
    """Return the one-sided p of a true difference of minus the margin; a value on the wrong side is no evidence."""
    distance = value(mode, b) - value(mode, a) + margin
    tail = scatter(mode, a, b).beyond(distance)
    return tail if distance > 0 else 1 - tail


def interval(mode: str, cells: Sequence[Cell]) -> list[float]:
    """Use Wilson's interval for single rows of 0 and 1, else the score interval of the strata's weighted mean."""
    alone = len({c.cluster for c in cells}) == len(cells)
    if alone and len(_strata(cells)) == 1 and all(c.above in (0, 1) and c.below == 1 for c in cells):
        n, p, z = len(cells), value(mode, cells), 1.959963984540054
        centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return [(centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)]
    result = linear(mode, cells)
    squares = [s**2 for s in result.shares.values()]
    binomial = sum(w**2 * r * (1 - r) / size for r, w, size in result.strata)
    informative = sum(squares) ** 2 / sum(s**2 for s in squares) if any(squares) else 0.0
    effect = sum(squares) / binomial if binomial else 1.0
    effect = (informative * effect + 0.25) / (informative + 0.25)
    q = t_quantile(result.freedom)
    strata = [(r, w, size / effect) for r, w, size in result.strata]
    return [_lower(strata, q), 1 - _lower([(1 - r, w, size) for r, w, size in strata], q)]


def fieller(cells: Sequence[Cell]) -> tuple[float, float] | None:
    """Return the interval of ratios r for which a t test does not reject that the clusters' `above - r * below` sum to
    0, or None if it is unbounded.

    Solved as a quadratic in r; without a positive leading term the set of these r is not an interval.
    """
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for cell in cells:
        sums[cell.cluster][0] += cell.above
        sums[cell.cluster][1] += cell.below
    n = len(sums)
    if n < 2:
        return None
    xs, ys = ([pair[place] for pair in sums.values()] for place in (0, 1))

    def spread(values: list[float], other: list[float]) -> float:
        mean_one, mean_other = sum(values) / n, sum(other) / n
        return n / (n - 1) * sum((a - mean_one) * (b - mean_other) for a, b in zip(values, other, strict=True))

    t2 = t_quantile(n - 1) ** 2
    # Two clusters of the typical size s, (s, s) and (0, s), add to the variances.
    s2 = (sum(y * y for y in ys) / sum(map(abs, ys))) ** 2 if any(ys) else 0.0
    leading = sum(ys) ** 2 - t2 * (spread(ys, ys) + 2 * s2)
    middle = sum(xs) * sum(ys) - t2 * (spread(xs, ys) + s2)
    last = sum(xs) ** 2 - t2 * (spread(xs, xs) + s2)
    if leading <= 1e-12 * sum(ys) ** 2:
        return None
    square = middle**2 - leading * last
    root = math.sqrt(square) if square > 1e-12 * middle**2 else 0.0
    return (middle - root) / leading, (middle + root) / leading


def _lower(strata: Sequence[tuple[float, float, float]], q: float) -> float:
    """Return the lowest mean that a score test of the stratified shares accepts, along the likeliest proportions."""
    from scipy.optimize import brentq

    if not any(r for r, _, _ in strata):
        return 0.0

    def restricted(pull: float) -> list[float]:
        """Return the root in 0..1 of r - p = pull * w / size * p (1 - p), for each stratum."""
        results = []
        for r, w, size in strata:
            k = pull * w / size
            root = r if k < 1e-12 else ((1 + k) - math.sqrt((1 + k) ** 2 - 4 * k * r)) / (2 * k)
            results.append(min(1.0, root))
        return results

    def excess(pull: float) -> float:
        ps = restricted(pull)
        mean = sum(w * r for r, w, _ in strata) - sum(w * p for p, (_, w, _) in zip(ps, strata, strict=True))
        spread = math.sqrt(sum(w * w / size * p * (1 - p) for p, (_, w, size) in zip(ps, strata, strict=True)))
        return mean - q * spread

    # If every answer of a stratum is right, its proportion moves only beyond a minimum multiplier.
    least = 1e-9 if any(r < 1 for r, _, _ in strata) else min(size / w for _, w, size in strata) * (1 + 1e-9)
    pull = float(brentq(excess, least, 1e9, xtol=1e-12, rtol=1e-14, maxiter=1000))
    return sum(w * p for p, (_, w, _) in zip(restricted(pull), strata, strict=True))


def holm(ps: Sequence[float]) -> list[float]:
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    result = dict.fromkeys(order, 0.0)
    for rank, place in enumerate(order):
        previous = result[order[rank - 1]] if rank else 0.0
        result[place] = max(previous, min(1.0, ps[place] * (len(ps) - rank)))
    return [result[place] for place in range(len(ps))]
