"""Saliency of full regions: those not connected with the border of the image (Zhu, Liang, Wei and Sun, CVPR 2014).

With `parts = superpixels(pixels)`, `foreground(parts)` is a map in which an object of one colour has one value, and
`over(parts, values)` gives another map the same outlines. Equation numbers are the paper's. The weights of edges are
clipped as in the authors' program; the paper does not mention this clipping.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels

# One value per cell, shape (h, w).
Values = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int32]
Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

# Number of superpixels along the long side. An image of 4 : 3 then has about 300 in all (the paper uses 200).
MAX_LENGTH = 20
# Initial side of a superpixel in cells.
SIDE = 12
# L*a*b* difference that weighs as much as the distance to the next superpixel (Achanta et al. 2012, m).
COMPACT = 10.0
ROUNDS = 5
# Sigma of equations 2, 3 and 10, in L*a*b* units.
COLOUR_SIGMA = 10.0
# Sigma of equation 7, in widths and heights of the image.
PLACE_SIGMA = 0.25
# Sigma of equation 6.
CONNECTED_SIGMA = 1.0
# The constant of equation 10 that erases small noise.
MIN_SMOOTHNESS = 0.1
# An edge is left out if a path of two other edges is shorter by more than this, in L*a*b* units.
DETOUR = 1e-6


@dataclass(frozen=True, eq=False)
class Superpixels:
    """An image in n patches of similar colour: `labels` (h, w), `colours` (n, 3) in L*a*b*, `places` (n, 2)."""

    labels: Labels
    colours: Matrix
    # x, y of each patch's centre, as fractions of the image.
    places: Matrix

    @property
    def count(self) -> int:
        """Number of superpixels."""
        return len(self.colours)


def superpixels(pixels: Pixels) -> Superpixels:
    """Run SLIC (Achanta et al. 2012) on an image (H, W, 3), with about 20 superpixels along the long side.

    A cell joins one of the nine clusters around its position in the initial grid; pieces are not reconnected.
    """
    import cv2

    height, width = pixels.shape[:2]
    longest = max(height, width)
    rows, columns = max(1, round(MAX_LENGTH * height / longest)), max(1, round(MAX_LENGTH * width / longest))
    size = (columns * SIDE, rows * SIDE)
    work = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    colours = cv2.cvtColor(work.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    across, down = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    scale = np.float32(COMPACT / SIDE)
    features = np.concatenate([colours, scale * across[..., None], scale * down[..., None]], axis=2).astype(np.float32)
    # Cluster of each cell, numbered in row-major order of the grid.
    kinds = features.shape[2]
    blocks = features.reshape(rows, SIDE, columns, SIDE, kinds).transpose(0, 2, 1, 3, 4)
    blocks = np.ascontiguousarray(blocks.reshape(rows, columns, SIDE * SIDE, kinds))
    number = np.arange(rows * columns).reshape(rows, columns)
    around = np.pad(number, 1, mode="edge")
    near = np.stack([around[y : y + rows, x : x + columns] for y in range(3) for x in range(3)], axis=2)
    cluster_of = np.broadcast_to(number[:, :, None], (rows, columns, SIDE * SIDE))
    flat = blocks.reshape(-1, kinds)
    for _ in range(ROUNDS):
        # Mean features of each label, (count, k); labels without cells get a position far from everything.
        members = cluster_of.reshape(-1)
        count = rows * columns
        cells = np.bincount(members, minlength=count)
        sums = np.stack([np.bincount(members, column, count) for column in flat.T], axis=1)
        centres = np.asarray(np.where(cells[:, None] > 0, sums / np.maximum(cells, 1)[:, None], 1e4), np.float32)
        candidates = centres[near]
        distance = (candidates**2).sum(axis=3)[:, :, None] - 2 * np.matmul(blocks, candidates.swapaxes(2, 3))
        cluster_of = np.take_along_axis(near, distance.argmin(axis=3).reshape(rows, columns, -1), axis=2)
    joined = cluster_of.reshape(rows, columns, SIDE, SIDE).transpose(0, 2, 1, 3)
    # Clusters that lost all their cells leave gaps in the numbering.
    _, numbered = np.unique(joined.reshape(rows * SIDE, columns * SIDE), return_inverse=True)
    labels = np.asarray(numbered.reshape(size[1], size[0]), np.int32)
    means = _means(labels, features)
    places = (means[:, 3:] / scale + 0.5) / np.array(size)
    return Superpixels(labels, means[:, :3], places)


def foreground(parts: Superpixels) -> Values:
    """Compute the optimised map of section 5, (h, w) in 0..1: 0 is background; 0 everywhere for a single colour."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    unlike = _distances(parts.colours)
    count, labels = int(parts.labels.max()) + 1, parts.labels
    adjacent = np.zeros((count, count), np.bool_)
    adjacent[labels[:, 1:], labels[:, :-1]] = True
    adjacent[labels[1:], labels[:-1]] = True
    adjacent |= adjacent.T
    np.fill_diagonal(adjacent, False)
    border = np.unique(np.concatenate([parts.labels[[0, -1]].ravel(), parts.labels[:, [0, -1]].ravel()]))
    # Probability 0..1 that each superpixel is background, from its boundary connectivity (equations 2 to 6).
    # Subtract a small step, because many small steps over a smooth ground would add up to a long path.
    small = float(np.where(adjacent, unlike, np.inf).min(axis=1).mean()) if adjacent.any() else 0.0
    linked = adjacent.copy()
    linked[np.ix_(border, border)] = True
    np.fill_diagonal(linked, False)
    # A weight of zero would mean no edge.
    weights = np.where(linked, np.maximum(unlike - small, 1e-6), 0.0)
    weights[np.ix_(border, border)] = without_detours(weights[np.ix_(border, border)])
    # A directed search is used: the weights are symmetric, so an undirected search would try each edge twice.
    ways = dijkstra(csr_array(weights))
    spanned = np.exp(-(ways**2) / (2 * COLOUR_SIGMA**2))
    connected = spanned[:, border].sum(axis=1) / np.sqrt(spanned.sum(axis=1))
    background = np.asarray(1 - np.exp(-(connected**2) / (2 * CONNECTED_SIGMA**2)), np.float64)
    # Background weighted contrast 0..1 (equation 8).
    near = np.exp(-(_distances(parts.places) ** 2) / (2 * PLACE_SIGMA**2))
    weighted = (unlike * near) @ background
    contrast = np.asarray((weighted - weighted.min()) / max(float(np.ptp(weighted)), 1e-9), np.float64)
    similarity = np.where(adjacent, np.exp(-(unlike**2) / (2 * COLOUR_SIGMA**2)) + MIN_SMOOTHNESS, 0.0)
    # Equation 9 is minimal where its gradient is zero.
    system = np.diag(similarity.sum(axis=1) + background + contrast) - similarity
    return np.asarray(np.clip(np.linalg.solve(system, contrast), 0, 1), np.float32)[parts.labels]


def without_detours(weights: Matrix) -> Matrix:
    """Set each weight (n, n), where 0 means no edge, to 0 if a path of two other edges is shorter.

    The shortest paths stay the same to the last bit: none contains such an edge, because rounding is far below
    `DETOUR`.
    """
    length = np.where(weights > 0, weights, np.inf)
    by_two = np.full_like(length, np.inf)
    for middle in range(len(length)):
        np.minimum(by_two, length[:, middle : middle + 1] + length[middle], out=by_two)
    return np.where(length <= by_two + DETOUR, weights, 0.0)


def over(parts: Superpixels, values: Values) -> Values:
    """Average a map of the image, which may have any size, over each superpixel; return it in the shape of `labels`."""
    import cv2

    height, width = parts.labels.shape
    fitted = np.asarray(cv2.resize(values, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)
    return np.asarray(_means(parts.labels, fitted[..., None])[:, 0], np.float32)[parts.labels]


def _means(labels: Labels, values: npt.NDArray[np.float32]) -> Matrix:
    flat = labels.ravel()
    cells = np.bincount(flat)
    columns = [np.bincount(flat, values[..., kind].ravel()) / cells for kind in range(values.shape[2])]
    return np.stack(columns, axis=1)


def _distances(points: Matrix) -> Matrix:
    # A sum over a last axis of two or three numbers would take six times as long.
    squares = [(column[:, None] - column[None]) ** 2 for column in points.T]
    return np.asarray(np.sqrt(sum(squares[1:], start=squares[0])), np.float64)
