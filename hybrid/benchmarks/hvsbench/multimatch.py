"""MultiMatch: how alike two scanpaths are in shape, direction, length, position and duration. Many pairs at once.

    similarities = multimatch([path_a, path_b], [path_c, path_d], screen=(512, 320))    # (2, 5)

Jarodzka, Holmqvist and Nystrom, ETRA 2010, section 3; the values are those of the package `multimatch-gaze` 0.1.3
(Wagner et al., JOSS 4 (2019) 1525), defined also where that package raises. Two scanpaths become two lists of saccades;
a cheapest monotone alignment of the lists, by the length of the vector difference, says which saccades to compare; a
dimension is one minus the median of its differences over the aligned pairs. `bench/multimatch.py` has the times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hybrid.errors import DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DIMENSIONS: Final = ("shape", "direction", "length", "position", "duration")
"""The columns of a result, in order; the package calls the first one vector."""

FEWEST_FIXATIONS: Final = 3
"""Below this the measure is not defined: the package returns NaN, we refuse, and a protocol must say how it pads."""

_CHUNK_PAIRS: Final = 4096
_DIAGONAL, _LEFT, _UP = 0, 1, 2


def multimatch(first: Sequence[Floats], second: Sequence[Floats], screen: tuple[float, float]) -> Floats:
    """Similarity of `first[i]` and `second[i]` for every i.

    Args:
        first: scanpaths, each (fixations, 3) of x, y in the units of `screen` and duration; at least three fixations.
        second: as many scanpaths.
        screen: width and height that lengths and positions are divided by: similarities depend on it.

    Returns:
        (pairs, 5), columns as in `DIMENSIONS`. 1 is alike. Shape, length and position can fall below 0 only when
        points lie outside the screen. Two durations of 0 are alike.

    Raises:
        DataError: lists of different lengths, an array of another form, fewer than three fixations, a number that is
            not finite, a negative duration, or a screen without area.
    """
    if len(first) != len(second):
        raise DataError(f"{len(first)} scanpaths cannot be paired with {len(second)}")
    if not (math.isfinite(screen[0]) and math.isfinite(screen[1]) and min(screen) > 0):
        raise DataError(f"screen {screen}: width and height must be above 0")
    for paths in (first, second):
        _check(paths)
    steps = range(0, len(first), _CHUNK_PAIRS)
    parts = [_compare(*(_table(paths[step : step + _CHUNK_PAIRS]) for paths in (first, second))) for step in steps]
    diagonal = math.sqrt(screen[0] ** 2 + screen[1] ** 2)
    scales = np.array([2 * diagonal, math.pi, diagonal, diagonal, 1.0])
    similarities: Floats = 1 - np.concatenate(parts) / scales if parts else np.empty((0, len(DIMENSIONS)))
    return similarities


def _check(paths: Sequence[Floats]) -> None:
    for place, points in enumerate(paths):
        if points.ndim != 2 or points.shape[1] != 3:
            raise DataError(f"scanpath {place} has the form {points.shape}, not (fixations, 3)")
        if len(points) < FEWEST_FIXATIONS:
            raise DataError(f"scanpath {place} has {len(points)} fixations; MultiMatch needs {FEWEST_FIXATIONS}")
    every = np.concatenate(paths) if len(paths) else np.empty((0, 3))
    wrong = ~np.isfinite(every).all(axis=1) | (every[:, 2] < 0)
    if wrong.any():
        place = int(np.searchsorted(np.cumsum([len(points) for points in paths]), np.argmax(wrong), side="right"))
        raise DataError(f"scanpath {place} has a number that is not finite or a negative duration")


def _table(paths: Sequence[Floats]) -> tuple[Floats, Ints]:
    """x, y, dx, dy and duration of every saccade, (5, pairs, most saccades), zeros beyond a path's end; their counts.

    A saccade has the place and the duration of the fixation that it starts from.
    """
    found = [_saccades(points) for points in paths]
    counts = np.array([len(saccades) for saccades in found])
    table = np.zeros((len(paths), int(counts.max()), 5))
    table[np.arange(table.shape[1]) < counts[:, None]] = np.concatenate(found)
    return np.moveaxis(table, 2, 0), counts


def _saccades(points: Floats) -> Floats:
    saccades = np.empty((len(points) - 1, 5))
    saccades[:, :2] = points[:-1, :2]
    saccades[:, 2:4] = points[1:, :2] - points[:-1, :2]
    saccades[:, 4] = points[:-1, 2]
    return saccades


def _compare(left: tuple[Floats, Ints], right: tuple[Floats, Ints]) -> Floats:
    """Medians of the five differences, (pairs, 5), not yet divided by their scales."""
    (a, rows), (b, columns) = left, right
    apart = np.sqrt((a[2][:, :, None] - b[2][:, None]) ** 2 + (a[3][:, :, None] - b[3][:, None]) ** 2)
    come_from, tied = _cheapest(apart)
    on_path, unsure = _trace(come_from, tied, rows, columns)
    for pair in np.flatnonzero(unsure):
        aligned = _as_scipy(apart[pair, : rows[pair], : columns[pair]])
        on_path[pair] = False
        on_path[pair][aligned] = True
    return np.stack([_median(part, on_path) for part in _differences(a, b, apart)], axis=1)


def _differences(a: Floats, b: Floats, apart: Floats) -> tuple[Floats, ...]:
    """The five differences of every saccade with every other, each (pairs, rows, columns)."""

    def each(values_a: Floats, values_b: Floats) -> Floats:
        return np.asarray(np.abs(values_a[:, :, None] - values_b[:, None]))

    angle_a, angle_b = (np.arctan2(table[3], table[2]) % (2 * np.pi) for table in (a, b))
    turn = each(angle_a, angle_b)
    turn = np.where(turn > np.pi, 2 * np.pi - turn, turn)
    length = each(*(np.sqrt(table[2] ** 2 + table[3] ** 2) for table in (a, b)))
    position = np.sqrt((a[0][:, :, None] - b[0][:, None]) ** 2 + (a[1][:, :, None] - b[1][:, None]) ** 2)
    longer = np.maximum(a[4][:, :, None], b[4][:, None])
    duration = np.divide(each(a[4], b[4]), longer, out=np.zeros_like(longer), where=longer > 0)
    return apart, turn, length, position, duration


def _cheapest(apart: Floats) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """Where the cheapest way from saccade pair (0, 0) to every other comes from, and whether that is a tie.

    Steps go right, down or diagonally and cost the difference of the pair they reach. The padding lies to the right
    and below, so it is on no way to a real pair.
    """
    pairs, rows, columns = apart.shape
    cost = np.full((pairs, rows + 1, columns + 1), np.inf)
    come_from = np.zeros((pairs, rows, columns), np.int8)
    tied = np.zeros((pairs, rows, columns), np.bool_)
    cost[:, 1, 1] = 0.0
    for i in range(rows):
        for j in range(columns):
            if i == 0 and j == 0:
                continue
            ways = np.stack([cost[:, i, j], cost[:, i + 1, j], cost[:, i, j + 1]])
            best = ways.min(axis=0)
            come_from[:, i, j] = ways.argmin(axis=0)
            tied[:, i, j] = (ways == best).sum(axis=0) > 1
            cost[:, i + 1, j + 1] = best + apart[:, i, j]
    return come_from, tied


def _trace(
    come_from: NDArray[np.int8], tied: NDArray[np.bool_], rows: Ints, columns: Ints
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The saccade pairs on each alignment, (pairs, rows, columns), and which alignments pass a tie."""
    every = np.arange(len(rows))
    i, j = rows - 1, columns - 1
    on_path = np.zeros(come_from.shape, np.bool_)
    unsure = np.zeros(len(rows), np.bool_)
    on_path[every, i, j] = True
    while (i + j).any():
        unsure |= tied[every, i, j]
        way, moving = come_from[every, i, j], (i + j) > 0
        i = i - (moving & (way != _LEFT))
        j = j - (moving & (way != _UP))
        on_path[every, i, j] = True
    return on_path, unsure


def _as_scipy(apart: Floats) -> tuple[Ints, Ints]:
    """The alignment that SciPy's Dijkstra finds among equally cheap ones: the package's values rest on its choice."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    rows, columns = apart.shape
    node = np.arange(apart.size).reshape(rows, columns)
    ends = ((node[:, :-1], node[:, 1:]), (node[:-1], node[1:]), (node[:-1, :-1], node[1:, 1:]))
    starts, stops = (np.concatenate([pair[side].ravel() for pair in ends]) for side in (0, 1))
    graph = csr_array((apart.ravel()[stops], (starts, stops)), shape=(apart.size, apart.size))
    _, before = dijkstra(graph, indices=0, return_predecessors=True)
    nodes, current = [apart.size - 1], apart.size - 1
    while current != 0:
        current = int(before[current])
        nodes.append(current)
    i, j = np.divmod(np.array(nodes, np.int64), columns)
    return i, j


def _median(values: Floats, on_path: NDArray[np.bool_]) -> Floats:
    """Median of each pair's values where `on_path`, (pairs,)."""
    flat = np.where(on_path, values, np.inf).reshape(len(values), -1)
    count = on_path.reshape(len(values), -1).sum(axis=1)
    ordered = np.sort(flat, axis=1)
    every = np.arange(len(values))
    return np.asarray((ordered[every, (count - 1) // 2] + ordered[every, count // 2]) / 2)
