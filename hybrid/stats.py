"""Intervals and paired tests over the cells of a metric and over two solvers' verdicts on the same questions.

Pure functions; the order of the input does not matter. `hybrid score` prints `interval`, `hybrid compare` prints
`paired`, `hybrid plan --difference D` prints `sample_size`. What is resampled is the cluster (a base question with its
variants, a pair of images), never the single row: rows of one cluster are not independent.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hybrid.errors import DataError, UsageError
from hybrid.types import Cell, Combine, Metric, Score

Floats = NDArray[np.float64]
Average = Literal["macro", "micro"]

TYPICAL_DISCORDANT = 0.4
"""Assumed share of questions on which exactly one of two solvers is right: the recorded answers of four models to 1,901
BLINK val questions give 0.37 to 0.49 over the six pairs."""

_EXACT_CLUSTERS = 14
_CHUNK_ELEMENTS = 2_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval in the metric's own unit, and how it was made."""

    low: float
    high: float
    method: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What statistics need of a score: `cluster` is resampled as one, `task` is the stratum, `correct` is in 0..1."""

    id: str
    cluster: str
    task: str
    correct: float


Verdicts = Iterable[Verdict]


@dataclass(frozen=True, slots=True)
class Contrast:
    """One metric of two solvers, `a` and `b`: `difference` is b minus a, in the metric's own unit.

    `interval` excludes 0 exactly where `p_value` (two-sided, of a difference of 0) is below 1 - level. Where a value is
    undefined there is no difference; where one cluster is all there is, no interval and no p value.
    """

    value_a: float | None
    value_b: float | None
    difference: float | None
    interval: Interval | None
    p_value: float | None
    test: str
    clusters: int


@dataclass(frozen=True, slots=True)
class PairedResult:
    """Two solvers, `a` and `b`, on the `n` questions that both have; every difference is b minus a.

    `helped + harmed + both_right + both_wrong + tied == n`: b higher, a higher, both 1, both 0, and equal fractional
    credit (two abstentions scored at chance). For 0/1 verdicts, helped is "a wrong, b right" and harmed the reverse.
    `mean_a`, `mean_b` and `difference` are averages over tasks (`macro`) or over questions (`micro`). `only_a` and
    `only_b` are the ids that the other solver lacks: they enter no other field. Without a common question the means,
    difference, interval and p value are None; so is the interval where no resample differs from another, because
    nothing then tells its width.
    """

    average: Average
    n: int
    clusters: int
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    interval: Interval | None
    helped: int
    harmed: int
    both_right: int
    both_wrong: int
    tied: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    p_value: float | None
    test: str


def combine(cells: Iterable[Cell], how: Combine) -> float | None:
    """The value of a metric from its cells; the definition behind `Metric.value`.

    `ratio`: sum of numerators / sum of denominators. `mean_of_ratios`: that ratio in each stratum, then the plain mean
    over the strata whose denominators are not all zero. `root_of_ratio`: the square root of `ratio`. None where no
    denominator is above zero. Raises `DataError` for a cell that is not finite, or negative where it must not be.
    """
    cells = _checked(cells, how)
    strata = {name: place for place, name in enumerate(sorted({cell.stratum for cell in cells}))}
    sums = np.zeros((len(strata), 2))
    for cell in cells:
        sums[strata[cell.stratum]] += (cell.numerator, cell.denominator)
    value = float(_values(sums, how))
    return None if math.isnan(value) else value


def wilson(k: int, n: int, level: float = 0.95) -> Interval | None:
    """Wilson's score interval for `k` successes in `n` trials, `level` its nominal coverage; None for no trials.

    E. B. Wilson, JASA 22 (1927) 209-212; method 3 (without continuity correction) in Newcombe, Statistics in Medicine
    17 (1998) 857-872. With all right the upper end is 1 and the lower below 1, so n = 1 is no special case. Raises
    `ValueError` unless 0 <= k <= n and 0 < level < 1.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} successes in {n} trials")
    tail = _tail(level)
    if n == 0:
        return None
    z = NormalDist().inv_cdf(1 - tail)
    centre = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4)
    return Interval(0.0 if k == 0 else centre - half, 1.0 if k == n else centre + half, "Wilson")


def interval(metric: Metric, level: float = 0.95, resamples: int = 10_000, seed: int = 0) -> Interval | None:
    """A confidence interval for a metric, from its cells; None where they cannot tell one, as where there are none.

    - Every cell a cluster of its own, worth 0 or 1 of 1, and the metric their plain proportion (`ratio`, or
      `mean_of_ratios` over one stratum): Wilson.
    - Else the percentile bootstrap over clusters, resampled within strata (Davison and Hinkley, Bootstrap Methods and
      their Application, 1997, sections 3.2 and 5.3). A cluster with cells in several strata is drawn as a whole,
      together with the clusters of the same strata. A resample in which no denominator is above zero is left out; a
      stratum of one cluster adds no spread.
    - Where every resample gives the same value (all right in every task, one question a task) the bootstrap would
      claim certainty. For a macro mean of 0/1 cells the Wilson limits of the strata are combined instead (MOVER: Zou
      and Donner, Statistics in Medicine 27 (2008) 1693-1702); for anything else, also a single cluster, None.

    Raises `DataError` as `combine` does, and `ValueError` for a level outside 0..1 or no resamples.
    """
    cells = _checked(metric.cells, metric.combine)
    if not cells:
        return None
    binary = _is_binary(cells) and metric.combine != "root_of_ratio"
    if binary and (metric.combine == "ratio" or len({cell.stratum for cell in cells}) == 1):
        return wilson(round(sum(cell.numerator for cell in cells)), len(cells), level)
    found = _bootstrap(cells, metric.combine, level, resamples, seed)
    return _combined_wilson(cells, level) if found is None and binary else found


def contrast(a: Metric, b: Metric, level: float = 0.95) -> Contrast:
    """Compare two solvers by one metric over the same questions, b minus a.

    Raises `DataError`, naming the cluster, where the two have not the same clusters in the same strata, or are combined
    differently; `ValueError` for a level outside 0..1.
    """
    from scipy.stats import t as student  # half a second to import, and only comparisons need it

    tail = _tail(level)
    if a.combine != b.combine:
        raise DataError(f"{a.name!r} is combined as {a.combine} and {b.name!r} as {b.combine}")
    places_a, places_b = ({(cell.cluster, cell.stratum) for cell in metric.cells} for metric in (a, b))
    for cluster, stratum in sorted(places_a ^ places_b):
        raise DataError(f"only one of the two has cells of {cluster!r} in {stratum!r}")
    value_a, value_b = combine(a.cells, a.combine), combine(b.cells, b.combine)
    clusters = len({cluster for cluster, _ in places_a})
    if value_a is None or value_b is None:
        return Contrast(value_a, value_b, None, None, None, "none", clusters)
    difference = value_b - value_a
    if clusters < 2:
        return Contrast(value_a, value_b, difference, None, None, "none", clusters)
    shares: dict[tuple[str, str], float] = defaultdict(float)
    for metric, sign in ((a, -1.0), (b, 1.0)):
        for place, share in _shares(metric).items():
            shares[place] += sign * share
    sizes = Counter(stratum for _, stratum in shares)
    by_cluster: dict[str, float] = defaultdict(float)
    for (cluster, stratum), share in shares.items():
        by_cluster[cluster] += share * math.sqrt(sizes[stratum] / max(1, sizes[stratum] - 1))
    variance = math.fsum(share * share for share in by_cluster.values())
    effective = len(sizes) ** 2 / sum(1 / size for size in sizes.values())
    kept = effective / (effective + 2)
    error = math.sqrt(kept * kept * variance + 2 / (effective + 2) ** 2)
    half = float(student.ppf(1 - tail, clusters - 1)) * error
    centre = kept * difference
    found = Interval(min(difference, centre - half), max(difference, centre + half), "adjusted t over clusters")
    p_value = float(2 * student.sf(abs(centre) / error, clusters - 1))
    return Contrast(value_a, value_b, difference, found, p_value, "adjusted t over clusters", clusters)


def _shares(metric: Metric) -> Mapping[tuple[str, str], float]:
    """What each cluster adds, stratum by stratum, to the metric's distance from its own value (linearised)."""
    above: dict[tuple[str, str], float] = defaultdict(float)
    below: dict[tuple[str, str], float] = defaultdict(float)
    for cell in metric.cells:
        above[cell.cluster, cell.stratum] += cell.numerator
        below[cell.cluster, cell.stratum] += cell.denominator
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for place in above:
        groups[place[1] if metric.combine == "mean_of_ratios" else ""].append(place)
    found: dict[tuple[str, str], float] = {}
    totals = {name: sum(below[place] for place in places) for name, places in groups.items()}
    defined = sum(total > 0 for total in totals.values())
    for name, places in groups.items():
        total = totals[name]
        ratio = sum(above[place] for place in places) / total if total else 0.0
        slope = 1.0 if metric.combine != "root_of_ratio" else 0.5 / math.sqrt(ratio) if ratio else 0.0
        for place in places:
            found[place] = slope * (above[place] - ratio * below[place]) / (total * defined) if total else 0.0
    return found


def verdicts(scores: Iterable[Score]) -> tuple[Verdict, ...]:
    """The scores that carry a verdict.

    One without (`correct` is None) is left out: `paired` then lists it under `only_a` or `only_b` if the other has it.
    """
    return tuple(Verdict(s.id, s.unit, s.task, s.correct) for s in scores if s.correct is not None)


def paired(
    a: Verdicts, b: Verdicts, average: Average = "macro", *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> PairedResult:
    """Compare two solvers on the questions that both have; joined by question id, b minus a.

    The interval is a percentile bootstrap over clusters, both solvers' verdicts drawn together, within tasks for
    `macro`. The p value is two-sided: the exact McNemar test where every verdict is 0 or 1 and every cluster has one
    question (it counts questions alike, also beside a macro mean), else the sign-flip test over clusters for the
    difference as averaged, enumerated up to 14 clusters that differ and drawn beyond.

    Raises `DataError`, naming the id, for a question that one solver has twice, a verdict outside 0..1, or a question
    whose task or cluster differs between the two; `ValueError` for a level outside 0..1 or no resamples.
    """
    of_a, of_b = _by_id(a, "first"), _by_id(b, "second")
    pairs = _pairs(of_a, of_b)
    how: Combine = "mean_of_ratios" if average == "macro" else "ratio"
    cells_a, cells_b = (_cells((pair[side] for pair in pairs), average) for side in (0, 1))
    gains = [Cell(x.stratum, x.cluster, y.numerator - x.numerator, 1.0) for x, y in zip(cells_a, cells_b, strict=True)]
    counts = Counter(_relation(left.correct, right.correct) for left, right in pairs)
    binary = all(cell.numerator in (0, 1) for cell in (*cells_a, *cells_b))
    p_value, test = _test(gains, counts if binary else None, resamples, seed)
    return PairedResult(
        average=average,
        n=len(pairs),
        clusters=len({cell.cluster for cell in gains}),
        mean_a=combine(cells_a, how),
        mean_b=combine(cells_b, how),
        difference=combine(gains, how),
        interval=_bootstrap(gains, how, level, resamples, seed),
        helped=counts["helped"],
        harmed=counts["harmed"],
        both_right=counts["both_right"],
        both_wrong=counts["both_wrong"],
        tied=counts["tied"],
        only_a=tuple(sorted(of_a.keys() - of_b.keys())),
        only_b=tuple(sorted(of_b.keys() - of_a.keys())),
        p_value=p_value,
        test=test,
    )


def mcnemar(helped: int, harmed: int) -> float:
    """Two-sided exact (conditional) McNemar p value from the two discordant counts; 1 where there are none.

    McNemar, Psychometrika 12 (1947) 153-157; the exact form as in Fagerland, Lydersen and Laake, BMC Medical Research
    Methodology 13 (2013) 91. Raises `ValueError` for a negative count.
    """
    from scipy.stats import binomtest  # half a second to import, and only comparisons need it

    if helped < 0 or harmed < 0:
        raise ValueError(f"discordant counts {helped} and {harmed}")
    return float(binomtest(helped, helped + harmed, 0.5).pvalue) if helped + harmed else 1.0


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


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's step-down adjusted p values, in the order given: Holm, Scandinavian J. of Statistics 6 (1979) 65-70.

    Raises `ValueError` for a value outside 0..1.
    """
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if not 0 <= p_values[index] <= 1:
            raise ValueError(f"p value {p_values[index]} at position {index}")
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return tuple(adjusted)


def _checked(cells: Iterable[Cell], how: Combine) -> tuple[Cell, ...]:
    cells = tuple(cells)
    for cell in cells:
        where = f"cell of {cell.cluster!r} in {cell.stratum!r}"
        if not (math.isfinite(cell.numerator) and math.isfinite(cell.denominator)):
            raise DataError(f"{where}: {cell.numerator}/{cell.denominator} is not finite")
        if cell.denominator < 0 or (how == "root_of_ratio" and cell.numerator < 0):
            raise DataError(f"{where}: {cell.numerator}/{cell.denominator} is negative under {how}")
    return cells


def _values(sums: Floats, how: Combine) -> Floats:
    """Metric values from (..., strata, 2) sums of numerators and denominators; NaN where undefined."""
    if how == "mean_of_ratios":
        defined = sums[..., 1] > 0
        ratios = np.divide(sums[..., 0], sums[..., 1], out=np.zeros(defined.shape), where=defined)
        total, count = ratios.sum(axis=-1), defined.sum(axis=-1)
    else:
        total, count = sums[..., 0].sum(axis=-1), sums[..., 1].sum(axis=-1)
    values: Floats = np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)
    return np.sqrt(values) if how == "root_of_ratio" else values


def _is_binary(cells: Sequence[Cell]) -> bool:
    alone = len({cell.cluster for cell in cells}) == len(cells)
    return alone and all(cell.denominator == 1 and cell.numerator in (0, 1) for cell in cells)


def _combined_wilson(cells: Sequence[Cell], level: float) -> Interval:
    """The mean of the strata's proportions with their Wilson limits combined (MOVER), for 0/1 cells."""
    strata: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        strata[cell.stratum].append(cell.numerator)
    found = [(sum(values) / len(values), wilson(round(sum(values)), len(values), level)) for values in strata.values()]
    centre = math.fsum(share for share, _ in found) / len(found)
    below = math.hypot(*(share - limits.low for share, limits in found if limits)) / len(found)
    above = math.hypot(*(limits.high - share for share, limits in found if limits)) / len(found)
    return Interval(max(0.0, centre - below), min(1.0, centre + above), "Wilson by stratum")


def _bootstrap(cells: Sequence[Cell], how: Combine, level: float, resamples: int, seed: int) -> Interval | None:
    """Percentile cluster bootstrap; None where the resamples do not differ."""
    tail = _tail(level)
    if resamples < 1:
        raise ValueError(f"{resamples} resamples")
    draws = _values(_resampled_sums(cells, resamples, np.random.default_rng(seed)), how)
    draws = draws[np.isfinite(draws)]
    if not draws.size or np.ptp(draws) <= 1e-12 * max(1.0, float(np.abs(draws).max())):
        return None
    low, high = np.quantile(draws, (tail, 1 - tail))
    return Interval(float(low), float(high), f"cluster bootstrap, {resamples:,} resamples")


def _resampled_sums(cells: Sequence[Cell], resamples: int, rng: np.random.Generator) -> Floats:
    """Sums of numerators and denominators by stratum, (resamples, strata, 2)."""
    strata = {name: place for place, name in enumerate(sorted({cell.stratum for cell in cells}))}
    clusters: dict[str, dict[int, Floats]] = defaultdict(dict)
    for cell in cells:
        row = clusters[cell.cluster].setdefault(strata[cell.stratum], np.zeros(2))
        row += (cell.numerator, cell.denominator)
    blocks: dict[tuple[int, ...], list[Floats]] = defaultdict(list)
    for rows in clusters.values():
        places = tuple(sorted(rows))
        blocks[places].append(np.concatenate([rows[place] for place in places]))
    sums = np.zeros((resamples, len(strata), 2))
    for places, block in sorted(blocks.items()):
        sums[:, list(places)] += _draw(np.array(block), resamples, rng).reshape(resamples, len(places), 2)
    return sums


def _draw(rows: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Sums of K rows drawn with replacement out of K, `resamples` times: (K, columns) to (resamples, columns).

    Rows that are alike are drawn as one multinomial count, which has the same distribution and costs less; the unique
    rows come sorted, so that the result does not depend on the order of the cells.
    """
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    if 8 * len(kinds) <= len(rows):
        drawn: Floats = rng.multinomial(len(rows), counts / len(rows), size=resamples).astype(np.float64) @ kinds
        return drawn
    ordered = np.repeat(kinds, counts, axis=0)
    sums = np.empty((resamples, rows.shape[1]))
    step = max(1, _CHUNK_ELEMENTS // len(rows))
    for start in range(0, resamples, step):
        chosen = rng.integers(0, len(rows), (min(step, resamples - start), len(rows)), dtype=np.int32)
        for column in range(rows.shape[1]):
            sums[start : start + step, column] = ordered[:, column][chosen].sum(axis=1)
    return sums


def _by_id(given: Iterable[Verdict], which: str) -> Mapping[str, Verdict]:
    found: dict[str, Verdict] = {}
    for verdict in given:
        if verdict.id in found:
            raise DataError(f"question {verdict.id!r} stands twice in the {which} list")
        if not 0 <= verdict.correct <= 1:
            raise DataError(f"question {verdict.id!r} in the {which} list: correct is {verdict.correct}, not in 0..1")
        found[verdict.id] = verdict
    return found


def _pairs(of_a: Mapping[str, Verdict], of_b: Mapping[str, Verdict]) -> list[tuple[Verdict, Verdict]]:
    pairs = [(of_a[id_], of_b[id_]) for id_ in sorted(of_a.keys() & of_b.keys())]
    for left, right in pairs:
        if (left.cluster, left.task) != (right.cluster, right.task):
            places = f"{left.task}/{left.cluster} for one solver and in {right.task}/{right.cluster} for the other"
            raise DataError(f"question {left.id!r} is in {places}")
    return pairs


def _cells(given: Iterable[Verdict], average: Average) -> list[Cell]:
    return [Cell(v.task if average == "macro" else "", v.cluster, v.correct, 1.0) for v in given]


def _relation(a: float, b: float) -> str:
    if a == b:
        return "both_right" if a == 1 else "both_wrong" if a == 0 else "tied"
    return "helped" if b > a else "harmed"


def _test(gains: Sequence[Cell], counts: Counter[str] | None, resamples: int, seed: int) -> tuple[float | None, str]:
    """Two-sided p value and the test's name; `counts` only where every verdict is 0 or 1."""
    if not gains:
        return None, "none"
    if counts is not None and len({cell.cluster for cell in gains}) == len(gains):
        return mcnemar(counts["helped"], counts["harmed"]), "exact McNemar"
    sizes = Counter(cell.stratum for cell in gains)
    shares: dict[str, float] = defaultdict(float)
    for cell in gains:
        shares[cell.cluster] += cell.numerator / (sizes[cell.stratum] * len(sizes))
    return _sign_flip(np.array(list(shares.values())), resamples, seed)


def _sign_flip(shares: Floats, resamples: int, seed: int) -> tuple[float, str]:
    """Two-sided sign-flip test of sum(shares) = 0; `shares` is what each cluster adds to the difference.

    Fisher's randomisation test for pairs (The Design of Experiments, 1935, section 21). Drawn p values are
    (hits + 1) / (draws + 1), never 0: Phipson and Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010) 39.
    """
    slack = 1e-12 * float(np.abs(shares).sum())
    observed = abs(float(shares.sum())) - slack
    moving = shares[np.abs(shares) > slack]
    if len(moving) <= _EXACT_CLUSTERS:
        bits = np.arange(2 ** len(moving))[:, None] >> np.arange(len(moving)) & 1
        return float(np.mean(np.abs((1.0 - 2.0 * bits) @ moving) >= observed)), "exact sign-flip"
    rng = np.random.default_rng(seed)
    hits, step = 0, max(1, _CHUNK_ELEMENTS // len(moving))
    for start in range(0, resamples, step):
        bits = rng.integers(0, 2, (min(step, resamples - start), len(moving)), dtype=np.int8)
        hits += int(np.sum(np.abs((1.0 - 2.0 * bits) @ moving) >= observed))
    return (hits + 1) / (resamples + 1), f"sign-flip, {resamples:,} draws"


def _tail(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level {level} is not inside 0..1")
    return (1 - level) / 2
