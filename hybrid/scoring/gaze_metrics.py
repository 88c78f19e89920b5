"""How well a saliency map or a scanpath predicts where people looked: one function per metric, on arrays.

    nss(values, fixations)                     # values (H, W); fixations (n, 2) of row and column
    auc_judd(values, fixations), shuffled_auc(values, fixations, count_fixations(others, values.shape))
    density = blurred(fixations, values.shape, sigma)
    cc(values, density), kl(values, density), sim(values, density), information_gain(values, fixations, baseline)
    string_edit(a, b, grid), scanmatch(a, b, grid)       # paths (n, 3) of x, y in 0..1 and t in ms
    sequence_score(a, b, clusters, reach)

Formulas as in Bylinskii, Judd, Oliva, Torralba and Durand, "What Do Different Evaluation Metrics Tell Us About Saliency
Models?", IEEE TPAMI 41 (2019) 740-757. A map without contrast scores at chance in each metric: NSS and CC 0, both AUC
0.5, and KL, SIM and information gain as the uniform distribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# MATLAB's eps, as in the public code of the MIT/Tuebingen benchmark.
EPSILON: Final = 2.2204e-16
# Cells of the grid of ScanMatch across and down, and its time bin in ms (Cristino et al. 2010, defaults).
GRID: Final = (12, 8)
BIN_MS: Final = 50.0


def nss(values: Floats, fixations: Ints) -> float:
    """Return the normalized scanpath saliency: the mean of the standardised map at the fixations.

    Peters, Iyer, Itti and Koch, Vision Research 45 (2005) 2397-2416; equation 5 of Bylinskii et al. The result is 0 for
    a constant map, whose standard deviation is 0.
    """
    spread = float(values.std())
    if not _varies(values):
        return 0.0
    return float(((values[tuple(fixations.T)] - values.mean()) / spread).mean())


def auc_judd(values: Floats, fixations: Ints) -> float:
    """Return the area under the ROC curve of fixated pixels against all other pixels; ties count half.

    Judd, Ehinger, Durand and Torralba, ICCV 2009. Their code breaks ties by noise, so that a tie counts half on
    average. The result is 0.5 if every pixel is fixated.
    """
    fixated = count_fixations(fixations, (values.shape[0], values.shape[1])) > 0
    return _auc(values, fixated.astype(float), (~fixated).astype(float))


def shuffled_auc(values: Floats, fixations: Ints, others: Floats) -> float:
    """Return the area under the ROC curve of the fixations against fixations on other pictures; ties count half.

    Zhang, Tong, Marks, Shan and Cottrell, Journal of Vision 8(7):32 (2008); Borji, Tavakoli, Sihite and Itti, ICCV
    2013. All other fixations are negatives; no random subset is drawn. A map of the usual centre scores 0.5.

    Args:
        values: the map (H, W).
        fixations: (n, 2) of row and column.
        others: number of fixations on other pictures at each pixel (H, W), as `count_fixations` returns it, so that the
            time depends only on the number of pixels.
    """
    return _auc(values, count_fixations(fixations, (values.shape[0], values.shape[1])), others)


def count_fixations(fixations: Ints, shape: tuple[int, int]) -> Floats:
    """Return the number of fixations (n, 2) at each pixel, (H, W)."""
    flat = fixations[:, 0] * shape[1] + fixations[:, 1]
    return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _auc(values: Floats, positive: Floats, negative: Floats) -> float:
    """Return P(positive > negative) + P(equal) / 2 over pixel values, weighted by the two count maps (H, W)."""
    pairs = float(positive.sum() * negative.sum())
    if not pairs or not _varies(values):
        return 0.5
    used = (positive > 0) | (negative > 0)
    levels, level = np.unique(values[used], return_inverse=True)
    above, below = (np.bincount(level, counts[used], len(levels)) for counts in (positive, negative))
    return float((above * (np.cumsum(below) - below / 2)).sum() / pairs)


def blurred(fixations: Ints, shape: tuple[int, int], sigma: float) -> Floats:
    """Return the density of fixations on a grid: a Gaussian of `sigma` cells around each, with sum 1."""
    from scipy.ndimage import gaussian_filter

    smooth = gaussian_filter(count_fixations(fixations, shape), sigma, mode="constant")
    return np.asarray(smooth / smooth.sum(), np.float64)


def cc(values: Floats, density: Floats) -> float:
    """Return Pearson's correlation of the map with the fixations' density (equation 6), or 0 if one is constant."""
    if not (_varies(values) and _varies(density)):
        return 0.0
    a, b = (side - side.mean() for side in (values, density))
    return float((a * b).sum() / math.sqrt(float((a * a).sum() * (b * b).sum())))


def kl(values: Floats, density: Floats) -> float:
    """Return the Kullback-Leibler divergence of the map from the fixations' density, in nats; equation 8. Best: 0."""
    predicted = as_distribution(values)
    return float((density * np.log(EPSILON + density / (EPSILON + predicted))).sum())


def sim(values: Floats, density: Floats) -> float:
    """Return the histogram intersection of the map and the fixations' density as distributions, 0..1; equation 7."""
    return float(np.minimum(as_distribution(values), density).sum())


def information_gain(values: Floats, fixations: Ints, baseline: Floats) -> float:
    """Return how many bits per fixation the map gains over a baseline distribution; equation 9.

    Kuemmerer, Wallis and Bethge, PNAS 112 (2015) 16054-16059. The baseline has sum 1.
    """
    at = tuple(fixations.T)
    return float((np.log2(EPSILON + as_distribution(values)[at]) - np.log2(EPSILON + baseline[at])).mean())


def as_distribution(values: Floats) -> Floats:
    """Return the map shifted to a minimum of 0 and scaled to a sum of 1; uniform for a constant map."""
    if not _varies(values):
        return np.full(values.shape, 1 / values.size)
    shifted = values - values.min()
    return np.asarray(shifted / shifted.sum(), np.float64)


def _varies(values: Floats) -> bool:
    """Return whether a map has contrast beyond rounding."""
    return float(np.ptp(values)) > 1e-12 * max(1.0, float(np.abs(values).max()))


def cells(path: Floats, grid: tuple[int, int] = GRID) -> Ints:
    """Return the cell (column, row) of each fixation of a path (n, 3), as (n, 2); the last cell includes the border."""
    columns = np.minimum((path[:, 0] * grid[0]).astype(np.intp), grid[0] - 1)
    rows = np.minimum((path[:, 1] * grid[1]).astype(np.intp), grid[1] - 1)
    return np.stack([columns, rows], axis=1)


def string_edit(a: Floats, b: Floats, grid: tuple[int, int] = GRID) -> float:
    """Return 1 - Levenshtein distance / length of the longer path, for paths as strings of grid cells; 0..1.

    Brandt and Stark, Journal of Cognitive Neuroscience 9 (1997) 27-38. A run of fixations in one cell is one letter.
    """
    first, second = (_letters(path, grid) for path in (a, b))
    table = np.arange(len(second) + 1.0)
    for place, letter in enumerate(first, 1):
        previous, table = table, np.empty_like(table)
        table[0] = place
        for column, other in enumerate(second, 1):
            table[column] = min(previous[column] + 1, table[column - 1] + 1, previous[column - 1] + (letter != other))
    return 1 - float(table[-1]) / max(len(first), len(second))


def _letters(path: Floats, grid: tuple[int, int]) -> list[int]:
    numbers = [int(row) * grid[0] + int(column) for column, row in cells(path, grid)]
    return [letter for place, letter in enumerate(numbers) if place == 0 or letter != numbers[place - 1]]


def scanmatch(a: Floats, b: Floats, grid: tuple[int, int] = GRID, bin_ms: float = BIN_MS) -> float:
    """Align two paths as sequences of cells, one per time bin (Needleman-Wunsch); return the score, at most 1.

    Cristino, Mathot, Theeuwes and Gilchrist, Behavior Research Methods 42 (2010) 692-700: a pair of cells scores its
    closeness, a gap scores 0, and the total is divided by the score of the longer sequence with itself. Closeness is 1
    - distance / diagonal of the grid, minus its mean over all pairs of cells, so that cells at the mean distance score
    0.
    """
    grid_cells = _every_cell(grid)
    distance = np.hypot(*(np.subtract.outer(grid_cells[:, axis], grid_cells[:, axis]) for axis in (0, 1)))
    usual, diagonal = float(distance.mean()), math.hypot(grid[0] - 1, grid[1] - 1)
    similarity = (usual - distance) / diagonal
    numbers = [cells(path, grid) @ (1, grid[0]) for path in (a, b)]
    first, second = (np.repeat(of, _bins(path, bin_ms)) for of, path in zip(numbers, (a, b), strict=True))
    # Compute the similarity row by row, because paths of minutes have thousands of bins.
    score = needleman_wunsch(similarity[number, second] for number in first)
    return score / (usual / diagonal * max(len(first), len(second)))


def _bins(path: Floats, bin_ms: float) -> Ints:
    return np.maximum(1, np.rint(path[:, 2] / bin_ms)).astype(np.intp)


def _every_cell(grid: tuple[int, int]) -> Floats:
    """Return column and row of all cells, in the order of their numbers row * columns + column."""
    return np.stack(np.meshgrid(np.arange(grid[0]), np.arange(grid[1])), axis=-1).reshape(-1, 2).astype(float)


def sequence_score(a: Floats, b: Floats, clusters: Floats, reach: float) -> float:
    """Return the share, 0..1, of the longer path that agrees in order with the other path, both as strings of clusters.

    Borji, Tavakoli, Sihite and Itti, ICCV 2013, section 3; as Yang et al., CVPR 2020 (COCO-Search18): a pair of equal
    clusters scores 1, any other pair and a gap score 0. A fixation farther than `reach` from every cluster belongs to
    none, and agrees only with another such fixation within `reach`; otherwise every path would score 1 on a picture
    where people look at one place.

    Args:
        a: a path (n, 3).
        b: another path.
        clusters: (k, 2) centres of people's fixations on the picture (`fixation_clusters`).
        reach: distance of a fixation that belongs to a cluster.
    """
    sides = [nearest(path[:, :2], clusters) for path in (a, b)]
    inside = [np.hypot(*(path[:, :2] - clusters[of]).T) <= reach for path, of in zip((a, b), sides, strict=True)]
    same = np.equal.outer(*sides) & np.logical_and.outer(*inside)
    distances = np.hypot(*(np.subtract.outer(a[:, axis], b[:, axis]) for axis in (0, 1)))
    lone = (distances <= reach) & ~np.logical_or.outer(*inside)
    similarity = (same | lone).astype(float)
    return needleman_wunsch(similarity) / max(len(sides[0]), len(sides[1]))


def nearest(points: Floats, centres: Floats) -> Ints:
    """Return the index of the nearest centre of each point (n, 2)."""
    distances = np.hypot(*(np.subtract.outer(points[:, axis], centres[:, axis]) for axis in (0, 1)))
    return np.asarray(distances.argmin(axis=1), np.intp)


def needleman_wunsch(similarity: Iterable[Floats]) -> float:
    """Return the best alignment score of two sequences, where gaps score 0; the pair scores come as n rows of (m,)."""
    best = np.zeros(1)
    for place, row in enumerate(similarity):
        best = best if place else np.zeros(len(row) + 1)
        diagonal = best[:-1] + row
        previous = best[1:]
        best = np.concatenate([[0.0], np.maximum.accumulate(np.maximum(np.maximum(diagonal, previous), 0.0))])
    return float(best[-1])


def fixation_clusters(points: Floats, bandwidth: float) -> Floats:
    """Return the modes (k, 2) of points (n, 2) by mean shift with a flat kernel.

    Comaniciu and Meer, IEEE TPAMI 24 (2002) 603-619. A mode within a bandwidth of a mode with more points is dropped.
    """
    modes = points.copy()
    for _ in range(100):
        near = np.hypot(*(np.subtract.outer(modes[:, axis], points[:, axis]) for axis in (0, 1))) <= bandwidth
        moved = near @ points / near.sum(axis=1, keepdims=True)
        if np.abs(moved - modes).max() < 1e-6:
            break
        modes = moved
    weight = (np.hypot(*(np.subtract.outer(modes[:, axis], points[:, axis]) for axis in (0, 1))) <= bandwidth).sum(
        axis=1
    )
    sampled: list[Floats] = []
    for place in np.lexsort((modes[:, 1], modes[:, 0], -weight)):
        if all(np.hypot(*(modes[place] - other)) > bandwidth for other in sampled):
            sampled.append(modes[place])
    return np.array(sampled)
