"""Cues for which of two surfaces is darker, independent of the light: chromaticity, and a paint's brightness elsewhere.

The image is cut into segments along its edges. Light changes the brightness of a paint but hardly its chromaticity, so
segments of one chromaticity count as one paint (non-local Retinex: Gehler et al. 2011; Zhao et al. 2012). The
distribution of a paint's brightness over all its segments indicates its reflectance, because the brightest ones are
fully lit. Two logistic regressions decide, one over the distance of the chromaticities and one over the brightness of
the paints; `bench/reflectance.py --fit` prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels

Values = npt.NDArray[np.float64]

WORK_PX = 480
GAMMA = 2.2
# Weights of linear red, green and blue (ITU-R BT.709).
LUMINANCE = (0.2126, 0.7152, 0.0722)
# Minimum gradient per px, relative to the brightness, at which a pixel belongs to an edge and not to a segment.
EDGE = 0.03
# Blur in px before edge detection: the next value is tried if the segments cover less than `COVERED`.
SMOOTHING = (1.2, 3.0, 6.0)
COVERED = 0.6
MIN_SIDE_PX = 25
# A smaller segment near a point is probably a remnant of a drawn mark; its vote counts a tenth.
WHOLE_PX = 60
# Radius of the search for a point's segment, and standard deviation of the weight by distance.
REACH_PX, NEAR_PX = 16, 7.0
# Standard deviation, in log luminance, of the difference between a segment and a point on it.
SAME_BRIGHTNESS = 0.25
# Standard deviation of one paint's chromaticity, in log ratios.
SPREAD = 0.07
# Minimum mean linear level at which a channel counts as overexposed: its chromaticity then counts a tenth.
CLIPPED = 0.93
# Smallest spread of an image's chromaticity at which chromaticity distinguishes paints. The spread is at least 0.09 in
# rendered pictures and at most 0.02 in black-and-white photographs.
COLOURFUL = 0.035
QUANTILES = (0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99)
# Edges of the bins of log luminance.
BINS = np.linspace(-8.0, 0.0, 161)
# The segments of a paint are searched for only among this many of the largest ones.
MAX_SOURCES = 300


class Segments(NamedTuple):
    """Segments of an image, numbered from 0: `labels` (h, w), -1 on edges; `brightness` (h, w) is the log luminance.

    `colour` (n, 3) is the mean in linear light, `area` the size in px, `histogram` (n, bins) the number of pixels with
    a log luminance in each of `BINS`.
    """

    labels: npt.NDArray[np.int32]
    brightness: npt.NDArray[np.float32]
    colour: Values
    area: Values
    histogram: Values

    def at(self, x: float, y: float) -> int:
        """Return the segment of a point (px of the image) that is frequent around it and as bright as the point itself.

        A painted-over mark around the point leaves remnants of a wrong colour; the brightness inside a ring survives,
        because JPEG stores it at full resolution.
        """
        height, width = self.labels.shape
        column, line = min(max(round(x), 0), width - 1), min(max(round(y), 0), height - 1)
        y0, x0 = max(0, line - REACH_PX), max(0, column - REACH_PX)
        labels = self.labels[y0 : line + REACH_PX + 1, x0 : column + REACH_PX + 1]
        rows, columns = np.ogrid[: labels.shape[0], : labels.shape[1]]
        squared = (rows + y0 - line) ** 2 + (columns + x0 - column) ** 2
        near = (labels >= 0) & (squared <= REACH_PX**2)
        if not near.any():
            rows, columns = np.nonzero(self.labels >= 0)
            if rows.size == 0:
                return 0
            place = np.argmin((rows - line) ** 2 + (columns - column) ** 2)
            return int(self.labels[rows[place], columns[place]])
        weight = np.exp(-0.5 * squared[near] / NEAR_PX**2)
        votes = np.asarray(np.bincount(labels[near], weight, minlength=self.area.size), np.float64)
        votes[self.area < WHOLE_PX] *= 0.1
        inside = self.brightness[max(0, line - 1) : line + 2, max(0, column - 1) : column + 2].mean()
        gap = (np.log(self.colour @ LUMINANCE) - inside) / SAME_BRIGHTNESS
        candidates = np.flatnonzero(votes)
        return int(candidates[np.argmax(np.log(votes[candidates]) - 0.5 * gap[candidates] ** 2)])


class PairCues(NamedTuple):
    """The cues of two points.

    `signed` (1 + quantiles) has the second point's log luminance minus the first's, and the same difference for each
    quantile of their paints. `unsigned` (2) has the log of their chromaticity distance, and the distance of their log
    luminances.
    """

    signed: Values
    unsigned: Values


def segment(pixels: Pixels) -> Segments:
    """Cut an RGB image (h, w, 3) along its edges; an image without a flat area is one segment."""
    import cv2

    for sigma in SMOOTHING:
        smooth = np.asarray(cv2.GaussianBlur(pixels.astype(np.float32), (0, 0), sigma), np.float32)
        across, down = (np.asarray(cv2.Sobel(smooth, cv2.CV_32F, *order, ksize=3)) / 8 for order in ((1, 0), (0, 1)))
        flat = np.hypot(across, down).max(axis=2) < EDGE * (0.25 * smooth.max(axis=2) + 12)
        _, regions, facts, _ = cv2.connectedComponentsWithStats(flat.astype(np.uint8), connectivity=4)
        large = np.flatnonzero(facts[1:, cv2.CC_STAT_AREA] >= MIN_SIDE_PX) + 1
        # Texture consists only of edges, so smooth more until enough of the image is flat.
        if facts[large, cv2.CC_STAT_AREA].sum() >= COVERED * flat.size:
            break
    number = np.full(len(facts), -1, np.int32)
    number[large] = np.arange(large.size)
    labels = np.asarray(number[regions] if large.size else np.zeros(flat.shape), np.int32)
    linear = np.maximum(pixels.astype(np.float32) / 255, 1 / 255) ** np.float32(GAMMA)
    brightness = np.asarray(np.log(linear @ np.asarray(LUMINANCE, np.float32)), np.float32)
    inside = labels >= 0
    members = labels[inside]
    area = np.bincount(members).astype(np.float64)
    levels = np.stack([np.bincount(members, pixels[..., k][inside]) / area for k in range(3)], axis=1) / 255
    bins = len(BINS) - 1
    place = np.clip(np.digitize(brightness[inside], BINS) - 1, 0, bins - 1)
    histogram = np.bincount(members * bins + place, minlength=area.size * bins).reshape(area.size, bins)
    colour = np.maximum(levels, 1 / 255) ** GAMMA
    return Segments(labels, brightness, colour, area, histogram.astype(np.float64))


def chromaticity(segments: Segments) -> Values:
    """Return log red over green and log blue over green of every segment, (n, 2)."""
    logs = np.log(segments.colour)
    return np.stack([logs[:, 0] - logs[:, 1], logs[:, 2] - logs[:, 1]], axis=1)


def colour_spread(segments: Segments) -> float:
    """Return the standard deviation of the chromaticity over an image's area, in log ratios; 0 for one hue."""
    chroma = chromaticity(segments)
    weights = np.where(segments.area >= min(WHOLE_PX, segments.area.max()), segments.area, 0)
    squared = ((chroma - np.average(chroma, axis=0, weights=weights)) ** 2).sum(axis=1)
    return float(np.sqrt(np.average(squared, weights=weights)))


def brightness_of(segments: Segments, ids: npt.NDArray[np.int64]) -> Values:
    """Return features (m, 1 + quantiles) for comparing points on the segments `ids` (m).

    They are the segment's log luminance, then quantiles over all pixels of its paint. A segment's weight is the root of
    its area, reduced with the distance of its chromaticity from the paint's.
    """
    sources = np.argsort(-segments.area, kind="stable")[:MAX_SOURCES]
    chroma = chromaticity(segments)
    squared = ((chroma[ids][:, None, :] - chroma[sources][None, :, :]) ** 2).sum(axis=2)
    weight = np.exp(-0.5 * np.minimum(squared / SPREAD**2, 50.0))
    weight[:, segments.colour[sources].max(axis=1) > CLIPPED] *= 0.1
    # Exclude the segment itself here: it counts in full for its own paint and is added below.
    weight[sources[None, :] == ids[:, None]] = 0.0
    shares = segments.histogram / np.sqrt(segments.area)[:, None]
    pooled = weight @ shares[sources] + shares[ids]
    cumulative = np.cumsum(pooled, axis=1) / pooled.sum(axis=1, keepdims=True)
    middles = (BINS[1:] + BINS[:-1]) / 2
    quantiles = [np.interp(QUANTILES, row, middles) for row in cumulative]
    luminance = np.log(segments.colour[ids] @ LUMINANCE)
    return np.hstack([luminance[:, None], np.array(quantiles)])


def compare(segments: Segments, first: int, second: int) -> PairCues:
    """Return the cues of two segments."""
    first_values, second_values = brightness_of(segments, np.array([first, second]))
    chroma = chromaticity(segments)
    distance = float(np.hypot(*(chroma[second] - chroma[first])))
    return PairCues(
        second_values - first_values,
        np.array([np.log(distance + 0.01), abs(float(second_values[0] - first_values[0]))]),
    )


def log_reflectance(segments: Segments, ids: npt.NDArray[np.int64], weights: Sequence[float]) -> Values:
    """Return log reflectance (m), up to a constant of the image: the weighted mean of `brightness_of`."""
    return np.asarray(brightness_of(segments, ids) @ np.asarray(weights) / sum(weights), np.float64)


def reflectance_map(segments: Segments, weights: Sequence[float]) -> npt.NDArray[np.float32]:
    """Return a map (h, w) of relative reflectance 0..1.

    Each segment has the level of its paint; edges have the level of the nearest segment.
    """
    import cv2

    levels = log_reflectance(segments, np.arange(segments.area.size), weights)
    low, high = float(levels.min()), float(levels.max())
    scaled = (levels - low) / (high - low) if high - low > 1e-9 else np.full(levels.size, 0.5)
    outside = (segments.labels < 0).astype(np.uint8)
    _, nearest = cv2.distanceTransformWithLabels(outside, cv2.DIST_L2, 3, labelType=cv2.DIST_LABEL_PIXEL)
    owner = np.zeros(int(nearest.max()) + 1, np.int64)
    inside = segments.labels >= 0
    owner[nearest[inside]] = segments.labels[inside]
    return np.asarray(scaled[owner[nearest]], np.float32)


def weigh(values: Values, weights: Sequence[float]) -> float:
    """Return the probability 0..1 of a logistic regression; an additional weight is its constant."""
    constant = float(weights[len(values)]) if len(weights) > len(values) else 0.0
    score = float(np.dot(values, weights[: len(values)])) + constant
    return float(1 / (1 + np.exp(-np.clip(score, -30, 30))))
