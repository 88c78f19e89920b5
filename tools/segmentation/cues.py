"""Cut a thing out of an image from points or a box, by colour alone, on a copy of at most `LONGEST_PX`."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from hybrid.errors import ToolError
from hybrid.tool import Pixels
from hybrid.types import Box
from tools._shared.args import Spot
from tools._shared.grabcut import Mask, cut

LONGEST_PX = 480
LEAST_PX = 16
REACH = 0.3
"""A thing given by a point is looked for within this fraction of the long side around it."""
NEAR_COLOUR = 18.0
"""L*a*b* distance to the colours at the point up to which a connected pixel starts as the thing."""


def cut_box(pixels: Pixels, box: Box) -> Mask:
    """The mask (H, W) of the thing that fills a box (pixels). Raises `ToolError` where nothing is left outside."""
    small, scale = _reduced(pixels)
    height, width = small.shape[:2]
    x0, y0 = max(0, int(box.x0 * scale[0])), max(0, int(box.y0 * scale[1]))
    x1, y1 = min(width, round(box.x1 * scale[0])), min(height, round(box.y1 * scale[1]))
    if (x1 - x0) * (y1 - y0) > 0.97 * height * width:
        raise ToolError("segmentation: the box leaves no background to compare with; give a smaller one")
    seeds = np.full((height, width), cv2.GC_BGD, np.uint8)
    seeds[y0 : max(y1, y0 + 1), x0 : max(x1, x0 + 1)] = cv2.GC_PR_FGD
    return _enlarged(cut(small, seeds), pixels)


def cut_points(pixels: Pixels, spots: Sequence[Spot], away: Sequence[Spot]) -> Mask:
    """The mask (H, W) of the thing at some points, and not at those `away`."""
    small, scale = _reduced(pixels)
    height, width = small.shape[:2]
    seeds = np.full((height, width), cv2.GC_PR_BGD, np.uint8)
    reach = max(3, round(REACH * max(height, width)))
    places = [(int(spot.x * scale[0]), int(spot.y * scale[1])) for spot in spots]
    within = np.zeros((height, width), np.uint8)
    for place in places:
        cv2.circle(within, place, reach, 1, cv2.FILLED)
    seeds[_like(small, places) & (within > 0)] = cv2.GC_PR_FGD
    seeds[within == 0] = cv2.GC_BGD
    if not (seeds == cv2.GC_BGD).any():
        seeds[0] = cv2.GC_BGD
    radius = max(1, round(0.006 * max(height, width)))
    for places_of, value in (
        (places, cv2.GC_FGD),
        ([(int(s.x * scale[0]), int(s.y * scale[1])) for s in away], cv2.GC_BGD),
    ):
        for place in places_of:
            cv2.circle(seeds, place, radius, value, cv2.FILLED)
    mask = cut(small, seeds)
    _, parts = cv2.connectedComponents(mask.astype(np.uint8))
    chosen = {int(parts[y, x]) for x, y in places} - {0}
    return _enlarged(np.isin(parts, list(chosen)), pixels)


def contrast(pixels: Pixels, mask: Mask) -> float:
    """How far the colours just inside of a mask are from those just outside, in L*a*b* units; 0 without an edge."""
    kernel = np.ones((5, 5), np.uint8)
    whole = mask.astype(np.uint8)
    inside = mask & (cv2.erode(whole, kernel) == 0)
    outside = ~mask & (cv2.dilate(whole, kernel) > 0)
    if not inside.any() or not outside.any():
        return 0.0
    lab = cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    return float(np.linalg.norm(lab[inside].mean(axis=0) - lab[outside].mean(axis=0)))


def _like(pixels: Pixels, places: Sequence[tuple[int, int]]) -> Mask:
    """What is connected to the places through pixels of their colour."""
    lab = cv2.cvtColor(cv2.GaussianBlur(pixels, (0, 0), 1.5).astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    found = np.zeros(pixels.shape[:2], bool)
    for x, y in places:
        window = lab[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3].reshape(-1, 3)
        near = np.linalg.norm(lab - np.median(window, axis=0), axis=2) < NEAR_COLOUR
        _, parts = cv2.connectedComponents(near.astype(np.uint8))
        found |= (parts == parts[y, x]) & near
    return found


def _reduced(pixels: Pixels) -> tuple[Pixels, tuple[float, float]]:
    height, width = pixels.shape[:2]
    if min(height, width) < LEAST_PX:
        raise ToolError(f"segmentation: image 1 is {width} x {height} px; at least {LEAST_PX} px a side are needed")
    scale = min(1.0, LONGEST_PX / max(height, width))
    size = (max(2, round(width * scale)), max(2, round(height * scale)))
    small = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    return small, (size[0] / width, size[1] / height)


def _enlarged(mask: Mask, pixels: Pixels) -> Mask:
    size = (pixels.shape[1], pixels.shape[0])
    return np.asarray(cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST), np.uint8) > 0
