"""Cut a thing out of an image by colour, without weights: GrabCut (Rother, Kolmogorov and Blake 2004).

Two mixtures of Gaussians, one for the thing and one for what surrounds it; equal inputs give equal masks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels

Mask = npt.NDArray[np.bool_]
ROUNDS = 4


def cut(pixels: Pixels, seeds: npt.NDArray[np.uint8]) -> Mask:
    """GrabCut from `seeds` (H, W) in OpenCV's four values; where one side has no pixel, the seeds as they are."""
    import cv2

    foreground = np.isin(seeds, (cv2.GC_FGD, cv2.GC_PR_FGD))
    if foreground.all() or not foreground.any():
        return foreground
    # The mixtures start from k-means with random centres.
    cv2.setRNGSeed(0)
    labels = seeds.copy()
    # A constant region makes a singular mixture: half a grey level of fixed noise is far below any edge.
    noise = np.random.default_rng(0).integers(-1, 2, pixels.shape)
    grainy = np.clip(pixels.astype(np.int16) + noise, 0, 255).astype(np.uint8)
    cv2.grabCut(grainy, labels, (0, 0, 1, 1), np.zeros((1, 65)), np.zeros((1, 65)), ROUNDS, cv2.GC_INIT_WITH_MASK)
    return np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD))
