"""MultiMatch: similarity of two scanpaths in shape, direction, length, position and duration, for many pairs at once.

    similarities = multimatch([path_a, path_b, path_c], [(0, 1), (0, 2)], screen=(512, 320))    # (2, 5)

The measure is that of Jarodzka, Holmqvist and Nystrom, ETRA 2010, section 3. The values equal those of the package
`multimatch-gaze` 0.1.3 (Wagner et al., JOSS 4 (2019) 1525), and are defined also where that package raises an error.
Two scanpaths become two lists of saccades. A cheapest monotone alignment of the lists, whose cost is the length of the
vector differences, determines which saccades to compare. The similarity in a dimension is one minus the median of its
differences over the aligned pairs. `bench/multimatch.py` measures the times.

Pairs of similar lengths are compared together: an array has a row for each saccade, or pair of saccades, and a column
for each pair of paths, so that every step is one pass over contiguous numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid.core.errors import DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Codes = NDArray[np.uint8]

# Columns of a result, in order; the package calls the first column `vector`.
DIMENSIONS: Final = ("shape", "direction", "length", "position", "duration")

# For paths with fewer fixations the measure is undefined: the package returns NaN, and this module raises an error. A
# protocol with such paths must define how to pad them.
MIN_FIXATIONS: Final = 3

# Bits that mark the cheapest predecessors of a pair of saccades; several bits are set for a tie.
_DIAGONAL, _LEFT, _UP = 1, 2, 4

_TIED: Final = np.array([bits.bit_count() > 1 for bits in range(8)])

# Number of pairs of saccades that are processed together, so that their data fit a processor's cache.
_CHUNK_CELLS: Final = 1 << 17
# Cost of an additional batch, expressed as the number of padding pairs of saccades that take the same time.
_BATCH_CELLS: Final = 1 << 14
# Alignments per call of SciPy; the time of a call has a constant part and a part proportional to the square of their
# number.
_TIES_TOGETHER: Final = 16


@dataclass(frozen=True)
class _Saccades:
    """The saccades of all paths, concatenated, (saccades,) each; `starts` and `counts` have one value per path.

    A saccade has the position and the duration of the fixation where it starts. Reads beyond the end of a path return
    other saccades, or zeros after the last one, and do not affect the result.
    """

    x: Floats
    y: Floats
    dx: Floats
    dy: Floats
    length: Floats
    angle: Floats
    duration: Floats
    starts: Ints
    counts: Ints


def multimatch(paths: Sequence[Floats], pairs: ArrayLike, screen: tuple[float, float]) -> Floats:
    """Return the similarity of `paths[i]` and `paths[j]` for every pair (i, j).

    Args:
        paths: scanpaths, each (fixations, 3) of x, y in the units of `screen` and duration; at least three fixations.
        pairs: (pairs, 2) indices of the paths to compare.
        screen: width and height by which lengths and positions are divided; similarities depend on it.

    Returns:
        (pairs, 5), columns as in `DIMENSIONS`. 1 means equal. Shape, length and position can be negative only if points
        are outside the screen. Two durations of 0 are equal.

    Raises:
        DataError: an array of another form, fewer than three fixations, a number that is not finite, a negative
            duration, an invalid index, or a screen without area.
    """
    if not (math.isfinite(screen[0]) and math.isfinite(screen[1]) and min(screen) > 0):
        raise DataError(f"screen {screen}: width and height must be above 0")
    saccades = _saccades(paths)
    first, second = _sides(pairs, len(paths))
    medians = np.empty((len(DIMENSIONS), len(first)))
    for batch in _batches(saccades.counts[first], saccades.counts[second]):
        medians[:, batch] = _compare(saccades, first[batch], second[batch])
    diagonal = math.sqrt(screen[0] ** 2 + screen[1] ** 2)
    similarities: Floats = 1 - medians.T / [2 * diagonal, math.pi, diagonal, diagonal, 1.0]
    return similarities


def _sides(pairs: ArrayLike, paths: int) -> tuple[Ints, Ints]:
    table = np.asarray(pairs)
    if not table.size:
        table = np.empty((0, 2), np.intp)
    if table.ndim != 2 or table.shape[1] != 2 or table.dtype.kind not in "iu":
        raise DataError(f"pairs must be whole numbers of shape (pairs, 2), not {table.dtype} of shape {table.shape}")
    if table.size and not 0 <= table.min() <= table.max() < paths:
        raise DataError(f"a pair names a path that does not exist; paths are counted from 0 to {paths - 1}")
    first, second = np.ascontiguousarray(table.T, np.intp)
    return first, second


def _saccades(paths: Sequence[Floats]) -> _Saccades:
    forms = [points.shape for points in paths]
    for form in set(forms):
        if len(form) != 2 or form[1] != 3:
            raise DataError(f"scanpath {forms.index(form)} has the shape {form}, not (fixations, 3)")
        if form[0] < MIN_FIXATIONS:
            many = f"{form[0]} fixations; MultiMatch needs {MIN_FIXATIONS}"
            raise DataError(f"scanpath {forms.index(form)} has {many}")
    fixations = np.array([form[0] for form in forms], np.intp)
    ends = np.cumsum(fixations)
    beyond = np.zeros((int(fixations.max(initial=0)) + 1, 3))
    points = np.concatenate([*paths, beyond])
    x, y, duration = np.ascontiguousarray(points.T)
    if not np.isfinite(points).all() or duration.min() < 0:
        wrong = ~np.isfinite(points).all(axis=1) | (duration < 0)
        place = int(np.searchsorted(ends, np.argmax(wrong), side="right"))
        raise DataError(f"scanpath {place} has a number that is not finite or a negative duration")
    dx, dy = np.diff(x), np.diff(y)
    length, angle = np.sqrt(dx * dx + dy * dy), np.arctan2(dy, dx)
    angle[angle < 0] += 2 * np.pi
    return _Saccades(
        x, y, dx=dx, dy=dy, length=length, angle=angle, duration=duration, starts=ends - fixations, counts=fixations - 1
    )


def _batches(rows: Ints, columns: Ints) -> Iterator[Ints]:
    """Yield batches of pairs (as indices) to compare together: similar in numbers of saccades, limited in size."""
    order = np.lexsort((columns, rows))
    shapes = np.stack([rows[order], columns[order]])
    changes = np.flatnonzero(np.diff(shapes, axis=1).any(axis=0)) + 1
    # The pairs of one shape are added to the previous batch if their padding costs less than a separate batch.
    batches: list[tuple[int, int, int, int]] = []
    for begin, end in pairwise([0, *changes.tolist(), len(order)]):
        high, wide = shapes[:, begin].tolist() if end > begin else (0, 0)
        if batches:
            start, stop, tall, broad = batches[-1]
            joint = max(tall, high), max(broad, wide)
            alone = (stop - start) * tall * broad + (end - begin) * high * wide
            if (end - start) * joint[0] * joint[1] - alone < _BATCH_CELLS:
                batches[-1] = (start, end, *joint)
                continue
        batches.append((begin, end, high, wide))
    for start, stop, high, wide in batches:
        step = max(1, _CHUNK_CELLS // max(1, high * wide))
        for begin in range(start, stop, step):
            yield order[begin : min(stop, begin + step)]


def _compare(saccades: _Saccades, first: Ints, second: Ints) -> Floats:
    """Return medians of the five differences, (5, pairs), not yet divided by their scales."""
    starts = saccades.starts[first], saccades.starts[second]
    rows, columns = saccades.counts[first], saccades.counts[second]
    # Length of the difference of every saccade of one path with every saccade of the other, (rows, columns, pairs).
    down, across = starts[0] + np.arange(rows.max())[:, None], starts[1] + np.arange(columns.max())[:, None]
    dx, dy = (part.take(down)[:, None] - part.take(across) for part in (saccades.dx, saccades.dy))
    np.multiply(dx, dx, out=dx)
    np.multiply(dy, dy, out=dy)
    dx += dy
    distances: Floats = np.sqrt(dx, out=dx)
    codes = _cheapest(distances)
    path, moves = _trace(codes, rows, columns)
    if (tied := _TIED[moves].any(axis=0)).any():
        for members in _of_one_shape(np.flatnonzero(tied), rows, columns):
            high, wide = int(rows[members[0]]), int(columns[members[0]])
            codes[:high, :wide, members] = _as_scipy(distances[:high, :wide, members])
        path, moves = _trace(codes, rows, columns)
    differences = _differences(saccades, starts, distances, path)
    differences[:, 1:][:, moves == 0] = np.inf
    # The median over the steps of each pair's alignment.
    counts = 1 + np.count_nonzero(moves, axis=0)
    ordered = np.sort(differences, axis=1)
    middle = (counts - 1) // 2, counts // 2
    lower, upper = (np.take_along_axis(ordered, place[None, None], axis=1)[:, 0] for place in middle)
    return np.asarray((lower + upper) / 2)


def _cheapest(distances: Floats) -> Codes:
    """Return the predecessor on the cheapest path from saccade pair (0, 0) to every other, (rows, columns, pairs).

    Steps go right, down or diagonally and cost the difference of the pair they reach. The padding is to the right and
    below, so it is on no path to a real pair. The code at (0, 0) is 0.
    """
    rows, columns, pairs = distances.shape
    # The arrays have one additional row and column, which are impassable. Pairs of saccades with the same i + j are
    # independent of each other, and are equally spaced in memory.
    cost = np.full((rows + 1, columns + 1, pairs), np.inf)
    best = np.full((rows, columns, pairs), np.nan)
    cost[1, 1] = 0.0
    flat, reached, added = (part.reshape(-1, pairs) for part in (cost, best, distances))
    for total in range(1, rows + columns - 1):
        low, many = max(0, total - columns + 1), min(total, rows - 1) - max(0, total - columns + 1) + 1
        diagonal = low * columns + total
        up_cell, left_cell, own_cell = diagonal + 1, diagonal + columns + 1, diagonal + columns + 2
        way = reached[low * (columns - 1) + total :: columns - 1][:many]
        np.minimum(flat[up_cell::columns][:many], flat[left_cell::columns][:many], out=way)
        np.minimum(flat[diagonal::columns][:many], way, out=way)
        np.add(way, added[low * (columns - 1) + total :: columns - 1][:many], out=flat[own_cell::columns][:many])
    codes: Codes = (best == cost[:-1, :-1]).view(np.uint8)
    codes |= (best == cost[1:, :-1]).view(np.uint8) << 1
    codes |= (best == cost[:-1, 1:]).view(np.uint8) << 2
    return codes


def _trace(codes: Codes, rows: Ints, columns: Ints) -> tuple[Ints, Codes]:
    """Return the saccade pairs on each alignment, from the last to the first.

    Returns:
        Their positions as row * columns + column, (steps, pairs), and the codes of the moves from each to the next,
        (steps - 1, pairs). A shorter alignment stays at (0, 0), with moves of code 0.
    """
    wide, pairs = codes.shape[1:]
    back = np.zeros(8, np.intp)
    # Among several cheapest predecessors, the last in this list is taken: diagonal before left, left before up.
    for step, ways in ((wide, _UP), (1, _LEFT), (wide + 1, _DIAGONAL)):
        back[[code for code in range(8) if code & ways]] = step
    flat, pair_index = codes.reshape(-1), np.arange(pairs)
    at = (rows - 1) * wide + (columns - 1)
    path, moves = [at], []
    while (move := flat.take(at * pairs + pair_index)).any():
        at = at - back.take(move)
        path.append(at)
        moves.append(move)
    return np.array(path), np.array(moves)


def _of_one_shape(members: Ints, rows: Ints, columns: Ints) -> Iterator[Ints]:
    """Yield the pairs in groups with equal numbers of saccades, at most `_TIES_TOGETHER` each."""
    shapes = np.stack([rows[members], columns[members]], axis=1)
    for shape in np.unique(shapes, axis=0):
        same_shape = members[(shapes == shape).all(axis=1)]
        for begin in range(0, len(same_shape), _TIES_TOGETHER):
            yield same_shape[begin : begin + _TIES_TOGETHER]


def _as_scipy(distances: Floats) -> Codes:
    """Return the codes of the paths that SciPy's Dijkstra finds; its choice among ties determines the result.

    All alignments of `distances` (rows, columns, pairs) are parts of one graph; from its start, each search reaches
    only its own part.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    rows, columns, pairs = distances.shape
    nodes = rows * columns
    stops, ends = _graph(rows, columns)
    parts = np.arange(pairs)[:, None]
    weights = distances.reshape(nodes, pairs).T
    pointers = np.append((parts * len(stops) + ends[:-1]).ravel(), pairs * len(stops))
    parted = (weights[:, stops].ravel(), (parts * nodes + stops).ravel(), pointers)
    graph = csr_array(parted, shape=(pairs * nodes, pairs * nodes))
    _, predecessors = dijkstra(graph, indices=parts[:, 0] * nodes, return_predecessors=True)
    previous = predecessors.reshape(pairs, pairs, nodes)[parts[:, 0], parts[:, 0]] - parts * nodes
    step = np.arange(nodes) - previous
    codes = np.zeros(step.shape, np.uint8)
    for length, way in ((columns + 1, _DIAGONAL), (1, _LEFT), (columns, _UP)):
        codes[step == length] = way
    return codes.T.reshape(rows, columns, pairs)


@lru_cache(maxsize=256)
def _graph(rows: int, columns: int) -> tuple[Ints, Ints]:
    """Return the steps from every saccade pair: the list of targets, and where each pair's targets end in the list."""
    node = np.arange(rows * columns).reshape(rows, columns)
    ends = ((node[:, :-1], node[:, 1:]), (node[:-1], node[1:]), (node[:-1, :-1], node[1:, 1:]))
    starts, stops = (np.concatenate([pair[side].ravel() for pair in ends]) for side in (0, 1))
    order = np.lexsort((stops, starts))
    return stops[order], np.searchsorted(starts[order], np.arange(rows * columns + 1))


def _differences(saccades: _Saccades, starts: tuple[Ints, Ints], distances: Floats, path: Ints) -> Floats:
    """Return the five differences along the alignments, (5, steps, pairs)."""
    pairs = path.shape[1]
    rows, columns = np.divmod(path, distances.shape[1])
    a, b = starts[0] + rows, starts[1] + columns
    differences = np.empty((len(DIMENSIONS), *path.shape))
    shape, turn, length, position, duration = differences
    distances.reshape(-1).take(path * pairs + np.arange(pairs), out=shape, mode="clip")

    def between(values: Floats) -> Floats:
        return np.asarray(values.take(a) - values.take(b))

    np.abs(between(saccades.angle), out=turn)
    np.minimum(turn, 2 * np.pi - turn, out=turn)
    np.abs(between(saccades.length), out=length)
    dx, dy = between(saccades.x), between(saccades.y)
    np.sqrt(dx * dx + dy * dy, out=position)
    first, second = saccades.duration.take(a), saccades.duration.take(b)
    longer = np.maximum(first, second)
    duration[...] = np.abs(first - second) / np.where(longer > 0, longer, 1.0)
    return differences
