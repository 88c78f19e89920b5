"""Segment an object by colour, without weights: GrabCut (Rother, Kolmogorov and Blake 2004).

It fits one mixture of Gaussians to the object and one to its surroundings; equal inputs give equal masks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
ROUNDS = 4
# Half the distance, in working pixels, over which the change of colour at an outline is measured.
EDGE_PX = 2


def cut(pixels: Pixels, seeds: npt.NDArray[np.uint8]) -> Mask:
    """Run GrabCut from `seeds` (H, W) with OpenCV's four values.

    Without any object or any background, return the mask of the object's seeds.
    """
    import cv2

    foreground = np.isin(seeds, (cv2.GC_FGD, cv2.GC_PR_FGD))
    if foreground.all() or not foreground.any():
        return foreground
    # GrabCut's mixtures start from k-means with random centres, so fix OpenCV's seed.
    cv2.setRNGSeed(0)
    labels = seeds.copy()
    # A constant region makes a singular mixture, so add fixed noise of up to one grey level, far below any edge.
    noise = np.random.default_rng(0).integers(-1, 2, pixels.shape)
    grainy = np.clip(pixels.astype(np.int16) + noise, 0, 255).astype(np.uint8)
    cv2.grabCut(grainy, labels, (0, 0, 1, 1), np.zeros((1, 65)), np.zeros((1, 65)), ROUNDS, cv2.GC_INIT_WITH_MASK)
    return np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD))


def distinctness(pixels: Pixels, mask: Mask, background: Mask) -> float:
    """Return how clearly a mask (H, W) shows one object, 0..1.

    This is the squared share of its convex hull that the mask fills, times the strength of its outline. The strength is
    the colour change on its weakest side, relative to an equally long line of the strongest colour changes inside the
    mask or in the background, whichever are weaker. In noise, these lines change as much as the outline.
    """
    import cv2

    if not mask.any():
        return 0.0
    smooth = cv2.cvtColor(cv2.GaussianBlur(pixels, (0, 0), 1.0), cv2.COLOR_RGB2LAB).astype(np.float32)
    wide = np.pad(smooth, ((EDGE_PX, EDGE_PX), (EDGE_PX, EDGE_PX), (0, 0)), mode="edge")
    across = wide[EDGE_PX:-EDGE_PX, 2 * EDGE_PX :] - wide[EDGE_PX:-EDGE_PX, : -2 * EDGE_PX]
    down = wide[2 * EDGE_PX :, EDGE_PX:-EDGE_PX] - wide[: -2 * EDGE_PX, EDGE_PX:-EDGE_PX]
    change = np.sqrt((across**2).sum(axis=2) + (down**2).sum(axis=2))
    flags = mask.astype(np.uint8)
    outline = cv2.morphologyEx(flags, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0
    clear = np.ones((4 * EDGE_PX - 1, 4 * EDGE_PX - 1), np.uint8)
    core = cv2.erode(flags, clear, borderValue=0) > 0
    length = max(1, int(outline.sum()) // 2)
    elsewhere = min(_strongest(change[core], length), _strongest(change[background], length))
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    contours, _ = cv2.findContours(flags, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    hull = float(cv2.contourArea(cv2.convexHull(np.concatenate(contours))))
    solidity = min(1.0, float(mask.sum()) / max(1.0, hull))
    near = max(2, round(0.1 * min(len(rows), len(columns))))
    y, x = np.nonzero(outline)
    sides = (y <= rows[0] + near, y >= rows[-1] - near, x <= columns[0] + near, x >= columns[-1] - near)
    weakest = min(float(change[y[side], x[side]].mean()) for side in sides)
    return solidity**2 * min(1.0, weakest / (elsewhere + 1.0))


def _strongest(values: Floats, count: int) -> float:
    """Return the mean of the `count` largest values; 0 for none."""
    return float(np.sort(values)[-count:].mean()) if values.size else 0.0
