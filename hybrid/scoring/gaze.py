"""Measures how well a tool predicts where people look: `hybrid tools measure NAME --fixations DIR`.

    measured = measure_maps(fixations, predict)          # predict(pixels): a map (h, w)
    measured = measure_paths(fixations, predict)         # predict(pixels, n): (n, 3) of x, y in 0..1 and ms
    gaze_table("saliency compared with people's fixations", measured)

Each metric is a mean over pictures with a 95 % interval over pictures. For each picture, a map is compared with the
fixations of all viewers, on a grid of at most `CELLS` cells along the longer side; a path is compared with each
viewer's path. MultiMatch compares paths in pixels of the picture, because its directions and lengths depend on the
aspect ratio.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hybrid.core.errors import DataError, HybridError, UsageError
from hybrid.core.images import decode, read_image_file
from hybrid.core.types import Json, Pixels
from hybrid.display.tables import Column, Table
from hybrid.scoring import gaze_metrics as metrics
from hybrid.scoring.fixations import MAX_MS, Fixations, RecordedPath
from hybrid.stats import ends_of, mean_interval

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
MapOf = Callable[[Pixels], Floats]
PathOf = Callable[[Pixels, int], Floats]

CELLS: Final = 320
# Standard deviation of the blur of fixations, as a share of the picture's longer side: about one degree if the picture
# is 33 degrees wide.
SIGMA: Final = 0.03
# Bandwidth of the clusters of a sequence score, as a share of the picture's size.
BANDWIDTH: Final = 0.12
# The baseline of information gain: its grid, and the blurs (as shares of a side) and uniform shares that are tried.
BASELINE_CELLS: Final = 80
BLURS: Final = (0.03, 0.06, 0.12, 0.25)
UNIFORM: Final = (0.01, 0.1, 0.5, 1.0)
# MultiMatch needs at least three fixations.
LEAST_FIXATIONS: Final = 3
MAP_METRICS: Final = ("NSS", "AUC-Judd", "shuffled AUC", "CC", "KL", "SIM", "information gain")
# Metrics without bounds; the others are in 0..1 for points inside the picture.
UNBOUNDED: Final = ("NSS", "CC", "KL", "information gain")
MULTIMATCH: Final = tuple(f"MultiMatch {name}" for name in ("shape", "direction", "length", "position", "duration"))
PATH_METRICS: Final = (*MULTIMATCH, "string edit", "ScanMatch", "sequence score")


@dataclass(frozen=True)
class GazeRow:
    """A metric over pictures: the tool's mean with its 95 % interval, and its reference values."""

    metric: str
    value: float | None
    low: float | None
    high: float | None
    pictures: int
    # The score of a map without contrast, or of the path predicted for another picture.
    chance: float | None
    # For paths: the score of each viewer's path against those of the picture's other viewers; None if no picture has
    # two viewers.
    people: float | None = None
    # Number of pictures with two or more viewers; only these have `people`.
    people_pictures: int = 0


@dataclass
class GazeScores:
    """The scores of one tool as rows, the numbers of pictures and paths behind them, and the skipped data.

    `frames` has the number of pictures by size, "WIDTHxHEIGHT" in pixels, in which MultiMatch compared paths.
    """

    rows: list[GazeRow] = field(default_factory=list)
    pictures: int = 0
    paths: int = 0
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    chance: str = ""
    frames: dict[str, int] = field(default_factory=dict)


def measure_maps(fixations: Fixations, predict: MapOf, limit: int | None = None) -> GazeScores:
    """Measure saliency maps. A picture without a map is skipped.

    Raises `UsageError` if none of the pictures can be used.
    """
    by_picture = _by_picture(fixations, limit)
    measured = GazeScores(skipped=list(fixations.skipped), notes=list(fixations.notes), chance="constant map")
    points = {name: np.concatenate([path.points[:, :2] for path in paths]) for name, paths in by_picture.items()}
    baseline = CentreBias(points) if len(points) > 1 else None
    others = OtherFixations(points) if len(points) > 1 else None
    values: dict[str, list[tuple[float, float]]] = defaultdict(list)
    names: list[str] = []
    for name in by_picture:
        try:
            grid = _grid_map(predict, fixations, name)
        # A plug-in's code may raise any exception.
        except Exception as error:
            measured.skipped.append(_fault(name, error))
            continue
        for metric, pair in _of_map(grid, points[name], name, baseline, others).items():
            values[metric].append(pair)
        names.append(name)
    measured.pictures, measured.paths = len(names), sum(len(by_picture[name]) for name in names)
    _check_measured(measured)
    measured.rows = [_row(metric, values[metric], names) for metric in MAP_METRICS if values[metric]]
    return measured


def _fault(name: str, error: Exception) -> str:
    """Return why a picture was skipped; for an error that is not hybrid's own, the reason includes the error's type."""
    return f"{name}: {error}" if isinstance(error, HybridError) else f"{name}: {type(error).__name__}: {error}"


def _grid_map(predict: MapOf, fixations: Fixations, name: str) -> Floats:
    """Return the map of a picture on the grid on which maps are compared."""
    from PIL import Image

    pixels = decode(read_image_file(fixations.pictures[name], name), name)
    scale = min(1.0, CELLS / max(pixels.shape[:2]))
    size = max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale))
    values = np.asarray(predict(pixels), np.float32)
    if values.ndim != 2 or not values.size:
        raise DataError(f"its map has the shape {values.shape}, not (height, width)")
    if not np.isfinite(values).all():
        raise DataError("its map has values that are not finite")
    return np.asarray(Image.fromarray(values).resize(size, Image.Resampling.BILINEAR), np.float64)


def _of_map(
    grid: Floats, points: Floats, name: str, baseline: CentreBias | None, others: OtherFixations | None
) -> dict[str, tuple[float, float]]:
    """Return each metric for this map and for a map without contrast; two metrics need fixations on other pictures."""
    shape = (grid.shape[0], grid.shape[1])
    fixated, maps = _on_grid(points, shape), (grid, np.zeros_like(grid))
    density = metrics.blurred(fixated, shape, SIGMA * max(shape))
    scores = {
        "NSS": [metrics.nss(values, fixated) for values in maps],
        "AUC-Judd": [metrics.auc_judd(values, fixated) for values in maps],
        "CC": [metrics.cc(values, density) for values in maps],
        "KL": [metrics.kl(values, density) for values in maps],
        "SIM": [metrics.sim(values, density) for values in maps],
    }
    if baseline is not None and others is not None:
        usual, counts = baseline.on_grid(name, shape), others.on_grid(fixated, shape)
        scores["shuffled AUC"] = [metrics.shuffled_auc(values, fixated, counts) for values in maps]
        scores["information gain"] = [metrics.information_gain(values, fixated, usual) for values in maps]
    return {name: (pair[0], pair[1]) for name, pair in scores.items()}


class OtherFixations:
    """The fixations on all other pictures: the negatives of the shuffled AUC.

    All fixations are counted once per grid shape (at most a few hundred shapes), and the fixations on a picture are
    subtracted, so that the time grows linearly with the number of pictures.

    Args:
        points: (n, 2) of x and y in 0..1 by picture.
    """

    def __init__(self, points: Mapping[str, Floats]) -> None:
        self._every = np.concatenate(list(points.values()))
        self._counts: dict[tuple[int, int], Floats] = {}

    def on_grid(self, fixations: Ints, shape: tuple[int, int]) -> Floats:
        """Return the number of fixations on other pictures in each cell of a grid (h, w).

        `fixations` (n, 2) are row and column of the fixations on the picture itself, which do not count.
        """
        if shape not in self._counts:
            self._counts[shape] = metrics.count_fixations(_on_grid(self._every, shape), shape)
        return self._counts[shape] - metrics.count_fixations(fixations, shape)


class CentreBias:
    """The distribution of fixations on all other pictures: the baseline of information gain.

    Blur and uniform share are chosen from `BLURS` and `UNIFORM`, so that fixations on one picture are most likely given
    those on the others. The uniform distribution is among the candidates, so that a map without contrast gains nothing
    on average.

    Args:
        points: (n, 2) of x and y in 0..1 by picture, at least two pictures.
    """

    def __init__(self, points: Mapping[str, Floats]) -> None:
        shape = (BASELINE_CELLS, BASELINE_CELLS)
        self._own = {name: _on_grid(of, shape) for name, of in points.items()}
        self._every = np.concatenate(list(self._own.values()))
        self._blurred = {blur: self._counts(self._every, blur) for blur in BLURS}
        likelihoods = {(blur, uniform): value for blur in BLURS for uniform, value in self._likelihoods(blur).items()}
        self._blur, self._uniform = max(likelihoods, key=likelihoods.__getitem__)

    def _counts(self, cells: Ints, blur: float) -> Floats:
        return metrics.blurred(cells, (BASELINE_CELLS, BASELINE_CELLS), blur * BASELINE_CELLS) * len(cells)

    def _rest(self, name: str, blur: float) -> Floats:
        fixations = self._own[name]
        return np.maximum(self._blurred[blur] - self._counts(fixations, blur), 0.0) / (
            len(self._every) - len(fixations)
        )

    def _likelihoods(self, blur: float) -> dict[float, float]:
        """Return the mean log likelihood over pictures for each uniform share."""
        totals = dict.fromkeys(UNIFORM, 0.0)
        for name, fixations in self._own.items():
            rest = self._rest(name, blur)
            for uniform in UNIFORM:
                at = _mixed(rest, uniform)[tuple(fixations.T)]
                totals[uniform] += float(np.log(metrics.EPSILON + at).mean()) / len(self._own)
        return totals

    def on_grid(self, name: str, shape: tuple[int, int]) -> Floats:
        """Return the baseline of a picture on a grid (h, w), with sum 1."""
        density = _mixed(self._rest(name, self._blur), self._uniform)
        rows, columns = (np.arange(side) * BASELINE_CELLS // side for side in shape)
        values = density[np.ix_(rows, columns)]
        return np.asarray(values / values.sum(), np.float64)


def _mixed(density: Floats, uniform: float) -> Floats:
    return np.asarray((1 - uniform) * density + uniform / density.size, np.float64)


def _on_grid(points: Floats, shape: tuple[int, int]) -> Ints:
    """Return row and column (n, 2) of points in 0..1."""
    rows = np.minimum((points[:, 1] * shape[0]).astype(np.intp), shape[0] - 1)
    columns = np.minimum((points[:, 0] * shape[1]).astype(np.intp), shape[1] - 1)
    return np.stack([rows, columns], axis=1)


def measure_paths(fixations: Fixations, predict: PathOf, limit: int | None = None) -> GazeScores:
    """Measure scanpaths against each viewer's path; paths of fewer than three fixations are left out.

    Raises `UsageError` if no path has an order, or none of the pictures can be used.
    """
    measured = GazeScores(
        skipped=list(fixations.skipped), notes=list(fixations.notes), chance="path of another picture"
    )
    paths = [path for path in fixations.paths if path.ordered and len(path.points) >= LEAST_FIXATIONS]
    if not paths:
        reasons = "".join(f"; {line}" for line in (*fixations.notes[-3:], *fixations.skipped[-3:]))
        raise UsageError(
            "--fixations: no path with order, durations and three fixations; a table needs the columns t and subject, "
            f"and a matrix of fixations is used for saliency only{reasons}"
        )
    short = sum(path.ordered and len(path.points) < LEAST_FIXATIONS for path in fixations.paths)
    measured.skipped += [f"{short} paths of fewer than {LEAST_FIXATIONS} fixations"] if short else []
    by_picture = _by_picture(Fixations(paths, fixations.pictures), limit)
    predicted: dict[str, Floats] = {}
    sizes: dict[str, tuple[int, int]] = {}
    for name, of in by_picture.items():
        try:
            pixels = decode(read_image_file(fixations.pictures[name], name), name)
            number = round(float(np.median([len(path.points) for path in of])))
            predicted[name] = _checked_path(predict(pixels, number))
            sizes[name] = pixels.shape[1], pixels.shape[0]
        # A plug-in's code may raise any exception.
        except Exception as error:
            measured.skipped.append(_fault(name, error))
    names = list(predicted)
    measured.pictures, measured.paths = len(names), sum(len(by_picture[name]) for name in names)
    measured.frames = dict(Counter(f"{width}x{height}" for width, height in sizes.values()))
    _check_measured(measured)
    _compare_paths(measured, by_picture, predicted, sizes)
    return measured


def _checked_path(path: Floats) -> Floats:
    """Return a predicted path (n, 3). Raises `DataError` if metrics are not defined for it."""
    points = np.asarray(path, np.float64)
    if points.ndim != 2 or points.shape[1] != 3:
        raise DataError(f"its path has the shape {points.shape}, not (fixations, 3)")
    if len(points) < LEAST_FIXATIONS:
        raise DataError(f"its path has {len(points)} fixations; MultiMatch needs {LEAST_FIXATIONS}")
    if not np.isfinite(points).all():
        raise DataError("its path has numbers that are not finite")
    if points[:, :2].min() < 0 or points[:, :2].max() > 1:
        raise DataError("its path has positions outside of 0..1")
    if points[:, 2].min() < 0 or points[:, 2].sum() > MAX_MS:
        raise DataError(f"its path has durations below 0, or of more than {MAX_MS:,.0f} ms together")
    return points


def _compare_paths(
    measured: GazeScores,
    by_picture: Mapping[str, Sequence[RecordedPath]],
    predicted: Mapping[str, Floats],
    sizes: Mapping[str, tuple[int, int]],
) -> None:
    names = list(predicted)
    tool: dict[str, list[float]] = defaultdict(list)
    chance: dict[str, list[float]] = defaultdict(list)
    people: dict[str, list[float]] = defaultdict(list)
    for place, name in enumerate(names):
        viewers = [path.points for path in by_picture[name]]
        clusters = metrics.fixation_clusters(np.concatenate(viewers)[:, :2], BANDWIDTH)
        other = predicted[names[(place + 1) % len(names)]]
        sides = {id(tool): (tool, [(predicted[name], viewer) for viewer in viewers])}
        sides[id(chance)] = chance, [(other, viewer) for viewer in viewers] if len(names) > 1 else []
        sides[id(people)] = people, list(itertools.permutations(viewers, 2))
        for values, pairs in sides.values():
            if pairs:
                for metric, mean in _of_pairs(pairs, clusters, sizes[name]).items():
                    values[metric].append(mean)
    for metric in PATH_METRICS:
        row = _row(metric, [(value, 0.0) for value in tool[metric]], names)
        elsewhere, between = (float(np.mean(values[metric])) if values[metric] else None for values in (chance, people))
        measured.rows.append(replace(row, chance=elsewhere, people=between, people_pictures=len(people[metric])))


def _of_pairs(pairs: Sequence[tuple[Floats, Floats]], clusters: Floats, size: tuple[int, int]) -> dict[str, float]:
    """Return each metric as the mean over pairs of paths; MultiMatch in pixels of a picture of that size."""
    from hybrid.benchmarks.hvsbench.multimatch import multimatch

    paths = [path * (*size, 1.0) for pair in pairs for path in pair]
    table = multimatch(paths, [(2 * place, 2 * place + 1) for place in range(len(pairs))], size)
    scores = dict(zip(MULTIMATCH, table.mean(axis=0).tolist(), strict=True))
    scores["string edit"] = float(np.mean([metrics.string_edit(a, b) for a, b in pairs]))
    scores["ScanMatch"] = float(np.mean([metrics.scanmatch(a, b) for a, b in pairs]))
    scores["sequence score"] = float(np.mean([metrics.sequence_score(a, b, clusters, BANDWIDTH) for a, b in pairs]))
    return scores


def _by_picture(fixations: Fixations, limit: int | None) -> dict[str, list[RecordedPath]]:
    by_picture: dict[str, list[RecordedPath]] = defaultdict(list)
    for path in fixations.paths:
        by_picture[path.picture].append(path)
    return {name: by_picture[name] for name in sorted(by_picture)[:limit]}


def _check_measured(measured: GazeScores) -> None:
    if not measured.pictures:
        reasons = "".join(f"; {line}" for line in measured.skipped[-3:])
        raise UsageError(f"--fixations: the tool answered for none of the pictures{reasons}")


def _row(metric: str, pairs: Sequence[tuple[float, float]], names: Sequence[str]) -> GazeRow:
    tool, chance = (np.array(column, float) for column in zip(*pairs, strict=True))
    low, high = ends_of(mean_interval(tool, names))
    if metric not in UNBOUNDED and low is not None and high is not None:
        low, high = max(0.0, low), min(1.0, high)
    return GazeRow(metric, float(tool.mean()), low=low, high=high, pictures=len(tool), chance=float(chance.mean()))


def as_json(measured: GazeScores) -> dict[str, Json]:
    """Return all numbers, and the skipped data."""
    return {
        "pictures": measured.pictures,
        "paths": measured.paths,
        "chance": measured.chance,
        "multimatch_frames_px": dict(measured.frames),
        "rows": [asdict(row) for row in measured.rows],
        "notes": list(measured.notes),
        "skipped": list(measured.skipped),
    }


def gaze_table(title: str, measured: GazeScores) -> Table:
    """Return the rows as a table."""
    two_viewers = max((row.people_pictures for row in measured.rows), default=0)
    has_people = two_viewers > 0
    columns = (Column("metric", "left"), *map(Column, ("tool", "95 %", measured.chance, "pictures")))
    columns = (*columns, Column(f"people, n = {two_viewers}")) if has_people else columns
    lines = []
    for row in measured.rows:
        ends = "-" if row.low is None or row.high is None else f"[{row.low:.3f}, {row.high:.3f}]"
        cells = (row.metric, _form(row.value), ends, _form(row.chance), str(row.pictures))
        lines.append((*cells, _form(row.people)) if has_people else cells)
    notes = [f"{measured.pictures} pictures, {measured.paths} paths of viewers; intervals over pictures"]
    if any(row.metric == "KL" for row in measured.rows):
        notes.append(
            "KL (nats): lower is better; information gain in bits per fixation, over fixations on other pictures"
        )
    if measured.frames:
        sizes = ", ".join(f"{size} ({number})" for size, number in list(measured.frames.items())[:3])
        more = f" and {len(measured.frames) - 3} more sizes (--json)" if len(measured.frames) > 3 else ""
        notes.append(f"MultiMatch in pixels of each picture: {sizes}{more}")
    if has_people:
        note = "people: each viewer of a picture compared with the others"
        fewer = two_viewers < measured.pictures
        rest = (
            f", over the {two_viewers} pictures with two or more viewers; the tool's means are over all pictures"
            if fewer
            else ""
        )
        notes.append(note + rest)
    notes += measured.notes
    return Table(title, columns, tuple(lines), tuple(notes))


def _form(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
