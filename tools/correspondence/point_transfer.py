"""Where a point of one picture is in another, from matches: one homography, a local affine map, or descriptors.

A homography (USAC MAGSAC++, Barath et al. 2020) holds for flat scenes and pure
turns; elsewhere the matches nearest to the point are fitted by an affine map; where there are too few, descriptors at
the point and at the candidates are compared over scales and angles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from tools._shared.view_matches import SMALLEST_PX, Matches, View, root_sift

Method = Literal["homography", "local_affine", "descriptor"]

FEWEST_INLIERS = 25
LEAST_RATIO = 0.3
"""Inliers over matches from which one homography is believed."""
INLIER_PX = 2.0
NEIGHBOURS = 12
"""Matches nearest to the point that an affine map is fitted to."""
LOCAL_PX = 4.0
FEWEST_LOCAL = 4
LOCAL_SHARE = 0.5
"""Share of the nearest matches that one homography must explain: a wall behind the object outvotes it elsewhere."""
LARGEST_STRETCH = 5.0
"""An affine map that stretches or shrinks more is of wrong matches."""
SIZES_PX = (16.0, 24.0, 36.0, 54.0)
CANDIDATE_SIZES_PX = (24.0, 36.0)
TURNS_DEG = tuple(range(0, 360, 15))


@dataclass(frozen=True)
class Transfer:
    """A point in pixels of image 2, how it was found and on how many inliers."""

    x: float
    y: float
    method: Method
    inliers: int
    support: float
    """Share, 0..1, of the matches nearest to the point that the map explains."""


def transfers(point: tuple[float, float], matches: Matches) -> list[Transfer]:
    """Where a point of image 1 is in image 2, the more believable map first; empty where the matches do not say."""
    if len(matches) < FEWEST_LOCAL:
        return []
    near = np.argsort(np.hypot(*(matches.first - point).T), kind="stable")[:NEIGHBOURS]
    whole, local = _homography(point, matches, near), _local_affine(point, matches, near)
    if whole is not None and whole.support >= LOCAL_SHARE:
        return [found for found in (whole, local) if found is not None]
    return [found for found in (local, whole) if found is not None]


def _homography(point: tuple[float, float], matches: Matches, near: npt.NDArray[np.intp]) -> Transfer | None:
    matrix, mask = cv2.findHomography(
        matches.first, matches.second, cv2.USAC_MAGSAC, INLIER_PX, maxIters=5000, confidence=0.9999
    )
    if matrix is None or mask is None:
        return None
    inliers = np.asarray(mask).ravel().astype(bool)
    if inliers.sum() < FEWEST_INLIERS or inliers.mean() < LEAST_RATIO:
        return None
    x, y, depth = (float(value) for value in matrix @ np.array([*point, 1.0]))
    if abs(depth) < 1e-9:
        return None
    return Transfer(x / depth, y / depth, "homography", int(inliers.sum()), float(inliers[near].mean()))


def _local_affine(point: tuple[float, float], matches: Matches, near: npt.NDArray[np.intp]) -> Transfer | None:
    matrix, mask = cv2.estimateAffine2D(
        matches.first[near], matches.second[near], method=cv2.RANSAC, ransacReprojThreshold=LOCAL_PX, maxIters=2000
    )
    if matrix is None or mask is None:
        return None
    inliers = int(np.asarray(mask).sum())
    stretch = np.linalg.svd(matrix[:, :2], compute_uv=False)
    if inliers < FEWEST_LOCAL or stretch[0] > LARGEST_STRETCH or stretch[1] < 1 / LARGEST_STRETCH:
        return None
    x, y = matrix @ np.array([*point, 1.0])
    return Transfer(float(x), float(y), "local_affine", inliers, inliers / len(near))


def descriptor_distances(
    views: tuple[View, View], point: tuple[float, float], candidates: Sequence[tuple[float, float]]
) -> list[float]:
    """Smallest RootSIFT distance, 0..sqrt(2), of each candidate to the point over sizes and turns.

    Infinite where a picture is too small to be described.

    `point` and `candidates` are in pixels of the original pictures.
    """
    if min(min(view.pixels.shape[:2]) for view in views) < SMALLEST_PX:
        return [float("inf")] * len(candidates)
    (x, y) = views[0].from_original(np.array([point]))[0]
    asked = [cv2.KeyPoint(float(x), float(y), size, float(turn)) for size in SIZES_PX for turn in TURNS_DEG]
    here = root_sift(_grey(views[0].pixels), asked)
    found = []
    for x, y in views[1].from_original(np.array(candidates, np.float64).reshape(-1, 2)):
        offered = [cv2.KeyPoint(float(x), float(y), size, 0.0) for size in CANDIDATE_SIZES_PX]
        there = root_sift(_grey(views[1].pixels), offered)
        found.append(float(np.sqrt(np.maximum(2 - 2 * (here @ there.T).max(), 0))))
    return found


def _grey(pixels: Pixels) -> npt.NDArray[np.uint8]:
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8)
