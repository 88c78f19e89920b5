"""How well a pasted piece goes on with the picture, by features of a vision transformer on both sides of its seams.

The picture with the piece in its hole passes through DINOv2 or DINOv3
(`_shared/dense_features.py`); the features beside the seam outside of the piece are compared with those inside of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tools._shared.dense_features import PATCHES, FeatureMap

# Distance of a place from the seam, in patches: beyond the one that the seam may cut.
STEP = 1.0
# Places along each seam.
PLACES = 16
# Lead in mean cosine that removes 63 % of the doubt in the second opinion; by argument, not measured.
COSINE_SCALE = 0.05
# Most confidence in a second opinion, which was never measured with trained weights.
OPINION_CERTAIN = 0.75


class Opinion(NamedTuple):
    """Mean cosine across the seams, -1..1, for each candidate; the best, None for a tie; confidence 0..1 in it."""

    cosines: tuple[float, ...]
    best: int | None
    confidence: float


def affinity(features: FeatureMap, left: int, top: int) -> float:
    """Mean cosine, -1..1, across both seams of a piece that reaches from (left, top) to the lower right.

    Args:
        features: of the picture with the piece in place.
        left: x of the piece's first column, pixels.
        top: y of the piece's first row, pixels.
    """
    height, width = features.size
    away = STEP * max(height, width) / PATCHES
    along_x = left + (np.arange(PLACES) + 0.5) * (width - left) / PLACES - 0.5
    along_y = top + (np.arange(PLACES) + 0.5) * (height - top) / PLACES - 0.5
    pairs = [((x, top - away), (x, top + away)) for x in along_x]
    pairs += [((left - away, y), (left + away, y)) for y in along_y]
    return float(
        np.mean([float(np.clip(features.at(*outside) @ features.at(*inside), -1.0, 1.0)) for outside, inside in pairs])
    )


def decide_by_features(cosines: Sequence[float]) -> Opinion:
    """The candidate of the largest mean cosine, at least two given; the confidence grows with its lead."""
    ordered = sorted(cosines, reverse=True)
    lead, chance = ordered[0] - ordered[1], 1 / len(cosines)
    if lead < 1e-6:
        return Opinion(tuple(cosines), None, chance)
    gain = 1 - float(np.exp(-lead / COSINE_SCALE))
    sure = min(OPINION_CERTAIN, chance + (1 - chance) * gain)
    return Opinion(tuple(cosines), list(cosines).index(ordered[0]), sure)
