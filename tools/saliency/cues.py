"""Saliency without weights: conspicuity, boolean maps, the image signature and full regions.

`salience(pixels)` returns one map 0..1 on a reduced grid.

- conspicuity: intensity, two colour opponencies and four orientations, each compared with its surround over scales and
  weighted up if it has few peaks (Itti, Koch and Niebur 1998).
- boolean maps: regions of thresholded colour channels that do not touch the image border (Zhang and Sclaroff 2013).
- signature: the signs of the cosine transform, transformed back (Hou, Harel and Koch 2012).
- regions: areas not connected with the border (`background.py`), because the other three mark only spots and edges.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from tools._shared.reading import shrink
from tools.saliency.background import foreground, superpixels

# One value per grid cell, shape (h, w).
SaliencyMap = npt.NDArray[np.float32]

# Long side for all measurements: the scales below were chosen for it.
WORK_PX = 320
SIGNATURE_PX = 96
# Thresholds of each colour channel in the boolean maps.
LEVELS = 16
# Grey levels between the darkest and the brightest pixel below which an image is flat: stretching would show rounding.
MIN_LEVELS = 3
# Sigma of the centre prior, as a fraction of width and height: people look at the centre first (Tatler 2007).
CENTRE_SIGMA = 0.3
# Value of the centre prior in the corners; at 0.25 it drops objects near the border.
MIN_PRIOR = 0.4

# Half the width of the band painted over a dividing line: ActiView's lines are 15 px wide, and JPEG blurs their edges.
LINE_HALF_PX = 10
# Largest standard deviation of grey levels along a drawn line of one colour, after JPEG.
LINE_SPREAD = 16.0
# Smallest mean difference, in the channel where it is largest, between a drawn line and its sides, in grey levels.
LINE_CONTRAST = 40.0


def salience(pixels: Pixels) -> SaliencyMap:
    """Return saliency 0..1 (h, w) of an RGB image (H, W, 3), long side at most 320 cells; 0 if the image is flat."""
    work = shrink(pixels, WORK_PX)
    size = (work.shape[1], work.shape[0])
    if int((work.max(axis=(0, 1)) - work.min(axis=(0, 1))).max()) < MIN_LEVELS:
        return np.zeros(work.shape[:2], np.float32)
    regions = stretch(foreground(superpixels(work)))
    parts = [conspicuity(work), boolean_maps(work), signature(work), regions]
    total = np.zeros(work.shape[:2], np.float32)
    for part in parts:
        full = _resize(part, size)
        # Normalise by the mean, so that a map with few peaks counts more than a uniformly bright one.
        total += full / max(float(full.mean()), 1e-6) if full.max() > 0 else 0
    # The centre prior: a Gaussian around the centre from 1 down to `MIN_PRIOR`.
    rows, columns = (((np.arange(side) + 0.5) / side - 0.5) / CENTRE_SIGMA for side in work.shape[:2])
    bell = np.exp(-(rows[:, None] ** 2 + columns[None] ** 2) / 2)
    return stretch(stretch(total) * np.asarray(MIN_PRIOR + (1 - MIN_PRIOR) * bell, np.float32))


def conspicuity(work: Pixels) -> SaliencyMap:
    """Compute Itti, Koch and Niebur's map of an RGB image (h, w, 3)."""
    import cv2

    red, green, blue = (np.asarray(c, np.float32) for c in cv2.split(work.astype(np.float32) / 255))
    intensity = np.asarray((red + green + blue) / 3, np.float32)
    brightest = np.maximum(np.maximum(red, green), blue)
    # Hue is meaningless in the dark.
    lit = np.where(brightest >= 0.1, brightest, np.inf)
    opponents = ((red - green) / lit, (blue - np.minimum(red, green)) / lit)
    colours = [contrast for opponent in opponents for contrast in _centre_surround(np.asarray(opponent, np.float32))]
    size = (max(1, work.shape[1] // 2), max(1, work.shape[0] // 2))
    oriented = np.zeros((size[1], size[0]), np.float32)
    for step in range(4):
        kernel = cv2.getGaborKernel((9, 9), 2.2, np.pi * step / 4, 5.0, 1.0, 0.0, cv2.CV_32F)
        response = np.abs(cv2.filter2D(intensity, cv2.CV_32F, np.asarray(kernel - kernel.mean(), np.float32)))
        oriented += promote(_sum(_centre_surround(np.asarray(response, np.float32)), size))
    combined = promote(_sum(_centre_surround(intensity), size)) + promote(_sum(colours, size)) + promote(oriented)
    return stretch(np.asarray(cv2.GaussianBlur(combined, (0, 0), 2), np.float32))


def promote(values: SaliencyMap) -> SaliencyMap:
    """Apply Itti, Koch and Niebur's normalisation to a map (h, w): multiply the map, scaled to 0..1, by (1 - m)^2.

    m is the mean height of all peaks except the highest: a single peak keeps its height, many equal ones lose theirs.
    To this product 0.05 times the scaled map is added, so that no map is lost.
    """
    scaled = stretch(values)
    heights = _peaks(scaled)
    others = float(np.sort(heights)[:-1].mean()) if heights.size > 1 else 0.0
    return np.asarray(scaled * (1 - others) ** 2 + 0.05 * scaled, np.float32)


def _peaks(scaled: SaliencyMap) -> SaliencyMap:
    """Return the heights (n,) of the peaks above 0.05 of a map (h, w) in 0..1; connected cells are one peak."""
    import cv2

    highest = (scaled == cv2.dilate(scaled, np.ones((7, 7), np.uint8))) & (scaled > 0.05)
    number, labels = cv2.connectedComponents(highest.view(np.uint8))
    heights = np.zeros(number, np.float32)
    # Cells of one label have one height, so it does not matter which of them is written last.
    heights[labels] = scaled
    # Label 0 is everything that is no peak.
    return heights[1:]


def boolean_maps(work: Pixels) -> SaliencyMap:
    """Compute Zhang and Sclaroff's attention map: how often a cell is in a region that does not touch the border."""
    import cv2

    colours = cv2.cvtColor(work.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    attention = np.zeros(work.shape[:2], np.float32)
    square = np.ones((5, 5), np.uint8)
    for channel in cv2.split(colours):
        spread = float(channel.max() - channel.min())
        if spread < 2:
            continue
        levels = np.asarray((channel - channel.min()) * (255 / spread), np.float32)
        for number in range(LEVELS):
            above = (levels > (number + 0.5) * 255 / LEVELS).view(np.uint8)
            for region in (above, 1 - above):
                enclosed = _without_border(region)
                count = cv2.countNonZero(enclosed)
                if count:
                    # The table maps a pixel's byte to the attention that it adds. Looking it up takes a sixteenth of
                    # the time of computing it per pixel.
                    wider = cv2.dilate(enclosed, square)
                    attention += cv2.LUT(wider, _share_table(count))
    return stretch(np.asarray(cv2.GaussianBlur(attention, (0, 0), 4), np.float32))


def _without_border(region: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the parts of a binary region (h, w) that do not touch the border, with diagonal connectivity."""
    import cv2

    height, width = region.shape
    framed = np.ones((height + 2, width + 2), np.uint8)
    framed[1:-1, 1:-1] = region
    # Everything connected with a frame around the image becomes 0.
    cv2.floodFill(framed, None, (0, 0), (0,), flags=8)
    return np.ascontiguousarray(framed[1:-1, 1:-1])


def _share_table(count: int) -> npt.NDArray[np.float32]:
    """Return the attention that a pixel adds, by its value 0 or 1, for a region of `count` pixels."""
    table = np.zeros((1, 256), np.float32)
    table[0, 1] = np.float32(1) / np.sqrt(np.float32(count))
    return table


def signature(work: Pixels) -> SaliencyMap:
    """Compute Hou, Harel and Koch's map from the signs of the cosine transform of each L*a*b* channel."""
    import cv2
    from scipy.fft import dctn, idctn

    small = shrink(work, SIGNATURE_PX)
    colours = cv2.cvtColor(small.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    energy = np.zeros(small.shape[:2], np.float64)
    for channel in cv2.split(colours):
        coefficients = dctn(np.asarray(channel, np.float64), norm="ortho")
        # A coefficient that is zero up to rounding has no sign.
        coefficients[np.abs(coefficients) < 1e-3] = 0
        energy += idctn(np.sign(coefficients), norm="ortho") ** 2
    return stretch(np.asarray(cv2.GaussianBlur(energy, (0, 0), 0.045 * max(energy.shape)), np.float32))


def without_lines(pixels: Pixels, columns: int, rows: int) -> Pixels:
    """Paint over lines drawn between equal columns and rows of an image, blending from their two sides.

    Only real lines are painted over: the centre has one colour from border to border, unlike its sides. The input is
    not changed.
    """
    out = pixels
    for axis, parts in ((1, columns), (0, rows)):
        size = pixels.shape[axis]
        half = min(LINE_HALF_PX, size // (4 * parts))
        for number in range(1, parts):
            middle = number * size // parts
            if half < 1:
                continue
            lines = np.moveaxis(pixels, axis, 0)
            along, sides = lines[middle].astype(np.float32), lines[[middle - half, middle + half]].astype(np.float32)
            unlike = np.abs(sides - along.mean(axis=0)).max(axis=2)
            if float(along.std(axis=0).max()) < LINE_SPREAD and float(unlike.mean()) > LINE_CONTRAST:
                # Blend the band [low, high) of an axis from its two neighbours.
                low = middle - half
                high = middle + half
                moved = np.moveaxis(out, axis, 0).astype(np.float32)
                low_edge, high_edge = moved[low - 1], moved[min(high, moved.shape[0] - 1)]
                share = ((np.arange(high - low) + 1) / (high - low + 1))[:, None, None]
                moved[low:high] = low_edge * (1 - share) + high_edge * share
                out = np.moveaxis(np.round(moved), 0, axis).astype(np.uint8)
    return out


def otsu(values: SaliencyMap) -> float:
    """Return Otsu's threshold (1979) of a map in 0..1."""
    import cv2

    levels = np.round(np.clip(values, 0, 1) * 255).astype(np.uint8)
    level, _ = cv2.threshold(levels, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    return float(level) / 255 + 1e-6


def stretch(values: SaliencyMap) -> SaliencyMap:
    """Shift and scale a map to 0..1; zero everywhere if it is constant."""
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-9:
        return np.zeros_like(values, np.float32)
    return np.asarray((values - low) / (high - low), np.float32)


def _centre_surround(feature: SaliencyMap) -> list[SaliencyMap]:
    import cv2

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


def _resize(values: SaliencyMap, size: tuple[int, int]) -> SaliencyMap:
    import cv2

    return np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_LINEAR), np.float32)
