"""Objects marked by a map of regions: `salient_objects(object_map(pixels))`, and the saliency of a given box.

The map is that of `background.py`. An object is a connected region above a threshold; if a higher threshold splits it
into large pieces, it counts as several objects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.core.types import Box
from hybrid.tool import Pixels
from tools._shared.boxes import area, shared_area
from tools.saliency.background import foreground, superpixels
from tools.saliency.cues import SaliencyMap, otsu, stretch

Mask = npt.NDArray[np.bool_]

# Share of Otsu's threshold above which a cell belongs to an object. All constants here were set on generated images 0
# to 59 of seed 0 and on 14 photographs that the documentation does not report on.
LOWERED = 0.85
# Largest gap, in cells, between the parts of an object.
GAP = 5
# Smallest object, as a fraction of the image.
MIN_AREA = 0.0006
# Smallest prominence of an object, as a fraction of the most prominent one's.
MIN_SHARE = 0.1
# Smallest piece that counts as a separate object, as a fraction of the split object.
MIN_PIECE = 0.2
# Largest share of the image for an object's box if a higher threshold makes the box smaller: a box of the full image
# carries no information.
MAX_BOX = 0.7
# Number of equal steps from a threshold up to the highest value. Where one step ends and the next begins, a threshold
# is tried.
STEPS = 8
# An object is part of another one if at least this share of its box is inside the box of the other.
WITHIN = 0.7


class Region(NamedTuple):
    """A salient region: its box in fractions of the image, its mean saliency, and its share of the image's area."""

    box_0_1: Box
    mean: float
    area: float

    @property
    def prominence(self) -> float:
        """Mean saliency times the square root of the area (exponent chosen on generated images, seeds 0 to 59)."""
        return float(self.mean * np.sqrt(self.area))


def object_map(pixels: Pixels) -> SaliencyMap:
    """Compute saliency 0..1 (h, w) of regions of an RGB image (H, W, 3), long side 240; 0 everywhere if flat."""
    return stretch(foreground(superpixels(pixels)))


def salient_objects(values: SaliencyMap) -> list[Region]:
    """Return the objects in a map (h, w) in 0..1, most prominent first; none if the map is constant."""
    if values.max() <= 0:
        return []
    masks, threshold = _marked(values)
    pieces = [piece for mask in masks for piece in _parted(values, mask, threshold)]
    regions = []
    height, width = values.shape
    for piece in pieces:
        rows, columns = np.nonzero(piece)
        box = Box(columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height)
        regions.append(Region(box, float(values[piece].mean()), float(piece.mean())))
    regions.sort(key=lambda region: -region.prominence)
    separate: list[Region] = []
    for region in regions:
        box = region.box_0_1
        if not any(shared_area(box, other.box_0_1) > WITHIN * area(box) for other in separate):
            separate.append(region)
    return [region for region in separate if region.prominence >= MIN_SHARE * separate[0].prominence]


def in_box(values: SaliencyMap, box: Box, size: tuple[int, int]) -> Region:
    """Return the more salient half of a map (h, w) inside a box in pixels of an image of `size` (H, W)."""
    rows, columns = values.shape
    x0, y0 = int(box.x0 * columns / size[1]), int(box.y0 * rows / size[0])
    x1 = max(x0 + 1, round(box.x1 * columns / size[1]))
    y1 = max(y0 + 1, round(box.y1 * rows / size[0]))
    inside = np.sort(values[y0:y1, x0:x1].ravel())[::-1]
    share = Box(box.x0 / size[1], box.y0 / size[0], box.x1 / size[1], box.y1 / size[0])
    area = (share.x1 - share.x0) * (share.y1 - share.y0)
    return Region(share, float(inside[: max(1, inside.size // 2)].mean()), area)


def _marked(values: SaliencyMap) -> tuple[list[Mask], float]:
    """Return the pieces above the lowest threshold at which no piece fills the image, and that threshold.

    If a piece fills the image at every threshold, return the pieces above the lowest threshold.
    """
    import cv2

    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (GAP, GAP))
    lowest = LOWERED * otsu(values)
    levels: list[tuple[list[Mask], float]] = []
    for level in np.linspace(lowest, float(values.max()), STEPS + 1)[:-1]:
        marked = np.asarray(cv2.morphologyEx((values > level).astype(np.uint8), cv2.MORPH_CLOSE, kernel), np.uint8)
        masks = _connected(marked, MIN_AREA * values.size)
        levels.append((masks, float(level)))
        spans = [np.ptp(np.nonzero(mask), axis=1) + 1 for mask in masks]
        if masks and not any(int(down) * int(across) > MAX_BOX * values.size for down, across in spans):
            return levels[-1]
    return levels[0]


def _parted(values: SaliencyMap, mask: Mask, threshold: float) -> list[Mask]:
    """Return the mask or, if a higher threshold splits it into large pieces, the parts grown from these pieces."""
    import cv2

    least = MIN_PIECE * int(mask.sum())
    for level in np.linspace(threshold, float(values[mask].max()), STEPS + 1)[1:-1]:
        seeds = _connected(((values > level) & mask).astype(np.uint8), least)
        if len(seeds) > 1:
            # Assign each cell of the mask to the nearest seed.
            far = [cv2.distanceTransform((~seed).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5) for seed in seeds]
            nearest = np.argmin(np.stack(far), axis=0)
            cells = [mask & (nearest == number) for number in range(len(seeds))]
            return [part for cell in cells for part in _parted(values, cell, float(level))]
    return [mask]


def _connected(marked: npt.NDArray[np.uint8], least: float) -> list[Mask]:
    """Return the connected pieces of a mask with at least `least` cells."""
    import cv2

    count, labels, facts, _ = cv2.connectedComponentsWithStats(np.ascontiguousarray(marked), connectivity=8)
    return [labels == number for number in range(1, count) if facts[number, cv2.CC_STAT_AREA] >= least]
