"""Segment an object by colour, without weights: GrabCut (Rother, Kolmogorov and Blake 2004).

It fits one mixture of Gaussians to the object and one to its surroundings; equal inputs give equal masks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels

Mask = npt.NDArray[np.bool_]
ROUNDS = 4


def cut(pixels: Pixels, seeds: npt.NDArray[np.uint8]) -> Mask:
    """Run GrabCut from `seeds` (H, W) in OpenCV's four values; return the seeds if one side has no pixel."""
    import cv2

    foreground = np.isin(seeds, (cv2.GC_FGD, cv2.GC_PR_FGD))
    if foreground.all() or not foreground.any():
        return foreground
    # The mixtures start from k-means with random centres: fix OpenCV's seed.
    cv2.setRNGSeed(0)
    labels = seeds.copy()
    # A constant region makes a singular mixture, so add fixed noise of up to one grey level, far below any edge.
    noise = np.random.default_rng(0).integers(-1, 2, pixels.shape)
    grainy = np.clip(pixels.astype(np.int16) + noise, 0, 255).astype(np.uint8)
    cv2.grabCut(grainy, labels, (0, 0, 1, 1), np.zeros((1, 65)), np.zeros((1, 65)), ROUNDS, cv2.GC_INIT_WITH_MASK)
    return np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD))
