"""Bottom-up saliency without weights: centre-surround conspicuity, boolean maps and the image signature.

`salience(pixels)` gives one map 0..1 on a reduced grid,
`segments(pixels, map)` the regions that stand out of it.

- conspicuity: intensity, two colour opponencies and four orientations, each compared with its surround over scales and
  weighted up where it has few peaks (Itti, Koch and Niebur 1998).
- boolean maps: regions of thresholded colour channels that the image border does not touch (Zhang and Sclaroff 2013).
- signature: the signs of the cosine transform, back in the image (Hou, Harel and Koch 2012).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from hybrid.types import Box
from tools._shared.reading import shrink

SaliencyMap = npt.NDArray[np.float32]
"""One value a grid cell, shape (h, w)."""
Labels = npt.NDArray[np.int32]

WORK_PX = 320
"""Long side on which everything is measured: the scales below were chosen for it."""
SIGNATURE_PX = 96
LEVELS = 16
"""Thresholds of each colour channel in the boolean maps."""
FEWEST_LEVELS = 3
"""Grey levels between the darkest and the brightest pixel below which an image is flat: rounding would be stretched."""
CENTRE_SIGMA = 0.3
"""Of the centre prior, as a fraction of width and height: people look at the middle first (Tatler 2007)."""
LEAST_PRIOR = 0.4
"""The centre prior in the corners; the sketch that this follows had 0.25, which drops objects near the border."""
COLOUR_STEP = 2.2
"""Largest L*a*b* difference of two neighbouring cells of one segment, after smoothing."""
LEAST_AREA = 0.0006
"""Smallest segment that may be an object, as a fraction of the picture."""
MOST_AREA = 0.5
LEAST_SHARE = 0.17
"""Least prominence of an object, as a fraction of the most prominent one's: set on generated pictures 0 to 59."""
JOIN = 0.4
"""A segment belongs to the object it touches when their saliencies differ by at most this ratio,"""
JOIN_COLOUR = 80.0
"""and their colours by at most this L*a*b* distance."""

LINE_HALF_PX = 10
"""Half the band painted over where a dividing line is: ActiView's are 15 px wide, and JPEG blurs their edges."""
LINE_SPREAD = 16.0
"""Largest standard deviation of grey levels along a drawn line of one colour, after JPEG."""
LINE_CONTRAST = 40.0
"""Least mean difference of grey levels, in the channel where it is largest, between a drawn line and its sides."""


@dataclass(frozen=True)
class Region:
    """A region that stands out: its box in fractions of the image, its mean in the map, its share of the area."""

    box_0_1: Box
    mean: float
    area: float

    @property
    def prominence(self) -> float:
        """How much it draws: its mean saliency, counted more the larger it is (exponent set on seeds 0 to 59)."""
        return float(self.mean * np.sqrt(self.area))


def salience(pixels: Pixels) -> SaliencyMap:
    """Saliency 0..1 (h, w) of an RGB image (H, W, 3), long side at most 320 cells; 0 everywhere on a flat image."""
    work = shrink(pixels, WORK_PX)
    size = (work.shape[1], work.shape[0])
    if int((work.max(axis=(0, 1)) - work.min(axis=(0, 1))).max()) < FEWEST_LEVELS:
        return np.zeros(work.shape[:2], np.float32)
    parts = [conspicuity(work), boolean_maps(work), signature(work)]
    total = np.zeros(work.shape[:2], np.float32)
    for part in parts:
        full = _resize(part, size)
        # By the mean, so that a map with few peaks counts more than one that is bright everywhere.
        total += full / max(float(full.mean()), 1e-6) if full.max() > 0 else 0
    return stretch(stretch(total) * centre_prior(work.shape[0], work.shape[1]))


def centre_prior(height: int, width: int) -> SaliencyMap:
    """A Gaussian about the middle from 1 down to `LEAST_PRIOR`."""
    rows = ((np.arange(height) + 0.5) / height - 0.5) / CENTRE_SIGMA
    columns = ((np.arange(width) + 0.5) / width - 0.5) / CENTRE_SIGMA
    bell = np.exp(-(rows[:, None] ** 2 + columns[None] ** 2) / 2)
    return np.asarray(LEAST_PRIOR + (1 - LEAST_PRIOR) * bell, np.float32)


def conspicuity(work: Pixels) -> SaliencyMap:
    """Itti, Koch and Niebur's map of an RGB image (h, w, 3)."""
    red, green, blue = (np.asarray(c, np.float32) for c in cv2.split(work.astype(np.float32) / 255))
    intensity = np.asarray((red + green + blue) / 3, np.float32)
    brightest = np.maximum(np.maximum(red, green), blue)
    # Hue means nothing in the dark.
    lit = np.where(brightest >= 0.1, brightest, np.inf)
    opponents = ((red - green) / lit, (blue - np.minimum(red, green)) / lit)
    colours = [contrast for opponent in opponents for contrast in _centre_surround(np.asarray(opponent, np.float32))]
    size = (max(1, work.shape[1] // 2), max(1, work.shape[0] // 2))
    oriented = np.zeros((size[1], size[0]), np.float32)
    for step in range(4):
        kernel = cv2.getGaborKernel((9, 9), 2.2, np.pi * step / 4, 5.0, 1.0, 0.0, cv2.CV_32F)
        response = np.abs(cv2.filter2D(intensity, cv2.CV_32F, np.asarray(kernel - kernel.mean(), np.float32)))
        oriented += promote(_sum(_centre_surround(np.asarray(response, np.float32)), size))
    found = promote(_sum(_centre_surround(intensity), size)) + promote(_sum(colours, size)) + promote(oriented)
    return stretch(np.asarray(cv2.GaussianBlur(found, (0, 0), 2), np.float32))


def promote(values: SaliencyMap) -> SaliencyMap:
    """Itti's normalisation: a map with one peak keeps its height, one with many like peaks loses it."""
    scaled = stretch(values)
    peaks = scaled[(scaled == cv2.dilate(scaled, np.ones((7, 7), np.uint8))) & (scaled > 0.05)]
    return np.asarray(scaled * (1 - (float(peaks.mean()) if peaks.size else 0)) ** 2 + 0.05 * scaled, np.float32)


def boolean_maps(work: Pixels) -> SaliencyMap:
    """Zhang and Sclaroff's attention map: how often a cell lies in a region that the border does not touch."""
    colours = cv2.cvtColor(work.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    attention = np.zeros(work.shape[:2], np.float32)
    for channel in cv2.split(colours):
        spread = float(channel.max() - channel.min())
        if spread < 2:
            continue
        levels = np.asarray((channel - channel.min()) * (255 / spread), np.float32)
        for number in range(LEVELS):
            above = levels > (number + 0.5) * 255 / LEVELS
            for chosen in (above, ~above):
                enclosed = _enclosed(chosen)
                norm = float(np.sqrt(enclosed.sum()))
                if norm > 0:
                    attention += np.asarray(cv2.dilate(enclosed, np.ones((5, 5), np.uint8)), np.float32) / norm
    return stretch(np.asarray(cv2.GaussianBlur(attention, (0, 0), 4), np.float32))


def signature(work: Pixels) -> SaliencyMap:
    """Hou, Harel and Koch's map from the signs of the cosine transform of each L*a*b* channel."""
    from scipy.fft import dctn, idctn

    small = shrink(work, SIGNATURE_PX)
    colours = cv2.cvtColor(small.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    found = np.zeros(small.shape[:2], np.float64)
    for channel in cv2.split(colours):
        coefficients = dctn(np.asarray(channel, np.float64), norm="ortho")
        # What is zero up to rounding has no sign.
        coefficients[np.abs(coefficients) < 1e-3] = 0
        found += idctn(np.sign(coefficients), norm="ortho") ** 2
    return stretch(np.asarray(cv2.GaussianBlur(found, (0, 0), 0.045 * max(found.shape)), np.float32))


def apart(pixels: Pixels, saliency: SaliencyMap) -> SaliencyMap:
    """Geometric mean of a map (h, w) and of how far each cell's colour is from the image's usual one, 0..1.

    Blurred maps favour small things, whose whole surface is edge; a difference in colour (global contrast, Cheng et al.
    2015) holds over all of a thing.
    """
    colours = _lab(pixels, saliency)
    distance = np.linalg.norm(colours - np.median(colours.reshape(-1, 3), axis=0), axis=2)
    return stretch(np.asarray(np.sqrt(saliency * stretch(np.asarray(distance, np.float32))), np.float32))


def in_box(values: SaliencyMap, box: Box, size: tuple[int, int]) -> Region:
    """The more salient half of a map (h, w) inside a box in pixels of an image of `size` (H, W)."""
    rows, columns = values.shape
    left, top = int(box.x0 * columns / size[1]), int(box.y0 * rows / size[0])
    right = max(left + 1, round(box.x1 * columns / size[1]))
    below = max(top + 1, round(box.y1 * rows / size[0]))
    inside = np.sort(values[top:below, left:right].ravel())[::-1]
    share = Box(box.x0 / size[1], box.y0 / size[0], box.x1 / size[1], box.y1 / size[0])
    area = (share.x1 - share.x0) * (share.y1 - share.y0)
    return Region(share, float(inside[: max(1, inside.size // 2)].mean()), area)


def regions(pixels: Pixels, saliency: SaliencyMap) -> list[Region]:
    """The regions of an RGB image (H, W, 3) that its map (h, w) marks, most prominent first; none on a flat map."""
    colours = np.asarray(cv2.bilateralFilter(_lab(pixels, saliency), 7, 12, 3), np.float32)
    labels = _same_colour(colours)
    count = int(labels.max()) + 1
    cells = np.bincount(labels.ravel(), minlength=count)
    means = np.bincount(labels.ravel(), saliency.ravel(), count) / cells
    area = cells / labels.size
    threshold = otsu(saliency)
    chosen = (means >= threshold) & (area >= LEAST_AREA) & (area <= MOST_AREA)
    joined = _join(labels, colours, np.asarray(means, np.float64), chosen)
    values = apart(pixels, saliency)
    found = [_region(joined == number, values) for number in np.unique(joined[joined >= 0])]
    found = sorted(found, key=lambda region: -region.prominence)
    return [region for region in found if region.prominence >= LEAST_SHARE * found[0].prominence]


def without_lines(pixels: Pixels, columns: int, rows: int) -> Pixels:
    """The image with lines that are drawn between equal columns and rows painted over from their two sides.

    Only what is a line is painted over: its middle has one colour from border to border, which its sides do not have.
    The input is not changed.
    """
    out = pixels
    for axis, parts in ((1, columns), (0, rows)):
        size = pixels.shape[axis]
        half = min(LINE_HALF_PX, size // (4 * parts))
        for number in range(1, parts):
            middle = number * size // parts
            if half >= 1 and _is_line(np.moveaxis(pixels, axis, 0), middle, half):
                out = _painted(out, axis, middle - half, middle + half)
    return out


def _is_line(turned: Pixels, middle: int, half: int) -> bool:
    """Whether row `middle` has one colour, unlike that of the rows `half` away from it."""
    along, sides = turned[middle].astype(np.float32), turned[[middle - half, middle + half]].astype(np.float32)
    unlike = np.abs(sides - along.mean(axis=0)).max(axis=2)
    return float(along.std(axis=0).max()) < LINE_SPREAD and float(unlike.mean()) > LINE_CONTRAST


def _painted(pixels: Pixels, axis: int, low: int, high: int) -> Pixels:
    """The image with the band [low, high) of an axis blended from its two neighbours."""
    turned = np.moveaxis(pixels, axis, 0).astype(np.float32)
    before, after = turned[low - 1], turned[min(high, turned.shape[0] - 1)]
    share = ((np.arange(high - low) + 1) / (high - low + 1))[:, None, None]
    turned[low:high] = before * (1 - share) + after * share
    return np.moveaxis(np.round(turned), 0, axis).astype(np.uint8)


def otsu(values: SaliencyMap) -> float:
    """Otsu's threshold (1979) of a map in 0..1."""
    levels = np.round(np.clip(values, 0, 1) * 255).astype(np.uint8)
    level, _ = cv2.threshold(levels, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    return float(level) / 255 + 1e-6


def stretch(values: SaliencyMap) -> SaliencyMap:
    """A map moved and scaled to 0..1; zero everywhere when it is constant."""
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-9:
        return np.zeros_like(values, np.float32)
    return np.asarray((values - low) / (high - low), np.float32)


def _centre_surround(feature: SaliencyMap) -> list[SaliencyMap]:
    levels = [feature]
    for _ in range(6):
        levels.append(np.asarray(cv2.pyrDown(levels[-1]), np.float32))
    return [
        np.asarray(np.abs(levels[fine] - _resize(levels[fine + step], levels[fine].shape[::-1])), np.float32)
        for fine in (1, 2, 3)
        for step in (2, 3)
    ]


def _sum(maps: Iterable[SaliencyMap], size: tuple[int, int]) -> SaliencyMap:
    total = np.zeros((size[1], size[0]), np.float32)
    for values in maps:
        total += _resize(promote(values), size)
    return total


def _enclosed(chosen: npt.NDArray[np.bool_]) -> SaliencyMap:
    """The parts of a mask that do not touch the border, as 0 and 1."""
    count, labels = cv2.connectedComponents(chosen.astype(np.uint8), connectivity=8)
    keep = np.ones(count, np.float32)
    keep[0] = 0
    keep[np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])] = 0
    return np.asarray(keep[labels], np.float32)


def _same_colour(colours: SaliencyMap) -> Labels:
    """Connected cells whose neighbours differ by less than `COLOUR_STEP`, numbered from 0, (h, w)."""
    height, width = colours.shape[:2]
    index = np.arange(height * width).reshape(height, width)
    across = np.linalg.norm(np.diff(colours, axis=1), axis=2) < COLOUR_STEP
    down = np.linalg.norm(np.diff(colours, axis=0), axis=2) < COLOUR_STEP
    pairs = [(index[:, :-1][across], index[:, 1:][across]), (index[:-1][down], index[1:][down])]
    return _components(pairs, height * width).reshape(height, width)


def _join(
    labels: Labels, colours: SaliencyMap, means: npt.NDArray[np.float64], chosen: npt.NDArray[np.bool_]
) -> Labels:
    """Chosen segments that touch and are alike, under one number each; -1 elsewhere."""
    kernel = np.ones((5, 5), np.uint8)
    shown = np.where(chosen[labels], labels + 1, 0).astype(np.float32)
    # Edges fall into segments of a few cells: neighbours are looked for across two of them.
    grown = np.asarray(cv2.dilate(shown, kernel), np.int64) - 1
    count = means.size
    cells = np.maximum(np.bincount(labels.ravel(), minlength=count), 1)
    mean_colour = np.stack(
        [np.bincount(labels.ravel(), colours[..., k].ravel(), count) / cells for k in range(3)], axis=1
    )
    here = labels.ravel()
    there = grown.ravel()
    valid = (there >= 0) & (here != there)
    valid &= chosen[here]
    first, second = here[valid], there[valid]
    ratio = np.minimum(means[first], means[second]) / np.maximum(np.maximum(means[first], means[second]), 1e-9)
    alike = (ratio >= JOIN) & (np.linalg.norm(mean_colour[first] - mean_colour[second], axis=1) <= JOIN_COLOUR)
    groups = _components([(first[alike], second[alike])], count)
    return np.where(chosen[labels], groups[labels], -1).astype(np.int32)


def _components(pairs: Sequence[tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]], count: int) -> Labels:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first = np.concatenate([a for a, _ in pairs])
    second = np.concatenate([b for _, b in pairs])
    graph = coo_array((np.ones(first.size, np.int8), (first, second)), shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1], np.int32)


def _lab(pixels: Pixels, saliency: SaliencyMap) -> SaliencyMap:
    """L*a*b* of an image at the cells of its map."""
    size = (saliency.shape[1], saliency.shape[0])
    work = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    return np.asarray(cv2.cvtColor(work.astype(np.float32) / 255, cv2.COLOR_RGB2LAB), np.float32)


def _region(mask: npt.NDArray[np.bool_], saliency: SaliencyMap) -> Region:
    rows, columns = np.nonzero(mask)
    height, width = mask.shape
    box = Box(columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height)
    return Region(box, float(saliency[mask].mean()), float(mask.mean()))


def _resize(values: SaliencyMap, size: tuple[int, int]) -> SaliencyMap:
    return np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_LINEAR), np.float32)
