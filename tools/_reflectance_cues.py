"""Which of two surfaces is darker, whatever the light on them: chromaticity, and light that is common to many places.

A library of `tools/reflectance.py`. The picture is cut into segments along its edges. Light changes the brightness of
a paint and hardly its chromaticity, so segments of one chromaticity are taken for one paint, and the mean of their log
luminances for its albedo: over many segments the light averages out (non-local Retinex: Gehler et al. 2011; Zhao et al.
2012). A thin veil of haze, bluer than the surfaces, is taken off first (dark-object subtraction, Chavez 1988). Two
logistic regressions weigh the cues, one for "the same or not", one for which is darker; they were fitted on generated
pictures of the seeds 0 to 6, `bench/reflectance.py --fit` prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from tools._depth_cues import shrink

Values = npt.NDArray[np.float64]

WORK_PX = 480
GAMMA = 2.2
EDGE = 0.03
"""Gradient per px, relative to the brightness, from which a pixel belongs to an edge and to no segment."""
SMOOTHING = (1.2, 3.0, 6.0)
"""Blur in px before edges are looked for: the next one is tried where segments cover less than `COVERED`."""
COVERED = 0.6
LEAST_PX = 25
REACH_PX = 8
VEIL = (0.72, 0.80, 0.95)
"""Colour of haze, linear."""
PAINTS = ((0.02, 0.02), (0.04, 0.03))
"""Strength of the veil at the horizon and spread of one paint's chromaticity (log ratios), for the two paint cues."""
VEIL_DOUBT = 0.05
"""How much of the veil is left in doubt: dark surfaces may differ that much more along its colour."""
SIGNED = ("paint_thin", "paint_thick", "luminance", "blueness", "row", "bottom", "top", "area", "width")
"""Cues for which surface is darker: the second point's minus the first's."""
UNSIGNED = ("hue_across", "hue_along", "paint_distance", "luminance_gap")
"""Cues for whether the paints differ."""


@dataclass(frozen=True)
class Segments:
    """A picture's segments by number from 0: `labels` (h, w), -1 on edges.

    `colour` (n, 3) is the mean in linear light; `area` in px; `row` the mean height in the picture, 0 top to 1 bottom;
    `extent` (n, 4) the first and last column and row in px.
    """

    labels: npt.NDArray[np.int32]
    colour: Values
    area: Values
    row: Values
    extent: Values

    def at(self, x: float, y: float) -> int:
        """The segment of a point in px of the picture: the one it lies in, else the most common one around it."""
        height, width = self.labels.shape
        column, line = min(max(round(x), 0), width - 1), min(max(round(y), 0), height - 1)
        votes = np.zeros(self.area.size)
        for reach, weight in ((2, 5.0), (REACH_PX, 1.0), (max(height, width), 1e-6)):
            window = self.labels[
                max(0, line - reach) : line + reach + 1, max(0, column - reach) : column + reach + 1
            ].ravel()
            votes += weight * np.bincount(window[window >= 0], minlength=self.area.size)
        return int(votes.argmax())


@dataclass(frozen=True)
class PairCues:
    """The cues of two points, in the order of `SIGNED` and `UNSIGNED`; log luminances of their segments."""

    signed: Values
    unsigned: Values
    log_luminance: tuple[float, float]


def segment(pixels: Pixels) -> Segments:
    """Cut an RGB image (h, w, 3) along its edges; an image without a flat place is one segment."""
    for sigma in SMOOTHING:
        smooth = np.asarray(cv2.GaussianBlur(pixels.astype(np.float32), (0, 0), sigma), np.float32)
        across, down = (np.asarray(cv2.Sobel(smooth, cv2.CV_32F, *order, ksize=3)) / 8 for order in ((1, 0), (0, 1)))
        flat = np.hypot(across, down).max(axis=2) < EDGE * (0.25 * smooth.max(axis=2) + 12)
        _, found, facts, _ = cv2.connectedComponentsWithStats(flat.astype(np.uint8), connectivity=4)
        kept = np.flatnonzero(facts[1:, cv2.CC_STAT_AREA] >= LEAST_PX) + 1
        # Texture is all edges: it is smoothed away where too little is left.
        if facts[kept, cv2.CC_STAT_AREA].sum() >= COVERED * flat.size:
            break
    number = np.full(len(facts), -1, np.int32)
    number[kept] = np.arange(kept.size)
    labels = number[found] if kept.size else np.zeros(flat.shape, np.int32)
    return _measured(pixels, np.asarray(labels, np.int32))


def _measured(pixels: Pixels, labels: npt.NDArray[np.int32]) -> Segments:
    inside = labels >= 0
    members = labels[inside]
    area = np.bincount(members).astype(np.float64)
    rows, columns = np.nonzero(inside)
    levels = np.stack([np.bincount(members, pixels[..., k][inside]) / area for k in range(3)], axis=1) / 255
    extent = np.zeros((area.size, 4))
    for place, (values, reduce, start) in enumerate(
        ((columns, np.minimum, np.inf), (columns, np.maximum, -1), (rows, np.minimum, np.inf), (rows, np.maximum, -1))
    ):
        edge = np.full(area.size, start, np.float64)
        reduce.at(edge, members, values)
        extent[:, place] = edge
    row = np.bincount(members, rows) / area / labels.shape[0]
    return Segments(labels, np.maximum(levels, 1 / 255) ** GAMMA, area, row, extent)


def unveiled(segments: Segments, strength: float) -> tuple[Values, Values]:
    """Log luminance (n) and chromaticity (n, 2: log red over green, log blue over green) without a veil of haze.

    The veil has its full strength down to 0.4 of the height and thins out below, where the ground is near.
    """
    thickness = strength * (1 - 0.7 * np.clip((segments.row - 0.4) / 0.6, 0, 1))
    logs = np.log(np.maximum(segments.colour - thickness[:, None] * np.array(VEIL), 0.1 * segments.colour))
    return logs.mean(axis=1), np.stack([logs[:, 0] - logs[:, 1], logs[:, 2] - logs[:, 1]], axis=1)


def paint_distance(luminance: Values, chroma: Values, of: int, spread: float) -> Values:
    """Squared distance (n) of each segment's chromaticity from that of segment `of`, in units of its doubt.

    Along the colour of the veil the doubt grows with how much darker one of the two is (Sherman-Morrison).
    """
    along = _veil_direction()
    difference = chroma - chroma[of]
    inverse = np.exp(-luminance)
    doubt = (VEIL_DOUBT * (inverse - inverse[of])) ** 2
    projected = difference @ along
    scaled = doubt * projected**2 / spread**2 / (spread**2 + doubt * (along @ along))
    return np.asarray((difference**2).sum(axis=1) / spread**2 - scaled, np.float64)


def paint_level(segments: Segments, of: int, veil: float, spread: float) -> float:
    """Log albedo, up to a constant of the picture, of the paint of a segment."""
    luminance, chroma = unveiled(segments, veil)
    weight = np.exp(-0.5 * np.minimum(paint_distance(luminance, chroma, of, spread), 50.0))
    # Clipped segments have lost their chromaticity.
    weight[segments.colour.max(axis=1) > 0.93] = 0.02
    size = np.sqrt(segments.area)
    share = weight * np.minimum(size / size.mean(), 6.0)
    share[of] = min(float(size[of] / size.mean()), 6.0)
    return float(share @ luminance / share.sum())


def compare(segments: Segments, first: int, second: int) -> PairCues:
    """The cues of two segments."""
    thin, thick = (paint_level(segments, second, *paint) - paint_level(segments, first, *paint) for paint in PAINTS)
    luminance, chroma = unveiled(segments, PAINTS[0][0])
    hue = chroma[second] - chroma[first]
    along = _veil_direction() / np.linalg.norm(_veil_direction())
    inverse = np.exp(-luminance)
    expected = 0.01 * float(np.clip(inverse[second] - inverse[first], -10, 10))
    on_veil, off_veil = float(hue @ along), float(hue[0] * along[1] - hue[1] * along[0])
    gap = float(luminance[second] - luminance[first])
    distance = float(np.sqrt(max(0.0, paint_distance(luminance, chroma, first, PAINTS[0][1])[second])))
    unsigned = [
        np.log(abs(off_veil) + 0.005),
        np.log(np.hypot(off_veil, on_veil - expected) + 0.01),
        np.log(distance + 0.1),
        abs(gap),
    ]
    places = _place(segments, second) - _place(segments, first)
    signed = np.array([thin, thick, gap, float(hue[1]), *places])
    return PairCues(signed, np.array(unsigned), (float(luminance[first]), float(luminance[second])))


def reflectance_map(segments: Segments) -> npt.NDArray[np.float32]:
    """Relative reflectance 0..1 (h, w): each segment at its paint's level; edges take the nearest segment's."""
    levels = np.array([paint_level(segments, number, *PAINTS[0]) for number in range(segments.area.size)])
    low, high = float(levels.min()), float(levels.max())
    scaled = (levels - low) / (high - low) if high - low > 1e-9 else np.full(levels.size, 0.5)
    outside = (segments.labels < 0).astype(np.uint8)
    _, nearest = cv2.distanceTransformWithLabels(outside, cv2.DIST_L2, 3, labelType=cv2.DIST_LABEL_PIXEL)
    owner = np.zeros(int(nearest.max()) + 1, np.int64)
    inside = segments.labels >= 0
    owner[nearest[inside]] = segments.labels[inside]
    return np.asarray(scaled[owner[nearest]], np.float32)


def prepare(pixels: Pixels) -> Pixels:
    """The image at the size for which the constants were set: long side at most 480 px."""
    return shrink(pixels, WORK_PX)


def weigh(values: Values, weights: Sequence[float]) -> float:
    """Probability 0..1 of a logistic regression; one more weight than values is its constant."""
    constant = float(weights[len(values)]) if len(weights) > len(values) else 0.0
    score = float(np.dot(values, weights[: len(values)])) + constant
    return float(1 / (1 + np.exp(-np.clip(score, -30, 30))))


def _veil_direction() -> Values:
    return np.array([VEIL[0] - VEIL[1], VEIL[2] - VEIL[1]])


def _place(segments: Segments, number: int) -> Values:
    """Where a segment lies: what stands low and wide in a picture is mostly ground, which faces the sky."""
    height, _ = segments.labels.shape
    left, right, top, bottom = segments.extent[number]
    shape = np.log((right - left + 5) / (bottom - top + 5))
    touches = (float(bottom >= height - 6), float(top <= 5))
    return np.array([segments.row[number], *touches, np.log(segments.area[number]), shape])
