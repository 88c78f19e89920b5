"""Pairs of images of one flat scene with known matches for every point, and checks of matches against them.

Use `made = flat_pair(0)`, then `wrong_matches(matches, made)`. Tools that match views need such known answers. A check
of only the tool's answer would accept matches that are all a few pixels off, or half of them wrong, because robust
estimation compensates for such errors. The views differ by a rotation, a scale and a shift, so an equal offset or
factor in both images is also detected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.tool import Evidence, Pixels
from tools._shared.known_answers import SEED, number
from tools._shared.view_matches import FRAME_PX, Matches, Points

Array = npt.NDArray[np.float64]

# A match is right if it is within this distance of the truth, in 640ths (`FRAME_PX`) of the second image's long side.
# The available matchers are off by 0.2 to 1.5 (median).
NEAR = 3.0
# Share of matches that must be right. If half of the matches are shuffled, only half are right.
MIN_RIGHT = 0.7
MIN_MATCHES = 25
# Height and width in pixels.
Size = tuple[int, int]
# Sizes of the two images: equal, portrait with landscape, and larger than the size at which tools match.
SIZES: Sequence[tuple[Size, Size]] = (((360, 480), (360, 480)), ((480, 360), (360, 480)), ((480, 1280), (480, 1280)))


class FlatPair(NamedTuple):
    """Two images (H, W, 3) and the homography (3, 3) from pixels of the first to pixels of the second."""

    images: tuple[Pixels, Pixels]
    homography: Array

    def true_points(self, points: Points) -> Points:
        """Map points (N, 2) of the first image to the second one."""
        moved = np.hstack([points, np.ones((len(points), 1))]) @ self.homography.T
        return np.asarray(moved[:, :2] / moved[:, 2:], np.float64)


def flat_pair(index: int, seed: int = SEED) -> FlatPair:
    """Make pair `index` (from 0) of a series; pairs of one index have the same sizes under every seed."""
    import cv2

    rng = np.random.default_rng((seed, index))
    sizes = SIZES[index % len(SIZES)]
    # Overlapping coloured shapes with a grain of several sizes: corners and texture everywhere.
    length = round(1.8 * max(max(size) for size in sizes))
    canvas = np.full((length, length, 3), 128, np.uint8)
    for _ in range(500):
        middle, radius = rng.uniform(0, length, 2), rng.uniform(0.01, 0.07) * length
        corners = middle + rng.uniform(-radius, radius, (int(rng.integers(3, 6)), 2))
        colour = rng.uniform(0, 255, 3).tolist()
        cv2.fillPoly(canvas, [np.round(corners).astype(np.int32)], colour, cv2.LINE_AA)
    grain = np.zeros((length, length, 3), np.float32)
    for cell in (4, 8, 16):
        count = length // cell + 2
        coarse = rng.normal(0, 14, (count, count, 3)).astype(np.float32)
        grain += cv2.resize(coarse, (length, length), interpolation=cv2.INTER_CUBIC)
    scene = np.asarray(np.clip(canvas + grain, 0, 255), np.uint8)
    side = -1 if rng.random() < 0.5 else 1
    shift = rng.uniform(0.03, 0.06, 2) * rng.choice([-1, 1], 2)
    cameras = (
        _camera(scene.shape[0], sizes[0], 0.0, 1.0, np.zeros(2)),
        _camera(scene.shape[0], sizes[1], side * rng.uniform(10, 15), rng.uniform(0.68, 0.75), shift),
    )
    first, second = (
        np.asarray(cv2.warpPerspective(scene, camera, (size[1], size[0]), flags=cv2.INTER_LINEAR), np.uint8)
        for camera, size in zip(cameras, sizes, strict=True)
    )
    return FlatPair((first, second), np.asarray(cameras[1] @ np.linalg.inv(cameras[0]), np.float64))


def wrong_matches(matches: object, pair: FlatPair) -> str | None:
    """Describe the error of `Matches` in pixels. Return None if enough are right, or if `matches` has another type."""
    if not isinstance(matches, Matches):
        return None
    if len(matches) < MIN_MATCHES:
        return f"{len(matches)} matches were found; at least {MIN_MATCHES} are needed"
    unit = max(pair.images[1].shape[:2]) / FRAME_PX
    off = np.hypot(*(pair.true_points(matches.first) - matches.second).T) / unit
    right = float(np.mean(off < NEAR))
    if right >= MIN_RIGHT:
        return None
    return f"{right:.0%} of {len(matches)} matches are right; at least {MIN_RIGHT:.0%} are needed"


def agreeing(evidence: Evidence) -> str | None:
    """Describe the error of a matching tool's output if too few matches agree on one mapping; else return None."""
    inliers, matches = number(evidence.data, "inliers"), number(evidence.data, "matches")
    if matches >= MIN_MATCHES and inliers >= MIN_RIGHT * matches:
        return None
    return (
        f"{inliers:.0f} of {matches:.0f} matches agree; at least {MIN_RIGHT:.0%} of at least {MIN_MATCHES} are needed"
    )


def _camera(side: int, size: Size, turn_deg: float, scale: float, shift: Array) -> Array:
    """Return the similarity (3, 3) from a square scene to an image.

    `shift` moves the scene's centre away from the image's, as shares of width and height.
    """
    import cv2

    matrix = np.eye(3)
    matrix[:2] = cv2.getRotationMatrix2D((side / 2, side / 2), turn_deg, scale)
    height, width = size
    matrix[:2, 2] += np.array([width, height]) * (0.5 + shift) - side / 2
    return matrix
